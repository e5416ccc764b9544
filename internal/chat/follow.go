package chat

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/run"
)

// workAtOnce is how many conversations one look takes up.
const workAtOnce = 100

// Work follows the runs of conversations until ctx ends: it brings what they store into
// the logs, begins turns with messages that waited, and finishes what somebody began who
// is gone. Every replica may do it: whoever loses a change looks again.
func (c *Chat) Work(ctx context.Context) {
	rings, stop := c.Bell.Listen(change.StepsTopic, change.ChatsTopic)
	defer stop()
	heal := time.NewTicker(healEvery)
	defer heal.Stop()
	for ctx.Err() == nil {
		c.look(ctx)
		select {
		case <-rings:
		case <-heal.C:
		case <-ctx.Done():
		}
	}
}

// look catches up with every conversation whose run has gone on.
func (c *Chat) look(ctx context.Context) {
	ids, err := c.Store.Stirring(ctx, c.World.Now(), workAtOnce)
	if err != nil {
		if ctx.Err() == nil {
			c.Log.Error("looking for conversations that go on failed", slog.Any("error", err))
		}
		return
	}
	for _, id := range ids {
		if err := c.catchUp(ctx, id); err != nil && ctx.Err() == nil {
			c.Log.Error("following a conversation's run failed", slog.String("conversation", id.String()), slog.Any("error", err))
		}
	}
}

// catchUp brings a conversation to where its run is. One that is claimed is left to whoever
// has it in hand.
func (c *Chat) catchUp(ctx context.Context, id uuid.UUID) error {
	ctx = change.Aside(ctx)
	now, err := c.Store.Conversation(ctx, id)
	if err != nil || now.claimed(c.World.Now()) {
		return err
	}
	if now.LeaseOwner != "" {
		if now, err = c.takeOver(ctx, now); err != nil {
			return err
		}
	}
	if now.RunID != uuid.Nil && !now.undelivered() {
		now, err = c.amend(ctx, id, func(now Conversation) (edit, error) { return c.followed(ctx, now) })
		if err != nil {
			return err
		}
	}
	if now.Status.Rests() && len(now.Queue) > 0 && now.Archived == nil {
		return c.dequeue(ctx, now)
	}
	return nil
}

// takeOver finishes what somebody began whose claim has ended: an answer is brought to the
// runtime again, which takes it once; a turn that had not begun is given back.
func (c *Chat) takeOver(ctx context.Context, now Conversation) (Conversation, error) {
	owner, expired := c.newOwner(), now.LeaseOwner
	if now.undelivered() {
		values, err := c.Store.Input(ctx, now.ID)
		if err != nil {
			return now, err
		}
		by, err := c.People.Actor(ctx, now.Card.By)
		if err != nil {
			return now, err
		}
		claimed, err := c.amend(ctx, now.ID, func(now Conversation) (edit, error) {
			if now.LeaseOwner != expired {
				return edit{}, errMeanwhile
			}
			return edit{set: c.lease(owner)}, nil
		})
		if err != nil {
			return claimed, ignored(err, errMeanwhile)
		}
		defer c.beat(ctx, now.ID, owner)()
		delivered, err := c.deliver(ctx, by, claimed, owner, []byte(values))
		if _, refused := fault.AsRefusal(err); refused {
			err = nil // taken back: the owner sees the card again
		}
		return delivered, err
	}
	return c.amend(ctx, now.ID, func(now Conversation) (edit, error) {
		if now.LeaseOwner != expired {
			return edit{}, nil
		}
		e := edit{set: free()}
		if now.Status != Queued {
			return e, nil
		}
		e.status, e.entries = Idle, []Entry{state("")}
		if now.RunID == uuid.Nil {
			return e, nil
		}
		r, err := c.Runs.Run(ctx, now.RunID)
		switch {
		case err != nil:
			return e, ignored(err, nil)
		case r.Events > now.Seen:
			e.status = Processing // until its run is followed
		default:
			e.status = ofRun[r.Status]
		}
		return e, nil
	})
}

// errMeanwhile says that somebody else was faster.
var errMeanwhile = errors.New("somebody else took over")

// ignored is err unless it is what may be passed over: that nothing is there, or which.
func ignored(err, which error) error {
	if fault.Is(err, fault.NotFound) || which != nil && errors.Is(err, which) {
		return nil
	}
	return err
}

