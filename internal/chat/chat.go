// Package chat keeps conversations: it turns a message into a run that continues the one
// before, shows what that run waits with as a card or a question, takes the owner's
// answer, and keeps the points that were skipped. A conversation's truth is its row and
// its log: entries that are only ever appended, numbered without gaps, so that every
// reader can go on from the last number it saw.
//
// Every change of a conversation is guarded by the number of its entries, and nothing
// changes without a new entry but leases. Whoever loses looks again and judges what is
// there now (RULES V1). The runs are the runtime's: this room asks it to start, decide and
// cancel, and follows what its runs store. Work does that in the background, on any
// replica. All methods are safe for concurrent use.
package chat

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
	"github.com/countersign/countersign/internal/world"
)

// Conversation is a conversation's row.
type Conversation struct {
	ID              uuid.UUID
	OwnerID         uuid.UUID
	ConfigurationID uuid.UUID
	Title           string // empty until the first message or a renaming gives it one
	Status          Status
	RunID           uuid.UUID // of its last turn; zero before the first
	Seen            int       // how many events of that run are in the log
	// SkillID is the conversation's own skill, zero without one. Once it was Started, turns
	// derive it from the run before; until then the next message invokes it (RULES X9).
	SkillID  uuid.UUID
	Subject  *tool.Record
	Started  bool
	Card     *Card     // what it waits with, or last waited with in this turn
	Queue    []Waiting // messages for the next turn; encrypted at rest
	Pinned   bool
	Archived *time.Time
	// LeaseOwner claims the conversation while a message or an answer is on its way to the
	// runtime. After LeaseUntil somebody else brings it there, or back (RULES V1).
	LeaseOwner string
	LeaseUntil *time.Time
	Entries    int // how many there are: the next sequence
	CreatedAt  time.Time
	ActiveAt   time.Time // of the last message, answer or result
}

// claimed reports whether somebody has the conversation in hand.
func (c Conversation) claimed(now time.Time) bool {
	return c.LeaseOwner != "" && c.LeaseUntil != nil && now.Before(*c.LeaseUntil)
}

// undelivered reports whether an answer was given that the runtime has not taken yet.
func (c Conversation) undelivered() bool {
	return c.Card != nil && c.Card.Answer != "" && !c.Card.Delivered
}

// Waiting is a message that waits for the next turn.
type Waiting struct {
	ID   uuid.UUID `json:"id"` // of the entry that it becomes
	Text string    `json:"text"`
	At   time.Time `json:"at"`
}

// Card is what a conversation waits with, and what became of it: names and codes, none of
// what would be written.
type Card struct {
	Turn     string       `json:"turn"` // the digest that an answer names (RULES R19)
	Question bool         `json:"question,omitempty"`
	Process  uuid.UUID    `json:"process,omitzero"` // the process that proposes it
	Subject  *tool.Record `json:"subject,omitempty"`
	Tool     string       `json:"tool"`
	Write    bool         `json:"write,omitempty"`
	Target   *tool.Target `json:"target,omitempty"`
	Edited   bool         `json:"edited,omitempty"` // a person changed what the model proposed
	// Answer is empty until it is answered, Answered for a question.
	Answer    agent.Answer `json:"answer,omitempty"`
	By        uuid.UUID    `json:"by,omitzero"`
	Delivered bool         `json:"delivered,omitempty"` // the runtime took the answer
	Decided   int          `json:"decided,omitempty"`   // the sequence of its decision event, once that was seen
	Judged    bool         `json:"judged,omitempty"`    // its outcome is in the log
}

// Answered is the answer of a card that is a question.
const Answered agent.Answer = "answered"

// offers lists the answers that a card takes (RULES C4).
func (c Card) offers() []agent.Answer {
	switch {
	case c.Question:
		return []agent.Answer{Answered}
	case c.Process != uuid.Nil && c.Write:
		return []agent.Answer{agent.Apply, agent.Variant, agent.Skip}
	default:
		return []agent.Answer{agent.Approve, agent.Deny}
	}
}

