package actor_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
)

func TestSame(t *testing.T) {
	ada := actor.Actor{ID: uuid.UUID{1}, Kind: actor.Person, Granted: []actor.Permission{actor.RunStart, actor.RunRead}}
	with := func(change func(*actor.Actor)) actor.Actor {
		other := ada
		change(&other)
		return other
	}
	for name, c := range map[string]struct {
		other actor.Actor
		same  bool
	}{
		"the same grants in another order, one twice": {with(func(a *actor.Actor) {
			a.Granted = []actor.Permission{actor.RunRead, actor.RunStart, actor.RunRead}
		}), true},
		"another name":     {with(func(a *actor.Actor) { a.Name = "Ada L." }), true},
		"a grant less":     {with(func(a *actor.Actor) { a.Granted = a.Granted[:1] }), false},
		"an administrator": {with(func(a *actor.Actor) { a.Administrator = true }), false},
		"another kind":     {with(func(a *actor.Actor) { a.Kind = actor.ServiceAccount }), false},
		"another person":   {with(func(a *actor.Actor) { a.ID = uuid.UUID{2} }), false},
		"nobody":           {actor.Actor{}, false},
	} {
		t.Run("I2 "+name, func(t *testing.T) {
			if got := ada.Same(c.other); got != c.same {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestContext(t *testing.T) {
	t.Run("I2 a context carries one actor, and nobody by default", func(t *testing.T) {
		ctx := context.Background()
		if !actor.ActorFrom(ctx).IsNobody() {
			t.Error("somebody")
		}
		if got := actor.ActorFrom(actor.WithActor(ctx, actor.Actor{Name: "Ada"})); got.Name != "Ada" {
			t.Errorf("got %v", got)
		}
	})
}
