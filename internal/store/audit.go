package store

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/google/uuid"
	"github.com/lib/pq"

	"github.com/countersign/countersign/ent"
	"github.com/countersign/countersign/ent/auditentry"
	"github.com/countersign/countersign/ent/predicate"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/fault"
)

// AuditEntries implements audit.Reader. What it reads is bounded by the page, never
// by the trail: every event of the filter is read on its own, because no index has
// the entries of several in order, and times are turned into indexes first.
func (s *Store) AuditEntries(ctx context.Context, filter audit.Filter, page audit.Page) ([]audit.Entry, error) {
	stretches := []stretch{everything}
	timed := !filter.Since.IsZero() || !filter.Until.IsZero()
	if timed || len(filter.Events) > 1 {
		var err error
		if stretches, err = s.auditStretches(ctx, filter); err != nil {
			return nil, err
		}
	}
	entries := []audit.Entry{}
	for _, within := range stretches {
		within = within.beyond(page)
		if within.after >= within.before {
			continue
		}
		for _, search := range auditSearches(filter) {
			rows, err := s.client.AuditEntry.Query().Where(search.in(within, page)).Limit(page.Limit).All(ctx)
			if err != nil {
				return nil, reading(ctx, err, "audit entry")
			}
			for _, row := range rows {
				entry, err := toEntry(row)
				if err != nil {
					return nil, err
				}
				entries = append(entries, entry)
			}
		}
	}
	if len(stretches) > 1 || len(filter.Events) > 1 {
		entries = auditMerged(entries, page)
	}
	return entries, nil
}

// auditMerged is the page out of the pages of its parts.
func auditMerged(entries []audit.Entry, page audit.Page) []audit.Entry {
	slices.SortFunc(entries, func(a, b audit.Entry) int {
		if page.OldestFirst {
			a, b = b, a
		}
		return cmp.Compare(b.Index, a.Index)
	})
	entries = slices.CompactFunc(entries, func(a, b audit.Entry) bool { return a.Index == b.Index })
	return entries[:min(len(entries), page.Limit)]
}

// stretch is the entries with an index between two, neither of them in it.
type stretch struct{ after, before int64 }

var everything = stretch{-1, math.MaxInt64}

// beyond is the part of the stretch that a page may show.
func (in stretch) beyond(page audit.Page) stretch {
	switch {
	case page.Beyond == nil:
	case page.OldestFirst:
		in.after = max(in.after, *page.Beyond)
	default:
		in.before = min(in.before, *page.Beyond)
	}
	return in
}

// auditStretches are where entries of the filter's times can be, among those that
// are there now. Entries are in commit order, so that one may be older than one
// before it; the tree knows by how much at most. What is not in the tree yet is
// looked at as a whole.
func (s *Store) auditStretches(ctx context.Context, filter audit.Filter) ([]stretch, error) {
	size, err := s.AuditSize(ctx)
	if err != nil {
		return nil, err
	}
	tree, err := s.client.AuditTree.Get(ctx, 1)
	if err != nil {
		return nil, failed(ctx, err, "read the size of the audit tree")
	}
	inTree, disorder := stretch{-1, tree.Size}, time.Duration(tree.Disorder)*time.Microsecond
	if !filter.Since.IsZero() {
		last, found, err := s.auditNeighbour(ctx, tree.Size, auditentry.AtLT(stored(filter.Since.Add(-disorder))), entsql.OrderDesc())
		if err != nil {
			return nil, err
		}
		if found {
			inTree.after = last
		}
	}
	if !filter.Until.IsZero() {
		first, found, err := s.auditNeighbour(ctx, tree.Size, auditentry.AtGTE(stored(filter.Until.Add(disorder))), entsql.OrderAsc())
		if err != nil {
			return nil, err
		}
		if found {
			inTree.before = first
		}
	}
	return []stretch{inTree, {tree.Size - 1, max(size, tree.Size)}}, nil
}

// auditNeighbour is the index of the entry in the tree that is next to a time.
func (s *Store) auditNeighbour(ctx context.Context, size int64, beyond predicate.AuditEntry, order entsql.OrderTermOption) (int64, bool, error) {
	row, err := s.client.AuditEntry.Query().Select(auditentry.FieldIndex).Where(beyond, auditentry.IndexLT(size)).
		Order(auditentry.ByAt(order), auditentry.ByIndex(order)).First(ctx)
	switch {
	case ent.IsNotFound(err):
		return 0, false, nil
	case err != nil:
		return 0, false, reading(ctx, err, "audit entry")
	}
	return row.Index, true, nil
}

// auditSearch is a walk along one index: of the entries that have a value in a
// column, or of all.
type auditSearch struct {
	column string // empty for all entries
	value  any
	others []predicate.AuditEntry
}

