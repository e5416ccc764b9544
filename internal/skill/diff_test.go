package skill

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestDiff(t *testing.T) {
	from := Version{Name: "style", Description: "house style", Body: "1\n2\n3\n4\n5\n6\n7\n8\n9\n", Support: SupportFull, Tools: NoTools(), Process: ProcessNo}
	t.Run("A9 equal versions give no lines", func(t *testing.T) {
		if got := Diff(from, from); len(got) > 0 {
			t.Errorf("lines = %v", got)
		}
	})
	t.Run("A9 every changed field has a heading and its lines", func(t *testing.T) {
		to := from
		to.Name, to.Process, to.Tools, to.Support = "style guide", ProcessYes, DeclareTools("Read", "Bash"), SupportPartial
		to.Body = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"
		want := []DiffLine{
			{DiffHeading, "name"},
			{DiffRemoved, "style"},
			{DiffAdded, "style guide"},
			{DiffHeading, "allowed tools"},
			{DiffRemoved, "undeclared"},
			{DiffAdded, "declared:"},
			{DiffAdded, "Bash"},
			{DiffAdded, "Read"},
			{DiffHeading, "process"},
			{DiffRemoved, "no"},
			{DiffAdded, "yes"},
			{DiffHeading, "support status"},
			{DiffRemoved, "full"},
			{DiffAdded, "partial"},
			{DiffHeading, "body"},
			{DiffHeading, "…"},
			{DiffContext, "2"},
			{DiffContext, "3"},
			{DiffContext, "4"},
			{DiffRemoved, "5"},
			{DiffAdded, "five"},
			{DiffContext, "6"},
			{DiffContext, "7"},
			{DiffContext, "8"},
		}
		if diff := cmp.Diff(want, Diff(from, to)); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
	})
	t.Run("A9 from nothing everything is added", func(t *testing.T) {
		for _, line := range Diff(Version{}, from) {
			if line.Kind != DiffAdded && line.Kind != DiffHeading {
				t.Errorf("line = %+v", line)
			}
		}
	})
	t.Run("A9 a lost line end at the end of the body shows", func(t *testing.T) {
		to := from
		to.Body = strings.TrimSuffix(from.Body, "\n")
		got := Diff(from, to)
		if last := got[len(got)-1]; last.Text != noNewline {
			t.Errorf("lines = %v", got)
		}
	})
	t.Run("A9 null, [] and unreadable tools look different", func(t *testing.T) {
		seen := map[string]bool{}
		for _, tools := range []Tools{NoTools(), DeclareTools(), UnreadableTools(), DeclareTools("none"), DeclareTools("undeclared")} {
			seen[describeTools(tools)] = true
		}
		if len(seen) != 5 {
			t.Errorf("descriptions = %v", seen)
		}
	})
}

// TestDiffShowsEveryChange holds the diff to the digest: what the digest tells apart, a reviewer sees.
func TestDiffShowsEveryChange(t *testing.T) {
	text := rapid.SampledFrom([]string{"", "a", "a\n", "a\nb", "a\nb\n", "\n", "\n\n", "a\r\nb"})
	version := rapid.Custom(func(t *rapid.T) Version {
		return Version{
			Name: text.Draw(t, "name"), Description: text.Draw(t, "description"), Body: text.Draw(t, "body"),
			Support: rapid.SampledFrom([]SupportStatus{SupportFull, SupportPartial}).Draw(t, "support"),
			Tools:   rapid.SampledFrom([]Tools{NoTools(), DeclareTools(), UnreadableTools(), DeclareTools("a"), DeclareTools("a", "b")}).Draw(t, "tools"),
			Process: rapid.SampledFrom([]Process{ProcessNo, ProcessYes, ProcessUnreadable}).Draw(t, "process"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		from, to := version.Draw(t, "from"), version.Draw(t, "to")
		lines := Diff(from, to)
		changed := slices.ContainsFunc(lines, func(l DiffLine) bool { return l.Kind == DiffAdded || l.Kind == DiffRemoved })
		if same := from.Digest() == to.Digest(); same == changed || same != (len(lines) == 0) {
			t.Fatalf("same digest %v, lines %v", same, lines)
		}
	})
}

func TestToolsGainedAndLost(t *testing.T) {
	with := func(tools Tools) Version { return Version{Tools: tools} }
	for _, c := range []struct {
		name         string
		from, to     Tools
		gained, lost []string
	}{
		{"A9 gained and lost", DeclareTools("Bash", "Read"), DeclareTools("Grep", "Read"), []string{"Grep"}, []string{"Bash"}},
		{"A9 a first declaration grants its items", NoTools(), DeclareTools("Read"), []string{"Read"}, nil},
		{"A9 an unreadable declaration loses what was granted", DeclareTools("Read"), UnreadableTools(), nil, []string{"Read"}},
		{"A9 nothing between null, [] and unreadable", NoTools(), DeclareTools(), nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ToolsGained(with(c.from), with(c.to)); !slices.Equal(got, c.gained) {
				t.Errorf("gained = %v, want %v", got, c.gained)
			}
			if got := ToolsLost(with(c.from), with(c.to)); !slices.Equal(got, c.lost) {
				t.Errorf("lost = %v, want %v", got, c.lost)
			}
		})
	}
}