// Runtime is what this room asks of the agent.
type Runtime interface {
	Start(ctx context.Context, by actor.Actor, req agent.StartRequest) (agent.Run, error)
	// CheckStart refuses what Start would refuse, and stores no run.
	CheckStart(ctx context.Context, by actor.Actor, req agent.StartRequest) error
	Decide(ctx context.Context, by actor.Actor, d agent.Decision) (agent.Run, error)
	EditProposal(ctx context.Context, by actor.Actor, e agent.Edit) (agent.Run, error)
	SubmitInput(ctx context.Context, by actor.Actor, in agent.Input) (agent.Run, error)
	Cancel(ctx context.Context, by actor.Actor, id uuid.UUID) (bool, error)
	CancelIfWaiting(ctx context.Context, by actor.Actor, id uuid.UUID) (bool, run.Status, error)
	ConversationCard(ctx context.Context, by actor.Actor, r agent.Run) (*agent.Card, error)
}

// Runs reads the runs of conversations, whoever asks.
type Runs interface {
	Run(ctx context.Context, id uuid.UUID) (agent.Run, error)
	Events(ctx context.Context, id uuid.UUID, after, limit int) ([]run.Event, error)
}

// Skills is what this room reads of the library.
type Skills interface {
	Configuration(ctx context.Context, id uuid.UUID) (library.Configuration, error)
	Dossiers(ctx context.Context, skillIDs []uuid.UUID) ([]library.Dossier, error)
}

// People gives the actor that a user is right now: disabled users are nobody.
type People interface {
	Actor(ctx context.Context, id uuid.UUID) (actor.Actor, error)
}

// Settings gives the settings in force.
type Settings interface {
	Values(ctx context.Context) (access.Values, error)
}

// Bell wakes whoever waits for a topic.
type Bell interface {
	Listen(topics ...change.Topic) (<-chan struct{}, func())
}

// Chat is the use cases on conversations and open points.
type Chat struct {
	Store    Store
	Runtime  Runtime
	Runs     Runs
	Skills   Skills
	People   People
	Settings Settings
	Content  content.Reader
	World    world.World
	Bell     Bell
	Log      *slog.Logger
	// Lease is how long a conversation is claimed without a sign of life while a message or
	// an answer is brought to the runtime; 0 is half a minute.
	Lease time.Duration
}

// Store is what this room needs kept.
type Store interface {
	change.Applier

	// Conversation returns fault.NotFound for an id that is not there.
	Conversation(ctx context.Context, id uuid.UUID) (Conversation, error)
	// Conversations pages through one owner's, the latest made first.
	Conversations(ctx context.Context, owner uuid.UUID, filter Filter, page Page) ([]Conversation, error)
	// Log lists at most limit entries with a sequence above after, in order; with kinds only
	// those.
	Log(ctx context.Context, id uuid.UUID, after, limit int, kinds ...Kind) ([]Entry, error)
	// Input is the values of the answer that is on its way; empty when there is none.
	Input(ctx context.Context, id uuid.UUID) (string, error)
	// Stirring lists conversations that somebody has to look at: their run has gone on, or
	// rests while they say otherwise, or whoever had them in hand is gone, or they rest with
	// messages that wait.
	Stirring(ctx context.Context, now time.Time, limit int) ([]uuid.UUID, error)
	// Stale lists conversations at rest, not pinned, that are archived (or not) and have done
	// nothing since before a time.
	Stale(ctx context.Context, archived bool, before time.Time, limit int) ([]uuid.UUID, error)

	// Point returns the open point of a key; false when there has been none.
	Point(ctx context.Context, key string) (Point, bool, error)
	// PointsOn lists what is open on a target, whatever process found it.
	PointsOn(ctx context.Context, target tool.Target) ([]Point, error)
	// Points pages through open points, the oldest first.
	Points(ctx context.Context, filter PointFilter, page Page) ([]Point, error)
}

// Filter narrows a list of conversations; a nil or empty field does not.
type Filter struct {
	Archived        *bool
	Pinned          *bool
	Statuses        []Status
	ConfigurationID *uuid.UUID
	Search          string // in the title, whatever the case
}

// Page is as library.Page.
type Page struct {
	Cursor   uuid.UUID
	Limit    int
	Backward bool
}
