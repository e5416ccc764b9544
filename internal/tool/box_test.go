package tool

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// elsewhere are the tools of other servers, as a test sets them.
type elsewhere struct {
	tools []Tool
	err   error
}

func (e *elsewhere) Tools(context.Context) ([]Tool, error) { return e.tools, e.err }

func remoteNamed(name, schema string) Tool {
	spec := named(name)
	spec.Remote, spec.Schema = true, json.RawMessage(schema)
	return fake{spec: spec, execute: func(Call) (Result, error) { return OK(name), nil }}
}

func names(r *Registry) []string {
	var out []string
	for _, s := range r.Specs() {
		out = append(out, s.Name)
	}
	return out
}

func TestBox(t *testing.T) {
	ctx := context.Background()
	shipped := registryOf(t, fake{spec: named("read")})
	remote := &elsewhere{}
	box := NewBox(shipped, remote)
	now := func(t *testing.T) *Registry {
		t.Helper()
		r, err := box.Now(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	t.Run("G1 remote tools stand beside the shipped ones and behave like them", func(t *testing.T) {
		remote.tools = []Tool{remoteNamed("mcp__a__b", `{"type":"object","required":["x"]}`)}
		r := now(t)
		if diff := cmp.Diff([]string{"read", "mcp__a__b"}, names(r)); diff != "" {
			t.Error(diff)
		}
		if answer := r.Execute(ctx, "mcp__a__b", Call{Arguments: json.RawMessage(`{}`)}); answer.Result.Token != TokenInvalidArguments {
			t.Errorf("got %+v", answer)
		}
		if answer := r.Execute(ctx, "mcp__a__b", Call{Arguments: json.RawMessage(`{"x":1}`)}); answer.Result.Text != "mcp__a__b" {
			t.Errorf("got %+v", answer)
		}
		if answer := r.Execute(ctx, "mcp__a__c", Call{}); answer.Result.Token != TokenUnknownTool {
			t.Errorf("got %+v", answer)
		}
	})
	t.Run("a registry that was taken does not change with what comes later", func(t *testing.T) {
		before := now(t)
		remote.tools = []Tool{remoteNamed("mcp__a__b", `{"type":"object","required":["y"]}`), remoteNamed("mcp__a__c", anyObject)}
		after := now(t)
		if _, fits := before.Check("mcp__a__b", json.RawMessage(`{"x":1}`)); !fits {
			t.Error("the earlier registry has the later schema")
		}
		if _, fits := after.Check("mcp__a__b", json.RawMessage(`{"x":1}`)); fits {
			t.Error("the later registry has the earlier schema")
		}
		if len(before.Specs()) != 2 || len(after.Specs()) != 3 || len(shipped.Specs()) != 1 {
			t.Errorf("%d, %d and %d tools", len(before.Specs()), len(after.Specs()), len(shipped.Specs()))
		}
	})
	t.Run("G8 a remote tool that cannot be registered costs only itself", func(t *testing.T) {
		remote.tools = []Tool{remoteNamed("read", anyObject), remoteNamed("mcp__a__b", `{"type":3}`), remoteNamed("mcp__a__c", anyObject)}
		r := now(t)
		if diff := cmp.Diff([]string{"read", "mcp__a__c"}, names(r)); diff != "" {
			t.Error(diff)
		}
		if spec, _ := r.Spec("read"); spec.Remote {
			t.Error("a remote tool took a shipped tool's name")
		}
	})
	t.Run("what cannot be read is an error and not an empty list", func(t *testing.T) {
		remote.err = errors.New("gone")
		if _, err := box.Now(ctx); !errors.Is(err, remote.err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("without other servers there are the shipped tools", func(t *testing.T) {
		r, err := NewBox(shipped, nil).Now(ctx)
		if err != nil || r != shipped {
			t.Errorf("got %v, %v", r, err)
		}
	})
}
