package change

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/fault"
)

// Key is the idempotency key of the mutation under way (RULES R18). It travels in the
// context: whoever applies changes for it stores, in the same transaction, what they
// did, so that a crash between the commit and the answer leaves enough to answer a
// repetition. It is safe for concurrent use.
type Key struct {
	// Mark is the update of the key's row that says what has been done under it. It
	// must hit the row, or the key belongs to somebody else by now.
	Mark func(Effect) Update
	// Pack writes a refusal as it will be answered.
	Pack func(*fault.Refused) json.RawMessage

	mu     sync.Mutex
	closed bool
	effect Effect
}

// Effect is what has been done under a key: the rows, and the refusal whose audit
// entry was stored.
type Effect struct {
	Rows    []Touched       `json:"rows,omitempty"`
	Refusal json.RawMessage `json:"refusal,omitempty"`
}

// Nothing reports whether nothing has been done.
func (e Effect) Nothing() bool { return len(e.Rows) == 0 && e.Refusal == nil }

// Touched is one row that was written.
type Touched struct {
	Table Table     `json:"table"`
	ID    uuid.UUID `json:"id"`
	How   How       `json:"how"`
}

// How a row was written.
type How string

// The ways.
const (
	Inserted How = "inserted"
	Updated  How = "updated"
	Deleted  How = "deleted"
)

// ErrKeyLost says that another request took the key over, because this one was silent
// for too long. Nothing of the changes was stored.
var ErrKeyLost = fault.New(fault.Unavailable, "Another request with the same idempotency key took over; try again.")

type keyOf struct{}

// WithKey gives everything that is applied with the context to a key.
func WithKey(ctx context.Context, k *Key) context.Context { return context.WithValue(ctx, keyOf{}, k) }

// Aside takes the context out of its key: for what a mutation does on its way and would
// do again without harm, such as taking a lease or noting what it came across. It is
// not the mutation's effect.
func Aside(ctx context.Context) context.Context { return WithKey(ctx, nil) }

// KeyOf is the key that the context belongs to; nil when there is none.
func KeyOf(ctx context.Context) *Key {
	k, _ := ctx.Value(keyOf{}).(*Key)
	return k
}

// Begin keeps the key for one transaction at a time, until the function it returns is
// called. It reports false for no key, and for one whose mutation has been answered:
// what goes on in the background after that is its own.
func (k *Key) Begin() (end func(), open bool) {
	if k == nil {
		return func() {}, false
	}
	k.mu.Lock()
	if k.closed {
		k.mu.Unlock()
		return func() {}, false
	}
	return k.mu.Unlock, true
}

// Marks is the update that belongs into the transaction which applied these changes,
// with the effect to Keep once it is durable. An audit entry alone is no effect, unless
// it is of the refusal that will be answered. Call it between Begin and its end.
func (k *Key) Marks(applied ...Change) (mark Update, effect Effect, any bool) {
	effect = Effect{Rows: append([]Touched(nil), k.effect.Rows...), Refusal: k.effect.Refusal}
	for _, c := range applied {
		rows := c.touched()
		if len(rows) == 0 && c.Refused == nil {
			continue
		}
		any = true
		effect.Rows = append(effect.Rows, rows...)
		if c.Refused != nil {
			effect.Refusal = k.Pack(c.Refused)
		}
	}
	if !any {
		return Update{}, effect, false
	}
	return k.Mark(effect), effect, true
}

// Keep remembers what has become durable. Call it between Begin and its end.
func (k *Key) Keep(e Effect) { k.effect = e }

// Close ends the key's time and tells what has been done under it.
func (k *Key) Close() Effect {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	return k.effect
}

// touched are the rows of a change. Guards alone touch nothing.
func (c Change) touched() []Touched {
	var rows []Touched
	for _, i := range c.Inserts {
		rows = append(rows, Touched{i.Table, i.id(), Inserted})
	}
	for _, u := range c.Updates {
		if len(u.Set) > 0 {
			rows = append(rows, Touched{u.Table, u.ID, Updated})
		}
	}
	for _, d := range c.Deletes {
		rows = append(rows, Touched{d.Table, d.ID, Deleted})
	}
	return rows
}

// id is the primary key of a row that is to be inserted.
func (i Insert) id() uuid.UUID {
	for _, v := range i.Row {
		if id, ok := v.Arg.(uuid.UUID); ok && v.Column == "id" {
			return id
		}
	}
	return uuid.Nil
}
