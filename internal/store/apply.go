package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/google/uuid"
	"github.com/lib/pq"

	"github.com/countersign/countersign/internal/change"
)

// attempts bounds how often a transaction is begun that others were in the way of.
const attempts = 6

// Apply makes changes true, each whole or not at all, in one transaction; see the
// package change. A change that lost a guard, a unique or a foreign key loses
// alone. When the answer to the commit itself is lost with the connection, the
// error is UNAVAILABLE although the changes may be stored: repeat them with the
// guards they had, or with an idempotency key.
func (s *Store) Apply(ctx context.Context, changes ...change.Change) ([]change.Outcome, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	key := change.KeyOf(ctx)
	end, keyed := key.Begin()
	defer end()
	if !keyed {
		key = nil
	}
	plans := make([]plan, len(changes))
	for i, c := range changes {
		var err error
		if plans[i], err = s.planned(c); err != nil {
			return nil, failed(ctx, err, "prepare a change")
		}
	}
	if key == nil && len(plans) == 1 && plans[0].lonely() {
		outcome, err := s.gather(ctx, plans[0])
		if err != nil {
			return nil, err
		}
		return []change.Outcome{outcome}, nil
	}
	if err := s.turn.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer s.turn.Release(1)
	return s.insist(ctx, plans, key)
}

// insist applies plans in one transaction, again and again if others are in its way. It
// needs a turn.
func (s *Store) insist(ctx context.Context, plans []plan, key *change.Key) ([]change.Outcome, error) {
	for attempt := 1; ; attempt++ {
		outcomes, rings, err := s.transact(ctx, plans, key, eachAlone)
		if err == nil {
			s.ring(rings)
			return outcomes, nil
		}
		if attempt == attempts || ctx.Err() != nil || diagnose(err) != retry {
			return nil, failed(ctx, err, "apply a change")
		}
		pause(ctx, attempt)
	}
}

func (s *Store) ring(topics []change.Topic) {
	if len(topics) > 0 {
		s.bell.Ring(topics...)
	}
}

// pause waits a random while that grows with the attempts, so that transactions
// that met once do not meet again.
func pause(ctx context.Context, attempt int) {
	longest := 2 * time.Millisecond << attempt
	select {
	case <-ctx.Done():
	case <-time.After(rand.N(longest)):
	}
}

// transaction is one attempt to apply changes.
type transaction struct {
	*sql.Tx
	dialect string
	ctx     context.Context
}

// fate says what the changes of one transaction have to do with each other.
type fate bool

const (
	eachAlone fate = false // one that loses loses alone
	allOrNone fate = true  // one that loses loses all, with errLost
)

// commitError is an error of the commit itself: whether it happened may not be known.
type commitError struct{ error }

func (e commitError) Unwrap() error { return e.error }

func (s *Store) transact(ctx context.Context, plans []plan, key *change.Key, fate fate) ([]change.Outcome, []change.Topic, error) {
	begun, err := s.writer.BeginTx(ctx, s.isolation())
	if err != nil {
		return nil, nil, err
	}
	defer begun.Rollback() // after a commit this does nothing
	tx := transaction{begun, s.dialect, ctx}
	outcomes := make([]change.Outcome, len(plans))
	var rings []change.Topic
	for i, p := range plans {
		if fate == allOrNone {
			outcomes[i], err = tx.steps(p)
		} else {
			outcomes[i], err = tx.alone(p, len(plans) > 1)
		}
		if err != nil {
			return nil, nil, err
		}
		if outcomes[i].Applied {
			rings = append(rings, p.rings...)
		}
	}
	if !slices.ContainsFunc(outcomes, func(o change.Outcome) bool { return o.Applied }) {
		return outcomes, nil, nil // rolled back: there is nothing to keep
	}
	slices.Sort(rings)
	rings = slices.Compact(rings)
	effect, err := s.mark(tx, key, plans, outcomes)
	if err != nil {
		return nil, nil, err
	}
	if err := tx.record(plans, outcomes); err != nil {
		return nil, nil, err
	}
	if s.dialect == dialect.Postgres && len(rings) > 0 {
		// Without arguments it is one round trip.
		if err := tx.exec("NOTIFY " + pq.QuoteIdentifier(s.Channel()) + ", " + pq.QuoteLiteral(payload(rings))); err != nil {
			return nil, nil, err
		}
	}
	if err := tx.Commit(); err != nil {
		return nil, nil, commitError{err}
	}
	if key != nil {
		key.Keep(effect)
	}
	return outcomes, rings, nil
}

