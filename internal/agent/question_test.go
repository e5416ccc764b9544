package agent_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/run"
)

func TestProcessQuestion(t *testing.T) {
	each(t, func(h *house) {
		ready(h)
		h.model.says(calls(
			"get_page", `{"id":"home"}`,
			"report_progress", `{"position":1,"total":1,"done":true}`,
			"ask_choice", `{"question":"Which?","options":["a","b"]}`,
			"ask_choice", `{"question":"And?","options":["c","d"]}`,
		))
		r := h.start(h.admin, h.tour())
		h.t.Run("C7 C3 a process turn with a question and nothing to approve pauses before any of its calls", func(t *testing.T) {
			if r.Status != run.WaitingForInput {
				t.Fatalf("the run is %s: %s", r.Status, r.Message)
			}
			for _, e := range h.ofKind(r, run.EventToolCall) {
				if !e.Data.IsError || e.Data.Tool == "get_page" {
					t.Errorf("%+v", e)
				}
			}
			if _, held := r.Pins.Process(); !held || r.Progress != nil {
				t.Error("the report of completion took hold")
			}
		})
		h.t.Run("C3 an answer that was no option is refused and consumes nothing", func(t *testing.T) {
			_, err := h.agent.SubmitInput(context.Background(), h.admin, agent.Input{Run: r.ID, TurnDigest: r.TurnDigest, Values: []byte(`{"choice":"c"}`)})
			if refusal, ok := fault.AsRefusal(err); !ok || refusal.Code != fault.InputInvalid {
				t.Errorf("got %v", err)
			}
		})
		h.t.Run("C7 X8 with the answer the others are answered: the read runs, the completion and the second question are errors", func(t *testing.T) {
			_, err := h.agent.SubmitInput(context.Background(), h.admin, agent.Input{Run: r.ID, TurnDigest: r.TurnDigest, Values: []byte(`{"choice":"b"}`)})
			h.ok(err)
			ended := h.settled(r.ID)
			if ended.Status != run.Completed {
				t.Fatalf("%s: %s", ended.Status, ended.Message)
			}
			if _, held := ended.Pins.Process(); !held {
				t.Error("the process was released")
			}
			var told []string
			for _, m := range h.model.asked(h.last()).Messages {
				if m.CallID != "" {
					told = append(told, m.CallID+" "+m.Text)
				}
			}
			all := strings.Join(told, "\n")
			for _, part := range []string{`{"choice":"b"}`, "report_completion_after_decision", "one_question_per_turn", "Home"} {
				if len(told) != 4 || !strings.Contains(all, part) {
					t.Errorf("no %s in\n%s", part, all)
				}
			}
		})
	})
}

