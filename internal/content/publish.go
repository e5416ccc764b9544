package content

import (
	"context"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
)

// Showing says whether visitors are to see a record.
type Showing struct {
	Table    string
	ID       string
	Hidden   bool
	Revision int // that the caller saw; 0 takes the record as it is
	Origin   Origin
}

// Show publishes a record or hides it. One that is so already is not written.
func (c *Content) Show(ctx context.Context, as actor.Actor, in Showing) (Written, error) {
	if err := in.Origin.check(); err != nil {
		return Written{}, err
	}
	w := write{as: as, origin: in.Origin, kind: in.kind(), record: Record{Table: in.Table, ID: in.ID}}
	if before, ok, err := c.before(ctx, w); ok || err != nil {
		return before, err
	}
	now, err := c.PlanShow(ctx, as, in)
	if err != nil {
		return Written{}, err
	}
	if now.Hidden == in.Hidden {
		return Written{Record: now}, nil
	}
	w.record, w.fields = c.next(now), []string{"hidden"}
	w.record.Hidden = in.Hidden
	p := prepared{}
	p.add(w, now, recordHidden.To(in.Hidden))
	out, applied, err := c.commit(ctx, w, change.Change{Updates: p.change.Updates})
	if err != nil || applied {
		return out, err
	}
	current, err := c.Read(ctx, as, in.Table, in.ID)
	if err != nil {
		return Written{}, err
	}
	return Written{}, stale(current)
}

// PlanShow returns the record that Show would write, with the same checks.
func (c *Content) PlanShow(ctx context.Context, as actor.Actor, in Showing) (Record, error) {
	return c.walk().editableAt(ctx, as, in.Table, in.ID, in.Revision)
}

func (in Showing) kind() string {
	if in.Hidden {
		return KindUpdate
	}
	return KindPublish
}
