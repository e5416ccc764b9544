package agent

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// reapBatch is how many lost runs one look takes care of.
const reapBatch = 100

// reap takes care of runs whose worker is gone: their lease has ended and nobody renewed
// it (RULES R8). Any replica does it for all of them.
func (a *Agent) reap(ctx context.Context) {
	ids, err := a.Store.Lost(ctx, a.World.Now(), reapBatch)
	if err != nil {
		if ctx.Err() == nil {
			a.Log.Error("looking for lost runs failed", slog.Any("error", err))
		}
		return
	}
	a.each(ctx, ids, "taking care of a lost run failed", func(r Run) error {
		_, err := a.rescue(ctx, r, false)
		return err
	})
}

// each takes care of runs. One that cannot be read is kept for its operator.
func (a *Agent) each(ctx context.Context, ids []uuid.UUID, failure string, care func(Run) error) {
	for _, id := range ids {
		r, err := a.Store.Run(ctx, id)
		if err == nil {
			err = care(r)
		}
		switch {
		case err == nil || ctx.Err() != nil:
			delete(a.unreadable, id)
		case errors.Is(err, ErrUnreadable) && a.unreadable[id]: // kept for its operator, said once
		default:
			a.unreadable[id] = errors.Is(err, ErrUnreadable)
			a.Log.Error(failure, slog.String("run", id.String()), slog.Any("error", err))
		}
	}
}

// giveBack lets another worker have the run of a segment that this process stops
// executing because it shuts down. A last sign of life of the segment may come in
// between, and then its lease is read again.
func (a *Agent) giveBack(ctx context.Context, id uuid.UUID, owner string) error {
	for range giveBackTries {
		r, err := a.Store.Run(ctx, id)
		if err != nil || r.LeaseOwner != owner {
			return err
		}
		if given, err := a.rescue(ctx, r, true); given || err != nil {
			return err
		}
	}
	return errLeaseLost
}

// giveBackTries bounds how often a run is given back anew: a segment that was stopped has
// one sign of life under way at most.
const giveBackTries = 3

// rescue puts a lost run back into the queue, or ends it where beginning its segment
// again could write twice. It makes no difference, and says so, when the segment is not
// lost after all: then its lease is not the one that was read.
func (a *Agent) rescue(ctx context.Context, r Run, givenBack bool) (done bool, err error) {
	events, err := a.Store.Segment(ctx, r.ID)
	if err != nil {
		return false, err
	}
	lost := a.lost(r, events)
	if givenBack {
		lost.Attempts = 0 // nothing went wrong with it
	}
	end, wait := run.Rescue(lost)
	var c change.Change
	switch {
	case end != "":
		c = a.abandoned(r, end)
	case givenBack:
		c = a.requeued(r, r.Attempts, 0)
	default:
		c = a.requeued(r, r.Attempts+1, wait)
	}
	c.Run, c.Deletes = r.ID, []change.Delete{textGone(r.ID)}
	c.Updates[0].Table, c.Updates[0].ID = runsTable, r.ID
	c.Updates[0].If = []change.Value{runStatus.Is(run.Running), runLeaseOwner.Is(r.LeaseOwner), runLeaseUntil.Maybe(r.LeaseUntil)}
	out, err := a.apply(ctx, r.Privacy, c)
	return out.Applied, err
}

// lost reads off a run and the events of its segment what beginning it again would
// repeat.
func (a *Agent) lost(r Run, segment []run.Event) run.Lost {
	l := run.Lost{Attempts: r.Attempts, Fence: run.NoWrite, Wrote: run.NoWrite}
	if r.Fence != nil {
		l.Fence = a.repeatability(r.Fence.Tool)
	}
	for _, e := range segment {
		switch e.Kind {
		case run.EventDecision, run.EventInput:
			l.Answered = true
		case run.EventToolCall:
			if _, refused := refusals[run.Disposition(e.Data.Token)]; refused || e.Data.Token == tokenDenied {
				continue // it was never executed
			}
			if w := a.repeatability(e.Data.Tool); w == run.Once || l.Wrote == run.NoWrite {
				l.Wrote = w
			}
		}
	}
	return l
}

func (a *Agent) repeatability(name string) run.Write {
	spec, known := a.Tools.Shipped().Spec(name)
	switch effect := tool.EffectOf(spec); {
	case !known || effect == tool.NonIdempotentWrite:
		return run.Once // RULES G1: another server's tool, or an unknown name, counts as the worst
	case effect.Writes():
		return run.Repeatable
	}
	return run.NoWrite
}

// requeued is the change that puts a run back into the queue.
func (a *Agent) requeued(r Run, attempts int, wait time.Duration) change.Change {
	now := a.World.Now()
	set := []change.Value{
		runStatus.To(run.Requeue.To), runOutcome.To(run.OutcomeRequeued), runAttempts.To(attempts),
		runNotBefore.To(now.Add(wait)), runLeaseOwner.To(""), runLeaseUntil.Null(), runFence.To(nil),
	}
	c := change.Change{
		Audit: []audit.Entry{audit.Record(a.World, actor.Actor{}, audit.RunRequeued).InRun(r.ID).With("attempts", attempts)},
		Ring:  []change.Topic{change.QueueTopic},
	}
	if attempts > r.Attempts {
		n := notice(run.NoticeRequeued, strconv.Itoa(attempts), strconv.Itoa(run.MaxAttempts))
		c.Events = noticeEvents(now, []run.Notice{n})
		set = append(set, runNotices.To(append(orEmpty(r.Notices), n)))
	}
	c.Updates = []change.Update{{Set: set}}
	return c
}

// abandonments says why a lost run was not begun again.
var abandonments = map[run.Reason]string{
	run.ReasonNotRetryable:     "the worker that executed the run is gone; it had begun to write, so the run was not begun again",
	run.ReasonRetriesExhausted: "the workers that executed the run are gone, and it was begun again often enough",
}

// abandoned is the change that ends a lost run. A fence stays, so that it reads "check
// the record" (RULES R7, C5).
func (a *Agent) abandoned(r Run, reason run.Reason) change.Change {
	ending, message := run.Endings[reason], abandonments[reason]
	if r.Fence != nil {
		message = "the worker that executed the run is gone, and whether its write was made is not known: check the record"
	}
	settled, entry := a.ended(actor.Actor{}, r.ID, reason)
	return change.Change{
		Updates: []change.Update{{Set: []change.Value{
			runStatus.To(ending.Status), runOutcome.To(ending.Outcome), runReason.To(reason), runMessage.To(message),
			runTurnDigest.To(""), runRequest.Null(), runState.Null(), runLeaseOwner.To(""), runLeaseUntil.Null(),
			runFinishedAt.To(a.World.Now()),
		}}},
		Events: []run.Event{settled},
		Audit:  []audit.Entry{entry},
	}
}