// RULES I2: between queueing and pickup a right is taken away. Nothing is asked of the
// model, and the run ends as denied; with its rights it goes on.
func TestPickupAsTheInitiator(t *testing.T) {
	for name, c := range map[string]struct {
		take func(*house, actor.Actor)
		back func(*house, actor.Actor)
		by   func(*house) actor.Actor
		with func(*house) agent.StartRequest
		says string
	}{
		"the right to start runs": {
			take: func(h *house, by actor.Actor) {
				_, err := h.access.RevokePermission(context.Background(), h.admin, by.ID, actor.RunStart)
				h.ok(err)
			},
			back: func(h *house, by actor.Actor) {
				_, err := h.access.GrantPermission(context.Background(), h.admin, by.ID, actor.RunStart)
				h.ok(err)
			},
			says: "run:start",
		},
		"the account": {
			take: func(h *house, by actor.Actor) { h.enable(by, false) },
			back: func(h *house, by actor.Actor) { h.enable(by, true) },
			says: "may not act any more",
		},
		"the use of the configuration": {
			take: func(h *house, _ actor.Actor) {
				h.configure(library.ConfigurationUpdate{AllowedUserIDs: &[]uuid.UUID{h.admin.ID}})
			},
			back: func(h *house, _ actor.Actor) {
				h.configure(library.ConfigurationUpdate{AllowedUserIDs: &[]uuid.UUID{}})
			},
			says: "does not name you",
		},
		"the subject": {
			take: func(h *house, _ actor.Actor) { h.readers("home", h.admin.ID) },
			back: func(h *house, _ actor.Actor) { h.readers("home") },
			with: (*house).tour,
			says: "cannot read the record",
		},
		"what makes an administrator, of a run with forced skills": {
			by: func(h *house) actor.Actor {
				u, err := h.access.CreateUser(context.Background(), h.admin, access.NewUser{Name: "Root", Kind: actor.Person, Administrator: true})
				h.ok(err)
				u, err = h.access.GrantPermission(context.Background(), h.admin, u.ID, actor.RunStart)
				h.ok(err)
				return u.Actor()
			},
			with: func(h *house) agent.StartRequest {
				req := h.plain()
				req.Forced = []uuid.UUID{h.approve("style").ID}
				return req
			},
			take: func(h *house, by actor.Actor) { h.administrator(by, false) },
			back: func(h *house, by actor.Actor) { h.administrator(by, true) },
			says: "administrator",
		},
	} {
		t.Run("I2 "+name, func(t *testing.T) {
			each(t, func(h *house) {
				ready(h)
				h.drain()
				by, request := h.person("Ada"), h.plain()
				if c.by != nil {
					by = c.by(h)
				}
				if c.with != nil {
					request = c.with(h)
				}
				start := func() agent.Run {
					r, err := h.agent.Start(context.Background(), by, request)
					h.ok(err)
					return r
				}
				denied := start()
				c.take(h, by)
				denied = h.takenOver(0, denied.ID)
				if denied.Status != run.Failed || denied.Reason != run.ReasonPolicyDenied || !strings.Contains(denied.Message, c.says) || h.model.count() != 0 {
					h.t.Errorf("%s %s %q after %d requests", denied.Status, denied.Reason, denied.Message, h.model.count())
				}
				c.back(h, by)
				again := start()
				c.take(h, by)
				c.back(h, by)
				if again = h.takenOver(0, again.ID); again.Status != run.Completed {
					h.t.Errorf("%s %s %q", again.Status, again.Reason, again.Message)
				}
			})
		})
	}
}

func (h *house) enable(who actor.Actor, enabled bool) {
	h.t.Helper()
	_, err := h.access.UpdateUser(context.Background(), h.admin, access.UserUpdate{ID: who.ID, Enabled: &enabled})
	h.ok(err)
}

func (h *house) administrator(who actor.Actor, is bool) {
	h.t.Helper()
	_, err := h.access.UpdateUser(context.Background(), h.admin, access.UserUpdate{ID: who.ID, Administrator: &is})
	h.ok(err)
}

func TestReadsConfiguredToWait(t *testing.T) {
	each(t, func(h *house) {
		h.setting("agent.approvalTools", "list_pages, get_page")
		h.model.says(calls("get_page", `{"id":"home"}`, "read_record", `{"table":"page","id":"home"}`))
		r := h.start(h.admin, h.plain())
		h.t.Run("G2 C4 a read that is configured so waits for an approval, as a card that offers approve and deny", func(t *testing.T) {
			card := h.card(h.admin, r)
			if r.Status != run.WaitingForApproval || len(card.Calls) != 1 || card.Calls[0].Tool != "get_page" ||
				!slices.Equal(card.Answers, []agent.Answer{agent.Approve, agent.Deny}) || card.Write {
				t.Fatalf("%s %+v", r.Status, card)
			}
		})
		h.t.Run("G2 it runs once approved, with what stood beside it, and waits no more when it is not configured so", func(t *testing.T) {
			h.setting("agent.approvalTools", "none")
			h.model.says(calls("get_page", `{"id":"home"}`))
			ended := h.decide(h.admin, r, true, "")
			if results := strings.Join(h.results(h.last()), "\n"); ended.Status != run.Completed || strings.Count(results, `"title":"Home"`) != 3 {
				t.Errorf("%s %s", ended.Status, results)
			}
		})
		h.t.Run("G2 X1 a process run waits for it too, and with * for every read", func(t *testing.T) {
			ready(h)
			h.setting("agent.approvalTools", "*")
			h.model.says(calls("report_progress", `{"position":1,"total":2}`))
			if waits := h.start(h.admin, h.tour()); waits.Status != run.WaitingForApproval {
				t.Errorf("%s %s", waits.Status, waits.Message)
			}
		})
	})
}
