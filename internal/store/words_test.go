package store_test

import (
	"fmt"
	"testing"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
)

// said is a step in which something was said.
func said(r *storetest.Rows, text string) run.Event {
	e := r.Event(run.EventModelCall)
	e.Content, e.Data.Content = &run.Content{Text: text}, true
	return e
}

func TestWords(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.NewRows(t, s)
		t.Run("Y1 a step that cannot be decrypted, was swapped or is gone is unreadable, and no other", func(t *testing.T) {
			id := r.Run()
			r.Apply(change.Change{Run: id, Events: []run.Event{said(r, "first"), r.Event(run.EventToolCall), said(r, "second"), said(r, "third"), said(r, "fourth")}})
			execute(t, s, fmt.Sprintf("UPDATE run_contents SET content = 'gone:AAAA' WHERE run_id = '%s' AND sequence = 2", id))
			execute(t, s, fmt.Sprintf(`UPDATE run_contents SET content = (SELECT content FROM run_contents c WHERE c.run_id = '%[1]s' AND c.sequence = 0)
				WHERE run_id = '%[1]s' AND sequence = 3`, id))
			execute(t, s, fmt.Sprintf("DELETE FROM run_contents WHERE run_id = '%s' AND sequence = 4", id))
			events, err := s.Events(t.Context(), id, -1, 9)
			if err != nil || len(events) != 5 {
				t.Fatalf("%v %v", events, err)
			}
			for i, want := range []string{"first", "", "?", "?", "?"} {
				got := ""
				if events[i].Unreadable {
					got = "?"
				}
				if c := events[i].Content; c != nil {
					got += c.Text
				}
				if got != want {
					t.Errorf("step %d says %q, not %q", i, got, want)
				}
			}
		})
		t.Run("Y2 what was said goes with its run", func(t *testing.T) {
			id := r.Run()
			r.Apply(change.Change{Run: id, Events: []run.Event{said(r, "once")}})
			count := func() (n int) {
				if err := s.Writer().QueryRow(fmt.Sprintf("SELECT count(*) FROM run_contents WHERE run_id = '%s'", id)).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			before := count()
			r.Apply(change.Change{Deletes: []change.Delete{{Table: "runs", ID: id}}})
			if after := count(); before != 1 || after != 0 {
				t.Errorf("%d rows, then %d", before, after)
			}
		})
	})
	fresh := store.NewKey()
	for _, database := range storetest.URLs {
		t.Run("R16 a rotation seals what was said anew: "+database.Name, func(t *testing.T) {
			at := database.URL(t)
			r := storetest.NewRows(t, storetest.OpenAt(t, at, store.Options{}))
			id := r.Run()
			r.Apply(change.Change{Run: id, Events: []run.Event{said(r, "first"), said(r, "second")}})
			if _, err := storetest.OpenAt(t, at, store.Options{Keys: []store.Key{fresh, storetest.Key}}).Rotate(t.Context(), func(store.Rotation) {}); err != nil {
				t.Fatal(err)
			}
			events, err := storetest.OpenAt(t, at, store.Options{Keys: []store.Key{fresh}}).Events(t.Context(), id, -1, 9)
			if err != nil || events[0].Content == nil || events[1].Content == nil || events[1].Content.Text != "second" {
				t.Errorf("%+v %v", events, err)
			}
		})
	}
}
