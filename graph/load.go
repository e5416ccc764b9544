package graph

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
)

// gather is how long a loader waits for the other elements of a list to ask too.
const gather = time.Millisecond

// loader reads objects that many elements of one response point at: each once, and those that are asked for together in one call. What is not there, or
// not the viewer's to see, is left out of what fetch returns.
type loader[V any] struct {
	fetch func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]V, error)

	mu      sync.Mutex
	results map[uuid.UUID]*batch[V]
	open    *batch[V]
}

// batch is the ids that one call reads.
type batch[V any] struct {
	ids   []uuid.UUID
	done  chan struct{}
	found map[uuid.UUID]V
	err   error
}

// load returns the object with an id, and false when there is none.
func (l *loader[V]) load(ctx context.Context, id uuid.UUID) (V, bool, error) {
	var none V
	if id == uuid.Nil {
		return none, false, nil
	}
	b := l.join(ctx, id)
	select {
	case <-b.done:
	case <-ctx.Done():
		return none, false, ctx.Err()
	}
	if b.err != nil {
		return none, false, b.err
	}
	v, ok := b.found[id]
	return v, ok, nil
}

// join finds the batch that reads an id, or puts the id on the open one.
func (l *loader[V]) join(ctx context.Context, id uuid.UUID) *batch[V] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, known := l.results[id]; known {
		return b
	}
	if l.open == nil {
		b := &batch[V]{done: make(chan struct{})}
		l.open = b
		time.AfterFunc(gather, func() { l.run(ctx, b) })
	}
	if l.results == nil {
		l.results = map[uuid.UUID]*batch[V]{}
	}
	l.results[id] = l.open
	l.open.ids = append(l.open.ids, id)
	return l.open
}

func (l *loader[V]) run(ctx context.Context, b *batch[V]) {
	l.mu.Lock()
	l.open = nil
	l.mu.Unlock()
	defer close(b.done)
	defer func() {
		if p := recover(); p != nil {
			b.err = panicked(p)
		}
	}()
	b.found, b.err = l.fetch(ctx, b.ids)
}

// each makes a fetch of a use case that reads one object. What the viewer may not see is left out.
func each[V any](read func(ctx context.Context, id uuid.UUID) (V, error)) func(context.Context, []uuid.UUID) (map[uuid.UUID]V, error) {
	return func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]V, error) {
		found := make(map[uuid.UUID]V, len(ids))
		for _, id := range ids {
			v, err := read(ctx, id)
			switch {
			case err == nil:
				found[id] = v
			case !hidden(err):
				return nil, err
			}
		}
		return found, nil
	}
}

// hidden reports whether an error says no more than that there is nothing for this viewer.
func hidden(err error) bool { return fault.Is(err, fault.NotFound) || fault.Is(err, fault.Forbidden) }

// loaders are what one response reads by id.
type loaders struct {
	users          *loader[*model.User]
	sources        *loader[library.Source]
	skills         *loader[library.Dossier]
	providers      *loader[library.Provider]
	configurations *loader[library.Configuration]
	tasks          *loader[library.Task]
	runs           *loader[agent.Run]
	// thresholds reads what the standing of every skill depends on, once.
	thresholds func() (library.Thresholds, error)
}

// newLoaders makes loaders for one response and its caller.
func (r *Resolver) newLoaders(ctx context.Context) *loaders {
	by := caller(ctx)
	return &loaders{
		users: newLoader(each(func(ctx context.Context, id uuid.UUID) (*model.User, error) { return r.user(ctx, by, id) })),
		sources: newLoader(each(func(ctx context.Context, id uuid.UUID) (library.Source, error) {
			return r.Library.FindSource(ctx, by, id)
		})),
		skills: newLoader(func(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]library.Dossier, error) {
			if !by.May(actor.SkillRead) { // as FindSkill has it, for many at once
				return nil, nil
			}
			dossiers, err := r.Library.Dossiers(ctx, ids)
			found := make(map[uuid.UUID]library.Dossier, len(dossiers))
			for _, d := range dossiers {
				found[d.Skill.ID] = d
			}
			return found, err
		}),
		providers: newLoader(each(func(ctx context.Context, id uuid.UUID) (library.Provider, error) {
			return r.Library.FindProvider(ctx, by, id)
		})),
		configurations: newLoader(each(func(ctx context.Context, id uuid.UUID) (library.Configuration, error) {
			return r.Library.FindConfiguration(ctx, by, id)
		})),
		tasks: newLoader(each(func(ctx context.Context, id uuid.UUID) (library.Task, error) {
			return r.Library.FindTask(ctx, by, id)
		})),
		runs:       newLoader(each(func(ctx context.Context, id uuid.UUID) (agent.Run, error) { return r.Agent.View(ctx, by, id) })),
		thresholds: sync.OnceValues(func() (library.Thresholds, error) { return r.Library.Thresholds(ctx) }),
	}
}

func newLoader[V any](fetch func(context.Context, []uuid.UUID) (map[uuid.UUID]V, error)) *loader[V] {
	return &loader[V]{fetch: fetch}
}

type loadersKey struct{}

// withLoaders gives one response loaders of its own: what they read is as old as the response.
func (r *Resolver) withLoaders(ctx context.Context) context.Context {
	return context.WithValue(ctx, loadersKey{}, r.newLoaders(ctx))
}

// load is the loaders of this response.
func (r *Resolver) load(ctx context.Context) *loaders {
	if l, ok := ctx.Value(loadersKey{}).(*loaders); ok {
		return l
	}
	return r.newLoaders(ctx)
}

// pointed is the model of an object that a field points at, or nil when there is none that the viewer may see.
func pointed[D, N any](ctx context.Context, l *loader[D], id uuid.UUID, node func(D) *N) (*N, error) {
	d, found, err := l.load(ctx, id)
	if !found || err != nil {
		return nil, err
	}
	return node(d), nil
}
