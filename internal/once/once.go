// Package once makes a mutation that carries an idempotency key happen once, however
// often it is sent and to however many replicas (RULES R18). A key is unique for its
// actor and mutation and is kept for a day.
//
// The first request claims the key's row and holds it under a lease that it renews. The
// store marks the row in the transaction of the mutation's own effect (change.Key), so
// that there is no effect that its key does not know; when the mutation has answered,
// the answer joins the row, as ids and refusal, never a secret. Another request with the
// key waits for the holder. A holder that died before its effect is taken over; one that
// died after it is answered for from the mark. An error without an effect frees the key.
//
// What may enter: how keys are claimed, waited for and freed. What an answer looks like
// is the API's business. Keys is safe for concurrent use; a waiting request holds no
// connection and no lock.
package once

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/world"
)

const (
	kept      = 24 * time.Hour
	lease     = 30 * time.Second
	heartbeat = lease / 3
	// glance is how often a waiting request looks without being rung.
	glance = 250 * time.Millisecond
	// parting is how long the end of a mutation may take to be stored once its client
	// has gone.
	parting = 10 * time.Second
)

// Status says how far the mutation of a key is.
type Status string

// The statuses.
const (
	Claimed  Status = "claimed"  // nothing has been done yet
	Done     Status = "done"     // its effect is stored, its answer is not
	Answered Status = "answered" // its answer is stored
)

// Statuses lists them.
var Statuses = []Status{Claimed, Done, Answered}

// Row is what is kept of a key.
type Row struct {
	ID         uuid.UUID
	Input      string
	Status     Status
	Holder     string
	LeaseUntil *time.Time // nil when nobody holds it
	Effect     change.Effect
	Answer     json.RawMessage
	ExpiresAt  time.Time
}

// Store keeps keys.
type Store interface {
	change.Applier

	// IdempotencyKey returns fault.NotFound for a key that is not there.
	IdempotencyKey(ctx context.Context, id uuid.UUID) (Row, error)
	// ExpiredKeys lists keys whose time has passed, oldest first.
	ExpiredKeys(ctx context.Context, at time.Time, limit int) ([]uuid.UUID, error)
}

// Bell wakes whoever waits for a topic.
type Bell interface {
	Listen(topics ...change.Topic) (<-chan struct{}, func())
}

// Keys is the room's use case.
type Keys struct {
	Store Store
	World world.World
	Bell  Bell // nil: a waiting request only glances
	Log   *slog.Logger
}

// Request is a mutation with a key.
type Request struct {
	Actor    uuid.UUID
	Mutation string
	Key      string
	Input    string // a digest; the same key with another one is a CONFLICT
	// Pack writes a refusal as it will be answered.
	Pack func(*fault.Refused) json.RawMessage
}

// Result is what a mutation came to before: its answer, or, when the server died
// between the effect and the answer, the effect alone.
type Result struct {
	Answer json.RawMessage
	Effect change.Effect
}

// namespace is that of the ids of keys.
var namespace = uuid.MustParse("0d8f6a52-77c9-4a53-8f0e-2a2f7a8f5b11")

func (r Request) row() uuid.UUID {
	return uuid.NewSHA1(namespace, []byte(r.Actor.String()+"\x00"+r.Mutation+"\x00"+r.Key))
}

// topic rings when a key's mutation has ended.
func topic(id uuid.UUID) change.Topic { return change.Topic("key:" + id.String()) }

// Do carries a mutation out, unless it was carried out before: then repeated is true,
// do was not called, and the result says what it came to. do gets the context that its
// changes must be applied with and returns its answer.
//
// Errors: do's own; CONFLICT for the key with other input; UNAVAILABLE when the key
// cannot be kept.
func (k *Keys) Do(ctx context.Context, req Request, do func(context.Context) (json.RawMessage, error)) (before Result, repeated bool, err error) {
	wake, stop := k.listen(topic(req.row()))
	defer stop()
	for {
		holder, row, err := k.claim(ctx, req)
		switch {
		case err != nil:
			return Result{}, false, err
		case holder != "":
			err := k.carryOut(ctx, req, holder, do)
			if errors.Is(err, change.ErrKeyLost) {
				continue // whoever took the key over answers
			}
			return Result{}, false, err
		case row.Input != req.Input:
			return Result{}, false, fault.New(fault.Conflict,
				"This idempotencyKey was used with another input in the last 24 hours; use a new key for a new request.")
		case row.Status == Answered, row.Status == Done && k.abandoned(row):
			return Result{Answer: row.Answer, Effect: row.Effect}, true, nil
		}
		select {
		case <-wake:
		case <-time.After(glance):
		case <-ctx.Done():
			return Result{}, false, ctx.Err()
		}
	}
}

func (k *Keys) listen(t change.Topic) (<-chan struct{}, func()) {
	if k.Bell == nil {
		return nil, func() {}
	}
	return k.Bell.Listen(t)
}

// abandoned: nobody holds the key, or whoever does is taken for dead.
func (k *Keys) abandoned(row Row) bool {
	return row.LeaseUntil == nil || !k.World.Now().Before(*row.LeaseUntil)
}

