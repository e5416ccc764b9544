package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/change"
)

// Steps of different runs that wait for a connection at the same time are committed
// together: the first of them to get one takes the others along. Nobody waits for
// company, so that a step alone costs what it costs anyway, and the busier the database
// is the more of them share a transaction, its round trips, its flush to the disk and
// its wake-up.
//
// Only changes that lock one row and nothing else before the audit head are gathered,
// and in the order of those rows, so that two transactions never wait for each other in
// a circle. If one of them loses or fails, none is stored and each is applied by itself:
// what is wrong with one is its own affair.

const (
	// gatherMost bounds how many changes are committed together.
	gatherMost = 32
	// gatherPatience bounds a transaction of several callers, which none of them can
	// cancel for the others.
	gatherPatience = 30 * time.Second
)

// gathering is what waits for a connection. The zero value is ready.
type gathering struct {
	mu    sync.Mutex
	queue []*gathered
}

// gathered is one change with its caller.
type gathered struct {
	ctx   context.Context
	plan  plan
	taken bool   // somebody applies it; guarded by the gathering's mutex
	leave func() // ends its caller's own wait for a connection
	done  chan answered
}

type answered struct {
	outcome change.Outcome
	err     error
}

// lonely reports whether a plan locks one row and nothing else.
func (p plan) lonely() bool {
	return len(p.steps) == 1 && len(p.change.Updates) == 1 && (len(p.events) == 0 || p.steps[0].numbers)
}

// gather applies a plan, together with what else waits.
func (s *Store) gather(ctx context.Context, p plan) (change.Outcome, error) {
	wait, leave := context.WithCancel(ctx)
	defer leave()
	mine := &gathered{ctx: ctx, plan: p, leave: leave, done: make(chan answered, 1)}
	s.gathering.add(mine)
	if err := s.turn.Acquire(wait, 1); err != nil {
		if s.gathering.withdraw(mine) {
			return change.Outcome{}, err
		}
	} else {
		if group := s.gathering.take(mine); group != nil {
			s.united(group)
		}
		s.turn.Release(1)
	}
	a := <-mine.done
	return a.outcome, a.err
}

func (g *gathering) add(one *gathered) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue = append(g.queue, one)
}

// withdraw takes a change out of the queue, unless somebody applies it.
func (g *gathering) withdraw(one *gathered) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if one.taken {
		return false
	}
	g.queue = slices.DeleteFunc(g.queue, func(other *gathered) bool { return other == one })
	return true
}

// take takes a change and those that wait with it; nothing if somebody took it before.
func (g *gathering) take(mine *gathered) []*gathered {
	g.mu.Lock()
	defer g.mu.Unlock()
	if mine.taken {
		return nil
	}
	group := []*gathered{mine}
	rest := g.queue[:0]
	for _, one := range g.queue {
		switch {
		case one == mine:
		case len(group) < gatherMost:
			group = append(group, one)
		default:
			rest = append(rest, one)
		}
	}
	clear(g.queue[len(rest):])
	g.queue = rest
	for _, one := range group {
		one.taken = true
	}
	slices.SortStableFunc(group, func(a, b *gathered) int {
		x, y := a.plan.steps[0], b.plan.steps[0]
		return cmp.Or(cmp.Compare(x.table, y.table), bytes.Compare(x.id[:], y.id[:]))
	})
	return group
}

// united applies changes of several callers, and answers each.
func (s *Store) united(group []*gathered) {
	if len(group) > 1 && s.allOrNone(group) {
		return
	}
	for _, one := range group {
		outcomes, err := s.insist(one.ctx, []plan{one.plan}, nil)
		one.answer(append(outcomes, change.Outcome{})[0], err)
	}
}

// allOrNone tries to apply changes in one transaction. False says that nothing of them is
// stored and nobody is answered.
func (s *Store) allOrNone(group []*gathered) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(group[0].ctx), gatherPatience)
	defer cancel()
	plans := make([]plan, len(group))
	for i, one := range group {
		plans[i] = one.plan
	}
	outcomes, rings, err := s.transact(ctx, plans, nil, allOrNone)
	var unknown commitError
	switch {
	case errors.As(err, &unknown) && diagnose(err) != retry:
		for _, one := range group {
			one.answer(change.Outcome{}, failed(ctx, err, "apply a change"))
		}
		return true
	case err != nil:
		return false
	}
	s.ring(rings)
	for i, one := range group {
		one.answer(outcomes[i], nil)
	}
	return true
}

func (g *gathered) answer(o change.Outcome, err error) {
	g.done <- answered{o, err}
	g.leave()
}
