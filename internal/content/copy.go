package content

import (
	"context"
	"maps"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
)

// Copying is a record to be copied.
type Copying struct {
	Table    string
	ID       string
	ParentID *string // the page to put the copy below, "" for the top; nil: beside the record
	Revision int     // that the caller saw; 0 takes the record as it is
	Seen     Seen
	Origin   Origin
}

// Duplicate is what Copy would make.
type Duplicate struct {
	Record   Record   // the original
	Elements []Record // that come with a page
	ToID     string   // the page that the copy would stand below
}

// Copy makes a hidden copy of a record at the end of a place, of a page with its
// elements and without its subpages and its address. A copy is nobody's translation,
// and never widens who may read or edit, but for an administrator.
func (c *Content) Copy(ctx context.Context, as actor.Actor, in Copying) (Written, error) {
	if err := in.Origin.check(); err != nil {
		return Written{}, err
	}
	w := write{as: as, origin: in.Origin, kind: KindCreate, record: Record{Table: in.Table}}
	if before, ok, err := c.before(ctx, w); ok || err != nil {
		return before, err
	}
	return c.several(ctx, as, func() (prepared, error) {
		plan, err := c.PlanCopy(ctx, as, in)
		if err != nil {
			return prepared{}, err
		}
		fresh := plan.Record
		fresh.Hidden, fresh.Fields = true, maps.Clone(plan.Record.Fields)
		delete(fresh.Fields, "slug")
		return c.prepareNew(ctx, w, fresh, "", plan.ToID, plan.Elements)
	})
}

// prepareNew plans the creation of a record with elements below it, under new ids but for the one that is given.
func (c *Content) prepareNew(ctx context.Context, w write, top Record, id, toID string, elements []Record) (prepared, error) {
	end, err := c.store.NextPosition(ctx, top.Table, toID)
	if err != nil {
		return prepared{}, err
	}
	p := prepared{}
	w.record = c.fresh(top, toID, end)
	if id != "" {
		w.record.ID = id
	}
	w.fields = setNames(w.record)
	p.main = w
	p.change.Inserts = append(p.change.Inserts, w.record.insert())
	for i, e := range elements {
		b := w.beside(c.fresh(e, w.record.ID, i), nil)
		b.fields = setNames(b.record)
		p.along = append(p.along, b)
		p.change.Inserts = append(p.change.Inserts, b.record.insert())
	}
	return p, nil
}

// fresh is a record that is made like another one.
func (c *Content) fresh(like Record, parentID string, position int) Record {
	like.Row, like.ID, like.Revision, like.UpdatedAt = c.world.NewID(), newID(c.world.Secret(10)), 1, c.world.Now()
	like.ParentID, like.Position = parentID, position
	return like
}

// setNames are the names of the fields that a record has, in the table's order.
func setNames(r Record) []string {
	names := []string{}
	table, _ := TableNamed(r.Table)
	for _, f := range table.Fields {
		if !blank(r.Fields[f.Name]) {
			names = append(names, f.Name)
		}
	}
	return names
}

// PlanCopy says what Copy would make, with the same checks.
func (c *Content) PlanCopy(ctx context.Context, as actor.Actor, in Copying) (Duplicate, error) {
	r, _, err := c.walk().readable(ctx, as, in.Table, in.ID)
	if err != nil {
		return Duplicate{}, err
	}
	if in.Revision != 0 && in.Revision != r.Revision {
		return Duplicate{}, stale(r)
	}
	plan := Duplicate{Record: r, ToID: r.ParentID}
	if in.ParentID != nil {
		plan.ToID = *in.ParentID
	}
	if err := c.mayCreateBelow(ctx, as, r.Table, plan.ToID); err != nil {
		return Duplicate{}, err
	}
	line, err := c.walk().lineBelow(ctx, plan.ToID)
	if err != nil {
		return Duplicate{}, err
	}
	if err := c.mayWiden(ctx, as, r.ParentID, line); err != nil {
		return Duplicate{}, err
	}
	if r.Table == PageTable {
		if plan.Elements, err = c.Children(ctx, as, ElementTable, r.ID); err != nil {
			return Duplicate{}, err
		}
	}
	if len(plan.Elements) > maxAlong {
		return Duplicate{}, fault.New(fault.BadInput, "more than %d elements stand on the page", maxAlong)
	}
	plan.Record.TranslationOf = ""
	for i := range plan.Elements {
		plan.Elements[i].TranslationOf = ""
	}
	return plan, in.Seen.check(append(plan.Elements, r)...)
}