// claim takes a key that is free, expired, or held by somebody who died before the
// effect, and returns the holder that it did it as; empty when the key is another's, with
// its row.
func (k *Keys) claim(ctx context.Context, req Request) (holder string, row Row, err error) {
	id := req.row()
	for {
		now := k.World.Now()
		holder = k.World.NewID().String()
		out, err := change.One(ctx, k.Store, change.Change{Inserts: []change.Insert{{Table: keysTable, Row: []change.Value{
			keyID.To(id), keyActor.To(req.Actor), keyMutation.To(req.Mutation), keyInput.To(req.Input), keyStatus.To(Claimed),
			keyHolder.To(holder), keyLease.To(now.Add(lease)), keyEffect.Null(), keyAnswer.Null(),
			keyCreated.To(now), keyExpires.To(now.Add(kept)),
		}}}})
		if err != nil || out.Applied {
			return holder, Row{}, err
		}
		row, err = k.Store.IdempotencyKey(ctx, id)
		if fault.Is(err, fault.NotFound) {
			continue // freed meanwhile
		}
		if err != nil {
			return "", Row{}, err
		}
		free := change.Change{}
		switch expired := !now.Before(row.ExpiresAt); {
		case expired:
			free.Deletes = []change.Delete{{Table: keysTable, ID: id, If: []change.Value{keyExpires.Is(row.ExpiresAt)}}}
		case row.Status == Claimed && k.abandoned(row) && row.Input == req.Input:
			free.Deletes = []change.Delete{{Table: keysTable, ID: id, If: []change.Value{keyHolder.Is(row.Holder), keyStatus.Is(Claimed), keyLease.Maybe(row.LeaseUntil)}}}
		default:
			return "", row, nil
		}
		if _, err := change.One(ctx, k.Store, free); err != nil {
			return "", Row{}, err
		}
	}
}

// carryOut runs the mutation under the key and stores how it ended.
func (k *Keys) carryOut(ctx context.Context, req Request, holder string, do func(context.Context) (json.RawMessage, error)) (err error) {
	id := req.row()
	key := &change.Key{Pack: req.Pack, Mark: func(e change.Effect) change.Update {
		return held(id, holder, keyStatus.To(Done), keyEffect.To(encoded(e)), keyLease.To(k.World.Now().Add(lease)))
	}}
	stop := k.keepHolding(ctx, id, holder)
	ended := false
	defer func() {
		stop()
		if !ended { // do panicked, and whoever recovers reports it
			k.letGo(ctx, id, holder)
		}
	}()
	answer, err := do(change.WithKey(ctx, key))
	effect := key.Close()
	ended = true
	if err != nil {
		k.letGo(ctx, id, holder)
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), parting)
	defer cancel()
	out, err := change.One(ctx, k.Store, change.Change{
		Updates: []change.Update{held(id, holder, keyStatus.To(Answered), keyAnswer.To(string(answer)), keyLease.Null(), keyHolder.To(""))},
		Ring:    []change.Topic{topic(id)},
	})
	switch {
	case !effect.Nothing() && err != nil:
		k.Log.WarnContext(ctx, "an answer could not be kept with its idempotency key; a repetition is answered from the effect", "error", err)
		return nil
	case err == nil && !out.Applied && effect.Nothing():
		return change.ErrKeyLost
	}
	return err
}

// held is an update of a key's row by whoever holds it.
func held(id uuid.UUID, holder string, set ...change.Value) change.Update {
	return change.Update{Table: keysTable, ID: id, If: []change.Value{keyHolder.Is(holder)}, Set: set}
}

// letGo frees the key of a mutation that failed. If it had done something before, the key
// stays, and what it did is what a repetition is told.
func (k *Keys) letGo(ctx context.Context, id uuid.UUID, holder string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), parting)
	defer cancel()
	ring := []change.Topic{topic(id)}
	_, err := k.Store.Apply(ctx,
		change.Change{Ring: ring, Deletes: []change.Delete{{Table: keysTable, ID: id, If: []change.Value{keyHolder.Is(holder), keyStatus.Is(Claimed)}}}},
		change.Change{Ring: ring, Updates: []change.Update{held(id, holder, keyLease.Null(), keyHolder.To(""))}},
	)
	if err != nil { // the lease ends by itself
		k.Log.WarnContext(ctx, "an idempotency key could not be freed", "error", err)
	}
}

// keepHolding renews the lease until the returned function is called.
func (k *Keys) keepHolding(ctx context.Context, id uuid.UUID, holder string) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		beat := time.NewTicker(heartbeat)
		defer beat.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-beat.C:
			}
			// A renewal that fails is tried again at the next beat; one that lost is noticed at
			// the next change.
			_, err := change.One(ctx, k.Store, change.Change{Updates: []change.Update{held(id, holder, keyLease.To(k.World.Now().Add(lease)))}})
			if err != nil && ctx.Err() == nil {
				k.Log.WarnContext(ctx, "the lease of an idempotency key could not be renewed", "error", err)
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// sweepBatch is how many expired keys go in one transaction.
const sweepBatch = 500

// Sweep deletes the keys whose day has passed and returns how many went.
func (k *Keys) Sweep(ctx context.Context) (int, error) {
	gone := 0
	for {
		now := k.World.Now()
		ids, err := k.Store.ExpiredKeys(ctx, now, sweepBatch)
		if err != nil || len(ids) == 0 {
			return gone, err
		}
		changes := make([]change.Change, len(ids))
		for i, id := range ids {
			changes[i].Deletes = []change.Delete{{Table: keysTable, ID: id, If: []change.Value{keyExpires.Before(now)}}}
		}
		out, err := k.Store.Apply(ctx, changes...)
		if err != nil {
			return gone, err
		}
		for _, o := range out {
			if o.Applied {
				gone++
			}
		}
		if len(ids) < sweepBatch {
			return gone, nil
		}
	}
}

func encoded(e change.Effect) string {
	b, err := json.Marshal(e)
	if err != nil { // an effect holds ids and a refusal that was JSON already
		panic("once: " + err.Error())
	}
	return string(b)
}
