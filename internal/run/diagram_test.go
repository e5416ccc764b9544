package run_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/run"
)

// TestDiagram keeps the diagram of the documentation equal to the table of
// transitions (-update writes it).
func TestDiagram(t *testing.T) {
	const page, begin, end = "../../docs/running.md", "<!-- states: begin -->\n", "<!-- states: end -->"
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), begin)
	shown, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the diagram", page)
	}
	drawn := "```mermaid\n" + diagram() + "```\n"
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+drawn+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if shown != drawn {
		t.Errorf("the diagram of %s is not the table's; write it with: go test ./internal/run -run TestDiagram -update", page)
	}
}

func diagram() string {
	var b strings.Builder
	fmt.Fprintf(&b, "stateDiagram-v2\n    [*] --> %s\n", run.Queued)
	for _, t := range run.Transitions {
		for _, from := range t.From {
			fmt.Fprintf(&b, "    %s --> %s: %s\n", from, t.To, t.Name)
		}
	}
	for _, s := range run.Statuses {
		if s.Terminal() {
			fmt.Fprintf(&b, "    %s --> [*]\n", s)
		}
	}
	return b.String()
}
