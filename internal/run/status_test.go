package run_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/run"
)

var update = flag.Bool("update", false, "write the golden files")

// TestMachine holds every status × transition pair against a matrix that a person can
// read: R1 and R2.
func TestMachine(t *testing.T) {
	t.Run("R2 every status × transition pair is as the matrix says", func(t *testing.T) {
		var b strings.Builder
		for _, tr := range run.Transitions {
			fmt.Fprintf(&b, "%s", tr.Name)
			if tr.Segment {
				b.WriteString(" (lease)")
			}
			b.WriteString("\n")
			for _, from := range run.Statuses {
				to := "-"
				if tr.Allows(from) {
					to = string(tr.To)
				}
				fmt.Fprintf(&b, "  %-22s %s\n", from, to)
			}
		}
		golden(t, "testdata/machine.golden", b.String())
	})

	t.Run("R1 nothing leaves a terminal status", func(t *testing.T) {
		for _, tr := range run.Transitions {
			for _, from := range tr.From {
				if from.Terminal() {
					t.Errorf("%q leaves the terminal status %s", tr.Name, from)
				}
			}
		}
	})

	t.Run("R1 every open status can be cancelled", func(t *testing.T) {
		for _, s := range run.Statuses {
			if run.Cancel.Allows(s) == s.Terminal() {
				t.Errorf("cancel from %s: %v", s, run.Cancel.Allows(s))
			}
		}
	})

	t.Run("R1 every status is reachable from queued", func(t *testing.T) {
		reached := []run.Status{run.Queued}
		for range run.Statuses {
			for _, tr := range run.Transitions {
				for _, from := range tr.From {
					if slices.Contains(reached, from) && !slices.Contains(reached, tr.To) {
						reached = append(reached, tr.To)
					}
				}
			}
		}
		if len(reached) != len(run.Statuses) {
			t.Errorf("reachable: %v", reached)
		}
	})
}

// TestEndings is R1's table: every reason has one status and one outcome.
func TestEndings(t *testing.T) {
	t.Run("R1 the table of endings is as the golden file says", func(t *testing.T) {
		var lines []string
		for reason, e := range run.Endings {
			lines = append(lines, fmt.Sprintf("%-28s %-10s %-28s truncated=%v", reason, e.Status, e.Outcome, e.Truncated))
		}
		slices.Sort(lines)
		golden(t, "testdata/endings.golden", strings.Join(lines, "\n")+"\n")
	})
	t.Run("R1 every ending is terminal", func(t *testing.T) {
		for reason, e := range run.Endings {
			if !e.Status.Terminal() {
				t.Errorf("%s ends in %s", reason, e.Status)
			}
		}
	})
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s", path, got)
	}
}
