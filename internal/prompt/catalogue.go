package prompt

import (
	"slices"
	"strings"
)

// Loadable is one line of the catalogue: an approved skill that the model may load,
// named and described as it was approved (RULES L4).
type Loadable struct {
	ID          string
	Name        string
	Description string
}

const catalogueHead = "# Skills that can be loaded\n\n" +
	"When the task is one that a skill below is for, call load_skill with its id first. Its instruction stands in this message from then on."

// Catalogue is the text that ends a system message: a line for each skill. Skills are
// left out from the end until it has at most max bytes; kept is how many stand in it.
// Without any there is no text.
func Catalogue(skills []Loadable, max int) (text string, kept int) {
	var b strings.Builder
	b.WriteString(catalogueHead)
	for i, s := range skills {
		line := s.line()
		if i == 0 {
			line = "\n" + line
		}
		if b.Len()+1+len(line) > max {
			break
		}
		b.WriteString("\n" + line)
		kept++
	}
	if kept == 0 {
		return "", 0
	}
	return b.String(), kept
}

// line is one line whatever the texts hold, so that no description looks like more
// than one.
func (s Loadable) line() string {
	line := "- " + s.ID + ": " + oneLine(s.Name)
	if about := oneLine(s.Description); about != "" {
		line += " — " + about
	}
	return line
}

// WithSection puts a section behind those that the first system message holds, before
// the catalogue that ends it. It changes nothing of its input.
func WithSection(messages []Message, catalogue string, s Section) []Message {
	out := slices.Clone(messages)
	at := slices.IndexFunc(out, func(m Message) bool { return m.Role == System })
	if at < 0 {
		return append([]Message{{Role: System, Text: s.render()}}, out...)
	}
	before, listed := out[at].Text, false
	if catalogue != "" {
		before, listed = strings.CutSuffix(before, catalogue)
	}
	var parts []string
	if before = strings.TrimSuffix(before, separator); before != "" {
		parts = append(parts, before)
	}
	parts = append(parts, s.render())
	if listed {
		parts = append(parts, catalogue)
	}
	out[at].Text = strings.Join(parts, separator)
	return out
}
