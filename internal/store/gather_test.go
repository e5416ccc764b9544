package store_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
)

// appended is the step of a run whose lease w holds.
func appended(r *storetest.Rows, id uuid.UUID, tool string) change.Change {
	return change.Change{
		Updates: []change.Update{{
			Table: "runs", ID: id, If: []change.Value{v("lease_owner", "w")}, Set: []change.Value{v("lease_until", r.World.Now())},
		}},
		Run: id, Events: []run.Event{{Kind: run.EventToolCall, At: r.World.Now(), Data: run.EventData{Tool: tool}}},
		Audit: []audit.Entry{r.Entry(audit.ToolDenied)},
	}
}

type answer struct {
	out change.Outcome
	err error
}

// together applies changes that wait for a turn at the same time.
func together(t *testing.T, s *store.Store, changes ...change.Change) []answer {
	t.Helper()
	leave, err := s.Occupy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	answers := make([]chan answer, len(changes))
	for i, c := range changes {
		answers[i] = make(chan answer, 1)
		go func() {
			out, err := change.One(t.Context(), s, c)
			answers[i] <- answer{out, err}
		}()
		for s.Waiting() < i+1 && t.Context().Err() == nil {
			runtime.Gosched()
		}
	}
	leave()
	out := make([]answer, len(changes))
	for i := range out {
		out[i] = <-answers[i]
	}
	return out
}

func TestGathered(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.NewRows(t, s)
		user, configuration := r.User(), r.Configuration()
		const many = 80 // more than are committed together
		ids := make([]uuid.UUID, many)
		for i := range ids {
			ids[i] = r.RunOf(user, configuration, v("status", "running"), v("lease_owner", "w"))
		}
		tools := func(id uuid.UUID) (names []string) {
			events, err := s.Events(t.Context(), id, -1, 100)
			if err != nil {
				t.Fatal(err)
			}
			for i, e := range events {
				if e.Sequence != i {
					t.Errorf("event %d has the sequence %d", i, e.Sequence)
				}
				names = append(names, e.Data.Tool)
			}
			return names
		}
		t.Run("R5 steps that are committed together are each stored once, numbered by their run, audited without a gap", func(t *testing.T) {
			before, _ := s.AuditSize(t.Context())
			var changes []change.Change
			for i := range many {
				changes = append(changes, appended(r, ids[i/2*2], "a")) // two steps a run
			}
			indexes := map[int64]bool{}
			for _, a := range together(t, s, changes...) {
				if a.err != nil || !a.out.Applied {
					t.Fatalf("%+v", a)
				}
				indexes[a.out.FirstIndex] = true
			}
			after, _ := s.AuditSize(t.Context())
			if len(indexes) != many || after != before+many {
				t.Errorf("%d indexes, %d entries", len(indexes), after-before)
			}
			for i := 0; i < many; i += 2 {
				if got := tools(ids[i]); len(got) != 2 {
					t.Errorf("run %d has the steps %v", i, got)
				}
			}
		})
		t.Run("R2 one that loses loses alone", func(t *testing.T) {
			lost := appended(r, ids[1], "b")
			lost.Updates[0].If = []change.Value{v("lease_owner", "somebody else")}
			got := together(t, s, appended(r, ids[3], "b"), lost, appended(r, ids[5], "b"))
			if !got[0].out.Applied || got[1].out.Applied || got[1].out.Lost != "runs" || !got[2].out.Applied {
				t.Fatalf("%+v", got)
			}
			if len(tools(ids[1])) != 0 || len(tools(ids[3])) != 1 || len(tools(ids[5])) != 1 {
				t.Error("the steps are not those that were applied")
			}
		})
		t.Run("one that cannot be stored fails alone", func(t *testing.T) {
			bad := appended(r, ids[7], "c")
			bad.Updates[0].Set = append(bad.Updates[0].Set, v("status", "no status"))
			got := together(t, s, appended(r, ids[9], "c"), bad, appended(r, ids[11], "c"))
			if !got[0].out.Applied || !fault.Is(got[1].err, fault.Internal) || !got[2].out.Applied {
				t.Fatalf("%+v", got)
			}
			if len(tools(ids[7])) != 0 || len(tools(ids[9])) != 1 || len(tools(ids[11])) != 1 {
				t.Error("the steps are not those that were applied")
			}
		})
		t.Run("one whose caller left while it waited is not stored", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			leave, err := s.Occupy(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_, err = change.One(ctx, s, appended(r, ids[13], "d"))
			leave()
			if !errors.Is(err, context.Canceled) || s.Waiting() != 0 || len(tools(ids[13])) != 0 {
				t.Fatalf("%v, %d wait", err, s.Waiting())
			}
		})
	})
}
