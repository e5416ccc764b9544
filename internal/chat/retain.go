package chat

import (
	"context"

	"github.com/countersign/countersign/internal/change"
)

// retainBatch is how many conversations one read takes.
const retainBatch = 200

// Retained says what one look at the conversations' age came to.
type Retained struct {
	Archived int // rested for too long
	Deleted  int // were archived too long ago
}

// Retain archives conversations that have rested for retention.conversationDays, and
// deletes those that were archived retention.archivedConversationDays ago. Pinned ones
// stay as they are (RULES V8). Any number of replicas may do it at once.
func (c *Chat) Retain(ctx context.Context) (Retained, error) {
	var done Retained
	values, err := c.Settings.Values(ctx)
	if err != nil {
		return done, err
	}
	if days := values.ArchivedDays; days > 0 { // before anything is archived now
		if done.Deleted, err = c.retain(ctx, true, days, deleting); err != nil {
			return done, err
		}
	}
	if days := values.ConversationDays; days > 0 {
		done.Archived, err = c.retain(ctx, false, days, func(now Conversation) change.Change {
			e, _ := c.archiving(now) // one that is not at rest is not stale
			return c.edited(now, e)
		})
	}
	return done, err
}

// retain makes a change of every conversation that is old enough. One that changed
// meanwhile is left to the next look.
func (c *Chat) retain(ctx context.Context, archived bool, days int, make func(Conversation) change.Change) (int, error) {
	done, before := 0, c.World.Now().AddDate(0, 0, -days)
	for {
		ids, err := c.Store.Stale(ctx, archived, before, retainBatch)
		if err != nil {
			return done, err
		}
		changed := 0
		for _, id := range ids {
			now, err := c.Store.Conversation(ctx, id)
			if err != nil {
				continue // gone by now
			}
			out, err := change.One(ctx, c.Store, make(now))
			if err != nil {
				return done, err
			}
			if out.Applied {
				changed++
			}
		}
		done += changed
		if len(ids) < retainBatch || changed == 0 {
			return done, nil
		}
	}
}
