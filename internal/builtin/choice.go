package builtin

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/countersign/countersign/internal/tool"
)

// choice asks the person to choose between options: a pause for input, never an
// approval (RULES C3).
type choice struct{ spec tool.Spec }

type choiceArguments struct {
	Question string   `json:"question"`
	Options  []string `json:"options"`
}

func askChoice() tool.Tool {
	spec := process("ask_choice", "Ask for a choice", "Asks the person to choose one of 2 to 10 options and waits for the answer.",
		object([]string{"question", "options"}, map[string]any{
			"question": map[string]any{"type": "string", "minLength": 1, "maxLength": 300, "description": "What is asked, at most 300 characters."},
			"options": map[string]any{
				"type": "array", "minItems": 2, "maxItems": 10, "uniqueItems": true,
				"items":       map[string]any{"type": "string", "minLength": 1, "maxLength": 120},
				"description": "The options, each at most 120 characters and different from the others.",
			},
		}))
	spec.RequiresInput = true
	return choice{spec: spec}
}

func (c choice) Spec() tool.Spec { return c.spec }

// InputSchema is an object with the one key choice, which takes one of the options.
func (c choice) InputSchema(_ context.Context, call tool.Call) (json.RawMessage, error) {
	args, err := decode[choiceArguments](call.Arguments)
	if err != nil {
		return nil, err
	}
	options := make([]any, len(args.Options))
	for i, option := range args.Options {
		options[i] = option
	}
	schema := object([]string{"choice"}, map[string]any{"choice": map[string]any{"type": "string", "enum": options}})
	schema["title"] = args.Question
	return json.Marshal(schema)
}

// Execute is never reached: a call that requires input ends with the answer to it.
func (c choice) Execute(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, errors.New("a question was executed instead of being answered")
}
