package chat

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/tool"
)

// turn is a turn that is to begin.
type turn struct {
	said        []Waiting // the messages that become entries with it
	replaces    uuid.UUID // the message whose place the first of them takes
	queued      int       // how many of them come from the queue
	history     []Entry   // what was said before
	predecessor uuid.UUID
	invocation  *agent.Invocation
	withdraws   bool // the process run that waits is withdrawn first (RULES V3)
}

// leaseFor is how long a claim lasts without a sign of life.
func (c *Chat) leaseFor() time.Duration { return cmp.Or(c.Lease, 30*time.Second) }

func (c *Chat) newOwner() string { return c.World.NewID().String() }

// lease is the claim of an owner from now on.
func (c *Chat) lease(owner string) []change.Value {
	return []change.Value{cLeaseOwner.To(owner), cLeaseUntil.To(c.World.Now().Add(c.leaseFor()))}
}

// free gives a claim up.
func free() []change.Value { return []change.Value{cLeaseOwner.To(""), cLeaseUntil.Null()} }

// beat renews a claim until the function it returns is called.
func (c *Chat) beat(ctx context.Context, id uuid.UUID, owner string) (stop func()) {
	ctx, end := context.WithCancel(change.Aside(context.WithoutCancel(ctx)))
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(c.leaseFor() / 3):
			}
			renewed := change.Change{Updates: []change.Update{{
				Table: conversations, ID: id, If: []change.Value{cLeaseOwner.Is(owner)}, Set: c.lease(owner),
			}}}
			if _, err := change.One(ctx, c.Store, renewed); err != nil && ctx.Err() == nil {
				c.Log.Warn("a claim could not be renewed", slog.String("conversation", id.String()), slog.Any("error", err))
			}
		}
	}()
	return end
}

// begin takes a turn: it claims the conversation, withdraws the process run that waits
// if that is what the turn does, and starts the run that continues the one before. plan
// judges the conversation; an edit that it returns is made instead of a turn. What is
// refused leaves the conversation as it was, but for a proposal that was withdrawn
// (RULES V3).
func (c *Chat) begin(ctx context.Context, by actor.Actor, id uuid.UUID, plan func(Conversation) (turn, *edit, error)) (Conversation, error) {
	owner := c.newOwner()
	var was Conversation
	var t turn
	instead := false
	judge := func(now Conversation) (edit, error) {
		planned, other, err := plan(now)
		if err != nil {
			return edit{}, err
		}
		if instead = other != nil; instead {
			return *other, nil
		}
		was, t = now, planned
		return edit{status: Queued, set: c.lease(owner), entries: []Entry{state("")}}, nil
	}
	claimed, err := c.amend(ctx, id, judge)
	if err != nil || instead {
		return claimed, err
	}
	defer c.beat(ctx, id, owner)()
	ctx = context.WithoutCancel(ctx)
	if t.withdraws {
		won, status, err := c.Runtime.CancelIfWaiting(change.Aside(ctx), by, was.RunID)
		switch {
		case fault.Is(err, fault.NotFound): // gone: the start says what that means (RULES P7)
		case err == nil && !won && !status.Terminal():
			err = fault.Refuse(fault.Busy, "Your answer is being carried out; wait for it to end.")
			fallthrough
		case err != nil:
			return c.putBack(ctx, was, owner, false, err)
		}
	}
	return c.start(ctx, by, was, owner, t)
}

// startTries bounds how often a start is tried that a message for the queue overtook.
const startTries = 8

