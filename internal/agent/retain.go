package agent

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/run"
)

// retainBatch is how many runs go in one transaction.
const retainBatch = 200

// Retained says what one look at the runs' age came to.
type Retained struct {
	Cancelled int // waited too long for a person
	Removed   int // ended too long ago
}

// Retain cancels runs that have waited for a person longer than
// retention.waitingRunDays, and removes runs that ended longer ago than
// retention.runDays, with their events (RULES Y2). What was removed stays in the audit
// trail as an id and a count. Any number of replicas may do it at once.
func (a *Agent) Retain(ctx context.Context) (Retained, error) {
	var done Retained
	values, err := a.Settings.Values(ctx)
	if err != nil {
		return done, err
	}
	now := a.World.Now()
	if days := values.WaitingRunDays; days > 0 {
		if done.Cancelled, err = a.giveUp(ctx, now.AddDate(0, 0, -days)); err != nil {
			return done, err
		}
	}
	if days := values.RunDays; days > 0 {
		done.Removed, err = a.remove(ctx, now.AddDate(0, 0, -days))
	}
	return done, err
}

// giveUp cancels what has waited since before a time. What it waited with is dropped
// with it, as at any other end; the run itself stays until its own time comes.
func (a *Agent) giveUp(ctx context.Context, before time.Time) (int, error) {
	cancelled := 0
	for {
		waiting, err := a.Store.WaitingSince(ctx, before, retainBatch)
		if err != nil {
			return cancelled, err
		}
		for _, id := range waiting {
			won, err := a.cancel(ctx, actor.Actor{}, Run{ID: id, Status: run.WaitingForApproval}, run.CancelIfWaiting)
			if err != nil {
				return cancelled, err
			}
			if won {
				cancelled++
			}
		}
		if len(waiting) < retainBatch {
			return cancelled, nil
		}
	}
}

// remove deletes what ended before a time, a batch in a transaction with one entry.
func (a *Agent) remove(ctx context.Context, before time.Time) (int, error) {
	removed := 0
	for {
		ended, err := a.Store.EndedBefore(ctx, before, retainBatch)
		if err != nil || len(ended) == 0 {
			return removed, err
		}
		out, err := change.One(ctx, a.Store, change.Change{
			Deletes: removals(ended),
			Audit: []audit.Entry{audit.Record(a.World, actor.Actor{}, audit.RunsRemoved).
				With("runs", len(ended)).With("endedBefore", before.UTC().Format(time.RFC3339))},
		})
		if err != nil {
			return removed, err
		}
		if !out.Applied {
			return removed, nil // another replica is removing them
		}
		removed += len(ended)
	}
}

func removals(ended []uuid.UUID) []change.Delete {
	out := make([]change.Delete, len(ended))
	for i, id := range ended {
		out[i] = change.Delete{Table: runsTable, ID: id, If: []change.Value{runStatus.In(run.Completed, run.Failed, run.Cancelled)}}
	}
	return out
}
