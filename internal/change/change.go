// Package change is the one way in which anything is written: a use case says
// what must still hold, what is set and what is appended, as a value, and the
// store makes all of it true in one transaction or none of it. A Change holds no
// connection and no closure, so that the store may apply several at once and a
// test may read what a use case meant to do.
//
// Order inside a transaction, which keeps two of them from waiting for each
// other in a circle: guarded updates and deletes, sorted by table and id; inserts;
// the run's sequence, if none of the updates was of the run's row and took it; its
// events; last of all the audit head and the entries.
package change

import (
	"context"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/run"
)

// Change is one atomic change of state. The zero value changes nothing.
type Change struct {
	Updates []Update
	Deletes []Delete
	Inserts []Insert
	// Run names the run that Events belong to. The store numbers them gaplessly under
	// the run's row lock (RULES R5).
	Run    uuid.UUID
	Events []run.Event
	// Refused is what the mutation will answer, where Audit says that it was refused: it
	// is stored with an idempotency key, if there is one (RULES R18).
	Refused *fault.Refused
	// Audit entries get their index when the transaction commits (RULES U2).
	Audit []audit.Entry
	// Ring wakes whoever waits for these topics once the change is durable. The
	// topics of Run and of the audit trail ring by themselves.
	Ring []Topic
}

// Update sets columns of exactly one row, if every guard holds for it. A guard that
// does not hold loses the whole change (RULES R2).
type Update struct {
	Table Table
	ID    uuid.UUID
	If    []Value
	Set   []Value
}

// Delete removes exactly one row, if every guard holds for it.
type Delete struct {
	Table Table
	ID    uuid.UUID
	If    []Value
	// IfAny says that a row which is not there, or for which a guard does not hold, loses
	// nothing: then there is nothing to remove.
	IfAny bool
}

// Insert adds a row. A row that a unique constraint already knows loses the whole
// change.
type Insert struct {
	Table Table
	Row   []Value
	// Adds are columns whose values are added to those of a row that the id is there for
	// already; the others stay as they are. Then nothing is lost. Whoever adds to several
	// rows gives them in the order of their ids.
	Adds []string
}

// Topic names something a subscriber or worker waits for.
type Topic string

// The topics.
const (
	AuditTopic Topic = "audit" // there are new audit entries
	QueueTopic Topic = "queue" // there is a run to pick up
	StepsTopic Topic = "steps" // some run has new events
	ChatsTopic Topic = "chats" // some conversation has new entries
	// NotifyTopic rings when there is something to tell other servers.
	NotifyTopic Topic = "notify"
)

// RunTopic rings when a run has new events or another status.
func RunTopic(id uuid.UUID) Topic { return Topic("run:" + id.String()) }

// TextTopic rings while a model writes in a run.
func TextTopic(run uuid.UUID) Topic { return Topic("text:" + run.String()) }

// ConversationTopic rings when a conversation has new entries.
func ConversationTopic(id uuid.UUID) Topic { return Topic("conversation:" + id.String()) }

// SourceTopic rings while a source is synced.
func SourceTopic(id uuid.UUID) Topic { return Topic("source:" + id.String()) }

// Outcome says what became of a change.
type Outcome struct {
	// Applied is false when the change lost: nothing of it is stored.
	Applied bool
	// Lost names the table of the first guard or insert that did not hold, for
	// messages and tests.
	Lost Table
	// FirstSequence is the sequence of the first of Events.
	FirstSequence int
	// FirstIndex is the audit index of the first of Audit.
	FirstIndex int64
}

// Applier applies changes, each whole or not at all, all of them in one durable
// transaction, in the order given. Losing is an Outcome, not an error; an error
// (fault.Unavailable when the database is gone) means that nothing is stored.
type Applier interface {
	Apply(ctx context.Context, changes ...Change) ([]Outcome, error)
}

// One applies a single change and reports whether it was applied.
func One(ctx context.Context, to Applier, c Change) (Outcome, error) {
	out, err := to.Apply(ctx, c)
	if err != nil {
		return Outcome{}, err
	}
	return out[0], nil
}
