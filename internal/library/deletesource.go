package library

import (
	"context"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
)

// maxUses bounds how many uses a refused deletion lists.
const maxUses = 100

// DeleteSource deletes a source and its skills, unless an approval, a revocation, an
// attachment or a pin of an open run names one of them: then it refuses with IN_USE
// and the []Use in the way (RULES S15). Administrators only; audited.
func (l *Library) DeleteSource(ctx context.Context, by actor.Actor, id uuid.UUID) error {
	if err := needAdministrator(by); err != nil {
		return err
	}
	return l.retried(ctx, "the source", func() (change.Change, error) {
		s, err := l.Store.Source(ctx, id)
		if err != nil {
			return change.Change{}, err
		}
		uses, err := l.Store.UsesOf(ctx, id, maxUses)
		if err != nil {
			return change.Change{}, err
		}
		if len(uses) > 0 {
			return change.Change{}, fault.Refuse(fault.InUse, "The source %q or one of its skills is named by what must stay or be removed first.", s.Title).With(uses)
		}
		skills, err := l.Store.SkillsOf(ctx, id)
		if err != nil {
			return change.Change{}, err
		}
		c := change.Change{
			Deletes: []change.Delete{{Table: sourcesTable, ID: id, If: []change.Value{sourceLeaseOwner.Is(s.LeaseOwner)}}},
			Audit: []audit.Entry{audit.Record(l.World, by, audit.SourceDeleted).About(id, uuid.Nil, "").
				With("url", s.URL).With("skills", len(skills))},
		}
		for _, k := range skills {
			// An approval or revocation raises the counter.
			c.Deletes = append(c.Deletes, change.Delete{Table: skillsTable, ID: k.ID, If: []change.Value{skillCounter.Is(k.Counter)}})
		}
		return c, nil
	})
}
