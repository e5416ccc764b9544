package content

import (
	"context"
	"maps"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
)

// Edit is a change of some fields of a record; the others stay. Null clears a field.
type Edit struct {
	Table  string
	ID     string
	Fields map[string]any
	// Revision is the one the edit started from; 0 takes the record as it is.
	Revision int
	Origin   Origin

	// allow refuses what the record as it stands does not let happen.
	allow func(now Record, plan Plan) error
}

// Update changes fields of a record. An edit that started from another revision, or
// that lost against a write made meanwhile, is refused with STALE_REVISION, whose
// detail is the current Record. An edit that changes nothing writes nothing.
func (c *Content) Update(ctx context.Context, as actor.Actor, in Edit) (Written, error) {
	if err := in.Origin.check(); err != nil {
		return Written{}, err
	}
	w := write{as: as, origin: in.Origin, kind: KindUpdate, record: Record{Table: in.Table, ID: in.ID}, planned: in.Fields}
	if before, ok, err := c.before(ctx, w); ok || err != nil {
		return before, err
	}
	plan, err := c.PlanUpdate(ctx, as, in)
	if err != nil {
		return Written{}, err
	}
	if len(plan.Changed()) == 0 {
		return Written{Record: plan.Record}, nil
	}
	now := plan.Record
	next := now
	next.Fields = plan.apply(now.Fields)
	next.Revision, next.UpdatedAt = now.Revision+1, c.world.Now()
	update := change.Update{
		Table: recordsTable, ID: now.Row,
		If: []change.Value{recordRevision.Is(now.Revision), recordDeleted.Is(false)},
		Set: []change.Value{
			recordFields.To(next.Fields), recordRevision.To(next.Revision), recordUpdated.To(next.UpdatedAt),
		},
	}
	w.record, w.fields, w.planned = next, plan.changedNames(), plan.given()
	out, applied, err := c.commit(ctx, w, change.Change{Updates: []change.Update{update}})
	if err != nil || applied {
		return out, err
	}
	current, err := c.Read(ctx, as, in.Table, in.ID)
	if err != nil {
		return Written{}, err
	}
	return Written{}, stale(current)
}

// PlanUpdate says what Update would change, with the same checks, and changes
// nothing.
func (c *Content) PlanUpdate(ctx context.Context, as actor.Actor, in Edit) (Plan, error) {
	table, err := TableNamed(in.Table)
	if err != nil {
		return Plan{}, err
	}
	current, err := c.walk().editable(ctx, as, in.Table, in.ID)
	if err != nil {
		return Plan{}, err
	}
	fields, err := table.valid(in.Fields)
	if err != nil {
		return Plan{}, err
	}
	plan := table.plan(current, fields)
	if err := plan.mayWrite(as); err != nil {
		return Plan{}, err
	}
	if in.Revision != 0 && in.Revision != current.Revision {
		return Plan{}, stale(current)
	}
	if in.allow != nil {
		if err := in.allow(current, plan); err != nil {
			return Plan{}, err
		}
	}
	return plan, c.filesOf(ctx, as, plan)
}

func stale(current Record) error {
	return fault.Refuse(fault.StaleRevision,
		"the %s %q has changed: it is at revision %d now", current.Table, current.ID, current.Revision).With(current)
}

// Plan is what a write would do to a record.
type Plan struct {
	Record Record        // as it stands; for a creation, as it would stand
	Fields []FieldChange // every field that was given, in the table's order
}

// FieldChange is one field of a plan. Nil is an absent field.
type FieldChange struct {
	Field    Field
	From, To any
}

// Changes reports whether the field would be another one afterwards.
func (f FieldChange) Changes() bool { return !Same(f.From, f.To) }

func (t Table) plan(current Record, fields map[string]any) Plan {
	plan := Plan{Record: current}
	for _, f := range t.Fields {
		if to, given := fields[f.Name]; given {
			plan.Fields = append(plan.Fields, FieldChange{Field: f, From: current.Fields[f.Name], To: to})
		}
	}
	return plan
}

// Changed lists the fields that would be others afterwards.
func (p Plan) Changed() []FieldChange {
	var out []FieldChange
	for _, f := range p.Fields {
		if f.Changes() {
			out = append(out, f)
		}
	}
	return out
}

func (p Plan) changedNames() []string {
	out := []string{}
	for _, f := range p.Changed() {
		out = append(out, f.Field.Name)
	}
	return out
}

// given is what was asked for, as the store would keep it.
func (p Plan) given() map[string]any {
	out := make(map[string]any, len(p.Fields))
	for _, f := range p.Fields {
		out[f.Field.Name] = f.To
	}
	return out
}

// mayWrite keeps readers and editors to administrators (RULES I6). A list that comes
// back as it was is nobody's change.
func (p Plan) mayWrite(as actor.Actor) error {
	for _, f := range p.Changed() {
		if f.Field.Type == Users && !as.Administrator {
			return fault.New(fault.Forbidden, "%s: only administrators set who may read and edit", f.Field.Name)
		}
	}
	return nil
}

func (p Plan) apply(fields map[string]any) map[string]any {
	out := maps.Clone(fields)
	if out == nil {
		out = map[string]any{}
	}
	for _, f := range p.Changed() {
		out[f.Field.Name] = f.To
	}
	return present(out)
}
