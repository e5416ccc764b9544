package audit

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Reader pages through stored entries.
type Reader interface {
	// AuditEntries lists the entries of a page that match the filter, in the page's
	// order.
	AuditEntries(ctx context.Context, filter Filter, page Page) ([]Entry, error)
	// AuditSize is how many entries there are: the index of the next one.
	AuditSize(ctx context.Context) (int64, error)
	// AuditEntry returns fault.NotFound for an id that is not there.
	AuditEntry(ctx context.Context, id uuid.UUID) (Entry, error)
}

// Filter narrows the entries; a zero field does not.
type Filter struct {
	Events []Event
	Actor  uuid.UUID
	Source uuid.UUID
	Skill  uuid.UUID
	Run    uuid.UUID
	Digest string
	Since  time.Time // inclusive
	Until  time.Time // exclusive
}

// Page asks for at most Limit entries beyond an index, which need not exist: below
// it when the newest come first, above it when the oldest do. Nil starts at the end
// it reads from.
type Page struct {
	Beyond      *int64
	Limit       int
	OldestFirst bool
}
