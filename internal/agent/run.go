// Package agent is the runtime: it starts runs, drives the loop between model and
// tools, suspends for a person, takes the decision and goes on. A run's truth is
// its row and its events; a worker holds a lease on the row while it executes a
// segment and writes nothing once the lease is lost (RULES R6). A paused run holds
// no goroutine.
package agent

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// Run is a run's row: ids, digests, counts and codes. What a model said or will
// read lives in Request and State, which are encrypted at rest.
type Run struct {
	ID              uuid.UUID
	Status          run.Status
	Outcome         run.Outcome // empty until the first segment ended
	Reason          run.Reason  // empty until the run is terminal
	Truncated       bool
	Message         string // why it failed, for people
	Answer          string // empty until completed; encrypted at rest
	InitiatorID     uuid.UUID
	ConfigurationID uuid.UUID
	TaskID          uuid.UUID // the task it carries out; zero for any other run
	ConversationID  uuid.UUID // the conversation whose turn it is, which may be gone; zero for any other run
	PredecessorID   uuid.UUID // the run it continues, which may be gone; zero for a first run
	Invocation      *Invocation
	Subject         *tool.Record // what it works on
	Forced          []uuid.UUID
	// SkillAllowList is the skill-derived list fixed at start (RULES T1, T10); nil is
	// unrestricted. CallerTools, kept beside it, only narrows; nil does not.
	SkillAllowList []string
	CallerTools    []string
	Pins           run.Pins
	Notices        []run.Notice
	Progress       *tool.Progress
	Highlight      *tool.Record
	MaxIterations  int // the caller's cap, 0 when none; clamped whenever it is used
	// Suspension counts suspensions: the number of the pending one while the run waits.
	Suspension int
	TurnDigest string     // of the pending calls, empty unless the run waits
	ExpiresAt  *time.Time // until when what it waits with may be answered; nil for ever
	LeaseOwner string
	LeaseUntil *time.Time
	Attempts   int // how often the present segment was begun again
	Fence      *Fence
	Events     int // how many events there are: the next sequence
	Usage      Consumption
	// Privacy is the level it began with; what is in force by now may be stricter.
	Privacy    run.Privacy
	Writes     int // how many of its calls wrote
	CreatedAt  time.Time
	StartedAt  *time.Time
	FinishedAt *time.Time
}

// Invocation is the explicit start of a skill, on a record if Subject names one.
type Invocation struct {
	Skill   uuid.UUID    `json:"skill"`
	Subject *tool.Record `json:"subject,omitempty"`
	// Derived says that nothing is started by it in this run: it came from the run
	// before, or names a skill whose pin did (RULES P4, X4).
	Derived bool `json:"derived,omitempty"`
	// Ended says that its pin ended in this run: nothing goes on from it (RULES X9).
	Ended bool `json:"ended,omitempty"`
}

// without is the invocation after pins were taken from a run: it ends with its own.
func (i *Invocation) without(was, now run.Pins) *Invocation {
	if i == nil || i.Ended {
		return i
	}
	_, held := was.Of(i.Skill)
	_, holds := now.Of(i.Skill)
	out := *i
	out.Ended = held && !holds
	return &out
}

// Fence is a write that was begun: recorded before the tool runs, cleared with the
// step that records its result (RULES R7). A run that ends with one is shown as
// "check the record".
type Fence struct {
	Tool string    `json:"tool"`
	Key  string    `json:"key"`
	At   time.Time `json:"at"`
}

// Request is what a run was asked, kept encrypted until it settles (RULES R16).
type Request struct {
	Messages []prompt.Message `json:"messages"`
}

// State is everything that a suspended run needs to go on anywhere beside its row,
// kept encrypted until it settles (RULES R16). Pins and allow-list are on the row.
type State struct {
	Messages   []prompt.Message `json:"messages"` // the transcript up to and with the pending turn
	Pending    []Pending        `json:"pending"`  // the calls that wait, in order
	After      []prompt.Call    `json:"after"`    // calls of the same turn that run once the pending ones have
	Suspension int              `json:"suspension"`
	// Schema is the JSON Schema of the input that is asked for; empty on a proposal.
	Schema   json.RawMessage `json:"schema,omitempty"`
	NonceKey []byte          `json:"nonceKey"`
	Gauge    prompt.Gauge    `json:"gauge"`          // of the tokens that the run's provider counts
	Wary     bool            `json:"wary,omitempty"` // a guardrail asks for approvals since something it read
	// Catalogue is what the run's model may load, and Loaded whose loaded sections
	// Messages has (RULES P1, L4).
	Catalogue Catalogue   `json:"catalogue"`
	Loaded    []uuid.UUID `json:"loaded,omitempty"`
	// Given is the answer that was taken, while the segment that goes on with it is
	// executed: whoever picks the run up after that worker is gone has it (RULES R8).
	Given *Given `json:"given,omitempty"`
}

