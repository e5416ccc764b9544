package agent_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
)

// lingering is a store that stores a suspension and does not say so before it is told
// to: the segment that parked its run is still there when the run goes on.
type lingering struct {
	*store.Store
	parked  chan context.Context // of the segment, which ends with it
	release chan struct{}
	once    atomic.Bool
}

func (l *lingering) Apply(ctx context.Context, changes ...change.Change) ([]change.Outcome, error) {
	out, err := l.Store.Apply(ctx, changes...)
	for _, c := range changes {
		for _, e := range c.Events {
			if e.Kind == run.EventSuspended && l.once.CompareAndSwap(false, true) {
				l.parked <- ctx
				<-l.release
			}
		}
	}
	return out, err
}

func TestSegments(t *testing.T) {
	t.Run("R10 a cancel aborts the model call of a run that was decided before its last segment was gone", func(t *testing.T) {
		var l *lingering
		meddled(t, func(s *store.Store) agent.Store {
			l = &lingering{Store: s, parked: make(chan context.Context, 1), release: make(chan struct{})}
			return l
		}, func(h *house) {
			r := h.ordinary(h.admin)
			asked, aborted := make(chan struct{}), make(chan struct{})
			h.model.does(func(ctx context.Context) (agent.Turn, error) {
				close(asked)
				<-ctx.Done()
				close(aborted)
				return agent.Turn{}, ctx.Err()
			})
			first := <-l.parked
			_, err := h.agent.Decide(context.Background(), h.admin, decision(r, true))
			h.ok(err)
			<-asked
			close(l.release)
			<-first.Done()
			won, err := h.agent.Cancel(context.Background(), h.admin, r.ID)
			h.ok(err)
			if !won {
				h.t.Fatal("the cancel did not win")
			}
			<-aborted
		})
	})

	t.Run("R3 a panic fails its own run and nothing else", func(t *testing.T) {
		each(t, func(h *house) {
			h.model.does(func(context.Context) (agent.Turn, error) { panic("a client's bug") })
			r := h.start(h.admin, h.plain())
			if r.Status != run.Failed || strings.Contains(r.Message, "bug") {
				h.t.Errorf("the run is %s: %s", r.Status, r.Message)
			}
			if next := h.start(h.admin, h.plain()); next.Status != run.Completed {
				h.t.Errorf("the next run is %s: %s", next.Status, next.Message)
			}
		})
	})

	t.Run("R4 a database that is gone when a run ends costs the run nothing but time", func(t *testing.T) {
		var m *meddler
		with := func(s *store.Store) agent.Store {
			m = &meddler{Store: s}
			return m
		}
		meddled(t, with, func(h *house) {
			var gone atomic.Bool
			m.meddle(func(c change.Change) error {
				for _, e := range c.Events {
					if e.Kind == run.EventSettled && gone.CompareAndSwap(false, true) {
						return fault.New(fault.Unavailable, "The database cannot be reached; try again.")
					}
				}
				return nil
			})
			if r := h.start(h.admin, h.plain()); r.Status != run.Completed || r.Answer != "Done." || !gone.Load() {
				h.t.Errorf("the run is %s: %s", r.Status, r.Message)
			}
		})
	})

	t.Run("Y1 the name of a tool that does not exist is kept bounded", func(t *testing.T) {
		each(t, func(h *house) {
			name := strings.Repeat("x", 100_000)
			h.model.says(calls(name, `{}`))
			r := h.start(h.admin, h.plain())
			for _, e := range h.events(r.ID) {
				if len(e.Data.Tool) > 500 {
					h.t.Errorf("the event %s keeps %d bytes of it", e.Kind, len(e.Data.Tool))
				}
			}
			entries, err := h.store.AuditEntries(context.Background(), audit.Filter{Run: r.ID}, audit.Page{Limit: 100, OldestFirst: true})
			h.ok(err)
			for _, e := range entries {
				if size := len(e.EncodeDetail()); size > 10_000 {
					h.t.Errorf("the entry %s keeps %d bytes of it", e.Event, size)
				}
			}
		})
	})
}
