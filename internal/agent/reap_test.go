package agent_test

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
)

// dying is a house whose runtime can lose its database for good, which is how the
// death of its process looks from everywhere else: nothing it does is stored any more.
func dying(t *testing.T, test func(h *house, die func(at func(change.Change) bool))) {
	t.Helper()
	var m *meddler
	meddled(t, func(s *store.Store) agent.Store { m = &meddler{Store: s}; return m }, func(h *house) {
		test(h, func(at func(change.Change) bool) {
			dead := false
			m.meddle(func(c change.Change) error {
				if dead = dead || at(c); dead {
					return fault.New(fault.Unavailable, "this worker is dead")
				}
				return nil
			})
		})
	})
}

// takenOver lets another replica work, some days on, until the run rests or the replica
// has nothing left to do with it.
func (h *house) takenOver(days int, id uuid.UUID) agent.Run {
	h.t.Helper()
	was := h.row(id) // before the replica can change it
	replica := h.later(days)
	replica.Store = h.store
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); replica.Work(ctx) }()
	defer func() { stop(); <-done }()
	for {
		if r := h.row(id); r.Status.Terminal() || r.Status.Waiting() || r.Attempts > was.Attempts {
			return r
		}
		time.Sleep(time.Millisecond)
	}
}

func (h *house) row(id uuid.UUID) agent.Run {
	h.t.Helper()
	r, err := h.store.Run(context.Background(), id)
	h.ok(err)
	return r
}

// killed waits until the run is executed by the worker that died.
func (h *house) killed(id uuid.UUID) {
	h.t.Helper()
	for h.row(id).Status != run.Running {
		time.Sleep(time.Millisecond)
	}
	h.drain()
}

func recordsCall(c change.Change) bool {
	return slices.ContainsFunc(c.Events, func(e run.Event) bool { return e.Kind == run.EventToolCall })
}

