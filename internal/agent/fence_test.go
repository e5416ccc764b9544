package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
)

// meddler is a store that does something before the runtime's changes, or refuses them.
type meddler struct {
	*store.Store
	before atomic.Pointer[func(change.Change) error]
}

func (m *meddler) Apply(ctx context.Context, changes ...change.Change) ([]change.Outcome, error) {
	if before := m.before.Load(); before != nil {
		for _, c := range changes {
			if err := (*before)(c); err != nil {
				return nil, err
			}
		}
	}
	return m.Store.Apply(ctx, changes...)
}

func (m *meddler) meddle(before func(change.Change) error) { m.before.Store(&before) }

// sets finds the value a change gives a column of a run.
func sets(c change.Change, column string) (any, bool) {
	for _, u := range c.Updates {
		for _, v := range u.Set {
			if v.Column == column {
				return v.Arg, true
			}
		}
	}
	return nil, false
}

var errDisk = errors.New("the disk is full")

func TestFence(t *testing.T) {
	var m *meddler
	with := func(s *store.Store) agent.Store {
		m = &meddler{Store: s}
		return m
	}
	t.Run("R7 the pending effect is recorded before a write runs, and cleared with its step", func(t *testing.T) {
		meddled(t, with, func(h *house) {
			r := h.waiting()
			var seen []string
			m.meddle(func(c change.Change) error {
				if fence, has := sets(c, "fence"); has {
					seen = append(seen, fmt.Sprintf("standing=%v text=%s", fence != "null", h.text("hello")))
				}
				return nil
			})
			r = h.decide(h.admin, r, true, "")
			if got := strings.Join(seen, ", "); got != "standing=true text=Helo, standing=false text=Hello" {
				h.t.Errorf("the fence was %s", got)
			}
			if r.Fence != nil {
				h.t.Errorf("the fence still stands: %+v", r.Fence)
			}
		})
	})
	t.Run("R6 R7 a segment that lost its lease stops before the write and writes nothing more", func(t *testing.T) {
		meddled(t, with, func(h *house) {
			r := h.waiting()
			owner := change.Text[string]("runs", "lease_owner")
			var stolen atomic.Bool
			m.meddle(func(c change.Change) error {
				fence, has := sets(c, "fence")
				if !has || fence == "null" || stolen.Swap(true) {
					return nil
				}
				_, err := m.Store.Apply(context.Background(), change.Change{Updates: []change.Update{{
					Table: "runs", ID: r.ID, Set: []change.Value{owner.To("somebody else")},
				}}})
				return err
			})
			_, err := h.agent.Decide(context.Background(), h.admin, decision(r, true))
			h.ok(err)
			for !stolen.Load() {
				time.Sleep(time.Millisecond)
			}
			h.drain()
			if h.text("hello") != "Helo" {
				h.t.Error("the write was made without a lease")
			}
			if now, err := h.store.Run(context.Background(), r.ID); err != nil || now.Status != run.Running || now.LeaseOwner != "somebody else" {
				h.t.Errorf("%s owned by %q, %v", now.Status, now.LeaseOwner, err)
			}
		})
	})
	t.Run("R4 a suspension that could not be stored is suspend_failed, never a promise", func(t *testing.T) {
		meddled(t, with, func(h *house) {
			ready(h)
			h.model.says(calls("update_element", fix))
			m.meddle(func(c change.Change) error {
				if state, has := sets(c, "state"); has && state != nil {
					return errDisk
				}
				return nil
			})
			r := h.start(h.admin, h.tour())
			if r.Status != run.Failed || r.Outcome != run.OutcomeSuspendFailed || r.Reason != run.ReasonSuspendFailed {
				h.t.Errorf("%s %s %s", r.Status, r.Outcome, r.Reason)
			}
		})
	})
	t.Run("R4 R2 a cancel beats a late suspension", func(t *testing.T) {
		meddled(t, with, func(h *house) {
			ready(h)
			h.model.says(calls("update_element", fix))
			var cancelled atomic.Bool
			m.meddle(func(c change.Change) error {
				if state, has := sets(c, "state"); has && state != nil && !cancelled.Swap(true) {
					won, err := h.agent.Cancel(context.Background(), h.admin, c.Run)
					if !won || err != nil {
						h.t.Errorf("the cancel: %v %v", won, err)
					}
				}
				return nil
			})
			r := h.start(h.admin, h.tour())
			if r.Status != run.Cancelled || r.TurnDigest != "" {
				h.t.Errorf("%s waits with %q", r.Status, r.TurnDigest)
			}
		})
	})
	t.Run("R15 an approved write is refused when its decision cannot be stored", func(t *testing.T) {
		meddled(t, with, func(h *house) {
			r := h.waiting()
			m.meddle(func(c change.Change) error {
				for _, e := range c.Events {
					if e.Kind == run.EventDecision {
						return fault.Wrap(fault.Unavailable, errDisk, "the database is not available")
					}
				}
				return nil
			})
			if _, err := h.agent.Decide(context.Background(), h.admin, decision(r, true)); !fault.Is(err, fault.Unavailable) {
				h.t.Errorf("got %v", err)
			}
			if now := h.settled(r.ID); now.Status != run.WaitingForApproval || h.text("hello") != "Helo" {
				h.t.Errorf("%s, %q", now.Status, h.text("hello"))
			}
		})
	})
	t.Run("R11 a state that cannot be read keeps the run as it is for the operator", func(t *testing.T) {
		each(t, func(h *house) {
			r := h.waiting()
			state := change.Text[string]("runs", "state")
			_, err := h.store.Apply(context.Background(), change.Change{Updates: []change.Update{{
				Table: "runs", ID: r.ID, Set: []change.Value{state.To("k:garbage")},
			}}})
			h.ok(err)
			h.refused(h.admin, decision(r, true), fault.StateUnreadable)
		})
	})
}

