package graph

import (
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/fault"
)

func at[T any](v T) *T { return &v }

func TestPageArguments(t *testing.T) {
	for _, c := range []struct {
		name   string
		first  *int
		after  *string
		last   *int
		before *string
		want   window
		wrong  bool
	}{
		{name: "nothing is the first 20", want: window{size: 20}},
		{name: "first", first: at(7), want: window{size: 7}},
		{name: "nothing but where it stands", first: at(0), want: window{}},
		{name: "100 at most", first: at(100), want: window{size: 100}},
		{name: "101 are refused", first: at(101), wrong: true},
		{name: "less than nothing is refused", first: at(-1), wrong: true},
		{name: "101 from the end are refused", last: at(101), wrong: true},
		{name: "after", after: at(cursor("k")), want: window{size: 20, key: "k"}},
		{name: "last", last: at(3), want: window{size: 3, backward: true}},
		{name: "before", before: at(cursor("k")), want: window{size: 20, backward: true, key: "k"}},
		{name: "first and last", first: at(1), last: at(1), wrong: true},
		{name: "after and before", after: at(cursor("a")), before: at(cursor("b")), wrong: true},
		{name: "no cursor", after: at("%%%"), wrong: true},
		{name: "an empty cursor", after: at(""), wrong: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := page(c.first, c.after, c.last, c.before)
			if c.wrong {
				if !fault.Is(err, fault.BadInput) {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
		})
	}

	t.Run("a cursor of another list is refused", func(t *testing.T) {
		w := window{key: "not a row"}
		if _, err := w.row(); !fault.Is(err, fault.BadInput) {
			t.Errorf("row: %v", err)
		}
		for _, key := range []string{"x", "-1", "9223372036854775808"} {
			if _, _, err := (window{key: key}).number(); !fault.Is(err, fault.BadInput) {
				t.Errorf("number %s: %v", key, err)
			}
		}
	})
}

// walk reads a list of n page by page, in one direction, as a client does.
func walk(t *rapid.T, n, size int, backward bool) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	var seen []int
	var next *string
	for range n + 2 {
		w, err := page(at(size), next, nil, nil)
		if backward {
			w, err = page(nil, nil, at(size), next)
		}
		if err != nil {
			t.Fatal(err)
		}
		read, err := slice(w, all, strconv.Itoa)
		if err != nil {
			t.Fatal(err)
		}
		kept, info := cut(w, read, strconv.Itoa)
		more, end := info.HasNextPage, info.EndCursor
		if backward {
			more, end = info.HasPreviousPage, info.StartCursor
			seen = append(slices.Clone(kept), seen...)
		} else {
			seen = append(seen, kept...)
		}
		if !more {
			return seen
		}
		next = end
	}
	t.Fatalf("%d pages of %d do not end a list of %d", n+2, size, n)
	return nil
}

func TestPagesAreTheListExactlyOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, size := rapid.IntRange(0, 60).Draw(t, "elements"), rapid.IntRange(1, 25).Draw(t, "page size")
		backward := rapid.Bool().Draw(t, "backward")
		seen := walk(t, n, size, backward)
		if len(seen) != n || !slices.IsSorted(seen) || len(slices.Compact(seen)) != n {
			t.Fatalf("a list of %d in pages of %d came as %v", n, size, seen)
		}
	})
}

func TestWherePagesStand(t *testing.T) {
	list := []string{"a", "b", "c", "d"}
	key := func(s string) string { return s }
	for _, c := range []struct {
		name           string
		w              window
		nodes          []string
		next, previous bool
	}{
		{"the first two", window{size: 2}, []string{"a", "b"}, true, false},
		{"the rest", window{size: 2, key: "b"}, []string{"c", "d"}, false, true},
		{"beyond the end", window{size: 2, key: "d"}, []string{}, false, true},
		{"the last one", window{size: 1, backward: true}, []string{"d"}, false, true},
		{"all before the last", window{size: 9, backward: true, key: "d"}, []string{"a", "b", "c"}, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			read, err := slice(c.w, list, key)
			if err != nil {
				t.Fatal(err)
			}
			nodes, edges, info := connect(c.w, read, key, key, func(cursor, n string) *model.UserEdge {
				return &model.UserEdge{Cursor: cursor, Node: &model.User{ID: n}}
			})
			if !slices.Equal(nodes, c.nodes) || info.HasNextPage != c.next || info.HasPreviousPage != c.previous {
				t.Errorf("got %v, next %v, previous %v", nodes, info.HasNextPage, info.HasPreviousPage)
			}
			for i, e := range edges {
				if e.Cursor != cursor(nodes[i]) || e.Node.ID != nodes[i] {
					t.Errorf("edge %d is %s of %s", i, e.Cursor, e.Node.ID)
				}
			}
		})
	}

	t.Run("a cursor whose element is gone is refused", func(t *testing.T) {
		if _, err := slice(window{size: 1, key: "z"}, list, key); !fault.Is(err, fault.BadInput) {
			t.Errorf("got %v", err)
		}
	})
}
