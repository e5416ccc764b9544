package content

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
)

// MaxSearch is the most records that one search returns.
const MaxSearch = 50

// searchWindow is how many matches of a table are looked at before the ones that the
// actor may not read are taken out.
const searchWindow = 500

// Search finds records that contain the words and that the actor may read, newest
// first within a table; an empty table searches all of them in their order.
func (c *Content) Search(ctx context.Context, as actor.Actor, table, words string, limit int) ([]Record, error) {
	if err := mayRead(as); err != nil {
		return nil, err
	}
	words = strings.TrimSpace(words)
	if words == "" || utf8.RuneCountInString(words) > 200 {
		return nil, fault.New(fault.BadInput, "search for 1 to 200 characters")
	}
	if limit < 1 || limit > MaxSearch {
		return nil, fault.New(fault.BadInput, "a search returns 1 to %d records", MaxSearch)
	}
	in := tables
	if table != "" {
		one, err := TableNamed(table)
		if err != nil {
			return nil, err
		}
		in = []Table{one}
	}
	w := c.walk()
	out := []Record{}
	for _, t := range in {
		matches, err := c.store.Search(ctx, t.Name, words, searchWindow)
		if err != nil {
			return nil, err
		}
		visible, err := w.visible(ctx, as, matches)
		if err != nil {
			return nil, err
		}
		out = append(out, visible...)
	}
	return out[:min(len(out), limit)], nil
}
