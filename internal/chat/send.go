package chat

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/skill"
	"github.com/countersign/countersign/internal/tool"
)

// NewConversation asks for a conversation.
type NewConversation struct {
	ConfigurationID uuid.UUID
	Title           string
	SkillID         uuid.UUID    // invoked with the first message; zero for none
	Subject         *tool.Record // what the skill works on
}

// Start makes a conversation; its first turn begins with the first message. A skill that
// could not be started is refused now, as startRun refuses it.
func (c *Chat) Start(ctx context.Context, by actor.Actor, n NewConversation) (Conversation, error) {
	if err := need(by); err != nil {
		return Conversation{}, err
	}
	if !by.IsPerson() {
		return Conversation{}, fault.Refuse(fault.ServiceAccount, "A service account has no conversations: nobody could answer its cards.")
	}
	if err := checkTitle(n.Title); err != nil {
		return Conversation{}, err
	}
	if n.Subject != nil && n.SkillID == uuid.Nil {
		return Conversation{}, fault.New(fault.BadInput, "A subject goes with a skill that works on it.")
	}
	if err := c.mayStart(ctx, by, Conversation{ConfigurationID: n.ConfigurationID}, n.SkillID, n.Subject); err != nil {
		return Conversation{}, err
	}
	now := c.World.Now()
	made := Conversation{ID: c.World.NewID(), Status: Idle}
	row := []change.Value{
		cID.To(made.ID), cOwner.To(by.ID), cConfiguration.To(n.ConfigurationID), cStatus.To(Idle), cRun.Null(), cSeen.To(0),
		cSkill.Maybe(orNone(n.SkillID)), cSubject.To(n.Subject), cStarted.To(false), cCard.To(nil), cInput.Null(),
		cPinned.To(false), cArchived.Null(), cLeaseOwner.To(""), cLeaseUntil.Null(), cEntries.To(1), cCreatedAt.To(now), cActiveAt.To(now),
	}
	row = append(append(row, titled(n.Title)...), queue(nil)...)
	first := change.Insert{Table: entries, Row: []change.Value{
		eID.To(c.World.NewID()), eConversation.To(made.ID), eSequence.To(0), eKind.To(KindState), eStatus.To(Idle),
		eRun.Null(), eText.To(""), eData.To(Data{}), eAt.To(now),
	}}
	out, err := change.One(ctx, c.Store, change.Change{
		Inserts: []change.Insert{{Table: conversations, Row: row}, first},
		Ring:    []change.Topic{change.ChatsTopic},
	})
	if err == nil && !out.Applied {
		err = fault.New(fault.NotFound, "There is no such configuration.")
	}
	if err != nil {
		return Conversation{}, err
	}
	return c.Store.Conversation(ctx, made.ID)
}

// mayStart refuses a skill that a turn could not start. A process is for people who may
// approve their own changes: a tour that can only be denied is not offered (RULES X3).
func (c *Chat) mayStart(ctx context.Context, by actor.Actor, at Conversation, id uuid.UUID, subject *tool.Record) error {
	req := agent.StartRequest{ConfigurationID: at.ConfigurationID, Predecessor: at.RunID}
	if id != uuid.Nil {
		req.Invocation = &agent.Invocation{Skill: id, Subject: subject}
		found, err := c.Skills.Dossiers(ctx, []uuid.UUID{id})
		if err != nil {
			return err
		}
		if len(found) > 0 && found[0].Skill.Version.Process == skill.ProcessYes && !by.May(actor.RunApproveOwn) {
			return fault.New(fault.Forbidden, "Starting a process needs the permission %s: you could only deny what it proposes.", actor.RunApproveOwn)
		}
	}
	return c.Runtime.CheckStart(ctx, by, req)
}

// WhenBusy says what becomes of a message while a turn is under way.
type WhenBusy string

// The choices.
const (
	RefuseWhenBusy WhenBusy = "refuse"
	QueueWhenBusy  WhenBusy = "queue"
)

// Message is something the owner says.
type Message struct {
	Conversation uuid.UUID
	Text         string
	WhenBusy     WhenBusy // empty refuses
}

// The bounds of what is said.
const (
	messageBytes = 64 << 10
	maxQueued    = 20
)

