package library

import (
	"cmp"
	"context"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/skill"
)

// SkillUpdate is the input of UpdateSkill; a nil field stays as it is. AllowedTools needs
// an administrator (RULES W4).
type SkillUpdate struct {
	SkillID      uuid.UUID
	Revision     int // the revision the edit started from
	Name         *string
	Description  *string
	Body         *string
	Process      *bool
	AllowedTools *[]string
}

// StaleRevision is the detail of a STALE_REVISION: the text as it is now.
type StaleRevision struct {
	Posted  int
	Current Dossier
}

// UpdateSkill edits a skill that is written here, as a new revision. An approved
// text keeps instructing only where it did not change: the digest decides. It needs
// skill:author; audited (RULES W1, W2, W4, W5). Nobody edits a synced skill (RULES S12).
//
// Refusals: STALE_REVISION with a StaleRevision.
func (l *Library) UpdateSkill(ctx context.Context, by actor.Actor, in SkillUpdate) (Dossier, error) {
	names := given(namedField{"name", in.Name != nil}, namedField{"description", in.Description != nil}, namedField{"body", in.Body != nil},
		namedField{"process", in.Process != nil}, namedField{"allowedTools", in.AllowedTools != nil})
	if err := need(by, actor.SkillAuthor); err != nil { // also of an edit that sets nothing
		return Dossier{}, err
	}
	if err := mayChange(by, skillObject, names...); err != nil {
		return Dossier{}, err
	}
	return l.revise(ctx, by, in.SkillID, in.Revision, in.applied, nil)
}

// applied is the version as the update would have it.
func (in SkillUpdate) applied(v skill.Version) (skill.Version, error) {
	if in.Process != nil {
		v.Process = processOf(*in.Process)
	}
	if in.AllowedTools != nil {
		if err := setTools(&v, *in.AllowedTools); err != nil {
			return v, err
		}
	}
	return v, setText(&v, *cmp.Or(in.Name, &v.Name), *cmp.Or(in.Description, &v.Description), *cmp.Or(in.Body, &v.Body))
}

// RestoreInput names a revision to make current again.
type RestoreInput struct {
	SkillID  uuid.UUID
	Revision int // the revision the restorer saw as current
	Number   int // the revision to restore
}

// RestoreRevision makes an earlier text of a skill current again, as a new revision
// (RULES W2). Tools are a privileged field: who is no administrator leaves them as
// they are now.
//
// Refusals: STALE_REVISION with a StaleRevision.
func (l *Library) RestoreRevision(ctx context.Context, by actor.Actor, in RestoreInput) (Dossier, error) {
	if err := need(by, actor.SkillAuthor); err != nil {
		return Dossier{}, err
	}
	all, err := l.Store.Revisions(ctx, in.SkillID)
	if err != nil {
		return Dossier{}, err
	}
	for _, r := range all {
		if r.Number != in.Number {
			continue
		}
		restore := func(v skill.Version) (skill.Version, error) {
			if mayChange(by, skillObject, "allowedTools") != nil {
				r.Version.Tools = v.Tools
			}
			r.Version.Support = skill.SupportOf(r.Version.Body)
			return r.Version, nil
		}
		return l.revise(ctx, by, in.SkillID, in.Revision, restore, map[string]any{"restored": in.Number})
	}
	return Dossier{}, fault.New(fault.NotFound, "The skill has no revision %d.", in.Number)
}

// revise writes a new revision of an authored skill that is still at the revision
// its author saw. Text that would stay the same changes nothing.
func (l *Library) revise(ctx context.Context, by actor.Actor, id uuid.UUID, from int,
	edit func(skill.Version) (skill.Version, error), detail map[string]any,
) (Dossier, error) {
	err := l.retried(ctx, "the skill", func() (change.Change, error) {
		d, err := l.dossier(ctx, id)
		if err != nil {
			return change.Change{}, err
		}
		if !d.Authored() {
			return change.Change{}, fault.New(fault.BadInput, "skillId names a synced skill: its text comes from %q and is changed there.", d.Source.Title)
		}
		v, err := edit(d.Skill.Version)
		if err != nil {
			return change.Change{}, err
		}
		if d.Skill.Revision != from {
			return change.Change{}, fault.Refuse(fault.StaleRevision,
				"The skill is at revision %d by now; the edit started from revision %d.", d.Skill.Revision, from).With(StaleRevision{Posted: from, Current: d})
		}
		if v.Digest() == d.Skill.Version.Digest() {
			return change.Change{}, nil
		}
		return l.revision(by, d, v, detail), nil
	})
	if err != nil {
		return Dossier{}, err
	}
	return l.dossier(ctx, id)
}

func (l *Library) revision(by actor.Actor, d Dossier, v skill.Version, detail map[string]any) change.Change {
	next := d.Skill.Revision + 1
	set := append(versionColumns(v), skillRevision.To(next), skillUpdatedAt.To(l.World.Now()))
	entry := audit.Record(l.World, by, audit.IngestUpdated).About(d.Source.ID, d.Skill.ID, string(v.Digest())).
		With("revision", next).With("before", string(d.Skill.Version.Digest()))
	for key, value := range detail {
		entry = entry.With(key, value)
	}
	return change.Change{
		Updates: []change.Update{{
			Table: skillsTable, ID: d.Skill.ID, If: []change.Value{skillRevision.Is(d.Skill.Revision), skillSourceID.Is(d.Source.ID)}, Set: set,
		}},
		Inserts: []change.Insert{l.insertRevision(by, d.Skill.ID, next, v)},
		Audit:   []audit.Entry{entry},
	}
}

// Revisions lists the revisions of a skill that is written here, newest first. It
// needs skill:read.
func (l *Library) Revisions(ctx context.Context, by actor.Actor, skillID uuid.UUID) ([]Revision, error) {
	if err := need(by, actor.SkillRead); err != nil {
		return nil, err
	}
	return l.Store.Revisions(ctx, skillID)
}
