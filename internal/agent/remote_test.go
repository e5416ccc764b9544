package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// remoteTools are the tools of other servers, as a test sets them.
type remoteTools struct {
	mu   sync.Mutex
	each map[string]*remoteTool
}

// remoteTool answers and counts.
type remoteTool struct {
	spec   tool.Spec
	answer func() (tool.Result, error)
	calls  []tool.Call
}

func (r *remoteTools) Tools(context.Context) ([]tool.Tool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []tool.Tool
	for _, t := range r.each {
		out = append(out, remoteCall{r, t, t.spec})
	}
	return out, nil
}

// remoteCall is a remote tool as one segment has it.
type remoteCall struct {
	all  *remoteTools
	tool *remoteTool
	spec tool.Spec
}

func (c remoteCall) Spec() tool.Spec { return c.spec }

func (c remoteCall) Execute(_ context.Context, call tool.Call) (tool.Result, error) {
	c.all.mu.Lock()
	c.tool.calls = append(c.tool.calls, call)
	c.all.mu.Unlock()
	return c.tool.answer()
}

// far is a remote tool that the tests call.
const far = "mcp__far__send"

// connect imports the tool far and switches it on.
func (h *house) connect(change func(*tool.Spec)) {
	h.t.Helper()
	spec := tool.Spec{
		Definition: prompt.Definition{Name: far, Schema: json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"}}}`)},
		Group:      tool.GroupRemote, Remote: true,
	}
	if change != nil {
		change(&spec)
	}
	h.remote.mu.Lock()
	h.remote.each = map[string]*remoteTool{far: {spec: spec, answer: func() (tool.Result, error) { return tool.OK("sent"), nil }}}
	h.remote.mu.Unlock()
	h.ok(h.library.SetToolEnabled(context.Background(), h.admin, far, true))
}

func (h *house) farCalls() int {
	h.remote.mu.Lock()
	defer h.remote.mu.Unlock()
	return len(h.remote.each[far].calls)
}

// steps are the tokens of a run's tool steps, "ok" for a success.
func (h *house) steps(r agent.Run) []string {
	h.t.Helper()
	var out []string
	for _, e := range h.events(r.ID) {
		if e.Kind == run.EventToolCall {
			token := "ok"
			if e.Data.IsError {
				token = e.Data.Token
			}
			out = append(out, e.Data.Tool+" "+token)
		}
	}
	return out
}

func offered(m *fakeModel, turn int, name string) bool {
	return slices.ContainsFunc(m.asked(turn).Tools, func(d prompt.Definition) bool { return d.Name == name })
}

func TestRemoteCalls(t *testing.T) {
	ctx := context.Background()
	each(t, func(h *house) {
		t := h.t
		t.Run("G2 a remote call waits on a card with its arguments and no target, and is made once after the approval", func(t *testing.T) {
			h.connect(nil)
			h.model.says(calls(far, `{"to": "Ann"}`))
			r := h.start(h.admin, h.plain())
			card, err := h.agent.Card(ctx, h.admin, r)
			h.ok(err)
			if r.Status != run.WaitingForApproval || len(card.Calls) != 1 || card.Calls[0].Target != nil ||
				!slices.Equal(card.Calls[0].Lines, []string{`to: "Ann"`}) || !slices.Equal(card.Answers, []agent.Answer{agent.Approve, agent.Deny}) || h.farCalls() != 0 {
				t.Fatalf("status %s, card %+v, %d calls", r.Status, card, h.farCalls())
			}
			r = h.decide(h.admin, r, true, "")
			if r.Status != run.Completed || h.farCalls() != 1 || r.Fence != nil {
				t.Fatalf("status %s, %d calls, fence %+v", r.Status, h.farCalls(), r.Fence)
			}
			if !slices.Equal(h.steps(r), []string{far + " ok"}) || slices.Contains(h.trail(r.ID), audit.UnapprovedWrite) {
				t.Errorf("steps %v, trail %v", h.steps(r), h.trail(r.ID))
			}
		})
		t.Run("C6 a call that its operator freed needs no card and is in the trail as an unapproved write", func(t *testing.T) {
			h.connect(func(s *tool.Spec) { s.Freed = true })
			h.model.says(calls(far, `{}`))
			r := h.start(h.admin, h.plain())
			entries, err := h.store.AuditEntries(ctx, audit.Filter{Run: r.ID, Events: []audit.Event{audit.UnapprovedWrite}}, audit.Page{Limit: 10})
			h.ok(err)
			if r.Status != run.Completed || h.farCalls() != 1 || len(entries) != 1 || entries[0].Actor != h.admin.ID || entries[0].Detail["tool"] != far {
				t.Errorf("status %s, %d calls, %+v", r.Status, h.farCalls(), entries)
			}
		})
		t.Run("G8 a segment makes twenty remote calls, and the next segment twenty more", func(t *testing.T) {
			h.connect(func(s *tool.Spec) { s.Freed = true })
			var many []string
			for range 22 {
				many = append(many, far, `{}`)
			}
			h.model.says(calls(many...), calls("update_element", fix), calls(far, `{}`))
			r := h.start(h.admin, h.plain())
			want := append(slices.Repeat([]string{far + " ok"}, 20), slices.Repeat([]string{far + " remote_calls_used_up"}, 2)...)
			if got := h.steps(r); !slices.Equal(got, want) || h.farCalls() != 20 {
				t.Fatalf("%d calls, steps %v", h.farCalls(), got)
			}
			if r = h.decide(h.admin, r, true, ""); h.farCalls() != 21 || r.Status != run.Completed {
				t.Errorf("status %s, %d calls", r.Status, h.farCalls())
			}
		})
		t.Run("G8 a tool that is not as it was reviewed is an error, a notice, and offered no longer", func(t *testing.T) {
			h.connect(func(s *tool.Spec) { s.Freed = true })
			h.remote.each[far].answer = func() (tool.Result, error) { return tool.Fail(tool.TokenChanged, "It changed."), nil }
			first := h.model.count()
			h.model.says(calls(far, `{}`), calls(far, `{}`))
			r := h.start(h.admin, h.plain())
			if got := h.steps(r); !slices.Equal(got, []string{far + " tool_changed", far + " not_offered"}) || h.farCalls() != 1 {
				t.Errorf("%d calls, steps %v", h.farCalls(), got)
			}
			if len(r.Notices) != 1 || r.Notices[0].Code != run.NoticeToolChanged || !slices.Equal(r.Notices[0].Args, []string{far}) {
				t.Errorf("notices %+v", r.Notices)
			}
			if !offered(h.model, first, far) || offered(h.model, first+1, far) {
				t.Error("it is offered wrongly")
			}
		})
		t.Run("G4 what a remote tool failed with never reaches the model", func(t *testing.T) {
			h.connect(func(s *tool.Spec) { s.Freed = true })
			h.remote.each[far].answer = func() (tool.Result, error) { return tool.Result{}, fmt.Errorf("password hunter2") }
			h.model.says(calls(far, `{}`))
			r := h.start(h.admin, h.plain())
			if last := h.model.asked(h.model.count() - 1); r.Status != run.Completed || strings.Contains(fmt.Sprint(last.Messages), "hunter2") {
				t.Errorf("status %s, %v", r.Status, last.Messages)
			}
		})
		t.Run("G2 a call that was free when the turn waited does not run once it needs an approval", func(t *testing.T) {
			h.connect(func(s *tool.Spec) { s.Freed = true })
			h.model.says(calls("update_element", `{"id":"hello","fields":{"text":"Hi"}}`, far, `{}`))
			r := h.start(h.admin, h.plain())
			h.connect(nil)
			r = h.decide(h.admin, r, true, "")
			if got := h.steps(r); h.farCalls() != 0 || len(got) != 2 || got[1] != far+" not_executed_while_proposal_waits" {
				t.Errorf("%d calls, steps %v", h.farCalls(), got)
			}
		})
		t.Run("T6 a remote tool is explained like any other", func(t *testing.T) {
			h.connect(func(s *tool.Spec) { s.Blocked = "its definition changed" })
			explained, err := h.agent.Explain(ctx, h.admin, h.config.ID, nil)
			h.ok(err)
			i := slices.IndexFunc(explained, func(e tool.Explained) bool { return e.Spec.Name == far })
			if i < 0 || explained[i].Denial == nil || explained[i].Denial.Gate != tool.GateDisabled {
				t.Errorf("explained as %+v", explained)
			}
		})
	})
}
