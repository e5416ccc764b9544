package content

import (
	"context"
	"slices"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
)

// Move is a page or an element to be put elsewhere.
type Move struct {
	Table    string
	ID       string
	ParentID *string // the page to put it below, "" for the top; nil: where it is
	BeforeID string  // the sibling to put it before; empty: at the end
	Revision int     // that the caller saw; 0 takes the record as it is
	Seen     Seen
	Origin   Origin
}

// Journey is what Move would do. Translations that stood where the record's own place
// puts them go along.
type Journey struct {
	Scheme
	ToID     string // the page that it would stand below
	Position int

	destinations []string // of Along
	shifts       []shift
}

// shift makes room: a sibling takes another position, without a revision of its own.
type shift struct {
	sibling Record
	to      int
}

// Move puts a page or an element elsewhere. It never widens who may read or edit,
// but for an administrator (RULES I6).
func (c *Content) Move(ctx context.Context, as actor.Actor, in Move) (Written, error) {
	if err := in.Origin.check(); err != nil {
		return Written{}, err
	}
	w := write{as: as, origin: in.Origin, kind: KindMove, record: Record{Table: in.Table, ID: in.ID}}
	out, ok, err := c.before(ctx, w)
	if err != nil {
		return out, err
	}
	var plan Journey
	if !ok {
		if plan, err = c.PlanMove(ctx, as, in); err != nil {
			return Written{}, err
		}
		if plan.ToID == plan.Record.ParentID && plan.Position == plan.Record.Position {
			return Written{Record: plan.Record, Left: plan.Left}, nil
		}
		out, err = c.several(ctx, as, func() (prepared, error) {
			if plan, err = c.PlanMove(ctx, as, in); err != nil {
				return prepared{}, err
			}
			return c.prepareMove(ctx, plan, w)
		})
		if err != nil {
			return out, err
		}
	}
	from := plan.Record.ParentID
	if ok {
		if from, err = c.formerParent(ctx, out.Record, in.Origin); err != nil {
			return out, err
		}
	}
	if from == out.Record.ParentID {
		return out, nil
	}
	_, _, out.Left, err = c.followers(ctx, as, out.Record, from, out.Record.ParentID, false)
	return out, err
}

func (c *Content) prepareMove(ctx context.Context, plan Journey, w write) (prepared, error) {
	p := prepared{start: plan.Record.Revision}
	w.record = c.next(plan.Record)
	w.record.ParentID, w.record.Position = plan.ToID, plan.Position
	p.add(w, plan.Record, recordParent.To(plan.ToID), recordPosition.To(plan.Position))
	for _, s := range plan.shifts {
		p.change.Updates = append(p.change.Updates, change.Update{
			Table: recordsTable, ID: s.sibling.Row,
			If:  []change.Value{recordParent.Is(s.sibling.ParentID), recordPosition.Is(s.sibling.Position), recordDeleted.Is(false)},
			Set: []change.Value{recordPosition.To(s.to)},
		})
	}
	taken := map[string]int{plan.ToID: plan.Position + 1}
	for i, t := range plan.Along {
		to := plan.destinations[i]
		end, err := c.store.NextPosition(ctx, t.Table, to)
		if err != nil {
			return p, err
		}
		end = max(end, taken[to])
		taken[to] = end + 1
		next := c.next(t)
		next.ParentID, next.Position = to, end
		b := w.beside(next, nil)
		p.add(b, t, recordParent.To(to), recordPosition.To(end))
		p.along = append(p.along, b)
	}
	p.main = w
	return p, nil
}

// PlanMove says what Move would do, with the same checks.
func (c *Content) PlanMove(ctx context.Context, as actor.Actor, in Move) (Journey, error) {
	w := c.walk()
	r, err := w.editableAt(ctx, as, in.Table, in.ID, in.Revision)
	if err != nil {
		return Journey{}, err
	}
	if r.Table == FileTable {
		return Journey{}, fault.New(fault.BadInput, "a file stands nowhere and cannot be moved")
	}
	plan := Journey{Scheme: Scheme{Record: r}, ToID: r.ParentID}
	if in.ParentID != nil {
		plan.ToID = *in.ParentID
	}
	if plan.ToID != r.ParentID {
		if err := c.mayGo(ctx, as, r, plan.ToID); err != nil {
			return Journey{}, err
		}
		if plan.Along, plan.destinations, plan.Left, err = c.followers(ctx, as, r, r.ParentID, plan.ToID, true); err != nil {
			return Journey{}, err
		}
	}
	if err := c.place(ctx, as, &plan, in.BeforeID); err != nil {
		return Journey{}, err
	}
	return plan, in.Seen.check(append(plan.Along, r)...)
}

// mayGo refuses a place that the actor may not fill, that lies within what is moved,
// that is too deep, or that more people may read or edit.
func (c *Content) mayGo(ctx context.Context, as actor.Actor, r Record, toID string) error {
	if err := c.mayCreateBelow(ctx, as, r.Table, toID); err != nil {
		return err
	}
	w := c.walk()
	line, err := w.lineBelow(ctx, toID)
	if err != nil {
		return err
	}
	if r.Table == PageTable {
		if slices.ContainsFunc(line, func(p Record) bool { return p.ID == r.ID }) {
			return fault.New(fault.BadInput, "the page %q cannot stand below itself", r.ID)
		}
		height, err := w.height(ctx, r, 1)
		if err != nil {
			return err
		}
		if len(line)+height > maxDepth {
			return fault.New(fault.BadInput, "pages nest at most %d deep below a root", maxDepth)
		}
	}
	return c.mayWiden(ctx, as, r.ParentID, line)
}

