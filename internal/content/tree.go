package content

import (
	"context"

	"github.com/countersign/countersign/internal/actor"
)

// Children lists the records of a table below a parent that the actor may read, in
// their order. Pages without a parent, and files, stand below "".
func (c *Content) Children(ctx context.Context, as actor.Actor, table, parentID string) ([]Record, error) {
	return c.walk().children(ctx, as, table, parentID)
}

func (w *walk) children(ctx context.Context, as actor.Actor, table, parentID string) ([]Record, error) {
	if err := mayRead(as); err != nil {
		return nil, err
	}
	if _, err := TableNamed(table); err != nil {
		return nil, err
	}
	if parentID != "" {
		if _, _, err := w.readable(ctx, as, PageTable, parentID); err != nil {
			return nil, err
		}
	}
	all, err := w.store.Children(ctx, table, parentID)
	if err != nil {
		return nil, err
	}
	return w.visible(ctx, as, all)
}

// visible keeps the records that the actor may read.
func (w *walk) visible(ctx context.Context, as actor.Actor, all []Record) ([]Record, error) {
	out := make([]Record, 0, len(all))
	for _, r := range all {
		may, err := w.rights(ctx, as, r)
		if err != nil {
			return nil, err
		}
		if may.read {
			out = append(out, r)
		}
	}
	return out, nil
}

// Node is a page in a tree.
type Node struct {
	Page  Record
	Depth int    // 0 for the pages right below the tree's parent
	Path  string // where the page answers on the site
}

// Tree lists the pages below a parent that the actor may read, depth first, down to
// depth levels and at most limit pages. The flag says whether there are more.
func (c *Content) Tree(ctx context.Context, as actor.Actor, parentID string, depth, limit int) ([]Node, bool, error) {
	w := c.walk()
	from := ""
	if parentID != "" {
		parent, _, err := w.readable(ctx, as, PageTable, parentID)
		if err != nil {
			return nil, false, err
		}
		if from, err = w.path(ctx, parent); err != nil {
			return nil, false, err
		}
	}
	var nodes []Node
	more := false
	err := w.descend(ctx, as, Node{Page: Record{ID: parentID}, Depth: -1, Path: from}, func(n Node) (bool, error) {
		if n.Depth >= depth || len(nodes) == limit {
			more = true
			return false, nil
		}
		nodes = append(nodes, n)
		return true, nil
	})
	return nodes, more, err
}

// descend visits the readable pages below one, depth first and in order, and goes
// below those for which visit returns true.
func (w *walk) descend(ctx context.Context, as actor.Actor, above Node, visit func(Node) (bool, error)) error {
	if above.Depth >= maxDepth {
		return nil
	}
	pages, err := w.children(ctx, as, PageTable, above.Page.ID)
	if err != nil {
		return err
	}
	for _, page := range pages {
		w.pages[page.ID] = page
		n := Node{Page: page, Depth: above.Depth + 1, Path: join(above.Path, page)}
		deeper, err := visit(n)
		if err != nil {
			return err
		}
		if !deeper {
			continue
		}
		if err := w.descend(ctx, as, n, visit); err != nil {
			return err
		}
	}
	return nil
}
