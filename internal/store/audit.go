package store

import (
	"context"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/countersign/countersign/ent"
	"github.com/countersign/countersign/ent/auditentry"
	"github.com/countersign/countersign/ent/predicate"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/fault"
)

// AuditEntries implements audit.Reader.
func (s *Store) AuditEntries(ctx context.Context, filter audit.Filter, page audit.Page) ([]audit.Entry, error) {
	conditions := auditConditions(filter)
	order := entsql.OrderDesc()
	if page.OldestFirst {
		order = entsql.OrderAsc()
	}
	switch {
	case page.Beyond == nil:
	case page.OldestFirst:
		conditions = append(conditions, auditentry.IndexGT(*page.Beyond))
	default:
		conditions = append(conditions, auditentry.IndexLT(*page.Beyond))
	}
	rows, err := s.client.AuditEntry.Query().Where(conditions...).Order(auditentry.ByIndex(order)).Limit(page.Limit).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "audit entry")
	}
	entries := make([]audit.Entry, len(rows))
	for i, row := range rows {
		if entries[i], err = toEntry(row); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

func auditConditions(filter audit.Filter) []predicate.AuditEntry {
	var conditions []predicate.AuditEntry
	if len(filter.Events) > 0 {
		conditions = append(conditions, auditentry.EventIn(texts(filter.Events)...))
	}
	for _, by := range []struct {
		id uuid.UUID
		is func(uuid.UUID) predicate.AuditEntry
	}{
		{filter.Actor, auditentry.ActorID},
		{filter.Source, auditentry.SourceID},
		{filter.Skill, auditentry.SkillID},
		{filter.Run, auditentry.RunID},
	} {
		if by.id != uuid.Nil {
			conditions = append(conditions, by.is(by.id))
		}
	}
	if filter.Digest != "" {
		conditions = append(conditions, auditentry.Digest(filter.Digest))
	}
	if !filter.Since.IsZero() {
		conditions = append(conditions, auditentry.AtGTE(stored(filter.Since)))
	}
	if !filter.Until.IsZero() {
		conditions = append(conditions, auditentry.AtLT(stored(filter.Until)))
	}
	return conditions
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