// mark stores with an idempotency key what was applied under it (RULES R18). It locks
// the key's row, which nobody waits for who holds anything else.
func (s *Store) mark(tx transaction, key *change.Key, plans []plan, outcomes []change.Outcome) (change.Effect, error) {
	if key == nil {
		return change.Effect{}, nil
	}
	var applied []change.Change
	for i, p := range plans {
		if outcomes[i].Applied {
			applied = append(applied, p.change)
		}
	}
	update, effect, any := key.Marks(applied...)
	if !any {
		return effect, nil
	}
	made, err := s.update(update, 0)
	if err != nil {
		return effect, err
	}
	_, err = tx.steps(plan{steps: []step{made}})
	if errors.Is(err, errLost) {
		return effect, change.ErrKeyLost
	}
	return effect, err
}

// isolation: every statement of a change is guarded by itself, so that PostgreSQL
// needs no more than READ COMMITTED. SQLite's writers are one after the other.
func (s *Store) isolation() *sql.TxOptions {
	if s.dialect == dialect.Postgres {
		return &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	}
	return nil
}

// errLost says that a guard, an insert or a key did not hold.
var errLost = errors.New("lost")

// alone applies all of a change but its audit entries. With company a savepoint
// undoes it if it loses; by itself the transaction does.
func (tx transaction) alone(p plan, company bool) (change.Outcome, error) {
	if company {
		if err := tx.exec("SAVEPOINT change"); err != nil {
			return change.Outcome{}, err
		}
	}
	outcome, err := tx.steps(p)
	if err != nil && !errors.Is(err, errLost) {
		return change.Outcome{}, err
	}
	if company {
		if !outcome.Applied {
			if err := tx.exec("ROLLBACK TO SAVEPOINT change"); err != nil {
				return change.Outcome{}, err
			}
		}
		if err := tx.exec("RELEASE SAVEPOINT change"); err != nil {
			return change.Outcome{}, err
		}
	}
	return outcome, nil
}

func (tx transaction) exec(statement string, args ...any) error {
	_, err := tx.ExecContext(tx.ctx, statement, args...)
	return err
}

func (tx transaction) steps(p plan) (change.Outcome, error) {
	next := 0
	for _, one := range p.steps {
		hit, err := tx.step(one, &next)
		if err != nil {
			if tx.ctx.Err() == nil && diagnose(err) == lost {
				return change.Outcome{Lost: one.table}, errLost
			}
			return change.Outcome{}, fmt.Errorf("%s: %w", one.table, err)
		}
		if hit != 1 && (hit != 0 || !one.noneIsFine) {
			return change.Outcome{Lost: one.table}, errLost
		}
	}
	first, err := tx.events(p, next)
	if errors.Is(err, errLost) {
		return change.Outcome{Lost: runs}, err
	}
	return change.Outcome{Applied: err == nil, FirstSequence: first}, err
}

// step runs one statement and says how many rows it hit. One that takes sequences sets
// next.
func (tx transaction) step(one step, next *int) (hit int64, err error) {
	if !one.numbers {
		result, err := tx.ExecContext(tx.ctx, one.statement, one.args...)
		if err != nil {
			return 0, err
		}
		return result.RowsAffected()
	}
	err = tx.QueryRowContext(tx.ctx, one.statement, one.args...).Scan(next)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return 1, err // by its primary key
}

