package agent

import (
	"context"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/run"
)

// Cancel ends a run in any open status: its initiator, an administrator or a holder of
// run:cancel may. It is true only for whoever made the difference, stops the run at its
// next step and aborts a model call that is under way (RULES R10).
func (a *Agent) Cancel(ctx context.Context, by actor.Actor, id uuid.UUID) (bool, error) {
	r, err := a.View(ctx, by, id)
	if err != nil {
		return false, err
	}
	if by.ID != r.InitiatorID && !by.May(actor.RunCancel) {
		return false, fault.New(fault.Forbidden, "cancelling other people's runs needs the permission %s", actor.RunCancel)
	}
	won, err := a.cancel(ctx, by, r, run.Cancel)
	if won {
		a.abort(id)
	}
	return won, err
}

// CancelIfWaiting ends a run only while it waits for a person, and tells its status
// after the attempt. It says nothing about the proposal it withdrew (RULES R10, I3).
func (a *Agent) CancelIfWaiting(ctx context.Context, by actor.Actor, id uuid.UUID) (bool, run.Status, error) {
	r, err := a.View(ctx, by, id)
	if err != nil {
		return false, "", err
	}
	if by.ID != r.InitiatorID && !by.Administrator {
		return false, "", fault.New(fault.Forbidden, "only the run's initiator or an administrator withdraws its proposal")
	}
	won, err := a.cancel(ctx, by, r, run.CancelIfWaiting)
	if err != nil {
		return false, "", err
	}
	r, err = a.Store.Run(ctx, id)
	return won, r.Status, err
}

func (a *Agent) cancel(ctx context.Context, by actor.Actor, r Run, t run.Transition) (bool, error) {
	if !t.Allows(r.Status) {
		return false, nil
	}
	out, err := a.apply(ctx, r.Privacy, a.cancelling(by, r, t))
	return out.Applied, err
}

// cancelling is the change that cancels a run, unless it has left the statuses that the
// transition starts from.
func (a *Agent) cancelling(by actor.Actor, r Run, t run.Transition) change.Change {
	return a.withdrawing(by, r, t, run.ReasonCancelled)
}

// withdrawing is the change that ends a run from outside, for a reason.
func (a *Agent) withdrawing(by actor.Actor, r Run, t run.Transition, reason run.Reason) change.Change {
	ending, now := run.Endings[reason], a.World.Now()
	settled, entry := a.ended(by, r.ID, reason)
	return change.Change{
		Deletes: []change.Delete{textGone(r.ID)},
		Updates: []change.Update{{
			Table: runsTable, ID: r.ID,
			If: []change.Value{runStatus.In(t.From...)},
			Set: []change.Value{
				runStatus.To(ending.Status), runOutcome.To(ending.Outcome), runReason.To(reason),
				runTurnDigest.To(""), runRequest.Null(), runState.Null(),
				runLeaseOwner.To(""), runLeaseUntil.Null(), runFinishedAt.To(now),
			},
		}},
		Run:    r.ID,
		Events: []run.Event{settled},
		Audit:  []audit.Entry{entry},
	}
}

// abort stops the segment of a run if this process executes it; another replica's
// segment notices at its next write.
func (a *Agent) abort(id uuid.UUID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s, here := a.segments[id]; here {
		s.stop(errCancelled)
	}
}
