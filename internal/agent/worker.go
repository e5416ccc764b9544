package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/notify"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// maxSegments bounds what one process executes at once; further runs stay queued.
const maxSegments = 64

// Work picks up queued runs until ctx ends, then waits for the segments this process
// executes. It is the worker of this replica; several replicas may work one queue,
// because picking up is a compare-and-set on the run's row.
func (a *Agent) Work(ctx context.Context) {
	rings, stop := a.Bell.Listen(change.QueueTopic)
	defer stop()
	heal := time.NewTicker(healEvery)
	defer heal.Stop()
	for ctx.Err() == nil {
		a.reap(ctx)
		a.expire(ctx)
		a.pickUp(ctx)
		select {
		case <-rings:
		case <-heal.C:
		case <-ctx.Done():
		}
	}
	a.leave()
	a.drain(context.WithoutCancel(ctx))
}

// drain waits for the segments that this process executes, as long as
// server.drainTimeout says. Those that outlast it are stopped and given back, so that
// another replica picks them up at once.
func (a *Agent) drain(ctx context.Context) {
	patience := stopsWithin
	if values, err := a.Settings.Values(ctx); err == nil {
		patience = values.DrainTimeout
	}
	done := make(chan struct{})
	go func() { defer close(done); a.busy.Wait() }()
	select {
	case <-done:
		return
	case <-time.After(patience):
	}
	a.mu.Lock()
	for _, s := range a.segments {
		s.stop(errShutdown)
	}
	a.mu.Unlock()
	select {
	case <-done:
	case <-time.After(stopsWithin):
		a.Log.Warn("a tool does not stop; its run is taken over when its lease ends")
	}
}

// stopsWithin is how long a segment has to give its run back, and to end by itself where
// nobody can read how long it may take.
const stopsWithin = 10 * time.Second

// pickUp claims what is queued, as far as this process has room.
func (a *Agent) pickUp(ctx context.Context) {
	room := maxSegments - a.executing()
	if room <= 0 {
		return
	}
	ids, err := a.Store.Queued(ctx, a.World.Now(), room)
	if err != nil {
		if ctx.Err() == nil {
			a.Log.Error("reading the queue failed", slog.Any("error", err))
		}
		return
	}
	for _, id := range ids {
		owner := a.newOwner()
		claimed, err := a.claim(ctx, id, run.PickUp, owner, []change.Value{runStartedAt.Maybe(nil)}, []change.Value{runStartedAt.To(a.World.Now())}, change.Change{})
		if err == nil && !claimed { // or it was begun before
			claimed, err = a.claim(ctx, id, run.PickUp, owner, nil, []change.Value{runNotBefore.Null()}, change.Change{})
		}
		if err != nil {
			a.Log.Error("picking a run up failed", slog.String("run", id.String()), slog.Any("error", err))
			return
		}
		if claimed {
			a.launch(id, owner, (*segment).pickedUp)
		}
	}
}

// claim moves a run to running and gives its lease to owner, in one statement that
// must hit one row; guards narrow it, set and rest are stored in the same transaction.
// False means that somebody else was first. The events of rest are stored as they are.
func (a *Agent) claim(ctx context.Context, id uuid.UUID, t run.Transition, owner string, guards, set []change.Value, rest change.Change) (bool, error) {
	until, err := a.leaseUntil(ctx)
	if err != nil {
		return false, err
	}
	rest.Updates = append(rest.Updates, change.Update{
		Table: runsTable, ID: id,
		If:  append(guards, runStatus.In(t.From...)),
		Set: append(set, runStatus.To(t.To), runLeaseOwner.To(owner), runLeaseUntil.To(until)),
	})
	rest.Run = id
	out, err := change.One(ctx, a.Store, notify.Announce(rest, a.World.NewID))
	return out.Applied, err
}

func (a *Agent) leaseUntil(ctx context.Context) (time.Time, error) {
	values, err := a.Settings.Values(ctx)
	return a.World.Now().Add(values.Lease), err
}

func (a *Agent) newOwner() string { return a.World.NewID().String() }

func (a *Agent) executing() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.segments)
}

// launch runs one segment of a claimed run in a goroutine of its own. It outlives the
// request that caused it: what ends it is the run's end, its suspension, a cancel or a
// lost lease.
func (a *Agent) launch(id uuid.UUID, owner string, step func(*segment, context.Context) error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	a.mu.Lock()
	a.segments[id] = executing{owner, cancel}
	a.mu.Unlock()
	a.busy.Add(1)
	go func() {
		defer a.busy.Done()
		defer func() {
			a.mu.Lock()
			if a.segments[id].owner == owner { // else the run's next segment is there already
				delete(a.segments, id)
			}
			a.mu.Unlock()
			cancel(nil)
		}()
		written := &liveText{agent: a, run: id, owner: owner}
		defer written.stop()
		s := &segment{agent: a, id: id, owner: owner, stop: cancel, shown: map[string]tool.Basis{}, written: written}
		go s.heartbeat(ctx)
		a.finish(s, recovering(func() error { return step(s, ctx) }), ctx)
		s.bookRest(context.WithoutCancel(ctx))
	}()
}

// recovering turns a panic of a segment into an error: on a goroutine of its own it would
// end the process and every other run with it.
func recovering(step func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.Wrap(fault.Internal, fmt.Errorf("panic: %v\n%s", p, debug.Stack()), "executing a run")
		}
	}()
	return step()
}

// finish settles a segment that ended with an error. One that lost its lease or was
// cancelled writes nothing: its run belongs to somebody else now (RULES R2, R6). One
// that this process stopped gives its run back.
func (a *Agent) finish(s *segment, err error, ctx context.Context) {
	cause := context.Cause(ctx)
	if err == nil || errors.Is(err, errLeaseLost) || errors.Is(cause, errCancelled) || errors.Is(cause, errLeaseLost) {
		return
	}
	log := a.Log.With(slog.String("run", s.id.String()))
	if errors.Is(cause, errShutdown) {
		if err := a.giveBack(context.WithoutCancel(ctx), s.id, s.owner); err != nil {
			log.Error("giving a run back failed; it is taken over when its lease ends", slog.Any("error", err))
		}
		return
	}
	ending, ok := endingOf(err)
	if !ok {
		log.Error("a run failed", slog.Any("error", err)) // RULES R20: logged once, here
		ending = stopped{reason: run.ReasonPolicyDenied, message: "the server could not go on with the run"}
		if fault.KindOf(err) == fault.Unavailable {
			ending.message = "the database was not available"
		}
	} else {
		log.Warn("a run ended early", slog.String("reason", string(ending.reason)), slog.String("message", ending.message), slog.Any("cause", ending.cause))
	}
	if err := s.settle(context.WithoutCancel(ctx), ending); err != nil && !errors.Is(err, errLeaseLost) {
		log.Error("settling a failed run failed", slog.Any("error", err))
	}
}
