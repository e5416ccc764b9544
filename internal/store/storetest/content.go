package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/store"
)

// record stores a record.
func (r *Rows) record(table, id, fields string, more ...change.Value) uuid.UUID {
	r.t.Helper()
	return r.Insert("content_records", append([]change.Value{
		V("table_name", table), V("record_id", id), V("fields", fields), V("revision", int64(1)), V("updated_at", r.World.Now()),
	}, more...)...)
}

func ids(records []content.Record) []string {
	out := []string{}
	for _, r := range records {
		out = append(out, r.ID)
	}
	return out
}

func contentReads(t *testing.T, s *store.Store) {
	r := NewRows(t, s)
	now, who, run := r.World.Now(), r.World.NewID(), r.World.NewID()
	row := r.record("element", "e1", `{"text":"<b>Hi</b> & ü","tags":["x"]}`, V("parent_id", "home"), V("position", int64(3)),
		V("revision", int64(2)), V("hidden", true), V("updated_at", now))
	want := content.Record{
		Row: row, Table: content.ElementTable, ID: "e1", ParentID: "home", Position: 3, Revision: 2, Hidden: true, UpdatedAt: now,
		Fields: map[string]any{"text": "<b>Hi</b> & ü", "tags": []any{"x"}},
	}
	t.Run("a record is read as it was written", func(t *testing.T) {
		got, err := s.Record(t.Context(), "element", "e1")
		same(t, got, want, err)
		_, err = s.Record(t.Context(), "page", "e1")
		notFound(t, err)
	})
	t.Run("children come by position, then id, without what is deleted", func(t *testing.T) {
		r.record("element", "e9", "{}", V("parent_id", "home"), V("position", int64(1)))
		r.record("element", "e0", "{}", V("parent_id", "home"), V("position", int64(3)))
		r.record("element", "gone", "{}", V("parent_id", "home"), V("position", int64(7)), V("deleted", true))
		got, err := s.Children(t.Context(), "element", "home")
		if err != nil || !slices.Equal(ids(got), []string{"e9", "e0", "e1"}) {
			t.Fatalf("%v %v", ids(got), err)
		}
		_, err = s.Record(t.Context(), "element", "gone")
		notFound(t, err)
	})
	t.Run("the root has children too", func(t *testing.T) {
		r.record("page", "home", "{}")
		got, err := s.Children(t.Context(), "page", "")
		if err != nil || !slices.Equal(ids(got), []string{"home"}) {
			t.Fatalf("%v %v", ids(got), err)
		}
	})
	t.Run("the next position is after the last child, deleted or not", func(t *testing.T) {
		for parent, want := range map[string]int{"home": 8, "elsewhere": 0} {
			if got, err := s.NextPosition(t.Context(), "element", parent); err != nil || got != want {
				t.Fatalf("%s: %d %v", parent, got, err)
			}
		}
	})
	r.Insert("content_revisions", V("record", row), V("revision", int64(1)), V("kind", "create"), V("fields", `{"text":"a"}`), V("actor_id", who), V("at", now))
	r.Insert("content_revisions", V("record", row), V("revision", int64(2)), V("kind", "update"), V("fields", `{"text":"b"}`),
		V("actor_id", who), V("run_id", run), V("call_key", "k"), V("at", now))
	t.Run("the history comes newest first", func(t *testing.T) {
		got, err := s.History(t.Context(), "element", "e1")
		same(t, got, []content.Revision{
			{Revision: 2, Kind: "update", Fields: map[string]any{"text": "b"}, Actor: who, Run: run, At: now},
			{Revision: 1, Kind: "create", Fields: map[string]any{"text": "a"}, Actor: who, At: now},
		}, err)
		_, err = s.History(t.Context(), "element", "none")
		notFound(t, err)
	})
	t.Run("R7 what a call wrote is found by run and call", func(t *testing.T) {
		got, found, err := s.Written(t.Context(), run, "k")
		same(t, got, want, err)
		if !found {
			t.Fatal("it was not found")
		}
		if _, found, err := s.Written(t.Context(), run, "other"); found || err != nil {
			t.Fatalf("%v %v", found, err)
		}
		r.Apply(update("content_records", row, nil, []change.Value{V("deleted", true)}))
		if got, found, err := s.Written(t.Context(), run, "k"); !found || err != nil || !got.Deleted {
			t.Fatalf("a deleted record: %v %v", found, err)
		}
	})
}

func search(t *testing.T, s *store.Store) {
	r := NewRows(t, s)
	at := func(n int) change.Value { return V("updated_at", Start.Add(time.Duration(n)*time.Minute)) }
	r.record("page", "old", `{"title":"Opening hours","body":"Über uns"}`, at(1))
	r.record("page", "new", `{"title":"OPENING","nested":{"list":["the hours"]}}`, at(2))
	r.record("page", "markup", `{"title":"\u003cb\u003e5 % off\u003c/b\u003e"}`, at(3))
	r.record("page", "deleted", `{"title":"opening hours"}`, at(4), V("deleted", true))
	r.record("element", "e", `{"title":"opening hours"}`, at(5))
	for i := range 450 {
		r.record("page", "filler"+string(rune('a'+i%26))+string(rune('a'+i/26)), `{"title":"ueber"}`, at(10+i))
	}
	for words, want := range map[string][]string{
		"opening":         {"new", "old"},
		"hours opening":   {"new", "old"},
		"ÜBER":            {"old"},
		"<b>5":            {"markup"},
		"%":               {"markup"},
		"title":           {}, // a field's name is no text
		"opening nowhere": {},
	} {
		t.Run("search: "+words, func(t *testing.T) {
			got, err := s.Search(t.Context(), "page", words, 10)
			if err != nil || !slices.Equal(ids(got), want) {
				t.Fatalf("%v %v", ids(got), err)
			}
		})
	}
	t.Run("a search is bounded", func(t *testing.T) {
		got, err := s.Search(t.Context(), "page", "opening", 1)
		if err != nil || !slices.Equal(ids(got), []string{"new"}) {
			t.Fatalf("%v %v", ids(got), err)
		}
	})
}