// events stores a plan's events under the lock of their run's row, numbered up to next, which is
// 0 when no statement of the change has taken their sequences yet.
func (tx transaction) events(p plan, next int) (first int, err error) {
	id, events := p.run, p.events
	if len(events) == 0 {
		return 0, nil
	}
	if next == 0 {
		statement, args := entsql.Dialect(tx.dialect).Update(string(runs)).Add("next_seq", len(events)).
			Where(entsql.EQ("id", id)).Returning("next_seq").Query()
		if err := tx.QueryRowContext(tx.ctx, statement, args...).Scan(&next); err != nil {
			if errors.Is(err, sql.ErrNoRows) {
				return 0, errLost
			}
			return 0, err
		}
	}
	first = next - len(events)
	for at := 0; at < len(events); at += rowsAtOnce {
		insert := entsql.Dialect(tx.dialect).Insert("run_events").
			Columns("run_id", "sequence", "kind", "round", "duration_ms", "at", "data")
		for n, e := range events[at:min(at+rowsAtOnce, len(events))] {
			insert.Values(id, first+at+n, string(e.Kind), e.Round, e.DurationMS, stored(e.At), e.Data.Encode())
		}
		statement, args := insert.Query()
		if err := tx.exec(statement, args...); err != nil {
			return 0, fmt.Errorf("run_events: %w", err)
		}
	}
	return first, tx.words(p.seals, id, first, events)
}

// rowsAtOnce keeps the parameters of one INSERT below what both databases take.
const rowsAtOnce = 1000

// record gives the entries of every applied change their indexes and stores them.
// It is the last lock of a transaction: whoever holds the head commits next, which
// keeps the indexes in commit order.
func (tx transaction) record(plans []plan, outcomes []change.Outcome) error {
	var entries []entry
	for i, p := range plans {
		if outcomes[i].Applied {
			entries = append(entries, p.audit...)
		}
	}
	if len(entries) == 0 {
		return nil
	}
	statement, args := entsql.Dialect(tx.dialect).Update("audit_head").Add("size", len(entries)).
		Where(entsql.EQ("id", 1)).Returning("size").Query()
	var size int64
	if err := tx.QueryRowContext(tx.ctx, statement, args...).Scan(&size); err != nil {
		return fmt.Errorf("audit_head: %w", err)
	}
	next := size - int64(len(entries))
	for i, p := range plans {
		if outcomes[i].Applied && len(p.audit) > 0 {
			outcomes[i].FirstIndex = next
			next += int64(len(p.audit))
		}
	}
	first := size - int64(len(entries))
	for chunk := range slices.Chunk(entries, rowsAtOnce) {
		if err := tx.entries(first, chunk); err != nil {
			return err
		}
		first += int64(len(chunk))
	}
	return nil
}

func (tx transaction) entries(first int64, entries []entry) error {
	insert := entsql.Dialect(tx.dialect).Insert("audit_entries").Columns("id", "index", "at", "event", "actor_id",
		"source_id", "skill_id", "run_id", "digest", "detail", "canonical", "leaf_hash")
	for n, e := range entries {
		insert.Values(e.ID, first+int64(n), stored(e.At), string(e.Event), given(e.Actor), given(e.Source), given(e.Skill),
			given(e.Run), e.Digest, e.EncodeDetail(), string(e.canonical), e.leaf)
	}
	statement, args := insert.Query()
	if err := tx.exec(statement, args...); err != nil {
		return fmt.Errorf("audit_entries: %w", err)
	}
	return nil
}

// stored is a time as both databases keep it.
func stored(at time.Time) time.Time { return at.UTC().Truncate(time.Microsecond) }

// given is NULL for the zero id.
func given(id uuid.UUID) any {
	if id == uuid.Nil {
		return nil
	}
	return id
}
