package content

import (
	"context"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
)

// filesOf refuses a plan that would show a file which the actor may not read.
func (c *Content) filesOf(ctx context.Context, as actor.Actor, plan Plan) error {
	for _, f := range plan.Changed() {
		id, _ := f.To.(string)
		if f.Field.Type != FileID || id == "" {
			continue
		}
		if _, err := c.Read(ctx, as, FileTable, id); fault.Is(err, fault.NotFound) {
			return fault.New(fault.BadInput, "%s: there is no file %q", f.Field.Name, id)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Picture is a file to be shown by a page or an element.
type Picture struct {
	Table       string
	ID          string
	FileID      string
	Alternative *string // text for those who do not see it; nil: none is set
	Revision    int     // that the caller saw; 0 takes the record as it is
	Seen        Seen
	Origin      Origin
}

// Attach lets a record show a file that shows none yet.
func (c *Content) Attach(ctx context.Context, as actor.Actor, in Picture) (Written, error) {
	return c.Update(ctx, as, in.attaching())
}

// PlanAttach says what Attach would change, with the same checks.
func (c *Content) PlanAttach(ctx context.Context, as actor.Actor, in Picture) (Plan, error) {
	return c.PlanUpdate(ctx, as, in.attaching())
}

func (in Picture) attaching() Edit {
	edit := Edit{Table: in.Table, ID: in.ID, Fields: map[string]any{ImageField: in.FileID}, Revision: in.Revision, Origin: in.Origin}
	if in.Alternative != nil {
		edit.Fields[AlternativeField] = *in.Alternative
	}
	edit.allow = func(now Record, _ Plan) error {
		if !blank(now.Fields[ImageField]) {
			return fault.New(fault.Conflict, "the %s %q shows the file %q already: replace that", now.Table, now.ID, now.Fields[ImageField])
		}
		return nil
	}
	return edit
}

// Wording is the text of a picture for those who do not see it: of a file wherever it
// is shown, or of a page or an element for the file that it shows.
type Wording struct {
	Table    string
	ID       string
	Text     string
	Revision int // that the caller saw; 0 takes the record as it is
	Origin   Origin
}

// SetAlternative sets the text of a picture.
func (c *Content) SetAlternative(ctx context.Context, as actor.Actor, in Wording) (Written, error) {
	return c.Update(ctx, as, in.edit())
}

// PlanAlternative says what SetAlternative would change, with the same checks.
func (c *Content) PlanAlternative(ctx context.Context, as actor.Actor, in Wording) (Plan, error) {
	return c.PlanUpdate(ctx, as, in.edit())
}

func (in Wording) edit() Edit {
	return Edit{
		Table: in.Table, ID: in.ID, Fields: map[string]any{AlternativeField: in.Text}, Revision: in.Revision, Origin: in.Origin,
		allow: func(now Record, _ Plan) error {
			if now.Table != FileTable && blank(now.Fields[ImageField]) {
				return fault.New(fault.Conflict, "the %s %q shows no file", now.Table, now.ID)
			}
			return nil
		},
	}
}

// Replacement is what Replace would do.
type Replacement struct {
	Plan           // of the record itself
	Along []Record // translations that show the same file
	Left  Left
}

// Replace lets a record show another file, and with it the translations that show the
// same one. Their text for the old file goes: nobody has said it of the new one.
func (c *Content) Replace(ctx context.Context, as actor.Actor, in Picture) (Written, error) {
	if err := in.Origin.check(); err != nil {
		return Written{}, err
	}
	w := write{as: as, origin: in.Origin, kind: KindUpdate, record: Record{Table: in.Table, ID: in.ID}, planned: in.fields()}
	out, ok, err := c.before(ctx, w)
	if err != nil {
		return out, err
	}
	var old any
	if !ok {
		out, err = c.several(ctx, as, func() (prepared, error) {
			plan, err := c.PlanReplace(ctx, as, in)
			if err != nil {
				return prepared{}, err
			}
			old = plan.Record.Fields[ImageField]
			return c.prepareReplace(in, plan, w), nil
		})
	} else if old, err = c.formerPicture(ctx, out.Record, in.Origin); err != nil {
		return out, err
	}
	if err != nil {
		return out, err
	}
	out.Left, err = c.showingStill(ctx, as, out.Record, old)
	return out, err
}

func (in Picture) fields() map[string]any {
	fields := map[string]any{ImageField: in.FileID, AlternativeField: nil}
	if in.Alternative != nil {
		fields[AlternativeField] = *in.Alternative
	}
	return fields
}

func (c *Content) prepareReplace(in Picture, plan Replacement, w write) prepared {
	p := prepared{start: plan.Record.Revision}
	w.record = c.next(plan.Record)
	w.record.Fields, w.fields, w.planned = plan.apply(plan.Record.Fields), plan.changedNames(), plan.given()
	p.add(w, plan.Record, recordFields.To(w.record.Fields))
	for _, t := range plan.Along {
		table, _ := TableNamed(t.Table)
		own := table.plan(t, map[string]any{ImageField: in.FileID, AlternativeField: nil})
		next := c.next(t)
		next.Fields = own.apply(t.Fields)
		b := w.beside(next, own.changedNames())
		p.add(b, t, recordFields.To(next.Fields))
		p.along = append(p.along, b)
	}
	p.main = w
	return p
}

// PlanReplace says what Replace would change, with the same checks. A text for the
// old file that is not replaced too goes.
func (c *Content) PlanReplace(ctx context.Context, as actor.Actor, in Picture) (Replacement, error) {
	plan, err := c.PlanUpdate(ctx, as, Edit{
		Table: in.Table, ID: in.ID, Fields: in.fields(), Revision: in.Revision,
		allow: func(now Record, _ Plan) error {
			if blank(now.Fields[ImageField]) || now.Fields[ImageField] == in.FileID {
				return fault.New(fault.Conflict, "the %s %q shows no other file that could be replaced", now.Table, now.ID)
			}
			return nil
		},
	})
	if err != nil {
		return Replacement{}, err
	}
	out := Replacement{Plan: plan}
	w := c.walk()
	translations, err := c.showing(ctx, plan.Record, plan.Record.Fields[ImageField])
	if err != nil {
		return Replacement{}, err
	}
	for _, t := range translations {
		may, err := w.rights(ctx, as, t)
		if err != nil {
			return Replacement{}, err
		}
		if may.edit {
			out.Along = append(out.Along, t)
		} else {
			out.Left.add(t, may)
		}
	}
	return out, in.Seen.check(append(out.Along, plan.Record)...)
}

// showing lists the translations of a record that show a file.
func (c *Content) showing(ctx context.Context, r Record, file any) ([]Record, error) {
	all, err := c.store.Translations(ctx, r.Table, r.ID)
	var out []Record
	for _, t := range all {
		if !blank(file) && t.Fields[ImageField] == file {
			out = append(out, t)
		}
	}
	return out, err
}

func (c *Content) showingStill(ctx context.Context, as actor.Actor, r Record, old any) (Left, error) {
	var left Left
	still, err := c.showing(ctx, r, old)
	if err != nil {
		return left, err
	}
	w := c.walk()
	for _, t := range still {
		may, err := w.rights(ctx, as, t)
		if err != nil {
			return left, err
		}
		left.add(t, may)
	}
	return left, nil
}

// formerPicture is what a record showed before a run's write.
func (c *Content) formerPicture(ctx context.Context, r Record, by Origin) (any, error) {
	revisions, err := c.store.History(ctx, r.Table, r.ID)
	if err != nil {
		return nil, err
	}
	earlier, ok := beforeRun(revisions, by.Run)
	if !ok {
		return nil, nil
	}
	return earlier.Fields[ImageField], nil
}
