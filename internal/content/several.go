package content

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
)

// Name is a record's name.
type Name struct{ Table, ID string }

// Name is the record's name.
func (r Record) Name() Name { return Name{r.Table, r.ID} }

// Seen is what a caller looked at before it asked for a write: revisions by record. A
// write that would change a record at another revision, or one that was not looked at,
// is refused with STALE_REVISION (RULES R12). Nil takes everything as it is.
type Seen map[Name]int

func (s Seen) check(touched ...Record) error {
	if s == nil {
		return nil
	}
	for _, r := range touched {
		if s[r.Name()] != r.Revision {
			return stale(r)
		}
	}
	return nil
}

// Scheme is what a write that takes other records along would do.
type Scheme struct {
	Record Record   // the one that the write is about, as it stands
	Along  []Record // what would go along, as it stands
	Left   Left     // what should go along and would not
}

// Left is what should have gone along with a write and did not (RULES G9).
type Left struct {
	Names  []Name // sorted: those that the actor may read
	Others int    // how many more there are
}

// Any reports whether anything was left.
func (l Left) Any() bool { return len(l.Names) > 0 || l.Others > 0 }

// add notes a record that stays.
func (l *Left) add(r Record, may rights) {
	if !may.read {
		l.Others++
		return
	}
	if i, there := slices.BinarySearchFunc(l.Names, r.Name(), compareNames); !there {
		l.Names = slices.Insert(l.Names, i, r.Name())
	}
}

func compareNames(a, b Name) int {
	switch {
	case a == b:
		return 0
	case a.Table < b.Table || a.Table == b.Table && a.ID < b.ID:
		return -1
	default:
		return 1
	}
}

// maxAlong bounds how many records one write changes.
const maxAlong = 500

// attempts is how often a write of several records is planned anew when a record that
// only goes along was written meanwhile.
const attempts = 3

// prepared is a write of several records, planned and ready to commit.
type prepared struct {
	main   write
	along  []write
	change change.Change
	start  int // the revision that the record had; 0 for a creation
}

// add plans the change of a record that is there: guarded by its revision and told,
// audited and kept in its history like every write.
func (p *prepared) add(w write, now Record, set ...change.Value) {
	set = append(set, recordRevision.To(w.record.Revision), recordUpdated.To(w.record.UpdatedAt))
	p.change.Updates = append(p.change.Updates, change.Update{
		Table: recordsTable, ID: now.Row,
		If: []change.Value{recordRevision.Is(now.Revision), recordDeleted.Is(false)}, Set: set,
	})
}

// next is a record at its next revision.
func (c *Content) next(now Record) Record {
	now.Revision, now.UpdatedAt = now.Revision+1, c.world.Now()
	return now
}

// beside is a write of a record that goes along with another one's.
func (w write) beside(r Record, fields []string) write {
	return write{as: w.as, origin: w.origin.beside(r.Name()), kind: w.kind, record: r, fields: fields}
}

// keyMark divides the key of a call from the name of a record that went along with it.
const keyMark = "#"

func (o Origin) beside(n Name) Origin {
	if o.Run != uuid.Nil {
		o.Key += keyMark + n.Table + "/" + n.ID
	}
	return o
}

// several commits what plan prepares, and plans anew when it lost against a write of
// a record that only goes along. One that lost the record itself is refused as stale.
func (c *Content) several(ctx context.Context, as actor.Actor, plan func() (prepared, error)) (Written, error) {
	var p prepared
	for range attempts {
		var err error
		if p, err = plan(); err != nil {
			return Written{}, err
		}
		out, applied, err := c.commit(ctx, p.main, p.change, p.along...)
		if err != nil || applied {
			return out, err
		}
		if p.start == 0 {
			continue // another creation took the id
		}
		current, err := c.Read(ctx, as, p.main.record.Table, p.main.record.ID)
		if err != nil {
			return Written{}, err
		}
		if current.Revision != p.start {
			return Written{}, stale(current)
		}
	}
	return Written{}, fault.New(fault.Conflict, "%s %q: other writes came first %d times; try again", p.main.record.Table, p.main.record.ID, attempts)
}

// editableAt is editable, and refuses a revision that was not meant.
func (w *walk) editableAt(ctx context.Context, as actor.Actor, table, id string, revision int) (Record, error) {
	r, err := w.editable(ctx, as, table, id)
	if err == nil && revision != 0 && revision != r.Revision {
		return Record{}, stale(r)
	}
	return r, err
}

// below lists what stands below a page, whoever may see it, pages before what stands
// on them.
func (w *walk) below(ctx context.Context, r Record, depth int) ([]Record, error) {
	if r.Table != PageTable || depth == maxDepth {
		return nil, nil
	}
	var out []Record
	for _, table := range []string{ElementTable, PageTable} {
		children, err := w.store.Children(ctx, table, r.ID)
		if err != nil {
			return nil, fmt.Errorf("reading what stands below page %s: %w", r.ID, err)
		}
		for _, child := range children {
			further, err := w.below(ctx, child, depth+1)
			if err != nil {
				return nil, err
			}
			if out = append(append(out, child), further...); len(out) > maxAlong {
				return nil, fault.New(fault.BadInput, "more than %d records stand below: take them in parts", maxAlong)
			}
		}
	}
	return out, nil
}

// before returns the revision that a record had before a run wrote it last, and false
// when that is not known.
func beforeRun(revisions []Revision, run uuid.UUID) (Revision, bool) {
	slices.SortFunc(revisions, func(a, b Revision) int { return b.Revision - a.Revision })
	i := slices.IndexFunc(revisions, func(r Revision) bool { return r.Run == run })
	if i < 0 || i+1 >= len(revisions) {
		return Revision{}, false
	}
	return revisions[i+1], true
}