// followed is the edit that brings a conversation to where its run is.
func (c *Chat) followed(ctx context.Context, now Conversation) (edit, error) {
	if now.LeaseOwner != "" || now.undelivered() {
		return edit{}, nil
	}
	r, err := c.Runs.Run(ctx, now.RunID)
	if fault.Is(err, fault.NotFound) {
		if now.Status.Rests() {
			return edit{}, nil
		}
		return edit{status: Idle, entries: []Entry{notice(now.RunID, NoticeTurnGone), state("")}, set: []change.Value{cCard.To(nil)}}, nil
	}
	if err != nil || r.Events <= now.Seen && ofRun[r.Status] == now.Status { // nothing is new
		return edit{}, err
	}
	from := now.Seen
	if now.Card != nil && now.Card.Delivered && !now.Card.Judged && now.Card.Decided > 0 {
		from = min(from, now.Card.Decided)
	}
	events, err := c.Runs.Events(ctx, now.RunID, from-1, math.MaxInt32)
	if err != nil {
		return edit{}, err
	}
	events = slices.DeleteFunc(events, func(e run.Event) bool { return e.Sequence >= r.Events })
	f := follower{chat: c, now: now, run: r, card: now.Card}
	for i, e := range events {
		if err := f.judge(ctx, events[:i+1]); err != nil { // before a pause brings another card
			return edit{}, err
		}
		if e.Sequence < now.Seen {
			continue
		}
		if err := f.take(ctx, e); err != nil {
			return edit{}, err
		}
	}
	return f.edit(ctx)
}

// follower turns the events of a run into entries of its conversation.
type follower struct {
	chat    *Chat
	now     Conversation
	run     agent.Run
	card    *Card
	entries []Entry
	points  change.Change
}

// take appends what an event tells.
func (f *follower) take(ctx context.Context, e run.Event) error {
	switch e.Kind {
	case run.EventProgress:
		f.append(Entry{Kind: KindProgress, Data: Data{Progress: progressOf(e)}})
	case run.EventHighlight:
		f.append(Entry{Kind: KindHighlight, Data: Data{Highlight: highlightOf(e)}})
	case run.EventNotice:
		if run.NoticeCode(e.Data.Code) != run.NoticeNoChangeMade { // its answer carries that
			f.append(Entry{Kind: KindNotice, Data: Data{Code: e.Data.Code, Args: e.Data.Args}})
		}
	case run.EventDecision, run.EventInput:
		f.decided(e)
	case run.EventSuspended:
		return f.waits(ctx, e)
	case run.EventSettled:
		f.settled()
	}
	return nil
}

func (f *follower) append(e Entry) {
	e.RunID = f.run.ID
	f.entries = append(f.entries, e)
}

// decided notes an answer, in this conversation or, for an ordinary run, elsewhere.
func (f *follower) decided(e run.Event) {
	if f.card == nil || f.card.Turn != e.Data.TurnDigest {
		return
	}
	card := *f.card
	card.Decided, card.Delivered = e.Sequence, true
	if card.Answer == "" {
		card.By, _ = uuid.Parse(e.Data.DecidedBy) // written by us; the zero id if not
		switch {
		case e.Kind == run.EventInput:
			card.Answer = Answered
		case e.Data.Approved != nil && *e.Data.Approved:
			card.Answer = agent.Approve
		default:
			card.Answer = agent.Deny
		}
	}
	card.Judged = card.Question // nothing was proposed
	f.card = &card
}

// waits shows what the run waits with. A pause that is over by now is passed over.
func (f *follower) waits(ctx context.Context, e run.Event) error {
	if f.run.TurnDigest != e.Data.TurnDigest || !f.run.Status.Waiting() {
		return nil
	}
	by, err := f.chat.People.Actor(ctx, f.now.OwnerID)
	if err != nil {
		return err
	}
	card := Card{Turn: e.Data.TurnDigest, Question: f.run.Status == run.WaitingForInput, Subject: f.run.Subject}
	if process, held := f.run.Pins.Process(); held {
		card.Process = process.Skill
	}
	shown, err := f.chat.Runtime.ConversationCard(ctx, by, f.run)
	switch _, unreadable := fault.AsRefusal(err); {
	case unreadable: // it waits for its operator; the card says no more
	case err != nil:
		return err
	case shown.Input != nil:
		card.Tool = shown.Input.Tool
	case len(shown.Calls) > 0:
		card.Tool, card.Target, card.Write = shown.Calls[0].Tool, shown.Calls[0].Target, shown.Write
		card.Edited = slices.ContainsFunc(shown.Calls, func(c agent.CardCall) bool { return c.Edited })
	}
	kind := KindProposal
	if card.Question {
		kind = KindQuestion
	}
	f.card = &card
	f.append(Entry{Kind: kind, Data: Data{Turn: card.Turn, Tool: card.Tool, Target: card.Target, Process: card.Process != uuid.Nil, Edited: card.Edited}})
	return nil
}

