package content

import (
	"context"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/world"
)

// Content is the room's use cases. It keeps nothing of its own, so one may be shared
// by all goroutines.
type Content struct {
	store Store
	world world.World
	hooks []Hook
}

// New makes the room over a store. Hooks are told of every write in the order given.
func New(store Store, w world.World, hooks ...Hook) *Content {
	return &Content{store: store, world: w, hooks: hooks}
}

// Hook is told of every write once it is durable. Its error does not undo the write:
// whoever wrote is told that a hook failed (RULES G6). A hook may be told twice of one
// write, when the call that made it is executed again after a crash, and must bear
// that. It must be safe for concurrent use.
type Hook interface {
	AfterWrite(ctx context.Context, event Event) error
}

// Event is what a hook is told.
type Event struct {
	Record Record // as the write left it
	Kind   string // one of the kinds of a revision
	Fields []string
	By     actor.Actor
	Origin Origin
}

// The kinds of a revision that this room writes.
const (
	KindCreate  = "create"
	KindUpdate  = "update" // hiding a record too
	KindMove    = "move"
	KindDelete  = "delete"
	KindPublish = "publish"
)

var _ Reader = (*Content)(nil)
