package store_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
)

// eachDatabase measures on both.
func eachDatabase(b *testing.B, measure func(b *testing.B, at string)) {
	for _, database := range storetest.URLs {
		b.Run(database.Name, func(b *testing.B) { measure(b, database.URL(b)) })
	}
}

// BenchmarkOpen is the start on an existing database until it is ready.
func BenchmarkOpen(b *testing.B) {
	eachDatabase(b, func(b *testing.B, at string) {
		storetest.OpenAt(b, at, store.Options{})
		for b.Loop() {
			s, err := store.Open(b.Context(), at, store.Options{Keys: []store.Key{storetest.Key}})
			if err != nil {
				b.Fatal(err)
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkStep is one durable step of a run: its row, two events and an entry.
func BenchmarkStep(b *testing.B) {
	eachDatabase(b, func(b *testing.B, at string) {
		s := storetest.OpenAt(b, at, store.Options{})
		r := storetest.NewRows(b, s)
		id := r.Run()
		for b.Loop() {
			r.Apply(step(r, id))
		}
	})
}

// BenchmarkSteps is twenty such steps in one transaction.
func BenchmarkSteps(b *testing.B) {
	eachDatabase(b, func(b *testing.B, at string) {
		s := storetest.OpenAt(b, at, store.Options{})
		r := storetest.NewRows(b, s)
		id := r.Run()
		for b.Loop() {
			changes := make([]change.Change, 20)
			for i := range changes {
				changes[i] = step(r, id)
			}
			if _, err := s.Apply(b.Context(), changes...); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func step(r *storetest.Rows, id uuid.UUID) change.Change {
	return change.Change{
		Updates: []change.Update{{Table: "runs", ID: id, If: []change.Value{v("status", "queued")}, Set: []change.Value{v("lease_until", r.World.Now())}}},
		Run:     id, Events: []run.Event{r.Event(run.EventModelCall), r.Event(run.EventToolCall)}, Audit: []audit.Entry{r.Entry(audit.ToolDenied)},
	}
}
