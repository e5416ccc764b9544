package skill

import (
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// DiffKind says what a line of a diff is.
type DiffKind string

const (
	DiffHeading DiffKind = "heading" // names the field the following lines belong to, or the place in it; no text of the skill can pass for one
	DiffContext DiffKind = "context"
	DiffAdded   DiffKind = "added"
	DiffRemoved DiffKind = "removed"
)

// DiffLine is one line of a diff, without its line end.
type DiffLine struct {
	Kind DiffKind
	Text string
}

// noNewline is the context line that says of the line before it that its text ends there, without an LF.
const noNewline = `\ no line end`

// Diff compares everything a digest covers, field by field: each changed field is a heading and its lines, with three unchanged lines around a change.
// Equal versions give no lines, and versions with different digests always give some. From the zero Version everything is added.
func Diff(from, to Version) []DiffLine {
	fields := []struct{ name, from, to string }{
		{"name", from.Name, to.Name},
		{"description", from.Description, to.Description},
		{"allowed tools", describeTools(from.Tools), describeTools(to.Tools)},
		{"process", string(from.Process), string(to.Process)},
		{"support status", string(from.Support), string(to.Support)},
		{"body", from.Body, to.Body},
	}
	var lines []DiffLine
	for _, field := range fields {
		if field.from != field.to {
			lines = append(lines, DiffLine{DiffHeading, field.name})
			lines = append(lines, diffText(field.from, field.to, field.name == "body")...)
		}
	}
	return lines
}

// describeTools writes a declaration as text, one item a line, so that null, [] and unreadable look different.
func describeTools(t Tools) string {
	switch {
	case t.State == "":
		return ""
	case t.State == ToolsDeclared && len(t.Items) > 0:
		return "declared:\n" + strings.Join(t.Items, "\n")
	case t.State == ToolsDeclared:
		return "declared: none"
	}
	return string(t.State)
}

// diffText compares two texts line by line, split at LF only. Only a body says where its last line has no end; the other fields never have one.
func diffText(from, to string, endsMatter bool) []DiffLine {
	if !endsMatter {
		from, to = closeLine(from), closeLine(to)
	}
	// The edits come from Lines on the same text, so they are consistent and this cannot fail.
	unified, err := udiff.ToUnifiedDiff("", "", from, udiff.Lines(from, to), udiff.DefaultContextLines)
	if err != nil {
		panic("skill: inconsistent edits from the diff library: " + err.Error())
	}
	var lines []DiffLine
	for i, hunk := range unified.Hunks {
		if i > 0 || hunk.FromLine > 1 {
			lines = append(lines, DiffLine{DiffHeading, "…"})
		}
		for _, line := range hunk.Lines {
			text, ended := strings.CutSuffix(line.Content, "\n")
			lines = append(lines, DiffLine{diffKinds[line.Kind], text})
			if !ended {
				lines = append(lines, DiffLine{DiffContext, noNewline})
			}
		}
	}
	return lines
}

var diffKinds = map[udiff.OpKind]DiffKind{udiff.Equal: DiffContext, udiff.Insert: DiffAdded, udiff.Delete: DiffRemoved}

func closeLine(text string) string {
	if text == "" {
		return ""
	}
	return text + "\n"
}

// ToolsGained lists the tools a version grants that an earlier one did not, byte-sorted.
func ToolsGained(from, to Version) []string { return missingIn(from.Tools, to.Tools) }

// ToolsLost lists the tools an earlier version granted that this one does not, byte-sorted.
func ToolsLost(from, to Version) []string { return missingIn(to.Tools, from.Tools) }

func missingIn(base, tools Tools) []string {
	return slices.DeleteFunc(tools.Grants(), func(item string) bool { return slices.Contains(base.Grants(), item) })
}
