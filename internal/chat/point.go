package chat

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/tool"
)

// Point is an open point: a proposal that its initiator skipped, until a write on the same
// record and the same fields is applied (RULES O1, O3).
type Point struct {
	ID             uuid.UUID
	SkillID        uuid.UUID    // the process that proposed it
	Subject        *tool.Record // what the process worked on
	Target         tool.Target  // fields sorted
	Tool           string
	SkippedBy      uuid.UUID
	ConversationID uuid.UUID
	RunID          uuid.UUID
	SkippedAt      time.Time // last
	Times          int       // how often it was skipped
	ClosedAt       *time.Time
	CreatedAt      time.Time
}

// PointFilter narrows a list of open points; a nil field does not.
type PointFilter struct {
	SkillID   *uuid.UUID
	Subject   *tool.Record
	Target    *tool.Record
	SkippedBy *uuid.UUID
	Closed    bool // those that are closed instead
}

// pointKey names a point: the process, its subject, the record and the sorted names of the
// fields, so that the same finding is one row (RULES O2).
func pointKey(process uuid.UUID, subject *tool.Record, target tool.Target) string {
	b, err := json.Marshal([]any{process, subject, target.Record, SortedFields(target)})
	if err != nil {
		panic("chat: a point's key: " + err.Error()) // ids and names always marshal
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// SortedFields is the field names of a target as a point keeps them: sorted, never nil.
func SortedFields(target tool.Target) []string {
	return append([]string{}, slices.Sorted(slices.Values(target.Fields))...)
}
