package content

import (
	"context"
	"errors"
	"slices"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
)

// rights is what an actor may do with a record (RULES I6).
type rights struct {
	read bool
	edit bool // never without read
}

// maxDepth bounds how deep pages nest, and with it every walk to the root.
const maxDepth = 64

// errBroken is a page whose way to the root is cut, circular or too long. Nobody but
// an administrator may see below such a page: whoever restricted it higher up cannot
// be asked any more.
var errBroken = errors.New("content: the way to the root is broken")

// walk reads pages towards the root and remembers them, for one call.
type walk struct {
	store Store
	pages map[string]Record
}

func (c *Content) walk() *walk { return &walk{store: c.store, pages: map[string]Record{}} }

func (w *walk) page(ctx context.Context, id string) (Record, error) {
	if page, ok := w.pages[id]; ok {
		return page, nil
	}
	page, err := w.store.Record(ctx, PageTable, id)
	if err == nil {
		w.pages[id] = page
	}
	return page, err
}

// line returns the pages from the given one up to the root, or errBroken.
func (w *walk) line(ctx context.Context, page Record) ([]Record, error) {
	line := []Record{page}
	for page.ParentID != "" {
		// A circle is a line that never ends: the bound ends both.
		if len(line) == maxDepth {
			return nil, errBroken
		}
		parent, err := w.page(ctx, page.ParentID)
		if fault.Is(err, fault.NotFound) {
			return nil, errBroken
		}
		if err != nil {
			return nil, err
		}
		line = append(line, parent)
		page = parent
	}
	return line, nil
}

// rights folds the rights over every page that a record stands below: a page may
// narrow what its parents allow and never widen it.
func (w *walk) rights(ctx context.Context, as actor.Actor, r Record) (rights, error) {
	if as.Administrator {
		return rights{read: true, edit: true}, nil
	}
	may := rights{read: as.May(actor.ContentRead)}
	may.edit = may.read && as.May(actor.ContentEdit)
	if !may.read || r.Table == FileTable {
		return may, nil
	}
	page := r
	if r.Table == ElementTable {
		var err error
		if page, err = w.page(ctx, r.ParentID); fault.Is(err, fault.NotFound) {
			return rights{}, nil
		} else if err != nil {
			return rights{}, err
		}
	}
	line, err := w.line(ctx, page)
	if errors.Is(err, errBroken) {
		return rights{}, nil
	}
	if err != nil {
		return rights{}, err
	}
	for _, p := range line {
		may.read = may.read && names(p.Fields[ReaderIDs], as)
		may.edit = may.edit && may.read && names(p.Fields[EditorIDs], as)
	}
	return may, nil
}

// names reports whether a list of users lets the actor through: an empty one names
// everybody, one that cannot be read names nobody.
func names(list any, as actor.Actor) bool {
	if list == nil {
		return true
	}
	ids, ok := stringList(list)
	return ok && (len(ids) == 0 || slices.Contains(ids, as.ID.String()))
}

// readable returns the record if the actor may read it.
func (w *walk) readable(ctx context.Context, as actor.Actor, table, id string) (Record, rights, error) {
	if _, err := TableNamed(table); err != nil {
		return Record{}, rights{}, err
	}
	r, err := w.store.Record(ctx, table, id)
	if fault.Is(err, fault.NotFound) {
		return Record{}, rights{}, notFound(table, id)
	}
	if err != nil {
		return Record{}, rights{}, err
	}
	may, err := w.rights(ctx, as, r)
	if err != nil {
		return Record{}, rights{}, err
	}
	if !may.read {
		return Record{}, rights{}, notFound(table, id)
	}
	return r, may, nil
}

// editable returns the record if the actor may change it and what stands below it.
func (w *walk) editable(ctx context.Context, as actor.Actor, table, id string) (Record, error) {
	r, may, err := w.readable(ctx, as, table, id)
	if err != nil {
		return Record{}, err
	}
	if !may.edit {
		return Record{}, fault.New(fault.Forbidden, "you may read the %s %q but not change it", table, id)
	}
	return r, nil
}

// notFound is the same for a record that is not there and one that the actor may not
// see.
func notFound(table, id string) error {
	return fault.New(fault.NotFound, "there is no %s %q", table, id)
}

// mayRead refuses whoever may not read any content: what lists need before they
// filter.
func mayRead(as actor.Actor) error {
	if !as.May(actor.ContentRead) {
		return fault.New(fault.Forbidden, "reading content needs the permission %s", actor.ContentRead)
	}
	return nil
}