func TestToolErrors(t *testing.T) {
	each(t, func(h *house) {
		h.model.says(calls("no_such_tool", `{}`, "get_page", `{"page":1}`, "list_pages", `{}`))
		r := h.start(h.admin, h.plain())
		answers := map[string]string{}
		for _, m := range h.model.asked(1).Messages {
			answers[m.CallID] = m.Text
		}
		h.t.Run("G4 an unknown tool gives a generic error result", func(t *testing.T) {
			if !strings.Contains(answers["call_0"], `"error":"not_offered"`) {
				t.Errorf("%q", answers["call_0"])
			}
		})
		h.t.Run("G4 arguments that do not fit give an error that names the field", func(t *testing.T) {
			if !strings.Contains(answers["call_1"], `"error":"invalid_arguments"`) || !strings.Contains(answers["call_1"], "id") {
				t.Errorf("%q", answers["call_1"])
			}
		})
		h.t.Run("G3 the rest of the turn still runs", func(t *testing.T) {
			if !json.Valid([]byte(answers["call_2"])) || !strings.Contains(answers["call_2"], "Home") || r.Status != run.Completed {
				t.Errorf("%s, %q", r.Status, answers["call_2"])
			}
		})
	})
}

func TestEndings(t *testing.T) {
	t.Run("R3 R20 a provider that fails ends the run with its message, not the call", func(t *testing.T) {
		each(t, func(h *house) {
			h.model.does(func(context.Context) (agent.Turn, error) {
				return agent.Turn{}, &agent.ProviderError{Message: "the model is overloaded", Status: 503}
			})
			r := h.start(h.admin, h.plain())
			if r.Status != run.Failed || r.Reason != run.ReasonProviderFailed || r.Message != "the model is overloaded" {
				h.t.Errorf("%s %s %q", r.Status, r.Reason, r.Message)
			}
		})
	})
	t.Run("R9 the rounds of a segment are bounded", func(t *testing.T) {
		each(t, func(h *house) {
			for range 100 {
				h.model.says(calls("list_pages", `{}`))
			}
			for _, c := range []struct{ caller, configuration, want int }{
				{3, 10, 3}, {12, 10, 10}, {0, 7, 7}, {-1, 7, 7}, {4, 0, 4}, {0, 0, 5}, {100, 0, 20}, {0, 100, 20},
			} {
				_, err := h.library.UpdateConfiguration(context.Background(), h.admin, library.ConfigurationUpdate{ID: h.config.ID, MaxIterations: &c.configuration})
				h.ok(err)
				before := h.model.count()
				req := h.plain()
				req.MaxIterations = c.caller
				r := h.start(h.admin, req)
				if got := h.model.count() - before; r.Status != run.Completed || r.Reason != run.ReasonMaxIterations || !r.Truncated || got != c.want {
					h.t.Errorf("%+v: %s %s truncated=%v after %d rounds", c, r.Status, r.Reason, r.Truncated, got)
				}
			}
		})
	})
}

func TestFollow(t *testing.T) {
	each(t, func(h *house) {
		r := h.waiting()
		var got []run.Event
		done := make(chan error, 1)
		go func() {
			for e, err := range h.agent.Follow(context.Background(), h.admin, r.ID, -1) {
				if err != nil {
					done <- err
					return
				}
				got = append(got, e)
			}
			done <- nil
		}()
		h.decide(h.admin, r, true, "")
		h.ok(<-done)
		h.t.Run("R5 a follower gets every event once, in order, and ends with the run", func(t *testing.T) {
			stored := h.events(r.ID)
			if len(got) != len(stored) {
				t.Fatalf("%d of %d", len(got), len(stored))
			}
			for i, e := range got {
				if e.Sequence != i {
					t.Errorf("event %d has the sequence %d", i, e.Sequence)
				}
			}
		})
		h.t.Run("R5 a follower that comes later starts after its cursor", func(t *testing.T) {
			for e, err := range h.agent.Follow(context.Background(), h.admin, r.ID, 3) {
				h.ok(err)
				if e.Sequence != 4 {
					t.Errorf("first is %d", e.Sequence)
				}
				break
			}
		})
		h.t.Run("R5 a run that somebody may not see does not exist for them", func(t *testing.T) {
			for _, err := range h.agent.Follow(context.Background(), h.person("stranger"), r.ID, -1) {
				if !fault.Is(err, fault.NotFound) {
					t.Errorf("got %v", err)
				}
			}
		})
	})
}
