package library

import (
	"context"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
)

// SetSkillEnabled switches a skill on or off for the whole installation (RULES L1). It
// makes no instruction of it. Administrators only; audited when it changes.
//
// Refusals: SKILL_ORPHANED when a skill that is gone from its source is switched on.
func (l *Library) SetSkillEnabled(ctx context.Context, by actor.Actor, id uuid.UUID, enabled bool) (Dossier, error) {
	if err := mayChange(by, skillObject, "enabled"); err != nil {
		return Dossier{}, err
	}
	err := l.retried(ctx, "the skill", func() (change.Change, error) {
		d, err := l.dossier(ctx, id)
		if err != nil || d.Skill.Enabled == enabled {
			return change.Change{}, err
		}
		if enabled && d.Skill.Orphaned {
			return change.Change{}, fault.Refuse(fault.SkillOrphaned, "The skill %q is gone from its source and cannot be switched on.", d.Skill.Version.Name)
		}
		event := audit.SkillDisabled
		if enabled {
			event = audit.SkillEnabled
		}
		return change.Change{
			Updates: []change.Update{{
				Table: skillsTable, ID: id,
				// The text is guarded too: what is switched on is what was there to see.
				If: []change.Value{
					skillEnabled.Is(!enabled), skillOrphaned.Is(d.Skill.Orphaned), skillDigest.Is(d.Skill.StoredDigest), skillRevision.Is(d.Skill.Revision),
				},
				Set: []change.Value{skillEnabled.To(enabled), skillUpdatedAt.To(l.World.Now())},
			}},
			Audit: []audit.Entry{audit.Record(l.World, by, event).About(d.Source.ID, id, string(d.Skill.Version.Digest()))},
		}, nil
	})
	if err != nil {
		return Dossier{}, err
	}
	return l.dossier(ctx, id)
}