// start starts the turn's run, which becomes the conversation's in the same transaction.
func (c *Chat) start(ctx context.Context, by actor.Actor, was Conversation, owner string, t turn) (Conversation, error) {
	open, err := c.openOn(ctx, t.invocation)
	if err != nil {
		return c.putBack(ctx, was, owner, t.withdraws, err)
	}
	name := c.skillName(ctx, was.SkillID)
	for range startTries {
		now, err := c.Store.Conversation(ctx, was.ID)
		if err != nil {
			return Conversation{}, err
		}
		if now.LeaseOwner != owner {
			return now, fault.Refuse(fault.Busy, "The conversation changed while your message arrived; look at it again.")
		}
		r, err := c.Runtime.Start(ctx, by, agent.StartRequest{
			ConfigurationID: now.ConfigurationID, Messages: t.messages(), Invocation: t.invocation, Predecessor: t.predecessor,
			Conversation: now.ID,
			Along:        func(r agent.Run) change.Change { return c.edited(now, c.begun(now, t, r, name, open)) },
		})
		switch {
		case errors.Is(err, agent.ErrAlongLost):
			continue
		case r.ID == uuid.Nil:
			return c.putBack(ctx, was, owner, t.withdraws, err)
		}
		begun, reread := c.Store.Conversation(ctx, was.ID)
		return begun, errors.Join(err, reread)
	}
	return c.putBack(ctx, was, owner, t.withdraws, fault.New(fault.Unavailable, "The conversation keeps changing; try again."))
}

// begun is what becomes of a conversation as its turn's run is stored.
func (c *Chat) begun(now Conversation, t turn, r agent.Run, skillName string, open int) edit {
	e := edit{status: ofRun[r.Status]}
	if t.withdraws {
		e.entries = append(e.entries, discarded(now)...)
	}
	for i, w := range t.said {
		entry := Entry{ID: w.ID, Kind: KindMessage, RunID: r.ID, Text: w.Text}
		if i == 0 {
			entry.Data.Replaces = t.replaces
		}
		e.entries = append(e.entries, entry)
	}
	if open > 0 {
		e.entries = append(e.entries, notice(r.ID, NoticeOpenPoints, strconv.Itoa(open)))
	}
	skillSet, skillEntries := ownSkill(now, r, skillName)
	e.entries = append(append(e.entries, skillEntries...), state(""))
	e.set = append(free(), cRun.To(r.ID), cSeen.To(0), cCard.To(nil), cInput.Null(), cActiveAt.To(c.World.Now()))
	e.set = append(e.set, skillSet...)
	if now.Title == "" && len(t.said) > 0 {
		e.set = append(e.set, titled(firstLine(t.said[0].Text))...)
	}
	if t.queued > 0 {
		e.set = append(e.set, queue(now.Queue[t.queued:])...)
	}
	return e
}

// ownSkill keeps the conversation's own skill what its turn says: started by it, or over
// (RULES X9).
func ownSkill(now Conversation, r agent.Run, name string) ([]change.Value, []Entry) {
	switch i := r.Invocation; {
	case i != nil && !i.Ended:
		return []change.Value{cSkill.To(i.Skill), cSubject.To(i.Subject), cStarted.To(true)}, nil
	case now.SkillID != uuid.Nil && (now.Started || i != nil):
		return []change.Value{cSkill.Null(), cSubject.To(nil), cStarted.To(false)}, []Entry{notice(r.ID, NoticeSkillCleared, name)}
	}
	return nil, nil
}

// discarded tells that what waited was withdrawn: nothing of it was written.
func discarded(was Conversation) []Entry {
	card := was.Card
	switch {
	case card == nil || card.Answer != "":
		return nil
	case card.Question:
		return []Entry{notice(was.RunID, NoticeQuestionDropped)}
	default:
		return []Entry{outcomeOf(was.RunID, *card, Discarded)}
	}
}

