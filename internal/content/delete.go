package content

import (
	"context"
	"fmt"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
)

// Deletion is a record to be deleted.
type Deletion struct {
	Table    string
	ID       string
	Revision int // that the caller saw; 0 takes the record as it is
	Seen     Seen
	Origin   Origin
}

// Delete takes a record away together with what depends on it: what stands below a
// page, and translations. All of it is gone at once; rows and history are kept, ids
// are not used again. Refused is what would leave records below without a way to the
// root, or a picture without its file (IN_USE). A translation that the actor may not
// change is left, and so is what came while the record went.
func (c *Content) Delete(ctx context.Context, as actor.Actor, in Deletion) (Written, error) {
	if err := in.Origin.check(); err != nil {
		return Written{}, err
	}
	w := write{as: as, origin: in.Origin, kind: KindDelete, record: Record{Table: in.Table, ID: in.ID}}
	out, ok, err := c.before(ctx, w)
	if err != nil {
		return out, err
	}
	if !ok {
		if out, err = c.several(ctx, as, func() (prepared, error) { return c.prepareDelete(ctx, as, in, w) }); err != nil {
			return out, err
		}
	}
	out.Left, err = c.remaining(ctx, as, append([]Record{out.Record}, out.Beside...))
	return out, err
}

func (c *Content) prepareDelete(ctx context.Context, as actor.Actor, in Deletion, w write) (prepared, error) {
	plan, err := c.PlanDelete(ctx, as, in)
	if err != nil {
		return prepared{}, err
	}
	gone := func(now Record) Record {
		now = c.next(now)
		now.Deleted = true
		return now
	}
	w.record = gone(plan.Record)
	p := prepared{start: plan.Record.Revision}
	p.add(w, plan.Record, recordDeleted.To(true))
	for _, r := range plan.Along {
		b := w.beside(gone(r), nil)
		p.add(b, r, recordDeleted.To(true))
		p.along = append(p.along, b)
	}
	p.main = w
	return p, nil
}

// PlanDelete says what Delete would take away, with the same checks.
func (c *Content) PlanDelete(ctx context.Context, as actor.Actor, in Deletion) (Scheme, error) {
	w := c.walk()
	r, err := w.editableAt(ctx, as, in.Table, in.ID, in.Revision)
	if err != nil {
		return Scheme{}, err
	}
	if r.Table == FileTable {
		shown, err := c.store.Showing(ctx, r.ID, 1)
		if err != nil {
			return Scheme{}, err
		}
		if len(shown) > 0 {
			return Scheme{}, fault.Refuse(fault.InUse, "the file %q is still shown: take it off every page and element first", r.ID)
		}
	}
	plan := Scheme{Record: r}
	if plan.Along, err = w.below(ctx, r, 0); err != nil {
		return Scheme{}, err
	}
	for _, child := range plan.Along {
		if may, err := w.rights(ctx, as, child); err != nil {
			return Scheme{}, err
		} else if !may.edit {
			return Scheme{}, fault.New(fault.Forbidden, "below the page %q stands something that you may not change", r.ID)
		}
	}
	if err := w.translationsOf(ctx, as, &plan); err != nil {
		return Scheme{}, err
	}
	if len(plan.Along) > maxAlong {
		return Scheme{}, fault.New(fault.BadInput, "more than %d records would go: take them in parts", maxAlong)
	}
	return plan, in.Seen.check(append(plan.Along, r)...)
}

// translationsOf adds to a deletion the translations of everything it takes away,
// each with what stands below it; those that the actor may not change wholly stay.
func (w *walk) translationsOf(ctx context.Context, as actor.Actor, plan *Scheme) error {
	known := map[Name]bool{plan.Record.Name(): true}
	for _, r := range plan.Along {
		known[r.Name()] = true
	}
	for _, r := range append([]Record{plan.Record}, plan.Along...) {
		translations, err := w.store.Translations(ctx, r.Table, r.ID)
		if err != nil {
			return fmt.Errorf("reading the translations of %s %s: %w", r.Table, r.ID, err)
		}
		for _, t := range translations {
			if known[t.Name()] {
				continue
			}
			whole, may, err := w.whole(ctx, as, t)
			if err != nil {
				return err
			}
			if !may.edit {
				plan.Left.add(t, may)
				known[t.Name()] = true
				continue
			}
			for _, each := range whole {
				if !known[each.Name()] {
					known[each.Name()] = true
					plan.Along = append(plan.Along, each)
				}
			}
		}
	}
	return nil
}

// whole is a record with what stands below it, and what the actor may do with all of
// it.
func (w *walk) whole(ctx context.Context, as actor.Actor, r Record) ([]Record, rights, error) {
	may, err := w.rights(ctx, as, r)
	if err != nil {
		return nil, rights{}, err
	}
	below, err := w.below(ctx, r, 0)
	if err != nil {
		return nil, rights{}, err
	}
	for _, child := range below {
		m, err := w.rights(ctx, as, child)
		if err != nil {
			return nil, rights{}, err
		}
		may.edit = may.edit && m.edit
	}
	return append([]Record{r}, below...), may, nil
}

// remaining is what still depends on records that are gone.
func (c *Content) remaining(ctx context.Context, as actor.Actor, gone []Record) (Left, error) {
	var left Left
	w := c.walk()
	for _, r := range gone {
		still, err := c.store.Translations(ctx, r.Table, r.ID)
		if err != nil {
			return left, fmt.Errorf("looking for what depends on %s %s: %w", r.Table, r.ID, err)
		}
		for _, table := range []string{ElementTable, PageTable} {
			if r.Table != PageTable {
				break
			}
			children, err := c.store.Children(ctx, table, r.ID)
			if err != nil {
				return left, fmt.Errorf("looking for what stands below page %s: %w", r.ID, err)
			}
			still = append(still, children...)
		}
		for _, s := range still {
			may, err := w.rights(ctx, as, s)
			if err != nil {
				return left, err
			}
			left.add(s, may)
		}
	}
	return left, nil
}
