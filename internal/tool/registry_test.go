package tool

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var errSecret = errors.New("password hunter2")

func TestRegistration(t *testing.T) {
	with := func(change func(*Spec)) Spec {
		s := named("x")
		change(&s)
		return s
	}
	schema := func(raw string) Tool {
		return fake{spec: with(func(s *Spec) { s.Schema = json.RawMessage(raw) })}
	}
	for _, c := range []struct {
		name  string
		tools []Tool
		want  string
	}{
		{"a name used twice", []Tool{fake{spec: named("x")}, fake{spec: named("x")}}, "a name of its own"},
		{"no name", []Tool{fake{spec: named("")}}, "a name of its own"},
		{"an effect nobody knows", []Tool{fake{spec: with(func(s *Spec) { s.Effect = "harmless" })}}, "its effect"},
		{"G2 approval-bound by its marker and input-requiring", []Tool{fakeAsker{fakeWrite{fake: fake{spec: with(func(s *Spec) { s.RequiresInput, s.RequiresApproval = true, true })}}}}, "waits for an approval and for input"},
		{"G2 approval-bound as a write and input-requiring", []Tool{fakeAsker{fakeWrite{fake: fake{spec: with(func(s *Spec) { s.RequiresInput, s.Effect = true, IdempotentWrite })}}}}, "waits for an approval and for input"},
		{"G2 approval-bound as remote and input-requiring", []Tool{fakeAsker{fakeWrite{fake: fake{spec: with(func(s *Spec) { s.RequiresInput, s.Remote = true, true })}}}}, "waits for an approval and for input"},
		{"requiring input it cannot name", []Tool{fake{spec: with(func(s *Spec) { s.RequiresInput = true })}}, "cannot say which"},
		{"G7 a write without a preview", []Tool{fake{spec: with(func(s *Spec) { s.Effect = IdempotentWrite })}}, "no preview"},
		{"no schema", []Tool{schema("")}, "reading the schema"},
		{"a schema that is no object's", []Tool{schema(`{"type":"string"}`)}, `must be an object`},
		{"a schema that is none", []Tool{schema(`{"type":"object","properties":3}`)}, "compiling the schema"},
		{"a schema that refers to the network", []Tool{schema(`{"type":"object","properties":{"a":{"$ref":"https://example.org/a.json"}}}`)}, "outside itself"},
		{"a schema that refers to the disk", []Tool{schema(`{"type":"object","properties":{"a":{"$ref":"file:///etc/hostname"}}}`)}, "outside itself"},
	} {
		t.Run(c.name+" is refused", func(t *testing.T) {
			if _, err := New(c.tools...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	t.Run("a tool that asks for input is fine alone", func(t *testing.T) {
		r := registryOf(t, fakeAsker{fakeWrite{fake: fake{spec: with(func(s *Spec) { s.RequiresInput = true })}}})
		if got, err := r.InputSchema(context.Background(), "x", Call{Arguments: json.RawMessage(`{}`)}); err != nil || string(got) != anyObject {
			t.Errorf("got %s, %v", got, err)
		}
	})
}

const strict = `{"type":"object","required":["id","fields"],"additionalProperties":false,"properties":{
	"id":{"type":"string","minLength":1},
	"fields":{"type":"object","additionalProperties":false,"minProperties":1,"properties":{"header":{"type":"string"}}}}}`

func TestArguments(t *testing.T) {
	spec := named("edit")
	spec.Schema, spec.Effect = json.RawMessage(strict), IdempotentWrite
	never := func(Call) (Result, error) { t.Error("the tool was asked"); return Result{}, nil }
	r := registryOf(t, fakeWrite{
		fake:    fake{spec: spec, execute: never},
		preview: func(Call) ([]string, error) { t.Error("the preview was asked"); return nil, nil },
	})
	for args, want := range map[string]string{
		``:                                     "not one JSON object",
		`{`:                                    "not one JSON object",
		`{} {}`:                                "not one JSON object",
		`[]`:                                   "got array, want object",
		`{}`:                                   "missing id, fields",
		`{"id":"a","fields":{"colour":"red"}}`: "fields: unknown colour",
		`{"id":"a","fields":{"header":3}}`:     "/fields/header",
		`{"id":"","fields":{"header":""}}`:     "/id",
		`{"id":"a","fields":{}}`:               "/fields",
	} {
		t.Run("invalid arguments are told to the model and reach no tool: "+args, func(t *testing.T) {
			call := Call{Arguments: json.RawMessage(args)}
			answer := r.Execute(context.Background(), "edit", call)
			if !answer.Result.IsError || answer.Result.Token != TokenInvalidArguments || !strings.Contains(answer.Result.Text, want) || answer.Failure != nil {
				t.Errorf("got %+v, want %q", answer, want)
			}
			_, err := r.Preview(context.Background(), "edit", call)
			var invalid *InvalidArguments
			if !errors.As(err, &invalid) || !cmp.Equal(invalid.Result, answer.Result) {
				t.Errorf("the preview says %v", err)
			}
			if _, _, err := r.PendingTarget(context.Background(), "edit", call); !errors.As(err, &invalid) {
				t.Errorf("the target says %v", err)
			}
		})
	}
}

// run executes one call of a tool that does this.
func run(t *testing.T, execute func(Call) (Result, error)) Answer {
	t.Helper()
	r := registryOf(t, fake{spec: named("x"), execute: execute})
	return r.Execute(context.Background(), "x", Call{Arguments: json.RawMessage(`{}`)})
}

func TestExecute(t *testing.T) {
	t.Run("G4 an unknown tool is a generic error", func(t *testing.T) {
		answer := registryOf(t).Execute(context.Background(), "nobody_knows", Call{})
		if !answer.Result.IsError || answer.Result.Token != TokenUnknownTool {
			t.Errorf("got %+v", answer)
		}
	})
	t.Run("G4 the text of a failure never reaches the model", func(t *testing.T) {
		for _, execute := range []func(Call) (Result, error){
			func(Call) (Result, error) { return OK("half"), errSecret },
			func(Call) (Result, error) { panic(errSecret) },
		} {
			answer := run(t, execute)
			want := Result{IsError: true, Token: TokenToolFailed, Text: "The tool failed."}
			if diff := cmp.Diff(want, answer.Result); diff != "" {
				t.Error(diff)
			}
			if answer.Failure == nil || !strings.Contains(answer.Failure.Error(), errSecret.Error()) {
				t.Errorf("the log gets %v", answer.Failure)
			}
		}
	})
	t.Run("G6 a tool cannot raise the hook flag itself", func(t *testing.T) {
		answer := run(t, func(Call) (Result, error) {
			r := Wrote("ok", "update", Record{Table: "page", ID: "home"}, Complete)
			r.HookFailedAfterWrite = true
			return r, nil
		})
		if answer.Result.HookFailedAfterWrite {
			t.Error("it could")
		}
	})
}

func TestHookFailures(t *testing.T) {
	target := Record{Table: "page", ID: "home"}
	for _, c := range []struct {
		name   string
		writes []error // how the hooks of each write went
		result Result
		fails  bool
		flag   bool
	}{
		{"G6 no hook failed", []error{nil, nil}, Wrote("ok", "update", target, Complete), false, false},
		{"G6 a hook failed after the last write: ok, as stated, flag set", []error{nil, errSecret}, Wrote("ok", "update", target, Complete), false, true},
		{"G6 and a partial write stays partial", []error{errSecret}, Wrote("ok", "update", target, Partial), false, true},
		{"G6 and a write that states nothing stays so", []error{errSecret}, Wrote("ok", "update", target, NotStated), false, true},
		{"G6 a hook failed during the writes: the call is an error", []error{errSecret, nil}, Wrote("ok", "update", target, NotStated), true, false},
		{"G6 unless the tool read back and stated its completeness", []error{errSecret, nil}, Wrote("ok", "update", target, Partial), false, false},
		{"G5 an error carries no flag", []error{errSecret}, Fail("no", "no"), true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := run(t, func(call Call) (Result, error) {
				for _, err := range c.writes {
					call.Hooks.Wrote(err)
				}
				return c.result, nil
			})
			got := answer.Result
			if got.IsError != c.fails || got.HookFailedAfterWrite != c.flag || strings.HasPrefix(got.Text, hookNote) != c.flag {
				t.Errorf("got %+v", got)
			}
			if !c.fails && !cmp.Equal(got.Write, c.result.Write) {
				t.Errorf("the write became %+v", got.Write)
			}
			if errors.Join(c.writes...) != nil && !errors.Is(answer.Failure, errSecret) {
				t.Errorf("the log gets %v", answer.Failure)
			}
		})
	}
	t.Run("a call outside Execute has no watch and needs none", func(t *testing.T) {
		Call{}.Hooks.Wrote(errSecret)
	})
}

func TestPreviewAndTarget(t *testing.T) {
	spec := named("edit")
	spec.Effect = IdempotentWrite
	preview := func(Call) ([]string, error) { return []string{"a", "b\nc"}, nil }
	r := registryOf(t, fakeWrite{fake: fake{spec: spec}, preview: func(c Call) ([]string, error) { return preview(c) }}, fake{spec: named("read")})
	call := Call{Arguments: json.RawMessage(`{}`)}
	ctx := context.Background()
	t.Run("G7 previews come bounded", func(t *testing.T) {
		got, err := r.Preview(ctx, "edit", call)
		if diff := cmp.Diff([]string{"a", "b⏎c"}, got); diff != "" || err != nil {
			t.Error(diff, err)
		}
	})
	t.Run("G7 a preview that fails or panics is an error", func(t *testing.T) {
		for _, preview = range []func(Call) ([]string, error){
			func(Call) ([]string, error) { return nil, errSecret },
			func(Call) ([]string, error) { panic(errSecret) },
		} {
			if _, err := r.Preview(ctx, "edit", call); err == nil {
				t.Error("no error")
			}
		}
		if _, err := r.Preview(ctx, "read", call); err == nil {
			t.Error("a tool without a preview has one")
		}
	})
	t.Run("G7 the target is structured, and a read has none", func(t *testing.T) {
		target, ok, err := r.PendingTarget(ctx, "edit", call)
		want := Target{Record: Record{Table: "page", ID: "home"}, Fields: []string{"title"}}
		if !ok || err != nil || !cmp.Equal(want, target) {
			t.Errorf("got %+v, %v, %v", target, ok, err)
		}
		if target, ok, err := r.PendingTarget(ctx, "read", call); ok || err != nil {
			t.Errorf("a read is about %+v, %v", target, err)
		}
	})
}