// Given is a person's answer to what a run waited with.
type Given struct {
	Approve bool            `json:"approve"`
	Reason  Answer          `json:"reason,omitempty"`
	By      uuid.UUID       `json:"by"`
	Values  json.RawMessage `json:"values,omitempty"` // of an answered question: the validated input
}

// Submitted remembers an answer to a question, so that it can be told from another one
// when it is sent again; what was answered cannot be read off it.
type Submitted struct {
	TurnDigest string    `json:"turnDigest"`
	By         uuid.UUID `json:"by"`
	Values     string    `json:"values"` // SHA-256 of the canonical values
}

// Calls are the pending calls, as the card shows them.
func (s State) Calls() []prompt.Call {
	out := make([]prompt.Call, len(s.Pending))
	for i, p := range s.Pending {
		out[i] = p.Call
	}
	return out
}

// Pending is one call of the pending turn as its card shows it.
type Pending struct {
	Call   prompt.Call  `json:"call"`
	Write  bool         `json:"write"` // a builtin's declared write (RULES C1)
	Lines  []string     `json:"lines"`
	Failed bool         `json:"failed"` // the preview could not be made; it does not bind (RULES R12)
	Moved  bool         `json:"moved"`  // the lines differ from those of an earlier card (RULES R12)
	Target *tool.Target `json:"target,omitempty"`
	// Edited says that Call is not as the model made it any more; nil when it is.
	Edited *EditedCall `json:"edited,omitempty"`
}

// EditedCall says how a call came to be other than the model made it (RULES C8).
type EditedCall struct {
	Proposed json.RawMessage `json:"proposed"` // the arguments as the model made them
	By       []uuid.UUID     `json:"by"`       // who changed them, the last one last
}

// Answer is one way to answer a card (RULES C4).
type Answer string

// The answers.
const (
	Apply   Answer = "apply"
	Variant Answer = "variant"
	Skip    Answer = "skip"
	Approve Answer = "approve"
	Deny    Answer = "deny"
)

// Store is what the runtime needs kept.
type Store interface {
	change.Applier

	// Run returns fault.NotFound for an id that is not there, and an error with
	// ErrUnreadable in its chain for a row that cannot be read.
	Run(ctx context.Context, id uuid.UUID) (Run, error)
	// Request and State decrypt; one that cannot be decrypted or read is a refusal
	// STATE_UNREADABLE, and fault.NotFound when it was dropped.
	Request(ctx context.Context, id uuid.UUID) (Request, error)
	State(ctx context.Context, id uuid.UUID) (State, error)
	// LastInput is the newest answer to a question of the run, with the errors of State.
	LastInput(ctx context.Context, id uuid.UUID) (Submitted, error)
	// Events lists at most limit events with a sequence above after, in order.
	Events(ctx context.Context, id uuid.UUID, after, limit int) ([]run.Event, error)
	// Secrets are the secrets of the installation that can be read: keys of providers, tokens
	// of sources.
	Secrets(ctx context.Context) ([]string, error)
	// LiveText is what a model is writing, or wrote last, in an open run; the zero value when
	// there is nothing, or nothing that can be decrypted.
	LiveText(ctx context.Context, id uuid.UUID) (LiveText, error)
	// LastDecision is the run's newest decision event.
	LastDecision(ctx context.Context, id uuid.UUID) (run.Event, bool, error)
	// Queued lists runs that may be picked up at a time, oldest first.
	Queued(ctx context.Context, now time.Time, limit int) ([]uuid.UUID, error)
	// Lost lists running runs whose lease ended before a time, the longest lost first.
	Lost(ctx context.Context, before time.Time, limit int) ([]uuid.UUID, error)
	// Expired lists runs that wait for a person until a time before the given one, the
	// longest expired first.
	Expired(ctx context.Context, before time.Time, limit int) ([]uuid.UUID, error)
	// Segment lists the events of a run's present segment: the start, decision or input
	// that it began with, and those after it.
	Segment(ctx context.Context, id uuid.UUID) ([]run.Event, error)
	// WaitingSince lists runs that wait for a person and have done nothing since before a
	// time, and EndedBefore those that ended before it; oldest first.
	WaitingSince(ctx context.Context, before time.Time, limit int) ([]uuid.UUID, error)
	EndedBefore(ctx context.Context, before time.Time, limit int) ([]uuid.UUID, error)
	// Runs pages through runs in the order of their creation ids, newest first.
	Runs(ctx context.Context, filter Filter, page Page) ([]Run, error)
	// PinnedOpen lists open runs that hold a pin of one of the skills (RULES S15).
	PinnedOpen(ctx context.Context, skills []uuid.UUID) ([]uuid.UUID, error)
}

// Filter narrows a list of runs; a nil or empty field does not.
type Filter struct {
	Statuses        []run.Status
	InitiatorID     *uuid.UUID
	ConfigurationID *uuid.UUID
	SkillID         *uuid.UUID
}

// Page is as library.Page.
type Page struct {
	Cursor   uuid.UUID
	Limit    int
	Backward bool
}