func TestWorkerDeath(t *testing.T) {
	t.Run("R8 a first segment begins again, at most three times, and then the run is given up", func(t *testing.T) {
		dying(t, func(h *house, die func(func(change.Change) bool)) {
			die(recordsCall)
			h.model.says(calls("list_pages", `{}`), calls("list_pages", `{}`))
			started, err := h.agent.Start(context.Background(), h.admin, h.plain())
			h.ok(err)
			h.killed(started.ID)
			r := h.takenOver(1, started.ID)
			if r.Status != run.Queued || r.Outcome != run.OutcomeRequeued || r.Attempts != 1 || r.LeaseOwner != "" {
				h.t.Fatalf("%+v", r)
			}
			if got := r.Notices[len(r.Notices)-1]; got.Code != run.NoticeRequeued || !slices.Equal(got.Args, []string{"1", "3"}) {
				h.t.Errorf("%+v", got)
			}
			if got := h.trail(r.ID); got[len(got)-1] != audit.RunRequeued {
				h.t.Errorf("%v", got)
			}
			r = h.takenOver(2, r.ID)
			if r.Status != run.Completed || r.Answer != "Done." {
				h.t.Fatalf("%+v", r)
			}
		})
	})
	t.Run("R8 what is lost again and again is given up", func(t *testing.T) {
		each(t, func(h *house) {
			id := h.lost()
			h.set(id, change.Int("runs", "attempts").To(run.MaxAttempts))
			if r := h.takenOver(1, id); r.Reason != run.ReasonRetriesExhausted || r.Status != run.Failed {
				h.t.Fatalf("%+v", r)
			}
			if got := h.trail(id); got[len(got)-1] != audit.RunEnded {
				h.t.Errorf("%v", got)
			}
		})
	})
	t.Run("R8 an approval whose worker died before it wrote is carried out once by another", func(t *testing.T) {
		dying(t, func(h *house, die func(func(change.Change) bool)) {
			r := h.waiting()
			die(func(c change.Change) bool { _, fences := sets(c, "fence"); return fences })
			_, err := h.agent.Decide(context.Background(), h.admin, agent.Decision{Run: r.ID, TurnDigest: r.TurnDigest, Approve: true})
			h.ok(err)
			h.killed(r.ID)
			if r = h.takenOver(1, r.ID); r.Status != run.Queued {
				h.t.Fatalf("%+v", r)
			}
			if got := h.text("hello"); got != "Helo" {
				h.t.Fatalf("it was written already: %s", got)
			}
			r = h.takenOver(2, r.ID)
			if r.Status != run.Completed || h.text("hello") != "Hello" || h.revisions("hello") != 2 {
				h.t.Fatalf("%+v %q in %d revisions", r, h.text("hello"), h.revisions("hello"))
			}
			if got := h.trail(r.ID); !slices.Contains(got, audit.WriteExecuted) {
				h.t.Errorf("%v", got)
			}
		})
	})
	t.Run("R8 a denial whose worker died reaches the model by another", func(t *testing.T) {
		dying(t, func(h *house, die func(func(change.Change) bool)) {
			r := h.waiting()
			die(recordsCall)
			_, err := h.agent.Decide(context.Background(), h.admin, agent.Decision{Run: r.ID, TurnDigest: r.TurnDigest, Reason: agent.Variant})
			h.ok(err)
			h.killed(r.ID)
			h.takenOver(1, r.ID)
			if r = h.takenOver(2, r.ID); r.Status != run.Completed {
				h.t.Fatalf("%+v", r)
			}
			last := h.model.asked(h.model.count() - 1)
			if got := last.Messages[len(last.Messages)-1].Text; !strings.Contains(got, `"reason":"variant"`) {
				h.t.Errorf("the model read %s", got)
			}
		})
	})
	t.Run("R8 a write that was under way when its worker died is not made again: check the record", func(t *testing.T) {
		dying(t, func(h *house, die func(func(change.Change) bool)) {
			r := h.waiting()
			die(recordsCall)
			_, err := h.agent.Decide(context.Background(), h.admin, agent.Decision{Run: r.ID, TurnDigest: r.TurnDigest, Approve: true})
			h.ok(err)
			h.killed(r.ID)
			r = h.takenOver(1, r.ID)
			if r.Status != run.Failed || r.Outcome != run.OutcomeLeaseLost || r.Reason != run.ReasonNotRetryable || r.Fence == nil || !strings.Contains(r.Message, "check the record") {
				h.t.Fatalf("%+v", r)
			}
			if h.text("hello") != "Hello" || h.revisions("hello") != 2 {
				h.t.Errorf("%q in %d revisions", h.text("hello"), h.revisions("hello"))
			}
		})
	})
	t.Run("R8 a segment that died after its approved write does not begin again", func(t *testing.T) {
		dying(t, func(h *house, die func(func(change.Change) bool)) {
			r := h.waiting()
			die(func(c change.Change) bool {
				return slices.ContainsFunc(c.Events, func(e run.Event) bool { return e.Kind == run.EventModelCall || e.Kind == run.EventSettled })
			})
			_, err := h.agent.Decide(context.Background(), h.admin, agent.Decision{Run: r.ID, TurnDigest: r.TurnDigest, Approve: true})
			h.ok(err)
			h.killed(r.ID)
			r = h.takenOver(1, r.ID)
			if r.Reason != run.ReasonNotRetryable || r.Fence != nil || h.revisions("hello") != 2 {
				h.t.Fatalf("%+v in %d revisions", r, h.revisions("hello"))
			}
		})
	})
	t.Run("R8 a worker that comes back after its run was taken over writes nothing more", func(t *testing.T) {
		each(t, func(h *house) {
			asked, answer := make(chan struct{}), make(chan struct{})
			h.model.does(func(context.Context) (agent.Turn, error) {
				close(asked)
				<-answer
				return agent.Turn{Text: "Too late."}, nil
			})
			r, err := h.agent.Start(context.Background(), h.admin, h.plain())
			h.ok(err)
			<-asked
			h.takenOver(1, r.ID)
			r = h.takenOver(2, r.ID)
			before := h.events(r.ID)
			close(answer)
			h.drain()
			if after := h.row(r.ID); after.Answer != "Done." || len(h.events(r.ID)) != len(before) {
				h.t.Fatalf("%+v", after)
			}
		})
	})
	t.Run("R6 a heartbeat that comes first keeps the run", func(t *testing.T) {
		var m *meddler
		meddled(t, func(s *store.Store) agent.Store { m = &meddler{Store: s}; return m }, func(h *house) {
			id := h.lost()
			m.meddle(func(c change.Change) error {
				if _, requeues := sets(c, "attempts"); requeues { // between what the reaper read and what it writes
					h.set(id, change.Time("runs", "lease_until").To(time.Now().AddDate(1, 0, 0)))
				}
				return nil
			})
			replica := h.later(1)
			ctx, stop := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() { defer close(done); replica.Work(ctx) }()
			for h.row(id).LeaseUntil.Before(time.Now().AddDate(0, 6, 0)) {
				time.Sleep(time.Millisecond)
			}
			stop()
			<-done
			if r := h.row(id); r.Status != run.Running || r.Attempts != 0 {
				h.t.Fatalf("%+v", r)
			}
		})
	})
	t.Run("R8 a server that shuts down gives back what does not end in time", func(t *testing.T) {
		each(t, func(h *house) {
			h.drain()
			replica := h.later(0)
			h.setting("server.drainTimeout", "0")
			ctx, stop := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() { defer close(done); replica.Work(ctx) }()
			h.model.does(func(ctx context.Context) (agent.Turn, error) {
				stop()
				<-ctx.Done() // a model that does not answer
				return agent.Turn{}, ctx.Err()
			})
			r, err := h.agent.Start(context.Background(), h.admin, h.plain())
			h.ok(err)
			<-done
			r = h.row(r.ID)
			if r.Status != run.Queued || r.Attempts != 0 || r.LeaseOwner != "" {
				h.t.Fatalf("%+v", r)
			}
			if r = h.takenOver(0, r.ID); r.Status != run.Completed {
				h.t.Fatalf("it was not picked up at once: %+v", r)
			}
		})
	})
}

