package library

import (
	"context"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/skill"
)

// MoveSkill gives a skill another source. No approval matches it there, not even one
// that an earlier stay left behind; attachments and held pins go on (RULES S12, P2).
// Administrators only; audited.
//
// Refusals: IN_USE when the other source has a skill with the same identifier.
func (l *Library) MoveSkill(ctx context.Context, by actor.Actor, skillID, sourceID uuid.UUID) (Dossier, error) {
	if err := mayChange(by, skillObject, "source"); err != nil {
		return Dossier{}, err
	}
	err := l.retried(ctx, "the skill", func() (change.Change, error) {
		d, err := l.dossier(ctx, skillID)
		if err != nil || d.Source.ID == sourceID {
			return change.Change{}, err
		}
		to, err := l.Store.Source(ctx, sourceID)
		if err != nil {
			return change.Change{}, err
		}
		there, err := l.Store.SkillsOf(ctx, sourceID)
		if err != nil {
			return change.Change{}, err
		}
		for _, s := range there {
			if s.Identifier == d.Skill.Identifier {
				return change.Change{}, fault.Refuse(fault.InUse, "The source %q already has a skill with the identifier %q.", to.Title, s.Identifier)
			}
		}
		if err := l.NoteIntegrityFailure(ctx, d); err != nil {
			return change.Change{}, err
		}
		return l.move(by, d, to), nil
	})
	if err != nil {
		return Dossier{}, err
	}
	return l.dossier(ctx, skillID)
}

func (l *Library) move(by actor.Actor, d Dossier, to Source) change.Change {
	c := l.rehoused(by, d.Skill, d.Source.Type, to)
	c.Updates[0].Set = append(c.Updates[0].Set, skillSourceID.To(to.ID))
	c.Updates = append(c.Updates, holds(sourcesTable, to.ID, sourceType.Is(to.Type), sourceTrust.Is(to.TrustLevel)))
	c.Audit = []audit.Entry{audit.Record(l.World, by, audit.SkillMoved).About(to.ID, d.Skill.ID, string(d.Skill.Version.Digest())).
		With("from", d.Source.ID.String()).With("to", to.ID.String()).With("identifier", d.Skill.Identifier)}
	return c
}

// rehoused is the change of a skill that comes to a source, or whose source becomes
// of another type. Every approval so far was of another origin.
//
// A text written here begins to have revisions and ceases to have a stored digest. One
// that was written here and now belongs to a synced source was never synced from it:
// it is a row without a digest, as a legacy one, until a sync says what it is.
func (l *Library) rehoused(by actor.Actor, s Skill, from SourceType, to Source) change.Change {
	var c change.Change
	set := []change.Value{skillOrigin.To(s.Counter), skillTrust.To(to.TrustLevel), skillUpdatedAt.To(l.World.Now())}
	if to.Type == Authored && from != Authored {
		v, next := s.Version, s.Revision+1
		v.Support = skill.SupportOf(v.Body)
		set = append(append(set, versionColumns(v)...),
			skillDigest.To(""), skillRawDigest.To(""), skillBundleDigest.To(""), skillBundle.To(nil), skillFrontmatter.To(""),
			skillParseStatus.To(skill.ParseOK), skillOrphaned.To(false), skillRevision.To(next))
		c.Inserts = []change.Insert{l.insertRevision(by, s.ID, next, v)}
	}
	c.Updates = []change.Update{{
		Table: skillsTable, ID: s.ID, Set: set,
		If: []change.Value{
			skillSourceID.Is(s.SourceID), skillCounter.Is(s.Counter), skillDigest.Is(s.StoredDigest), skillRevision.Is(s.Revision),
			skillOrphaned.Is(s.Orphaned), skillIdentifier.Is(s.Identifier),
		},
	}}
	return c
}
