package chat

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
)

// edit is what becomes of a conversation: columns that are set, entries that are appended,
// and whatever becomes true with them. The status that it leads to is on every entry.
type edit struct {
	status  Status // empty keeps it
	set     []change.Value
	entries []Entry
	rest    change.Change
}

// nothing reports whether the edit leaves everything as it is.
func (e edit) nothing() bool {
	return e.status == "" && len(e.set) == 0 && len(e.entries) == 0
}

// amendTries bounds how often an edit is judged anew because the conversation changed
// meanwhile.
const amendTries = 40

// amend judges the conversation as it is and makes the edit, again as long as somebody
// else was faster: losing shows in what judge finds the next time (RULES V1). The
// conversation it returns is the one that was judged last, edited.
func (c *Chat) amend(ctx context.Context, id uuid.UUID, judge func(Conversation) (edit, error)) (Conversation, error) {
	for try := range amendTries {
		now, err := c.Store.Conversation(ctx, id)
		if err != nil {
			return Conversation{}, err
		}
		e, err := judge(now)
		if err != nil || e.nothing() {
			return now, err
		}
		out, err := change.One(ctx, c.Store, c.edited(now, e))
		if err != nil {
			return now, err
		}
		if out.Applied {
			return c.Store.Conversation(ctx, id)
		}
		if err := pause(ctx, try); err != nil {
			return now, err
		}
	}
	return Conversation{}, fault.New(fault.Unavailable, "The conversation keeps changing; try again.")
}

// pause waits a random while that grows with the tries, so that two who met once do not
// meet again.
func pause(ctx context.Context, try int) error {
	select {
	case <-time.After(rand.N(time.Millisecond << min(try, 5))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// edited is the change of an edit: it holds only while the log is as long as it was when
// the edit was judged, and somebody's lease is still theirs.
func (c *Chat) edited(was Conversation, e edit) change.Change {
	at, status := c.World.Now(), was.Status
	set := append([]change.Value{cEntries.To(was.Entries + len(e.entries))}, e.set...)
	if e.status != "" {
		status = e.status
		set = append(set, cStatus.To(e.status))
	}
	made := e.rest
	made.Updates = append(made.Updates, change.Update{
		Table: conversations, ID: was.ID,
		If:  []change.Value{cEntries.Is(was.Entries), cStatus.Is(was.Status), cLeaseOwner.Is(was.LeaseOwner)},
		Set: set,
	})
	for i, entry := range e.entries {
		if entry.ID == uuid.Nil {
			entry.ID = c.World.NewID()
		}
		var turn *uuid.UUID
		if entry.RunID != uuid.Nil {
			turn = &entry.RunID
		}
		made.Inserts = append(made.Inserts, change.Insert{Table: entries, Row: []change.Value{
			eID.To(entry.ID), eConversation.To(was.ID), eSequence.To(was.Entries + i), eKind.To(entry.Kind), eStatus.To(status),
			eRun.Maybe(turn), eText.To(entry.Text), eData.To(entry.Data), eAt.To(at),
		}})
	}
	made.Ring = append(made.Ring, change.ConversationTopic(was.ID), change.ChatsTopic)
	return made
}

// state is the entry that tells that the status changed, or the named field.
func state(field string) Entry { return Entry{Kind: KindState, Data: Data{Field: field}} }

// encode is v as a sealed column keeps it.
func encode(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "storing a part of a conversation")
	}
	return string(b), nil
}

// find returns a conversation of the actor's; any other does not exist for them.
func (c *Chat) find(ctx context.Context, by actor.Actor, id uuid.UUID) (Conversation, error) {
	if err := need(by); err != nil {
		return Conversation{}, err
	}
	found, err := c.Store.Conversation(ctx, id)
	if err == nil && found.OwnerID != by.ID {
		return Conversation{}, fault.New(fault.NotFound, "There is no such conversation.")
	}
	return found, err
}

func need(by actor.Actor) error {
	switch {
	case by.IsNobody():
		return fault.New(fault.Unauthenticated, "Sign in to use conversations.")
	case !by.May(actor.ConversationRW):
		return fault.New(fault.Forbidden, "Conversations need the permission %s.", actor.ConversationRW)
	}
	return nil
}

// The notices of this room, beside those of its runs.
const (
	NoticeQuestionDropped = "QUESTION_WITHDRAWN"
	NoticeTurnFailed      = "TURN_FAILED"
	NoticeTurnStopped     = "TURN_STOPPED"
	NoticeTurnTruncated   = "TURN_TRUNCATED"
	NoticeTurnGone        = "TURN_GONE"
	NoticeTurnRefused     = "TURN_REFUSED"
	NoticeSkillCleared    = "SKILL_CLEARED"
	NoticeOpenPoints      = "OPEN_POINTS"
)

// Notices lists them.
var Notices = []string{
	NoticeQuestionDropped, NoticeTurnFailed, NoticeTurnStopped, NoticeTurnTruncated, NoticeTurnGone, NoticeTurnRefused, NoticeSkillCleared, NoticeOpenPoints,
}

// notice makes a notice of this room for a turn.
func notice(turn uuid.UUID, code string, args ...string) Entry {
	return Entry{Kind: KindNotice, RunID: turn, Data: Data{Code: code, Args: args}}
}
