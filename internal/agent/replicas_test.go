package agent_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/live"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
	"github.com/countersign/countersign/internal/world"
)

// claims is what replicas claimed, in the order in which they did.
type claims struct {
	mu    sync.Mutex
	of    map[uuid.UUID][]string // lease owners, by run
	by    map[string]int         // how many, by replica
	both  chan struct{}          // closed once every replica has claimed something
	ready func()
}

// witness is a store that writes down what its replica claims.
type witness struct {
	*store.Store
	*claims
	name string
}

func (w *witness) Apply(ctx context.Context, changes ...change.Change) ([]change.Outcome, error) {
	out, err := w.Store.Apply(ctx, changes...)
	for i := range out {
		if owner, set := sets(changes[i], "lease_owner"); set && owner != "" && out[i].Applied {
			w.claimed(changes[i].Run, owner.(string))
		}
	}
	return out, err
}

func (w *witness) claimed(id uuid.UUID, owner string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of[id] = append(w.of[id], owner)
	w.by[w.name]++
	if len(w.by) == 2 {
		w.ready()
	}
}

// waiter is a model that answers nobody until both replicas have work, asks once in every
// run, and counts how often it was asked what.
type waiter struct {
	*claims
	asked map[string]int // how often, by prompt and length of the conversation
}

func (m *waiter) Turn(ctx context.Context, request agent.TurnRequest, _ func(string)) (agent.Turn, error) {
	n := len(request.Messages)
	m.mu.Lock()
	m.asked[fmt.Sprintf("%s/%d", request.Messages[1].Text, n)]++
	m.mu.Unlock()
	select {
	case <-m.both:
	case <-ctx.Done():
		return agent.Turn{}, ctx.Err()
	}
	if n == 2 { // the system message and the prompt
		return agent.Turn{Calls: calls("ask_choice", `{"question":"Go on?","options":["yes","no"]}`)}, nil
	}
	return agent.Turn{Text: "Done."}, nil
}

func (m *waiter) Open(library.Provider) (agent.Model, error) { return m, nil }

// TestTwoWorkers gives two replicas on PostgreSQL more than one of them may execute at
// once.
func TestTwoWorkers(t *testing.T) {
	const queued = 80 // one process takes 64 at most
	url, rings := storetest.URLs[1].URL(t), &live.Hub{}
	first, second := storetest.OpenAt(t, url, store.Options{Bell: rings}), storetest.OpenAt(t, url, store.Options{Bell: rings})
	c := &claims{of: map[uuid.UUID][]string{}, by: map[string]int{}, both: make(chan struct{})}
	c.ready = sync.OnceFunc(func() { close(c.both) })
	h := build(t, first, rings, first, world.Real())
	h.drain()
	model := &waiter{claims: c, asked: map[string]int{}}
	replicas := []*agent.Agent{h.second(first, &witness{first, c, "first"}, model), h.second(second, &witness{second, c, "second"}, model)}
	ids := make([]uuid.UUID, queued)
	for i := range ids {
		req := h.plain()
		req.Messages[0].Text = fmt.Sprintf("run %d", i)
		r, err := replicas[i%2].Start(context.Background(), h.admin, req)
		h.ok(err)
		ids[i] = r.ID
	}
	for i, id := range ids {
		r := h.settled(id)
		if r.Status != run.WaitingForInput {
			t.Fatalf("%s: %s", r.Status, r.Message)
		}
		_, err := replicas[i%2].SubmitInput(context.Background(), h.admin, agent.Input{Run: id, TurnDigest: r.TurnDigest, Values: []byte(`{"choice":"yes"}`)})
		h.ok(err)
	}
	for _, id := range ids {
		if r := h.settled(id); r.Status != run.Completed || r.Attempts != 0 {
			t.Errorf("%+v", r)
		}
	}

	c.mu.Lock() // the replicas claim nothing any more
	defer c.mu.Unlock()
	t.Run("R2 R6 each queued run is executed by exactly one of two workers", func(t *testing.T) {
		if len(model.asked) != 2*queued {
			t.Errorf("the model was asked %d things", len(model.asked))
		}
		for what, times := range model.asked {
			if times != 1 {
				t.Errorf("the model was asked %d times for %s", times, what)
			}
		}
		for _, id := range ids {
			if n := len(c.of[id]); n != 2 {
				t.Errorf("%s was claimed %d times, not once for each of its segments", id, n)
			}
		}
	})
	t.Run("R6 both do work", func(t *testing.T) {
		if c.by["first"] == 0 || c.by["second"] == 0 || c.by["first"]+c.by["second"] != 2*queued {
			t.Errorf("%v", c.by)
		}
	})
	t.Run("R6 R7 every claim has a token of its own, and none is older than the one before", func(t *testing.T) {
		seen := map[string]bool{}
		for _, id := range ids {
			times := make([]string, len(c.of[id]))
			for i, owner := range c.of[id] {
				if seen[owner] {
					t.Errorf("the token %s came twice", owner)
				}
				seen[owner] = true
				times[i] = owner[:13] // the milliseconds of a UUIDv7
			}
			if !slices.IsSorted(times) {
				t.Errorf("%s: %v", id, times)
			}
		}
	})
}
