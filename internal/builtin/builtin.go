// Package builtin holds the tools that Countersign ships: reading and writing the
// content room, the two by which a process says where it is, and two whose work is the
// runtime's: asking a person and loading a skill. A tool here turns
// arguments into a use case and its answer into text; who may do what is the content
// room's to say, under the rights of the run's initiator. Arguments reach a tool
// validated by the registry. Tools hold no state of their own and are safe for
// concurrent use.
package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/tool"
)

// All lists the shipped tools, reads first.
func All(c *content.Content, points Points) []tool.Tool {
	return []tool.Tool{
		listPages(c), getPage(c), readRecord(c), searchRecords(c), recordHistory(c), resolveURL(c),
		reportProgress(), highlightRecord(c), askChoice(), loadSkill(), listOpenPoints(points),
		updateElement(c), updatePageMetadata(c),
		createElementDraft(c), createPageDraft(c), createTranslationDraft(c),
		moveElement(c), movePage(c), copyRecord(c), deleteRecord(c), publishRecord(c),
		attachFile(c), replaceFileReference(c), setAlternativeText(c),
	}
}

// read is a tool that changes nothing: its arguments as a type, and what it does.
type read[A any] struct {
	spec tool.Spec
	run  func(ctx context.Context, call tool.Call, args A) (tool.Result, error)
}

func (t read[A]) Spec() tool.Spec { return t.spec }

func (t read[A]) Execute(ctx context.Context, call tool.Call) (tool.Result, error) {
	args, err := decode[A](call.Arguments)
	if err != nil {
		return told(err)
	}
	result, err := t.run(ctx, call, args)
	if err != nil {
		return told(err)
	}
	return result, nil
}

// write is a tool that plans a change, shows the plan, and makes it.
type write[A any] struct {
	spec   tool.Spec
	target func(args A) (tool.Target, bool)
	plan   func(ctx context.Context, call tool.Call, args A) ([]string, error)
	run    func(ctx context.Context, call tool.Call, args A) (content.Written, error)
	kind   string
}

func (t write[A]) Spec() tool.Spec { return t.spec }

// Execute makes the change. The statement of completeness is made here for every
// write: partial when something that was planned did not take, stayed behind or was
// not translated (RULES G6, G9).
func (t write[A]) Execute(ctx context.Context, call tool.Call) (tool.Result, error) {
	args, err := decode[A](call.Arguments)
	if err != nil {
		return told(err)
	}
	written, err := t.run(ctx, call, args)
	if err != nil {
		return told(err)
	}
	call.Hooks.Wrote(written.HookError)
	completeness := tool.Complete
	if written.Partial() {
		completeness = tool.Partial
	}
	text, err := compact(writtenView{
		Table: written.Record.Table, ID: written.Record.ID, Revision: written.Record.Revision,
		Hidden: written.Record.Hidden, Changed: append([]string{}, written.Changed...), Along: len(written.Beside), NotTaken: written.Missed,
		Left: leftNames(written.Left), Untranslated: written.Untranslated,
	})
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Wrote(text, t.kind, recordOf(written.Record), completeness), nil
}

// Preview says what the change would be, under the initiator's rights (RULES G7).
func (t write[A]) Preview(ctx context.Context, call tool.Call) ([]string, error) {
	args, err := decode[A](call.Arguments)
	if err != nil {
		return nil, err
	}
	return t.plan(ctx, call, args)
}

// PendingTarget names the record and the fields that the call would set (RULES G7).
func (t write[A]) PendingTarget(_ context.Context, call tool.Call) (tool.Target, bool, error) {
	args, err := decode[A](call.Arguments)
	if err != nil {
		return tool.Target{}, false, err
	}
	target, ok := t.target(args)
	return target, ok, nil
}

func decode[A any](raw json.RawMessage) (A, error) {
	var args A
	if err := json.Unmarshal(raw, &args); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return args, fault.New(fault.BadInput, "%s: %s cannot be used here", wrong.Field, wrong.Value)
		}
		return args, fault.New(fault.BadInput, "the arguments are not one JSON object")
	}
	return args, nil
}

// tokens are the errors whose message was written for the caller, with the word that
// the model can tell them apart by. Every other error stays in the log.
var tokens = map[fault.Kind]string{
	fault.BadInput:  tool.TokenInvalidArguments,
	fault.NotFound:  "not_found",
	fault.Forbidden: "forbidden",
	fault.Conflict:  "conflict",
}

// told turns what a use case refused into an error that the model may read.
func told(err error) (tool.Result, error) {
	if refused, ok := fault.AsRefusal(err); ok {
		return tool.Fail("refused", fmt.Sprintf("%s: %s", refused.Code, refused.Message)), nil
	}
	var failed *fault.Error
	if errors.As(err, &failed) {
		if token, ok := tokens[failed.Kind]; ok {
			return tool.Fail(token, failed.Message), nil
		}
	}
	return tool.Result{}, err
}

// compact is v as the model reads it: JSON without spaces, keys in a stable order.
func compact(v any) (string, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", fmt.Errorf("writing a tool's answer: %w", err)
	}
	return string(bytes.TrimRight(out.Bytes(), "\n")), nil
}

func answer(v any) (tool.Result, error) {
	text, err := compact(v)
	return tool.OK(text), err
}

func define(name, description string, schema map[string]any) prompt.Definition {
	raw, err := json.Marshal(schema)
	if err != nil {
		panic(fmt.Sprintf("builtin: the schema of %s: %v", name, err)) // a program error: schemas are literals
	}
	return prompt.Definition{Name: name, Description: description, Schema: raw}
}

// object is a JSON Schema of an object that takes these properties and no others.
func object(required []string, properties map[string]any) map[string]any {
	return map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	}
}

func text(description string) map[string]any {
	return map[string]any{"type": "string", "minLength": 1, "maxLength": 1000, "description": description}
}

func number(description string, from, to int) map[string]any {
	return map[string]any{"type": "integer", "minimum": from, "maximum": to, "description": description}
}

func tableName() map[string]any {
	names := []string{}
	for _, t := range content.Tables() {
		names = append(names, t.Name)
	}
	return map[string]any{"type": "string", "enum": names, "description": "The table of the record."}
}

func tableAmong(names ...string) map[string]any {
	return map[string]any{"type": "string", "enum": names, "description": "The table of the record."}
}

func recordOf(r content.Record) tool.Record { return tool.Record{Table: r.Table, ID: r.ID} }
