package agent_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
)

// ready approves, enables and attaches the process.
func ready(h *house) {
	h.approve("tour")
	h.offer("tour", library.OnDemand)
}

func TestTour(t *testing.T) {
	each(t, func(h *house) {
		t := h.t
		ready(h)
		h.model.says(
			calls("get_page", `{"id":"home"}`),
			calls("report_progress", `{"position":1,"total":1}`, "update_element", fix, "update_element", `{"id":"hello","fields":{"text":"Hi"}}`),
		)
		r := h.start(h.admin, h.tour())

		t.Run("C1 a process turn waits with one card, its reads executed", func(t *testing.T) {
			if r.Status != run.WaitingForApproval || r.Progress == nil || r.Progress.Position != 1 {
				t.Fatalf("%s %q, progress %v", r.Status, r.Message, r.Progress)
			}
			card, err := h.agent.Card(context.Background(), h.admin, r)
			h.ok(err)
			if len(card.Calls) != 1 || !card.IsProcess || card.TurnDigest != r.TurnDigest {
				t.Errorf("%+v", card)
			}
		})
		t.Run("C4 the card of a write offers apply, variant and skip", func(t *testing.T) {
			card, _ := h.agent.Card(context.Background(), h.admin, r)
			if !slices.Equal(card.Answers, []agent.Answer{agent.Apply, agent.Variant, agent.Skip}) {
				t.Errorf("%v", card.Answers)
			}
		})
		t.Run("G7 the card shows current → proposed and its target as values", func(t *testing.T) {
			card, _ := h.agent.Card(context.Background(), h.admin, r)
			lines := strings.Join(card.Calls[0].Lines, "\n")
			if !strings.Contains(lines, "Helo") || !strings.Contains(lines, "Hello") {
				t.Errorf("lines:\n%s", lines)
			}
			target := card.Calls[0].Target
			if target == nil || target.Table != "element" || target.ID != "hello" || !slices.Equal(target.Fields, []string{"text"}) {
				t.Errorf("target %+v", target)
			}
		})
		t.Run("C6 nothing is written before the decision", func(t *testing.T) {
			if got := h.text("hello"); got != "Helo" {
				t.Errorf("the text is %q", got)
			}
		})
		t.Run("P1 the section is pinned with skill, source and digest", func(t *testing.T) {
			s := h.skill("tour")
			want := run.Pins{{Skill: s.ID, Source: h.source.ID, Digest: s.StoredDigest, Way: run.WayInvoked, Process: true}}
			if !slices.Equal(r.Pins, want) {
				t.Errorf("%v", r.Pins)
			}
		})

		r = h.decide(h.admin, r, true, "")
		t.Run("R11 an approval carries the write out and the run goes on", func(t *testing.T) {
			if r.Status != run.Completed || r.Answer != "Done." || h.text("hello") != "Hello" {
				t.Errorf("%s %q %q, text %q", r.Status, r.Message, r.Answer, h.text("hello"))
			}
		})
		t.Run("R5 G6 the events are gapless, continue over the decision, and a write step follows its tool step", func(t *testing.T) {
			want := []run.EventKind{
				run.EventStarted,
				run.EventModelCall, run.EventToolCall,
				run.EventModelCall, run.EventToolCall, run.EventProgress, run.EventToolCall, run.EventSuspended,
				run.EventDecision, run.EventToolCall, run.EventWrite,
				run.EventModelCall, run.EventSettled,
			}
			if got := kinds(h.events(r.ID)); !slices.Equal(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		})
		t.Run("G6 the write names its target, kind and completeness", func(t *testing.T) {
			i := slices.IndexFunc(h.events(r.ID), func(e run.Event) bool { return e.Kind == run.EventWrite })
			w := h.events(r.ID)[i].Data
			if w.Table != "element" || w.RecordID != "hello" || w.WriteKind != "update" || w.Completeness != "complete" || w.HookFailedAfterWrite {
				t.Errorf("%+v", w)
			}
		})
		t.Run("U1 R15 each decision and write is audited", func(t *testing.T) {
			want := []audit.Event{
				audit.RunStarted, audit.ToolDenied, audit.RunDecided, audit.ToolDenied,
				audit.ContentChanged, audit.WriteExecuted, audit.RunEnded,
			}
			if got := h.trail(r.ID); !slices.Equal(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		})
		t.Run("C1 the second write of the turn got its error result, and the pending call comes last", func(t *testing.T) {
			messages := h.model.asked(2).Messages
			turn := slices.IndexFunc(messages, func(m prompt.Message) bool { return len(m.Calls) == 3 })
			if turn < 0 {
				t.Fatalf("no turn of three calls in %v", messages)
			}
			if last := messages[turn].Calls[2]; last.ID != "call_1" {
				t.Errorf("the last call is %s", last.ID)
			}
			var refused bool
			for _, m := range messages[turn:] {
				refused = refused || (m.CallID == "call_2" && strings.Contains(m.Text, "one_approval_per_turn") && m.Failed)
			}
			if !refused {
				t.Errorf("%v", messages[turn:])
			}
		})
		t.Run("C1 every call of every turn has its result before the next turn", func(t *testing.T) {
			answered(t, h.model.asked(h.model.count()-1).Messages)
		})
	})
}

// answered checks the order that providers require.
func answered(t *testing.T, messages []prompt.Message) {
	t.Helper()
	open := map[string]bool{}
	for _, m := range messages {
		switch {
		case m.Role == prompt.ToolRole:
			if !open[m.CallID] {
				t.Errorf("a result of %s that nobody asked for, or a second one", m.CallID)
			}
			delete(open, m.CallID)
		case len(open) > 0:
			t.Errorf("%v have no result before the next message", open)
		}
		for _, c := range m.Calls {
			open[c.ID] = true
		}
	}
}

func TestDenial(t *testing.T) {
	for _, reason := range []agent.Answer{agent.Variant, agent.Skip, ""} {
		t.Run("R14 a denial with the reason "+string(reason), func(t *testing.T) {
			each(t, func(h *house) {
				ready(h)
				h.model.says(calls("update_element", fix))
				r := h.decide(h.admin, h.start(h.admin, h.tour()), false, reason)
				if r.Status != run.Completed || h.text("hello") != "Helo" {
					h.t.Errorf("%s, text %q", r.Status, h.text("hello"))
				}
				messages := h.model.asked(1).Messages
				var result map[string]string
				h.ok(json.Unmarshal([]byte(messages[len(messages)-1].Text), &result))
				if result["error"] != "approval_denied" || result["decided_by"] != "run_owner" || result["reason"] != string(reason) {
					h.t.Errorf("%v", result)
				}
			})
		})
	}
}
