package graph

import (
	"encoding/base64"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/fault"
)

// The sizes of a page of a connection.
const (
	defaultPage = 20
	maxPage     = 100
)

// window is the part of a list that a client asks for: size elements after a key, or, backwards, before it. An empty key is the end of the list that
// is read from.
type window struct {
	size     int
	backward bool
	key      string
}

// page reads the arguments of a connection.
func page(first *int, after *string, last *int, before *string) (window, error) {
	w := window{size: defaultPage, backward: last != nil || before != nil}
	size, cursor := first, after
	if w.backward {
		if first != nil || after != nil {
			return window{}, fault.New(fault.BadInput, "Ask for first with after, or for last with before, not for both.")
		}
		size, cursor = last, before
	}
	if size != nil {
		if *size < 0 || *size > maxPage {
			return window{}, fault.New(fault.BadInput, "A page holds 0 to %d; %d were asked for.", maxPage, *size)
		}
		w.size = *size
	}
	if cursor != nil {
		key, err := base64.RawURLEncoding.Strict().DecodeString(*cursor)
		if err != nil || len(key) == 0 {
			return window{}, noCursor(*cursor)
		}
		w.key = string(key)
	}
	return w, nil
}

func noCursor(cursor string) error {
	return fault.New(fault.BadInput, "%q is not a cursor of this list; send one that the list gave, or none.", clip(cursor))
}

// cursor is the opaque form of a key.
func cursor(key string) string { return base64.RawURLEncoding.EncodeToString([]byte(key)) }

// row is the window's key in a list ordered by row id; the zero id when there is none.
func (w window) row() (uuid.UUID, error) {
	if w.key == "" {
		return uuid.Nil, nil
	}
	row, err := uuid.Parse(w.key)
	if err != nil {
		return uuid.Nil, noCursor(cursor(w.key))
	}
	return row, nil
}

// number is the window's key in a numbered list; none is false.
func (w window) number() (n int64, given bool, err error) {
	if w.key == "" {
		return 0, false, nil
	}
	n, err = strconv.ParseInt(w.key, 10, 64)
	if err != nil || n < 0 {
		return 0, false, noCursor(cursor(w.key))
	}
	return n, true, nil
}

// fetch is how many elements to read: one more than the page tells whether more follows.
func (w window) fetch() int { return w.size + 1 }

// cut makes a page of up to fetch() elements that were read, in the list's order whatever the direction.
func cut[D any](w window, read []D, key func(D) string) ([]D, *model.PageInfo) {
	more := len(read) > w.size
	info := &model.PageInfo{HasNextPage: more, HasPreviousPage: w.key != ""}
	if w.backward {
		info.HasNextPage, info.HasPreviousPage = w.key != "", more
		read = read[max(0, len(read)-w.size):]
	} else {
		read = read[:min(len(read), w.size)]
	}
	if len(read) > 0 {
		start, end := cursor(key(read[0])), cursor(key(read[len(read)-1]))
		info.StartCursor, info.EndCursor = &start, &end
	}
	return read, info
}

// slice reads the window out of a list that is at hand as a whole. A cursor whose element is gone is an input error: the list cannot go on from it.
func slice[D any](w window, all []D, key func(D) string) ([]D, error) {
	at := -1
	if w.key != "" {
		if at = slices.IndexFunc(all, func(d D) bool { return key(d) == w.key }); at < 0 {
			return nil, noCursor(cursor(w.key))
		}
	}
	switch {
	case w.backward && at < 0:
		return all[max(0, len(all)-w.fetch()):], nil
	case w.backward:
		return all[max(0, at-w.fetch()):at], nil
	}
	rest := all[at+1:]
	return rest[:min(len(rest), w.fetch())], nil
}

// connect makes the parts of a connection: nodes, edges and where the page stands.
func connect[D, N, E any](w window, read []D, key func(D) string, node func(D) N, edge func(string, N) *E) ([]N, []*E, *model.PageInfo) {
	kept, info := cut(w, read, key)
	nodes, edges := make([]N, len(kept)), make([]*E, len(kept))
	for i, d := range kept {
		nodes[i] = node(d)
		edges[i] = edge(cursor(key(d)), nodes[i])
	}
	return nodes, edges, info
}
