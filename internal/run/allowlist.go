package run

import (
	"slices"

	"github.com/countersign/countersign/internal/skill"
)

// AllowList is the union of what the skills of a run declare (RULES T1). It is nil,
// which restricts nothing, when none declares; a lone empty declaration gives an empty
// list, which allows no tool.
func AllowList(declarations []skill.Tools) []string {
	var list []string
	for _, tools := range declarations {
		if !tools.Declares() {
			continue
		}
		if list == nil {
			list = []string{}
		}
		list = append(list, tools.Grants()...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Shrink is what a stored list leaves of a live one at a resume (RULES T3): nil
// imposes nothing, and the result never gains a tool over the stored list.
func Shrink(stored, live []string) []string {
	switch {
	case stored == nil:
		return live
	case live == nil:
		return stored
	}
	out := []string{}
	for _, name := range stored {
		if slices.Contains(live, name) {
			out = append(out, name)
		}
	}
	return out
}
