package agent_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
)

func TestInput(t *testing.T) {
	each(t, func(h *house) {
		t := h.t
		h.model.says(calls("ask_choice", `{"question":"Which?","options":["a","b"]}`))
		r := h.start(h.admin, h.plain())
		card, err := h.agent.Card(context.Background(), h.admin, r)
		h.ok(err)
		if card.Input == nil || card.Input.Tool != "ask_choice" {
			t.Fatalf("%+v", card)
		}
		submit := func(digest, values string) error {
			_, err := h.agent.SubmitInput(context.Background(), h.admin, agent.Input{Run: r.ID, TurnDigest: digest, Values: []byte(values)})
			return err
		}
		for name, values := range map[string]string{
			"an option that was not offered": `{"choice":"c"}`,
			"a key that was not asked for":   `{"choice":"a","more":1}`,
			"nothing":                        `{}`,
		} {
			t.Run("R13 "+name+" is refused and consumes nothing", func(t *testing.T) {
				refusal, ok := fault.AsRefusal(submit(r.TurnDigest, values))
				if !ok || refusal.Code != fault.InputInvalid {
					t.Errorf("got %v", refusal)
				}
				if now := h.settled(r.ID); now.Status != run.WaitingForInput || now.Events != r.Events {
					t.Errorf("the run is %s", now.Status)
				}
			})
		}
		t.Run("R19 an answer to another question is refused", func(t *testing.T) {
			if refusal, ok := fault.AsRefusal(submit(strings.Repeat("0", 64), `{"choice":"a"}`)); !ok || refusal.Code != fault.StaleTurn {
				t.Errorf("got %v", refusal)
			}
		})
		t.Run("R13 an answer that fits lets the run go on with it", func(t *testing.T) {
			h.ok(submit(r.TurnDigest, `{"choice":"a"}`))
			if done := h.settled(r.ID); done.Status != run.Completed {
				t.Errorf("%s", done.Status)
			}
			messages := h.model.asked(1).Messages
			if last := messages[len(messages)-1].Text; last != `{"choice":"a"}` {
				t.Errorf("the model read %q", last)
			}
		})
	})
}

func TestInputSentTwice(t *testing.T) {
	const a, b = `{"choice":"a"}`, `{"choice":"b"}`
	ask := calls("ask_choice", `{"question":"Which?","options":["a","b"]}`)
	answer := func(h *house, by actor.Actor, r agent.Run, values string) (agent.Run, error) {
		return h.agent.SubmitInput(context.Background(), by, agent.Input{Run: r.ID, TurnDigest: r.TurnDigest, Values: []byte(values)})
	}
	refused := func(h *house, err error, code fault.Code) {
		h.t.Helper()
		if refusal, ok := fault.AsRefusal(err); !ok || refusal.Code != code {
			h.t.Errorf("got %v, not %s", err, code)
		}
	}
	t.Run("R18 the same person sending the same answer again gets the first result, and nothing happens twice", func(t *testing.T) {
		each(t, func(h *house) {
			ada, bea := h.person("Ada"), h.person("Bea", actor.RunApprove)
			h.model.says(ask)
			r := h.start(ada, h.plain())
			_, err := answer(h, ada, r, a)
			h.ok(err)
			done := h.settled(r.ID)
			again, err := answer(h, ada, r, `{ "choice" : "a" }`)
			if err != nil || again.Status != run.Completed || again.Events != done.Events || h.model.count() != 2 {
				h.t.Errorf("%v %+v", err, again)
			}
			_, err = answer(h, ada, r, b)
			refused(h, err, fault.NotWaiting)
			_, err = answer(h, bea, r, a)
			refused(h, err, fault.NotWaiting)
		})
	})
	t.Run("R18 and while the run waits with its next question", func(t *testing.T) {
		each(t, func(h *house) {
			h.model.says(ask, ask)
			first := h.start(h.admin, h.plain())
			_, err := answer(h, h.admin, first, a)
			h.ok(err)
			h.settled(first.ID)
			now, err := answer(h, h.admin, first, a)
			if err != nil || now.Status != run.WaitingForInput || now.TurnDigest == first.TurnDigest {
				h.t.Errorf("%v %+v", err, now)
			}
			_, err = answer(h, h.admin, first, b)
			refused(h, err, fault.StaleTurn)
		})
	})
	t.Run("R18 of the same answer sent many times at once one is taken, and all get its result", func(t *testing.T) {
		twice(t, func(h *house, replicas [2]*agent.Agent) {
			h.model.says(ask)
			r := h.start(h.admin, h.plain())
			results := make(chan error, 16)
			for i := range cap(results) {
				go func() {
					_, err := replicas[i%2].SubmitInput(context.Background(), h.admin, agent.Input{Run: r.ID, TurnDigest: r.TurnDigest, Values: []byte(a)})
					results <- err
				}()
			}
			for range cap(results) {
				h.ok(<-results)
			}
			h.settled(r.ID)
			inputs := 0
			for _, kind := range kinds(h.events(r.ID)) {
				if kind == run.EventInput {
					inputs++
				}
			}
			if inputs != 1 || h.model.count() != 2 {
				h.t.Errorf("%d inputs, %d model calls", inputs, h.model.count())
			}
		})
	})
	t.Run("X7 four eyes switched on stops a process run that waits for input, at its answer", func(t *testing.T) {
		each(t, func(h *house) {
			ready(h)
			h.model.says(ask)
			r := h.start(h.admin, h.tour())
			h.fourEyes()
			_, err := answer(h, h.admin, r, a)
			refused(h, err, fault.SecondApproverRequired)
			if r = h.settled(r.ID); r.Status != run.Failed || r.Reason != run.ReasonSecondApproverRequired || len(r.Pins) != 0 || !strings.Contains(r.Message, "requireSecondApprover") {
				h.t.Errorf("%+v", r)
			}
			if next := h.start(h.admin, h.after(r)); next.Status != run.Completed || len(next.Pins) != 0 {
				h.t.Errorf("P3 the next run is %s with %v", next.Status, next.Pins)
			}
		})
	})
	t.Run("X7 and at its pin check, when they are switched on after the answer was taken", func(t *testing.T) {
		var m *meddler
		meddled(t, func(s *store.Store) agent.Store { m = &meddler{Store: s}; return m }, func(h *house) {
			ready(h)
			h.model.says(ask)
			r := h.start(h.admin, h.tour())
			m.meddle(func(c change.Change) error {
				if slices.ContainsFunc(c.Events, func(e run.Event) bool { return e.Kind == run.EventInput }) {
					h.fourEyes()
				}
				return nil
			})
			_, err := answer(h, h.admin, r, a)
			h.ok(err)
			if r = h.settled(r.ID); r.Status != run.Failed || r.Reason != run.ReasonSecondApproverRequired || len(r.Pins) != 0 || h.model.count() != 1 {
				h.t.Errorf("%+v", r)
			}
		})
	})
}
