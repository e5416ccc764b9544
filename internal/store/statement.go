package store

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/run"
)

// plan is a change as statements, made before the transaction begins so that its
// locks are held for the database's work alone.
type plan struct {
	change change.Change
	steps  []step
	run    uuid.UUID
	events []run.Event
	seals  *sealer // when events have content
	audit  []entry
	rings  []change.Topic
}

// step is one statement that must hit exactly one row, or at most one if none is as good.
type step struct {
	table      change.Table
	id         uuid.UUID
	statement  string
	args       []any
	noneIsFine bool
	// numbers says that the statement also takes the sequences of the change's events,
	// and returns the next one: it updates the row that holds them anyway.
	numbers bool
}

// entry is an audit entry with the bytes that its leaf covers.
type entry struct {
	audit.Entry
	canonical, leaf []byte
}

// runs is the one table that the store knows by name, because a change of a run
// rings the run's topic.
const runs change.Table = "runs"

// planned translates a change. Updates and deletes are sorted by table and id, so
// that two transactions take their locks in one order.
func (s *Store) planned(c change.Change) (plan, error) {
	p := plan{change: c, run: c.Run, events: c.Events, rings: slices.Clone(c.Ring)}
	if len(c.Events) > 0 && c.Run == uuid.Nil {
		return plan{}, fmt.Errorf("store: a change has %d events and no run", len(c.Events))
	}
	if slices.ContainsFunc(c.Events, func(e run.Event) bool { return e.Content != nil }) {
		var err error
		if p.seals, err = s.seals(); err != nil {
			return plan{}, err
		}
	}
	events := len(c.Events)
	for _, u := range c.Updates {
		taken := 0
		if u.Table == runs && u.ID == c.Run {
			taken, events = events, 0
		}
		made, err := s.update(u, taken)
		if err != nil {
			return plan{}, err
		}
		p.steps = append(p.steps, made)
	}
	for _, d := range c.Deletes {
		p.steps = append(p.steps, s.delete(d))
	}
	slices.SortStableFunc(p.steps, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.table, b.table), bytes.Compare(a.id[:], b.id[:]))
	})
	for _, i := range c.Inserts {
		made, err := s.insert(i)
		if err != nil {
			return plan{}, err
		}
		p.steps = append(p.steps, made)
	}
	for _, e := range c.Audit {
		canonical := e.Canonical()
		p.audit = append(p.audit, entry{e, canonical, audit.Leaf(canonical)})
	}
	for _, made := range p.steps {
		if made.table == runs {
			p.rings = append(p.rings, change.RunTopic(made.id))
		}
	}
	if len(p.events) > 0 {
		p.rings = append(p.rings, change.RunTopic(p.run), change.StepsTopic)
	}
	if len(p.audit) > 0 {
		p.rings = append(p.rings, change.AuditTopic)
	}
	return p, nil
}

// update makes the statement of an update that takes the sequences of so many events.
func (s *Store) update(u change.Update, events int) (step, error) {
	b := entsql.Dialect(s.dialect).Update(string(u.Table))
	for _, v := range u.Set {
		arg, err := s.arg(u.Table, u.ID, v)
		if err != nil {
			return step{}, err
		}
		if arg == nil {
			b.SetNull(v.Column)
		} else {
			b.Set(v.Column, arg)
		}
	}
	if len(u.Set) == 0 { // a guard alone
		b.Set("id", u.ID)
	}
	b.Where(guards(u.ID, u.If))
	if events > 0 {
		b.Add("next_seq", events).Returning("next_seq")
	}
	statement, args := b.Query()
	return step{table: u.Table, id: u.ID, statement: statement, args: args, numbers: events > 0}, nil
}

func (s *Store) delete(d change.Delete) step {
	statement, args := entsql.Dialect(s.dialect).Delete(string(d.Table)).Where(guards(d.ID, d.If)).Query()
	return step{table: d.Table, id: d.ID, statement: statement, args: args, noneIsFine: d.IfAny}
}

// insert leaves a row that a unique constraint knows alone, without an error.
func (s *Store) insert(i change.Insert) (step, error) {
	at := slices.IndexFunc(i.Row, func(v change.Value) bool { return v.Column == "id" })
	if at < 0 {
		return step{}, fmt.Errorf("store: a row for %s has no id", i.Table)
	}
	id, ok := i.Row[at].Arg.(uuid.UUID)
	if !ok {
		return step{}, fmt.Errorf("store: the id of a row for %s is a %T", i.Table, i.Row[at].Arg)
	}
	columns, values := make([]string, len(i.Row)), make([]any, len(i.Row))
	for n, v := range i.Row {
		arg, err := s.arg(i.Table, id, v)
		if err != nil {
			return step{}, err
		}
		columns[n], values[n] = v.Column, arg
	}
	there := []entsql.ConflictOption{entsql.DoNothing()}
	if len(i.Adds) > 0 {
		there = []entsql.ConflictOption{entsql.ConflictColumns("id"), entsql.ResolveWith(func(u *entsql.UpdateSet) {
			for n, column := range columns {
				if slices.Contains(i.Adds, column) {
					u.Add(column, values[n])
				}
			}
		})}
	}
	statement, args := entsql.Dialect(s.dialect).Insert(string(i.Table)).Columns(columns...).Values(values...).OnConflict(there...).Query()
	return step{table: i.Table, id: id, statement: statement, args: args}, nil
}

// guards is the condition that the row has the id and that everything else holds.
func guards(id uuid.UUID, conditions []change.Value) *entsql.Predicate {
	all := []*entsql.Predicate{entsql.EQ("id", id)}
	for _, v := range conditions {
		switch {
		case !v.Before.IsZero():
			all = append(all, entsql.LT(v.Column, v.Before))
		case v.In != nil:
			all = append(all, entsql.In(v.Column, v.In...))
		case v.Arg == nil:
			all = append(all, entsql.IsNull(v.Column))
		default:
			all = append(all, entsql.EQ(v.Column, v.Arg))
		}
	}
	return entsql.And(all...)
}

// arg is what a column is set to: sealed in its place if it must be.
func (s *Store) arg(table change.Table, id uuid.UUID, v change.Value) (any, error) {
	if !v.Seal || v.Arg == nil {
		return v.Arg, nil
	}
	text, ok := v.Arg.(string)
	if !ok {
		return nil, fmt.Errorf("store: %s.%s is sealed and cannot hold a %T", table, v.Column, v.Arg)
	}
	seals, err := s.seals()
	if err != nil {
		return nil, err
	}
	return seals.seal(place{string(table), v.Column, id.String()}, text), nil
}
