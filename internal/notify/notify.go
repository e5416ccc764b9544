// Package notify tells other servers that a run waits for a person, was decided, failed or
// expired. What happened is written with the run's own change, as an announcement; any
// replica turns it into a delivery for each endpoint that wants it, and posts it, signed,
// until it is taken or given up. A delivery holds ids and codes and nothing that was said.
//
// At least once: a delivery that is sent again has the id that it had before. Nothing of a
// run waits for any of this.
package notify

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/world"
)

// Event is what an endpoint can be told of.
type Event string

// The events.
const (
	RunWaiting Event = "run_waiting" // it waits for an approval or an answer, with a card of its own
	RunDecided Event = "run_decided" // a person approved, denied or answered
	RunFailed  Event = "run_failed"
	RunExpired Event = "run_expired" // nobody answered in time
	Ping       Event = "ping"        // a test, which nobody subscribes to
)

// Type is the event as it is posted, such as run.waiting.
func (e Event) Type() string { return strings.Replace(string(e), "_", ".", 1) }

// Kinds are the kinds of a run's events of a run that tell of it (see told).
func (e Event) Kinds() []run.EventKind {
	switch e {
	case RunWaiting:
		return []run.EventKind{run.EventSuspended}
	case RunDecided:
		return []run.EventKind{run.EventDecision, run.EventInput}
	case RunFailed, RunExpired:
		return []run.EventKind{run.EventSettled}
	}
	return nil
}

// Events are those that an endpoint can want.
var Events = []Event{RunWaiting, RunDecided, RunFailed, RunExpired}

// Status is how far a delivery is.
type Status string

// The statuses.
const (
	Pending   Status = "pending"
	Delivered Status = "delivered"
	GivenUp   Status = "given_up" // after its last try
)

// Endpoint is a server that is told of runs.
type Endpoint struct {
	ID             uuid.UUID
	URL            string
	Description    string
	Events         []Event
	Enabled        bool
	DisabledReason string // why this server stopped telling it; empty when nobody or a person did
	CreatedAt      time.Time
	UpdatedAt      time.Time
}

// Fact is what an announcement says beside its event: codes and ids.
type Fact struct {
	Status     run.Status `json:"status,omitempty"`
	TurnDigest string     `json:"turnDigest,omitempty"`
	Approved   *bool      `json:"approved,omitempty"`
	DecidedBy  string     `json:"decidedBy,omitempty"` // a row id
	Reason     string     `json:"reason,omitempty"`    // of a denial, or why the run ended
}

// Announcement is something that happened and that nobody was told of yet.
type Announcement struct {
	ID    uuid.UUID
	Run   uuid.UUID
	Event Event
	Fact  Fact
	At    time.Time
}

// Subject is what a delivery says of its run.
type Subject struct {
	Initiator     uuid.UUID
	Configuration uuid.UUID
	Conversation  uuid.UUID // zero for none
	Sequence      *int      // of the run's event that is told; nil when it is not there
	Table, Record string    // what it works on; empty for none
}

// Delivery is one thing that one endpoint is told.
type Delivery struct {
	ID          uuid.UUID
	Endpoint    uuid.UUID
	Run         uuid.UUID // zero for a test
	Event       Event
	Body        string
	Status      Status
	Tries       int
	Log         []Try
	NextAt      *time.Time
	DeliveredAt *time.Time
	CreatedAt   time.Time
}

// Try is one attempt to deliver.
type Try struct {
	At         time.Time `json:"at"`
	StatusCode int       `json:"statusCode,omitempty"` // of HTTP; 0 when there was no answer
	Error      string    `json:"error,omitempty"`      // what went wrong without one
	Duration   int       `json:"durationMs"`
}

// Store keeps endpoints, announcements and deliveries.
type Store interface {
	change.Applier

	// Endpoint and Delivery return fault.NotFound for an id that is not there.
	Endpoint(ctx context.Context, id uuid.UUID) (Endpoint, error)
	// EndpointSecret decrypts.
	EndpointSecret(ctx context.Context, id uuid.UUID) (string, error)
	// Endpoints pages through them in the order of their ids, newest last.
	Endpoints(ctx context.Context, page Page) ([]Endpoint, error)
	// Announcements lists the oldest.
	Announcements(ctx context.Context, limit int) ([]Announcement, error)
	// SubjectOf returns fault.NotFound for a run that is not there.
	SubjectOf(ctx context.Context, a Announcement) (Subject, error)
	Delivery(ctx context.Context, id uuid.UUID) (Delivery, error)
	// Deliveries pages through an endpoint's, newest first.
	Deliveries(ctx context.Context, endpoint uuid.UUID, status *Status, page Page) ([]Delivery, error)
	// Due lists deliveries that are to be tried by a time, the longest due first, but for
	// those to some endpoints.
	Due(ctx context.Context, now time.Time, except []uuid.UUID, limit int) ([]Delivery, error)
	// Over lists deliveries that are over and older than a time.
	Over(ctx context.Context, before time.Time, limit int) ([]uuid.UUID, error)
}

// Page is as library.Page.
type Page struct {
	Cursor   uuid.UUID
	Limit    int
	Backward bool
}

// Message is what is posted.
type Message struct {
	ID   string // of the delivery, the same whenever it is sent
	URL  string
	Body string
	// Secret signs it; at is when.
	Secret string
	At     time.Time
}

// Answer is what became of a post that was answered.
type Answer struct {
	StatusCode int
	RetryAfter time.Duration // what the server asked for; 0 for nothing
}

// Sender posts messages.
type Sender interface {
	// Check says what is wrong with a URL, as fault.BadInput.
	Check(url string) error
	// Post returns an error when there was no answer; its text names no address.
	Post(ctx context.Context, m Message) (Answer, error)
}

// Names are how ids are written for others.
type Names struct{ Run, User, Configuration, Conversation, Delivery func(uuid.UUID) string }

// Bell wakes whoever listens.
type Bell interface {
	Listen(topics ...change.Topic) (rings <-chan struct{}, stop func())
}

// Room is the use cases. Its methods are safe for concurrent use.
type Room struct {
	Store  Store
	Sender Sender
	Names  Names
	World  world.World
	Bell   Bell
	Log    *slog.Logger
	// Settings says how long deliveries that are over are kept, and how long a server that
	// shuts down waits for those under way.
	Settings Settings
	Meter    Meter // may be nil
}

// Settings gives the settings that are in force now.
type Settings interface {
	Values(ctx context.Context) (access.Values, error)
}

// Outcome is what a try came to.
type Outcome string

// The outcomes.
const (
	Taken   Outcome = "taken"   // it is delivered
	Failed  Outcome = "failed"  // it is tried again
	Dropped Outcome = "dropped" // it is given up
)

// Meter counts tries. It must not block.
type Meter interface {
	Tried(outcome Outcome)
}

func needAdministrator(by actor.Actor) error {
	switch {
	case by.IsNobody():
		return fault.New(fault.Unauthenticated, "Sign in to see notifications.")
	case !by.Administrator:
		return fault.New(fault.Forbidden, "Notifications are an administrator's.")
	}
	return nil
}