func checkText(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return fault.New(fault.BadInput, "The message is empty.")
	case len(text) > messageBytes:
		return fault.New(fault.BadInput, "The message has %d bytes; at most %d are accepted.", len(text), messageBytes)
	}
	return nil
}

// Send says something: a turn begins that continues the one before, or the message waits
// for the next turn (RULES V2, V3, V4). The table of Arrives says which.
//
// Refusals: BUSY, CONVERSATION_ARCHIVED, and what starting a run refuses.
func (c *Chat) Send(ctx context.Context, by actor.Actor, m Message) (Conversation, error) {
	if err := checkText(m.Text); err != nil {
		return Conversation{}, err
	}
	if _, err := c.find(ctx, by, m.Conversation); err != nil {
		return Conversation{}, err
	}
	said := Waiting{ID: c.World.NewID(), Text: m.Text, At: c.World.Now()}
	return c.begin(ctx, by, m.Conversation, func(now Conversation) (turn, *edit, error) {
		switch move := now.arrives(); {
		case move == Closed:
			return turn{}, nil, archived()
		case move == Busy && m.WhenBusy == QueueWhenBusy:
			e, err := enqueue(now, said)
			return turn{}, &e, err
		case move == Busy:
			return turn{}, nil, fault.Refuse(fault.Busy, "A turn is under way; wait for it, stop it, or queue your message.")
		default:
			t, err := c.next(ctx, now, append(now.Queue[:len(now.Queue):len(now.Queue)], said))
			t.withdraws, t.queued = move == Withdraw, len(now.Queue)
			return t, nil, err
		}
	})
}

// arrives says what becomes of a message that arrives now.
func (c Conversation) arrives() Move {
	return Arrives(Arrival{
		Status: c.Status, Archived: c.Archived != nil,
		Process: c.Card != nil && c.Card.Process != uuid.Nil,
	})
}

// next is the turn that continues a conversation. Its own skill is invoked until it was
// started once; from then on turns derive it (RULES X4, X9).
func (c *Chat) next(ctx context.Context, now Conversation, said []Waiting) (turn, error) {
	history, err := c.history(ctx, now.ID)
	t := turn{said: said, history: history, predecessor: now.RunID}
	if now.SkillID != uuid.Nil && !now.Started {
		t.invocation = &agent.Invocation{Skill: now.SkillID, Subject: now.Subject}
	}
	return t, err
}

func enqueue(now Conversation, said Waiting) (edit, error) {
	size := len(said.Text)
	for _, w := range now.Queue {
		size += len(w.Text)
	}
	if len(now.Queue) >= maxQueued || size > 2*messageBytes {
		return edit{}, fault.Refuse(fault.Busy, "%d messages wait for the next turn already; wait for it.", len(now.Queue))
	}
	return edit{
		set:     append(queue(append(now.Queue[:len(now.Queue):len(now.Queue)], said)), cActiveAt.To(said.At)),
		entries: []Entry{state("queuedMessages")},
	}, nil
}

func archived() error {
	return fault.Refuse(fault.ConversationArchived, "The conversation is archived; unarchive it to go on.")
}

func checkTitle(title string) error {
	if len([]rune(title)) > titleRunes {
		return fault.New(fault.BadInput, "A title has at most %d characters.", titleRunes)
	}
	return nil
}

// orNone is nil for the zero id, which says that there is none.
func orNone(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}

// Wait returns the conversation once no turn is under way, or as it stands after
// server.runWait. A caller that goes away cancels nothing.
func (c *Chat) Wait(ctx context.Context, id uuid.UUID) (Conversation, error) {
	values, err := c.Settings.Values(ctx)
	if err != nil {
		return Conversation{}, err
	}
	patience := time.NewTimer(values.RunWait)
	defer patience.Stop()
	rings, stop := c.Bell.Listen(change.ConversationTopic(id))
	defer stop()
	heal := time.NewTicker(healEvery)
	defer heal.Stop()
	for {
		now, err := c.Store.Conversation(ctx, id)
		if err != nil || now.Status.Waits() || now.Status.Rests() && len(now.Queue) == 0 {
			return now, err
		}
		select {
		case <-rings:
		case <-heal.C:
		case <-patience.C:
			return now, nil
		case <-ctx.Done():
			return now, ctx.Err()
		}
	}
}

// healEvery is how often a waiter looks without being rung.
const healEvery = 2 * time.Second
