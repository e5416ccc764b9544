package tool

import (
	"context"
	"encoding/json"

	"github.com/countersign/countersign/internal/prompt"
)

const anyObject = `{"type":"object"}`

// fake is a tool from a declaration and functions.
type fake struct {
	spec    Spec
	execute func(Call) (Result, error)
}

func (f fake) Spec() Spec { return f.spec }

func (f fake) Execute(_ context.Context, call Call) (Result, error) { return f.execute(call) }

// fakeWrite also has what a write needs.
type fakeWrite struct {
	fake
	preview func(Call) ([]string, error)
}

func (f fakeWrite) Preview(_ context.Context, call Call) ([]string, error) { return f.preview(call) }

func (f fakeWrite) PendingTarget(context.Context, Call) (Target, bool, error) {
	return Target{Record: Record{Table: "page", ID: "home"}, Fields: []string{"title"}}, true, nil
}

// fakeAsker asks for input.
type fakeAsker struct{ fakeWrite }

func (fakeAsker) InputSchema(context.Context, Call) (json.RawMessage, error) {
	return json.RawMessage(anyObject), nil
}

func named(name string) Spec {
	return Spec{Definition: prompt.Definition{Name: name, Schema: json.RawMessage(anyObject)}}
}
