package content

import (
	"context"
	"encoding/base32"
	"errors"
	"maps"
	"regexp"
	"strings"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
)

// Creation is a record to be made.
type Creation struct {
	Table    string
	ID       string // empty: one is made
	ParentID string // page: parent page or empty; element: its page; file: empty
	Fields   map[string]any
	Hidden   bool
	Origin   Origin
}

var idPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// Create makes a record. It needs the right to edit what the record stands below.
func (c *Content) Create(ctx context.Context, as actor.Actor, in Creation) (Written, error) {
	if err := in.Origin.check(); err != nil {
		return Written{}, err
	}
	w := write{as: as, origin: in.Origin, kind: KindCreate, record: Record{Table: in.Table}, planned: in.Fields}
	if before, ok, err := c.before(ctx, w); ok || err != nil {
		return before, err
	}
	plan, err := c.PlanCreate(ctx, as, in)
	if err != nil {
		return Written{}, err
	}
	made := plan.Record
	if made.Position, err = c.store.NextPosition(ctx, made.Table, made.ParentID); err != nil {
		return Written{}, err
	}
	made.Row, made.Revision, made.UpdatedAt = c.world.NewID(), 1, c.world.Now()
	if made.ID == "" {
		made.ID = newID(c.world.Secret(10))
	}
	w.record, w.fields, w.planned = made, plan.changedNames(), plan.given()
	out, applied, err := c.commit(ctx, w, change.Change{Inserts: []change.Insert{made.insert()}})
	if err != nil || applied {
		return out, err
	}
	return Written{}, fault.New(fault.BadInput, "there is a %s %q already, or there was one", made.Table, made.ID)
}

// insert is the row of a record that is made.
func (r Record) insert() change.Insert {
	return change.Insert{Table: recordsTable, Row: []change.Value{
		recordRow.To(r.Row), recordTable.To(r.Table), recordID.To(r.ID),
		recordParent.To(r.ParentID), recordOriginal.To(r.TranslationOf), recordPosition.To(r.Position),
		recordFields.To(r.Fields), recordRevision.To(r.Revision), recordHidden.To(r.Hidden),
		recordDeleted.To(false), recordUpdated.To(r.UpdatedAt),
	}}
}

// PlanCreate says what Create would make, with the same checks, and makes nothing.
// The plan's record has an id only if one was asked for.
func (c *Content) PlanCreate(ctx context.Context, as actor.Actor, in Creation) (Plan, error) {
	table, err := TableNamed(in.Table)
	if err != nil {
		return Plan{}, err
	}
	fields, err := table.valid(in.Fields)
	if err != nil {
		return Plan{}, err
	}
	for _, f := range table.Fields {
		if _, given := fields[f.Name]; f.Required && !given {
			return Plan{}, fault.New(fault.BadInput, "%s: must not be empty", f.Name)
		}
	}
	if in.ID != "" && !idPattern.MatchString(in.ID) {
		return Plan{}, fault.New(fault.BadInput, "%q is no record id: 1 to 64 of a-z, 0-9, dot, dash and underscore", in.ID)
	}
	if err := c.mayCreateBelow(ctx, as, table.Name, in.ParentID); err != nil {
		return Plan{}, err
	}
	made := Record{Table: table.Name, ID: in.ID, ParentID: in.ParentID, Fields: present(fields), Hidden: in.Hidden}
	plan := table.plan(Record{}, fields)
	plan.Record = made
	if err := plan.mayWrite(as); err != nil {
		return Plan{}, err
	}
	return plan, c.filesOf(ctx, as, plan)
}

func (c *Content) mayCreateBelow(ctx context.Context, as actor.Actor, table, parentID string) error {
	switch {
	case table == FileTable && parentID != "":
		return fault.New(fault.BadInput, "parentId: a file stands below nothing")
	case table == ElementTable && parentID == "":
		return fault.New(fault.BadInput, "parentId: an element stands on a page")
	case parentID == "":
		if !as.May(actor.ContentRead) || !as.May(actor.ContentEdit) {
			return fault.New(fault.Forbidden, "creating a %s needs the permission %s", table, actor.ContentEdit)
		}
		return nil
	}
	w := c.walk()
	parent, err := w.editable(ctx, as, PageTable, parentID)
	if err != nil || table != PageTable {
		return err
	}
	line, err := w.line(ctx, parent)
	if errors.Is(err, errBroken) || len(line) == maxDepth {
		return fault.New(fault.BadInput, "parentId: pages nest at most %d deep below a root", maxDepth)
	}
	return err
}

// present leaves out what was given as null.
func present(fields map[string]any) map[string]any {
	out := maps.Clone(fields)
	maps.DeleteFunc(out, func(_ string, v any) bool { return v == nil })
	return out
}

var idEncoding = base32.StdEncoding.WithPadding(base32.NoPadding)

func newID(random []byte) string { return strings.ToLower(idEncoding.EncodeToString(random)) }
