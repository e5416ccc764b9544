package agent_test

import (
	"context"
	"crypto/rand"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/world"
)

// later is a second runtime on the same database, some days on.
func (h *house) later(days int) *agent.Agent {
	parts := h.agent.Parts
	parts.World = world.New(func() time.Time { return time.Now().AddDate(0, 0, days) }, rand.Reader)
	parts.Settings = h.access
	return agent.New(parts)
}

func (h *house) setting(name, value string) {
	h.t.Helper()
	_, err := h.access.UpdateSetting(context.Background(), h.admin, name, &value)
	h.ok(err)
}

func (h *house) retain(days int) agent.Retained {
	h.t.Helper()
	done, err := h.later(days).Retain(context.Background())
	h.ok(err)
	return done
}

func TestRetention(t *testing.T) {
	t.Run("Y2 a run is kept for 30 days after its end, then it goes with its events", func(t *testing.T) {
		each(t, func(h *house) {
			ended := h.start(h.admin, h.plain())
			if done := h.retain(29); done != (agent.Retained{}) {
				h.t.Fatalf("too early: %+v", done)
			}
			if done := h.retain(31); done != (agent.Retained{Removed: 1}) {
				h.t.Fatalf("%+v", done)
			}
			if _, err := h.store.Run(context.Background(), ended.ID); !fault.Is(err, fault.NotFound) {
				h.t.Errorf("the run is still there: %v", err)
			}
			if got := h.events(ended.ID); len(got) > 0 {
				h.t.Errorf("its events are still there: %v", kinds(got))
			}
			if got := h.trail(ended.ID); !slices.Contains(got, audit.RunEnded) {
				h.t.Errorf("the trail forgot it: %v", got)
			}
			if got := h.trail(uuid.Nil); got[len(got)-1] != audit.RunsRemoved {
				h.t.Errorf("the removal is not audited: %v", got)
			}
		})
	})
	t.Run("Y2 a run that waits is cancelled after its time, and removed after its end's", func(t *testing.T) {
		each(t, func(h *house) {
			h.model.says(calls("update_element", fix))
			waiting := h.start(h.admin, h.plain())
			if done := h.retain(29); done != (agent.Retained{}) {
				h.t.Fatalf("too early: %+v", done)
			}
			if done := h.retain(31); done != (agent.Retained{Cancelled: 1}) {
				h.t.Fatalf("%+v", done)
			}
			r := h.settled(waiting.ID)
			if r.Status != run.Cancelled {
				h.t.Fatalf("%+v", r)
			}
			if _, err := h.store.State(context.Background(), r.ID); !fault.Is(err, fault.NotFound) {
				h.t.Errorf("R16 what it waited with is still there: %v", err)
			}
			if done := h.retain(62); done != (agent.Retained{Removed: 1}) {
				h.t.Fatalf("%+v", done)
			}
		})
	})
	t.Run("Y2 what was decided lately waits anew", func(t *testing.T) {
		each(t, func(h *house) {
			h.model.says(calls("update_element", fix), calls("update_element", fix))
			r := h.start(h.admin, h.plain())
			h.decide(h.admin, r, false, agent.Skip) // the newest event counts, not the first suspension
			if done := h.retain(29); done != (agent.Retained{}) {
				h.t.Fatalf("%+v", done)
			}
		})
	})
	t.Run("Y2 0 days keep runs for ever", func(t *testing.T) {
		each(t, func(h *house) {
			h.setting("retention.runDays", "0")
			h.setting("retention.waitingRunDays", "0")
			h.start(h.admin, h.plain())
			h.model.says(nil, calls("update_element", fix))
			h.start(h.admin, h.plain())
			if done := h.retain(10_000); done != (agent.Retained{}) {
				h.t.Fatalf("%+v", done)
			}
		})
	})
	t.Run("Y2 two replicas that remove at once remove each run once", func(t *testing.T) {
		each(t, func(h *house) {
			for range 5 {
				h.start(h.admin, h.plain())
			}
			first, second := h.later(31), h.later(31)
			removed := make(chan int, 2)
			for _, replica := range []*agent.Agent{first, second} {
				go func() {
					done, err := replica.Retain(context.Background())
					if err != nil {
						h.t.Error(err)
					}
					removed <- done.Removed
				}()
			}
			if sum := <-removed + <-removed; sum != 5 {
				h.t.Fatalf("%d runs were removed by two replicas", sum)
			}
		})
	})
}
