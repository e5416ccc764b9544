package builtin

import (
	"context"
	"errors"

	"github.com/countersign/countersign/internal/tool"
)

// load brings a skill of the run's catalogue into the system message (RULES L5). What
// is declared here is carried out by the runtime.
type load struct{ spec tool.Spec }

func loadSkill() tool.Tool {
	return load{spec: tool.Spec{
		Definition: define(tool.LoadSkill, "Loads a skill of the catalogue: its instruction stands in the system message from the next turn on.",
			object([]string{"skillId"}, map[string]any{"skillId": text("The skill's id, as the catalogue gives it.")})),
		Title: "Load a skill", Group: tool.GroupSkills, Effect: tool.ReadOnly,
	}}
}

func (l load) Spec() tool.Spec { return l.spec }

// Execute is never reached: the runtime answers a load itself.
func (l load) Execute(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, errors.New("a load was executed outside the runtime")
}
