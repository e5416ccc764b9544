package chat

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/tool"
)

// Rename gives a conversation another title. It touches nothing that a turn writes, nor the
// reverse (RULES V7).
func (c *Chat) Rename(ctx context.Context, by actor.Actor, id uuid.UUID, title string) (Conversation, error) {
	if err := checkTitle(title); err != nil {
		return Conversation{}, err
	}
	return c.change(ctx, by, id, func(now Conversation) (edit, error) {
		if now.Title == title {
			return edit{}, nil
		}
		return edit{set: titled(title), entries: []Entry{state("title")}}, nil
	})
}

// Pin exempts a conversation from retention, or stops doing so (RULES V8).
func (c *Chat) Pin(ctx context.Context, by actor.Actor, id uuid.UUID, pinned bool) (Conversation, error) {
	return c.change(ctx, by, id, func(now Conversation) (edit, error) {
		if now.Pinned == pinned {
			return edit{}, nil
		}
		return edit{set: []change.Value{cPinned.To(pinned)}, entries: []Entry{state("pinned")}}, nil
	})
}

// Archive puts a conversation at rest away, Unarchive brings it back.
//
// Refusals: BUSY while a turn is under way or waits.
func (c *Chat) Archive(ctx context.Context, by actor.Actor, id uuid.UUID) (Conversation, error) {
	return c.change(ctx, by, id, c.archiving)
}

func (c *Chat) archiving(now Conversation) (edit, error) {
	switch {
	case now.Archived != nil:
		return edit{}, nil
	case !now.Status.Rests() || len(now.Queue) > 0:
		return edit{}, fault.Refuse(fault.Busy, "The conversation is %s; end or stop its turn first.", now.Status)
	}
	return edit{set: []change.Value{cArchived.To(c.World.Now())}, entries: []Entry{state("archivedAt")}}, nil
}

// Unarchive brings an archived conversation back.
func (c *Chat) Unarchive(ctx context.Context, by actor.Actor, id uuid.UUID) (Conversation, error) {
	return c.change(ctx, by, id, func(now Conversation) (edit, error) {
		if now.Archived == nil {
			return edit{}, nil
		}
		return edit{
			set:     []change.Value{cArchived.Null(), cActiveAt.To(c.World.Now())},
			entries: []Entry{state("archivedAt")},
		}, nil
	})
}

// change makes an edit of the owner's.
func (c *Chat) change(ctx context.Context, by actor.Actor, id uuid.UUID, judge func(Conversation) (edit, error)) (Conversation, error) {
	if _, err := c.find(ctx, by, id); err != nil {
		return Conversation{}, err
	}
	return c.amend(ctx, id, judge)
}

// deleteTries bounds how often a deletion looks again.
const deleteTries = 8

// Delete removes a conversation with its log. A process run that waits is withdrawn
// first; any other run that waits stays in the inbox. The runs and the audit trail stay.
//
// Refusals: BUSY while a turn is under way.
func (c *Chat) Delete(ctx context.Context, by actor.Actor, id uuid.UUID) error {
	for range deleteTries {
		now, err := c.find(ctx, by, id)
		if err != nil {
			return err
		}
		switch {
		case now.arriving() == Busy:
			return fault.Refuse(fault.Busy, "A turn is under way; stop it first.")
		case now.arriving() == Withdraw:
			_, status, err := c.Runtime.CancelIfWaiting(change.Aside(ctx), by, now.RunID)
			if err != nil && !fault.Is(err, fault.NotFound) {
				return err
			}
			if err == nil && !status.Terminal() {
				return fault.Refuse(fault.Busy, "Your answer is being carried out; wait for it to end.")
			}
			if err := c.catchUp(ctx, id); err != nil {
				return err
			}
			continue
		}
		out, err := change.One(ctx, c.Store, deleting(now))
		if err != nil || out.Applied {
			return err
		}
	}
	return fault.New(fault.Unavailable, "The conversation keeps changing; try again.")
}

func deleting(now Conversation) change.Change {
	return change.Change{
		Deletes: []change.Delete{{Table: conversations, ID: now.ID, If: []change.Value{cEntries.Is(now.Entries), cLeaseOwner.Is(now.LeaseOwner)}}},
		Ring:    []change.Topic{change.ConversationTopic(now.ID), change.ChatsTopic},
	}
}

// arriving is arrives for an archived conversation too.
func (c Conversation) arriving() Move {
	c.Archived = nil
	return c.arrives()
}

// SetSkill gives the conversation a skill that its next message invokes, or none. Setting
// one that has ended starts it again (RULES X9).
//
// Refusals: BUSY, and what starting a run with the skill refuses.
func (c *Chat) SetSkill(ctx context.Context, by actor.Actor, id, skillID uuid.UUID, subject *tool.Record) (Conversation, error) {
	now, err := c.find(ctx, by, id)
	if err != nil {
		return Conversation{}, err
	}
	if subject != nil && skillID == uuid.Nil {
		return Conversation{}, fault.New(fault.BadInput, "A subject goes with a skill that works on it.")
	}
	if skillID != uuid.Nil {
		if err := c.mayStart(ctx, by, now, skillID, subject); err != nil {
			return now, err
		}
	}
	return c.change(ctx, by, id, func(now Conversation) (edit, error) {
		if now.Archived != nil {
			return edit{}, archived()
		}
		if !now.Status.Rests() && !now.Status.Waits() {
			return edit{}, fault.Refuse(fault.Busy, "A turn is under way; wait for it or stop it.")
		}
		if now.SkillID == skillID && sameRecord(now.Subject, subject) && !now.Started {
			return edit{}, nil
		}
		return edit{
			set:     []change.Value{cSkill.Maybe(orNone(skillID)), cSubject.To(subject), cStarted.To(false)},
			entries: []Entry{state("skill")},
		}, nil
	})
}

