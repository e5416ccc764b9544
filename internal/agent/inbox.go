package agent

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
)

// InboxChange is one change of what waits for people. Waits is false for a run that does
// not wait any more, or that the viewer may not see any more.
type InboxChange struct {
	Run   uuid.UUID
	Waits bool
}

// FollowInbox streams what waits and the actor may see: at first all of it, the longest
// waiting first, then every change. It compares what there is with what it told, so that a
// wake-up may be folded or lost.
func (a *Agent) FollowInbox(ctx context.Context, by actor.Actor) iter.Seq2[InboxChange, error] {
	return func(yield func(InboxChange, error) bool) {
		rings, stop := a.Bell.Listen(change.StepsTopic)
		defer stop()
		heal := time.NewTicker(healEvery)
		defer heal.Stop()
		told := map[uuid.UUID]string{}
		for {
			waiting, err := a.allWaiting(ctx, by)
			if err != nil {
				yield(InboxChange{}, err)
				return
			}
			now := map[uuid.UUID]string{}
			for _, r := range slices.Backward(waiting) {
				now[r.ID] = r.TurnDigest
				if told[r.ID] != r.TurnDigest && !yield(InboxChange{Run: r.ID, Waits: true}, nil) {
					return
				}
			}
			for id := range told {
				if _, still := now[id]; !still && !yield(InboxChange{Run: id}, nil) {
					return
				}
			}
			told = now
			select {
			case <-rings:
			case <-heal.C:
			case <-ctx.Done():
				return
			}
		}
	}
}

// inboxPage is how many runs one read of the inbox takes.
const inboxPage = 200

func (a *Agent) allWaiting(ctx context.Context, by actor.Actor) ([]Run, error) {
	var all []Run
	for page := (Page{Limit: inboxPage}); ; {
		some, err := a.Inbox(ctx, by, page)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if len(some) < inboxPage {
			return all, nil
		}
		page.Cursor = some[len(some)-1].ID
	}
}
