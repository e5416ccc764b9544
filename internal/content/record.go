// Package content is the embedded record store that agents work on: pages,
// elements and files with revisions, history and rights. Every call takes the
// actor it acts for. Writes made by a run are keyed by (run, call), so that a call
// that is executed twice writes once.
package content

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
)

// The tables of the store.
const (
	PageTable    = "page"
	ElementTable = "element"
	FileTable    = "file"
)

// Record is one record as it stands now. Ids are the room's own strings. Fields
// are a JSON object whose keys the table declares.
type Record struct {
	Row      uuid.UUID // the id changes guard by
	Table    string
	ID       string
	ParentID string // page: parent page or empty; element: its page; file: empty
	// TranslationOf is the id of the record, of the same table, that this one translates;
	// empty for an original. Set at creation, for good. Its field "language" says into what.
	TranslationOf string
	Position      int
	Fields        map[string]any
	Revision      int // 1 at creation, one more at each write
	Hidden        bool
	Deleted       bool
	UpdatedAt     time.Time
}

// Revision is one entry of a record's history: the fields as they were from that
// revision on.
type Revision struct {
	Revision int
	Kind     string // create, update, move, delete, publish
	Fields   map[string]any
	// ParentID and Hidden are as they were from the revision on, nil for revisions made
	// before that was kept.
	ParentID *string
	Hidden   *bool
	Actor    uuid.UUID
	Run      uuid.UUID // zero when a person wrote without a run
	At       time.Time
}

// Origin says where a write comes from. A write with a run is made at most once per
// (Run, Key).
type Origin struct {
	Run uuid.UUID
	Key string
}

// Store is what the room needs kept. Reads return fault.NotFound for a record that
// is not there or deleted.
type Store interface {
	change.Applier
	Record(ctx context.Context, table, id string) (Record, error)
	// RecordAt returns the record with a row, fault.NotFound if there is none.
	RecordAt(ctx context.Context, row uuid.UUID) (Record, error)
	// Children lists the records of a table below a parent, by position, then id.
	Children(ctx context.Context, table, parentID string) ([]Record, error)
	// Search finds records whose text fields contain the words, newest first.
	Search(ctx context.Context, table, words string, limit int) ([]Record, error)
	// Translations lists the translations of a record, by id.
	Translations(ctx context.Context, table, id string) ([]Record, error)
	// Showing lists the pages and elements that show a file, at most limit of them.
	Showing(ctx context.Context, fileID string, limit int) ([]Record, error)
	// History lists the revisions of a record, of a deleted one too.
	History(ctx context.Context, table, id string) ([]Revision, error)
	// Written returns the record that (run, key) wrote before, if it did.
	Written(ctx context.Context, run uuid.UUID, key string) (Record, bool, error)
	// WrittenBeside returns the records that a run wrote under keys that begin so, by
	// key, deleted ones too.
	WrittenBeside(ctx context.Context, run uuid.UUID, keys string) ([]Record, error)
	// NextPosition is one after the last child of a parent.
	NextPosition(ctx context.Context, table, parentID string) (int, error)
}

// Reader answers whether an actor may see a record: what the rest of the house asks
// before it works on one.
type Reader interface {
	// Read returns the record if the actor may read it, else fault.NotFound: an object
	// that an actor may not see does not exist for them.
	Read(ctx context.Context, as actor.Actor, table, id string) (Record, error)
}
