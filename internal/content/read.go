package content

import (
	"context"
	"slices"

	"github.com/countersign/countersign/internal/actor"
)

// Read returns the record if the actor may read it, else fault.NotFound.
func (c *Content) Read(ctx context.Context, as actor.Actor, table, id string) (Record, error) {
	r, _, err := c.walk().readable(ctx, as, table, id)
	return r, err
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