func TestGivenBackAlive(t *testing.T) {
	var m *meddler
	meddled(t, func(s *store.Store) agent.Store { m = &meddler{Store: s}; return m }, func(h *house) {
		h.drain()
		h.setting("server.drainTimeout", "0")
		replica := h.later(0)
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); replica.Work(ctx) }()
		h.model.does(func(ctx context.Context) (agent.Turn, error) {
			stop()
			<-ctx.Done()
			return agent.Turn{}, ctx.Err()
		})
		renewed := false
		m.meddle(func(c change.Change) error {
			if status, set := sets(c, "status"); set && status == "queued" && !renewed {
				renewed = true
				h.set(c.Run, storetest.V("lease_until", time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)))
			}
			return nil
		})
		r, err := h.agent.Start(context.Background(), h.admin, h.plain())
		h.ok(err)
		<-done
		h.t.Run("R8 a run is given back although its segment gave a last sign of life", func(t *testing.T) {
			if r = h.row(r.ID); !renewed || r.Status != run.Queued || r.LeaseOwner != "" {
				t.Errorf("renewed %v, %+v", renewed, r)
			}
		})
	})
}

// lost is a run whose worker died with it, made by hand.
func (h *house) lost() uuid.UUID {
	h.t.Helper()
	h.drain()
	r, err := h.agent.Start(context.Background(), h.admin, h.plain())
	h.ok(err)
	h.set(r.ID, change.Text[string]("runs", "status").To("running"), change.Text[string]("runs", "lease_owner").To("dead"),
		change.Time("runs", "lease_until").To(time.Now().Add(time.Minute)))
	return r.ID
}

func (h *house) revisions(element string) int {
	h.t.Helper()
	history, err := h.content.History(context.Background(), h.admin, "element", element)
	h.ok(err)
	return len(history)
}

// logged is a runtime's log as a test reads it.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(line))
	return len(line), nil
}

// naming counts the lines that name a run.
func (l *logged) naming(id uuid.UUID) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.lines {
		if strings.Contains(line, "run="+id.String()) {
			n++
		}
	}
	return n
}

func TestLog(t *testing.T) {
	failing := func(context.Context) (agent.Turn, error) {
		return agent.Turn{}, &agent.ProviderError{Message: "overloaded", Status: 503}
	}
	t.Run("R20 a failure is logged once, with the run's id, and a success not at all", func(t *testing.T) {
		each(t, func(h *house) {
			h.drain()
			log := &logged{}
			replica := h.later(0)
			replica.Log = slog.New(slog.NewTextHandler(log, nil))
			ctx, stop := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() { defer close(done); replica.Work(ctx) }()
			h.model.does(failing)
			failed, fine := h.start(h.admin, h.plain()), h.start(h.admin, h.plain())
			stop()
			<-done
			if failed.Reason != run.ReasonProviderFailed || log.naming(failed.ID) != 1 || log.naming(fine.ID) != 0 {
				h.t.Fatalf("%s: %d and %d lines", failed.Reason, log.naming(failed.ID), log.naming(fine.ID))
			}
		})
	})
	t.Run("R20 a suspension that could not be stored is logged by its cause and its end", func(t *testing.T) {
		var m *meddler
		meddled(t, func(s *store.Store) agent.Store { m = &meddler{Store: s}; return m }, func(h *house) {
			h.drain()
			log := &logged{}
			replica := h.later(0)
			replica.Log = slog.New(slog.NewTextHandler(log, nil))
			m.meddle(func(c change.Change) error {
				if state, has := sets(c, "state"); has && state != nil && slices.ContainsFunc(c.Events, func(e run.Event) bool { return e.Kind == run.EventSuspended }) {
					return errDisk
				}
				return nil
			})
			ctx, stop := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() { defer close(done); replica.Work(ctx) }()
			h.model.says(calls("update_element", fix))
			r := h.start(h.admin, h.plain())
			stop()
			<-done
			if r.Outcome != run.OutcomeSuspendFailed || log.naming(r.ID) != 1 {
				h.t.Fatalf("%s, %d lines: %q", r.Outcome, log.naming(r.ID), log.lines)
			}
		})
	})
	t.Run("R17 a log that cannot be written changes no outcome", func(t *testing.T) {
		each(t, func(h *house) {
			h.drain()
			replica := h.later(0)
			replica.Log = slog.New(slog.NewTextHandler(brokenPipe{}, nil))
			ctx, stop := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() { defer close(done); replica.Work(ctx) }()
			h.model.does(failing)
			failed, fine := h.start(h.admin, h.plain()), h.start(h.admin, h.plain())
			stop()
			<-done
			if failed.Reason != run.ReasonProviderFailed || fine.Status != run.Completed {
				h.t.Fatalf("%+v\n%+v", failed, fine)
			}
		})
	})
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