// putBack gives a claim back: the status is what it was before, until a run that was
// withdrawn meanwhile is followed. Where somebody else has changed the conversation it
// writes nothing (RULES V3). It returns why the turn did not begin.
func (c *Chat) putBack(ctx context.Context, was Conversation, owner string, withdrawn bool, why error) (Conversation, error) {
	now, err := c.amend(change.Aside(ctx), was.ID, func(now Conversation) (edit, error) {
		if now.LeaseOwner != owner {
			return edit{}, nil
		}
		return edit{status: was.Status, set: free(), entries: []Entry{state("")}}, nil
	})
	if err == nil && withdrawn { // its run tells what became of the card
		if err = c.catchUp(ctx, was.ID); err == nil {
			now, err = c.Store.Conversation(ctx, was.ID)
		}
	}
	if err != nil {
		c.Log.Warn("a claim could not be given back; it ends by itself", slog.String("conversation", was.ID.String()), slog.Any("error", err))
		now = was
	}
	return now, why
}

// historyBytes bounds what a turn brings along of what was said before.
const historyBytes = 160 << 10

// messages is what the model reads: the newest of the history, from a message of the
// owner's on, and what is said now.
func (t turn) messages() []prompt.Message {
	from, size := len(t.history), 0
	for i := len(t.history) - 1; i >= 0; i-- {
		if size += len(t.history[i].Text); size > historyBytes {
			break
		}
		if t.history[i].Kind == KindMessage {
			from = i
		}
	}
	var out []prompt.Message
	for _, e := range t.history[from:] {
		role := prompt.User
		if e.Kind == KindAnswer {
			role = prompt.Assistant
		}
		out = append(out, prompt.Message{Role: role, Text: e.Text})
	}
	for _, w := range t.said {
		out = append(out, prompt.Message{Role: prompt.User, Text: w.Text})
	}
	return out
}

// history is the thread of a conversation as it is.
func (c *Chat) history(ctx context.Context, id uuid.UUID) ([]Entry, error) {
	log, err := c.Store.Log(ctx, id, -1, maxLog, KindMessage, KindAnswer)
	return thread(log), err
}

// maxLog is more entries than a conversation has.
const maxLog = 1 << 30

// openOn counts the points that a process is offered again when it is started (RULES O4).
func (c *Chat) openOn(ctx context.Context, started *agent.Invocation) (int, error) {
	if started == nil || started.Subject == nil {
		return 0, nil
	}
	open, err := c.Store.Points(ctx, PointFilter{SkillID: &started.Skill, Subject: started.Subject}, Page{Limit: 1000})
	return len(open), err
}

// skillName is how a skill is called now, its id when it is gone.
func (c *Chat) skillName(ctx context.Context, id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	found, err := c.Skills.Dossiers(ctx, []uuid.UUID{id})
	if err != nil || len(found) == 0 {
		return id.String()
	}
	return found[0].Skill.Version.Name
}

// outcomeOf is the entry of an outcome: its code, with the tool and the record.
func outcomeOf(turn uuid.UUID, card Card, o Outcome) Entry {
	args := []string{card.Tool}
	if card.Target != nil {
		args = []string{card.Target.Table + " " + card.Target.ID, card.Tool}
	}
	return Entry{Kind: KindOutcome, RunID: turn, Data: Data{
		Code: string(o), Args: args, Turn: card.Turn, Tool: card.Tool, Target: card.Target,
		Process: card.Process != uuid.Nil, Edited: card.Edited,
	}}
}

// queue is the columns of the messages that wait.
func queue(waiting []Waiting) []change.Value {
	text := ""
	if len(waiting) > 0 {
		text, _ = encode(waiting) // ids, texts and times always marshal
	}
	return []change.Value{cQueue.To(text), cQueued.To(len(waiting))}
}

// titled is the columns of a title.
func titled(title string) []change.Value {
	return []change.Value{cTitle.To(title), cSearch.To(strings.ToLower(title))}
}

// titleRunes bounds a title.
const titleRunes = 120

// firstLine is a title made of a message.
func firstLine(text string) string {
	head, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	runes := []rune(strings.TrimSpace(head))
	if len(runes) > 60 {
		return string(runes[:59]) + "…"
	}
	return string(runes)
}

// sameRecord reports whether two records that need not be there are the same.
func sameRecord(a, b *tool.Record) bool {
	return a == b || a != nil && b != nil && *a == *b
}