// mayWiden refuses a new place that does not narrow readers and editors as the place
// before did, but for an administrator (RULES I6).
func (c *Content) mayWiden(ctx context.Context, as actor.Actor, fromID string, to []Record) error {
	if as.Administrator {
		return nil
	}
	from, err := c.walk().lineBelow(ctx, fromID)
	if err != nil {
		return err
	}
	for _, list := range []string{ReaderIDs, EditorIDs} {
		for _, page := range from {
			narrowed := func(p Record) bool { return Same(p.Fields[list], page.Fields[list]) }
			if !blank(page.Fields[list]) && !slices.ContainsFunc(to, narrowed) {
				return fault.New(fault.Forbidden, "more people could read or edit it there: only administrators widen that")
			}
		}
	}
	return nil
}

// lineBelow is the pages from the one with this id up to the root; none for "".
func (w *walk) lineBelow(ctx context.Context, id string) ([]Record, error) {
	if id == "" {
		return nil, nil
	}
	page, err := w.page(ctx, id)
	if err != nil {
		return nil, err
	}
	return w.line(ctx, page)
}

// height is how many levels a page and what stands below it take.
func (w *walk) height(ctx context.Context, page Record, depth int) (int, error) {
	if depth > maxDepth {
		return depth, nil
	}
	children, err := w.store.Children(ctx, PageTable, page.ID)
	if err != nil {
		return 0, err
	}
	deepest := 0
	for _, child := range children {
		h, err := w.height(ctx, child, depth+1)
		if err != nil {
			return 0, err
		}
		deepest = max(deepest, h)
	}
	return deepest + 1, nil
}

// home is where a translation stands whose original stands below a page: below that
// page's own translation, else below the page itself.
func (c *Content) home(ctx context.Context, parentID string, language any) (string, error) {
	if parentID == "" {
		return "", nil
	}
	translations, err := c.store.Translations(ctx, PageTable, parentID)
	for _, t := range translations {
		if t.Fields[LanguageField] == language {
			return t.ID, nil
		}
	}
	return parentID, err
}

// followers are the translations of a record that stand where its place below "from"
// puts them, and where its place below "to" does. Those that may not go are left; with
// plan false all of them are: nothing is going any more.
func (c *Content) followers(ctx context.Context, as actor.Actor, r Record, from, to string, plan bool) (along []Record, destinations []string, left Left, err error) {
	translations, err := c.store.Translations(ctx, r.Table, r.ID)
	if err != nil {
		return nil, nil, left, err
	}
	w := c.walk()
	for _, t := range translations {
		was, err := c.home(ctx, from, t.Fields[LanguageField])
		if err != nil {
			return nil, nil, left, err
		}
		destination, err := c.home(ctx, to, t.Fields[LanguageField])
		if err != nil {
			return nil, nil, left, err
		}
		if t.ParentID != was || t.ParentID == destination {
			continue
		}
		may, err := w.rights(ctx, as, t)
		if err != nil {
			return nil, nil, left, err
		}
		if plan && may.edit && c.mayGo(ctx, as, t, destination) == nil {
			along, destinations = append(along, t), append(destinations, destination)
			continue
		}
		left.add(t, may)
	}
	return along, destinations, left, nil
}

// place finds the position in the new place, and what has to make room.
func (c *Content) place(ctx context.Context, as actor.Actor, plan *Journey, beforeID string) error {
	siblings, err := c.store.Children(ctx, plan.Record.Table, plan.ToID)
	if err != nil {
		return err
	}
	last := len(siblings) > 0 && siblings[len(siblings)-1].ID == plan.Record.ID
	siblings = slices.DeleteFunc(siblings, func(s Record) bool { return s.ID == plan.Record.ID })
	if beforeID == "" {
		plan.Position = plan.Record.Position
		if plan.ToID == plan.Record.ParentID && last {
			return nil
		}
		plan.Position, err = c.store.NextPosition(ctx, plan.Record.Table, plan.ToID)
		return err
	}
	at := slices.IndexFunc(siblings, func(s Record) bool { return s.ID == beforeID })
	if at < 0 {
		return fault.New(fault.BadInput, "the %s %q does not stand there", plan.Record.Table, beforeID)
	}
	if _, _, err := c.walk().readable(ctx, as, plan.Record.Table, beforeID); err != nil {
		return err
	}
	plan.Position = siblings[at].Position
	if at > 0 {
		plan.Position = max(plan.Position, siblings[at-1].Position+1)
	}
	next := plan.Position + 1
	for _, s := range siblings[at:] {
		if s.Position >= next {
			break
		}
		plan.shifts = append(plan.shifts, shift{s, next})
		next++
	}
	if len(plan.shifts) > maxAlong {
		return fault.New(fault.BadInput, "more than %d records would have to make room", maxAlong)
	}
	return nil
}

// formerParent is where a record stood before a run's write.
func (c *Content) formerParent(ctx context.Context, r Record, by Origin) (string, error) {
	revisions, err := c.store.History(ctx, r.Table, r.ID)
	if err != nil {
		return "", err
	}
	earlier, ok := beforeRun(revisions, by.Run)
	if !ok || earlier.ParentID == nil {
		return r.ParentID, nil
	}
	return *earlier.ParentID, nil
}
