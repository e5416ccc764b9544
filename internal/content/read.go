package content

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
)

// Read returns the record if the actor may read it, else fault.NotFound.
func (c *Content) Read(ctx context.Context, as actor.Actor, table, id string) (Record, error) {
	r, _, err := c.walk().readable(ctx, as, table, id)
	return r, err
}

// ReadRow is Read for a record that is known by its row, such as one that a change wrote.
func (c *Content) ReadRow(ctx context.Context, as actor.Actor, row uuid.UUID) (Record, error) {
	r, err := c.store.RecordAt(ctx, row)
	if err != nil {
		return Record{}, err
	}
	return c.Read(ctx, as, r.Table, r.ID)
}

// History returns the revisions of a record that the actor may read, newest first.
func (c *Content) History(ctx context.Context, as actor.Actor, table, id string) ([]Revision, error) {
	if _, _, err := c.walk().readable(ctx, as, table, id); err != nil {
		return nil, err
	}
	revisions, err := c.store.History(ctx, table, id)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(revisions, func(a, b Revision) int { return b.Revision - a.Revision })
	return revisions, nil
}