// SetConfiguration lets the next turn run with another configuration; what was pinned stays
// behind then, with notices (RULES P8).
//
// Refusals: BUSY, CONFIGURATION_NOT_ALLOWED.
func (c *Chat) SetConfiguration(ctx context.Context, by actor.Actor, id, configurationID uuid.UUID) (Conversation, error) {
	if _, err := c.find(ctx, by, id); err != nil {
		return Conversation{}, err
	}
	if err := c.Runtime.CheckStart(ctx, by, agent.StartRequest{ConfigurationID: configurationID}); err != nil {
		return Conversation{}, err
	}
	return c.amend(ctx, id, func(now Conversation) (edit, error) {
		switch {
		case now.Archived != nil:
			return edit{}, archived()
		case !now.Status.Rests():
			return edit{}, fault.Refuse(fault.Busy, "The conversation is %s; end or stop its turn first.", now.Status)
		case now.ConfigurationID == configurationID:
			return edit{}, nil
		}
		return edit{set: []change.Value{cConfiguration.To(configurationID)}, entries: []Entry{state("configuration")}}, nil
	})
}

// Stop cancels the turn, wherever it stands (RULES V5). Messages that wait begin the next
// one.
func (c *Chat) Stop(ctx context.Context, by actor.Actor, id uuid.UUID) (Conversation, error) {
	now, err := c.find(ctx, by, id)
	if err != nil || now.Status.Rests() {
		return now, err
	}
	if now.Status == Queued {
		return now, fault.Refuse(fault.Busy, "The turn is just beginning; try again.")
	}
	if _, err := c.Runtime.Cancel(ctx, by, now.RunID); err != nil && !fault.Is(err, fault.NotFound) {
		return now, err
	}
	if err := c.catchUp(ctx, id); err != nil {
		return now, err
	}
	return c.Store.Conversation(ctx, id)
}

// Retry begins the last turn again, from the run that failed or was stopped (RULES V5).
//
// Refusals: BUSY, NOTHING_TO_RETRY, and what starting a run refuses.
func (c *Chat) Retry(ctx context.Context, by actor.Actor, id uuid.UUID) (Conversation, error) {
	if _, err := c.find(ctx, by, id); err != nil {
		return Conversation{}, err
	}
	return c.begin(ctx, by, id, func(now Conversation) (turn, *edit, error) {
		switch {
		case now.Archived != nil:
			return turn{}, nil, archived()
		case !now.Status.Rests():
			return turn{}, nil, fault.Refuse(fault.Busy, "The conversation is %s; only a turn that failed or was stopped is retried.", now.Status)
		}
		t, err := c.next(ctx, now, nil)
		if err == nil && (len(t.history) == 0 || t.history[len(t.history)-1].Kind != KindMessage) {
			err = fault.Refuse(fault.NothingToRetry, "The last message was answered; there is nothing to retry.")
		}
		return t, nil, err
	})
}

// Edit says something else in the place of an earlier message and goes on from there: the
// run before that message is continued, with the pins as they were then (RULES V5). The
// log keeps what was said before.
//
// Refusals: as Send, and PREDECESSOR_MISSING when the turn of that message is gone.
func (c *Chat) Edit(ctx context.Context, by actor.Actor, id, message uuid.UUID, text string) (Conversation, error) {
	if err := checkText(text); err != nil {
		return Conversation{}, err
	}
	if _, err := c.find(ctx, by, id); err != nil {
		return Conversation{}, err
	}
	said := Waiting{ID: c.World.NewID(), Text: text, At: c.World.Now()}
	return c.begin(ctx, by, id, func(now Conversation) (turn, *edit, error) {
		move := now.arrives()
		switch move {
		case Closed:
			return turn{}, nil, archived()
		case Busy:
			return turn{}, nil, fault.Refuse(fault.Busy, "A turn is under way; wait for it or stop it.")
		}
		history, err := c.history(ctx, id)
		if err != nil {
			return turn{}, nil, err
		}
		at := slices.IndexFunc(history, func(e Entry) bool { return e.ID == message && e.Kind == KindMessage })
		if at < 0 {
			return turn{}, nil, fault.New(fault.NotFound, "There is no such message in the conversation.")
		}
		t := turn{said: []Waiting{said}, replaces: message, history: history[:at], withdraws: move == Withdraw}
		if history[at].RunID == uuid.Nil {
			t.predecessor = now.RunID // it never began a turn
			return t, nil, nil
		}
		r, err := c.Runs.Run(ctx, history[at].RunID)
		if fault.Is(err, fault.NotFound) {
			return turn{}, nil, fault.Refuse(fault.PredecessorMissing, "The turn of this message is gone; start a new conversation.")
		}
		if err != nil {
			return turn{}, nil, err
		}
		t.predecessor = r.PredecessorID
		if i := r.Invocation; i != nil && !i.Derived {
			t.invocation = &agent.Invocation{Skill: i.Skill, Subject: i.Subject}
		}
		return t, nil, nil
	})
}