// settled tells how the turn ended: only the final answer joins the history (RULES V2).
func (f *follower) settled() {
	r := f.run
	if f.card != nil && f.card.Answer == "" {
		waited := f.now
		waited.Card = f.card
		f.entries = append(f.entries, discarded(waited)...)
		f.card = nil
	}
	if r.Answer != "" {
		unchanged := slices.ContainsFunc(r.Notices, func(n run.Notice) bool { return n.Code == run.NoticeNoChangeMade })
		f.append(Entry{Kind: KindAnswer, Text: r.Answer, Data: Data{Writes: r.Writes, Unchanged: unchanged, Truncated: r.Truncated}})
	}
	switch {
	case r.Status == run.Failed:
		f.append(notice(r.ID, NoticeTurnFailed, string(r.Reason), r.Message))
	case r.Status == run.Cancelled:
		f.append(notice(r.ID, NoticeTurnStopped))
	case r.Truncated:
		f.append(notice(r.ID, NoticeTurnTruncated, string(r.Reason), r.Message))
	}
}

// judge reads what became of the card once its segment tells, and keeps the open points
// by it (RULES C5, O1, O3). seen ends with the event that is taken next.
func (f *follower) judge(ctx context.Context, seen []run.Event) error {
	card := f.card
	if card == nil || !card.Delivered || card.Judged {
		return nil
	}
	at := slices.IndexFunc(seen, func(e run.Event) bool { return e.Sequence == card.Decided && e.Kind == run.EventDecision })
	if at < 0 {
		return nil
	}
	o, told := outcome(seen[at:], f.run.Fence != nil && f.run.Status.Terminal())
	if !told {
		return nil
	}
	judged := *card
	judged.Judged = true
	f.card = &judged
	if o == "" {
		return nil // a fresh card of the same turn follows
	}
	f.entries = append(f.entries, outcomeOf(f.run.ID, judged, o))
	return f.chat.keepPoints(ctx, f.now, f.run.ID, judged, o, &f.points)
}

func (f *follower) edit(ctx context.Context) (edit, error) {
	e := edit{entries: f.entries, rest: f.points}
	e.set = []change.Value{cSeen.To(f.run.Events), cCard.To(f.card)}
	if status := ofRun[f.run.Status]; status != f.now.Status {
		e.status = status
		e.set = append(e.set, cActiveAt.To(f.chat.World.Now()))
	}
	if f.run.Status.Terminal() {
		set, told := ownSkill(f.now, f.run, f.chat.skillName(ctx, f.now.SkillID))
		e.set, e.entries = append(e.set, set...), append(e.entries, told...)
	}
	if e.status != "" {
		e.entries = append(e.entries, state(""))
	}
	return e, nil
}

// dequeue begins a turn with the messages that waited. One that cannot begin says so, and
// its messages join the log.
func (c *Chat) dequeue(ctx context.Context, now Conversation) error {
	by, err := c.People.Actor(ctx, now.OwnerID)
	if err != nil {
		return err
	}
	_, err = c.begin(ctx, by, now.ID, func(now Conversation) (turn, *edit, error) {
		if !now.Status.Rests() || len(now.Queue) == 0 || now.LeaseOwner != "" || now.Archived != nil {
			return turn{}, &edit{}, nil
		}
		t, err := c.next(ctx, now, now.Queue)
		t.queued = len(now.Queue)
		return t, nil, err
	})
	if err == nil || transient(err) {
		return err
	}
	refused := err.Error()
	_, err = c.amend(ctx, now.ID, func(now Conversation) (edit, error) {
		if !now.Status.Rests() || len(now.Queue) == 0 || now.LeaseOwner != "" {
			return edit{}, nil
		}
		e := edit{status: Failed, set: queue(nil)}
		for _, w := range now.Queue {
			e.entries = append(e.entries, Entry{ID: w.ID, Kind: KindMessage, Text: w.Text})
		}
		e.entries = append(e.entries, notice(uuid.Nil, NoticeTurnRefused, refused), state(""))
		return e, nil
	})
	return err
}