// auditSearches find what the filter lets through, once for each of its events. The
// first column that the filter names leads: those before are the more selective ones.
func auditSearches(filter audit.Filter) []auditSearch {
	var all auditSearch
	narrow := func(column string, value any, given bool) {
		switch {
		case !given:
		case all.column == "":
			all.column, all.value = column, value
		default:
			all.others = append(all.others, entsql.FieldEQ(column, value))
		}
	}
	narrow(auditentry.FieldRunID, filter.Run, filter.Run != uuid.Nil)
	narrow(auditentry.FieldSkillID, filter.Skill, filter.Skill != uuid.Nil)
	narrow(auditentry.FieldDigest, filter.Digest, filter.Digest != "")
	narrow(auditentry.FieldSourceID, filter.Source, filter.Source != uuid.Nil)
	narrow(auditentry.FieldActorID, filter.Actor, filter.Actor != uuid.Nil)
	if !filter.Since.IsZero() {
		all.others = append(all.others, auditTime(" >= ", filter.Since))
	}
	if !filter.Until.IsZero() {
		all.others = append(all.others, auditTime(" < ", filter.Until))
	}
	if len(filter.Events) == 0 {
		return []auditSearch{all}
	}
	leads, found := all.column == "", make([]auditSearch, len(filter.Events))
	for i, event := range filter.Events {
		found[i] = all
		if leads {
			found[i].column, found[i].value = auditentry.FieldEvent, string(event)
		} else {
			found[i].others = append(slices.Clip(all.others), auditentry.Event(string(event)))
		}
	}
	return found
}

// auditTime compares the time of entries that were found. It is written so that no
// index serves it: the stretch has bounded the times already, and the walk must keep
// the page's order.
func auditTime(comparison string, with time.Time) predicate.AuditEntry {
	return func(s *entsql.Selector) {
		s.Where(entsql.P(func(b *entsql.Builder) {
			b.Wrap(func(b *entsql.Builder) { b.Ident(s.C(auditentry.FieldAt)).WriteString(comparison).Arg(stored(with)) })
			b.WriteString(" IS TRUE")
		}))
	}
}

// in walks along a stretch in the page's order.
func (search auditSearch) in(within stretch, page audit.Page) predicate.AuditEntry {
	return func(s *entsql.Selector) {
		columns := []string{s.C(auditentry.FieldIndex)}
		s.Where(entsql.And(entsql.GT(columns[0], within.after), entsql.LT(columns[0], within.before)))
		if search.column != "" {
			columns = []string{s.C(search.column), columns[0]}
			s.Where(entsql.P(func(b *entsql.Builder) { search.equals(b.Ident(columns[0])) }))
		}
		for _, other := range search.others {
			other(s)
		}
		for _, column := range columns {
			if page.OldestFirst {
				s.OrderBy(entsql.Asc(column))
			} else {
				s.OrderBy(entsql.Desc(column))
			}
		}
	}
}

// equals compares the column. For PostgreSQL the value is one of a list of one, so
// that ordering by it is not superfluous: with an equality, the planner would walk
// along all entries when it takes a value for frequent that is only old.
func (search auditSearch) equals(column *entsql.Builder) {
	if column.Dialect() != dialect.Postgres {
		column.WriteString(" = ").Arg(search.value)
		return
	}
	column.WriteString(" = ANY(").Arg(pq.StringArray{fmt.Sprint(search.value)}).WriteString(")")
}

// AuditEntry implements audit.Reader.
func (s *Store) AuditEntry(ctx context.Context, id uuid.UUID) (audit.Entry, error) {
	row, err := s.client.AuditEntry.Get(ctx, id)
	if err != nil {
		return audit.Entry{}, reading(ctx, err, "audit entry")
	}
	return toEntry(row)
}

// AuditSize implements audit.Reader.
func (s *Store) AuditSize(ctx context.Context) (int64, error) {
	row, err := s.client.AuditHead.Get(ctx, 1)
	if err != nil {
		return 0, failed(ctx, err, "read the size of the audit trail")
	}
	return row.Size, nil
}

func toEntry(row *ent.AuditEntry) (audit.Entry, error) {
	detail, err := audit.DecodeDetail(row.Detail)
	if err != nil {
		return audit.Entry{}, fault.Wrap(fault.Internal, err, "audit entry %d cannot be read", row.Index)
	}
	return audit.Entry{
		ID: row.ID, At: row.At.UTC(), Event: audit.Event(row.Event), Actor: known(row.ActorID), Source: known(row.SourceID),
		Skill: known(row.SkillID), Run: known(row.RunID), Digest: row.Digest, Detail: detail, Index: row.Index, LeafHash: row.LeafHash,
	}, nil
}
