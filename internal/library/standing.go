package library

import (
	"context"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/skill"
)

// Thresholds are the settings that standing depends on, as they are now
// (RULES A1, A2).
type Thresholds struct {
	Admission     skill.TrustLevel
	Instruction   skill.TrustLevel
	BundleBinding bool
}

// Thresholds reads the settings that standing depends on.
func (l *Library) Thresholds(ctx context.Context) (Thresholds, error) {
	v, err := l.values(ctx)
	if err != nil {
		return Thresholds{}, err
	}
	return Thresholds{Admission: v.MinTrustLevel, Instruction: v.InstructionTrustLevel, BundleBinding: v.BundleBinding}, nil
}

// Authored reports whether the skill is written here: its digest is computed, never
// stored and trusted (RULES W1).
func (d Dossier) Authored() bool { return d.Source.Type == Authored }

// Digest names the current version: computed for a skill written here, what the
// sync stored otherwise, empty for a legacy row.
func (d Dossier) Digest() skill.Digest {
	if d.Authored() {
		return d.Skill.Version.Digest()
	}
	return d.Skill.StoredDigest
}

// Facts is everything the skill's standing depends on.
func (d Dossier) Facts(t Thresholds) skill.Facts {
	f := skill.Facts{
		Skill: d.Skill.ID, Source: d.Skill.SourceID, Version: d.Skill.Version, Authored: d.Authored(),
		StoredDigest: d.Skill.StoredDigest, StoredBodyChecksum: d.Skill.BodyChecksum,
		Origin:      int64(d.Skill.Origin),
		CopiedLevel: d.Skill.TrustLevel, SourceLevel: d.Source.TrustLevel,
		MinLevel: t.Admission, InstructionLevel: t.Instruction,
		BundleDigest: d.Skill.BundleDigest, BundleBinding: t.BundleBinding,
	}
	for _, a := range d.Approvals {
		f.Approvals = append(f.Approvals, skill.Approval{
			ID: a.ID, Source: a.SourceID, Digest: a.Digest, Counter: int64(a.Counter), Snapshot: a.Version, BundleDigest: a.BundleDigest,
		})
	}
	for _, r := range d.Revocations {
		f.Revocations = append(f.Revocations, skill.Revocation{Digest: r.Digest, Counter: int64(r.Counter)})
	}
	return f
}

// Effective reports whether any path may use the skill (RULES A11).
func (d Dossier) Effective(t Thresholds) bool {
	return skill.Effective(d.Skill.Enabled, d.Skill.Orphaned, d.Facts(t))
}

// Standing says whether the skill's current version instructs, and why not.
func (d Dossier) Standing(t Thresholds) skill.Standing { return skill.Stand(d.Facts(t)) }

// Standing says whether a skill's current version instructs under the settings in
// force, and why not (RULES A2).
func (l *Library) Standing(ctx context.Context, d Dossier) (skill.Standing, error) {
	t, err := l.Thresholds(ctx)
	if err != nil {
		return skill.Standing{}, err
	}
	return d.Standing(t), nil
}

// Standings judges many skills with one reading of the settings, in the order
// given: with Dossiers, that is four queries whatever their number.
func (l *Library) Standings(ctx context.Context, ds []Dossier) ([]skill.Standing, error) {
	t, err := l.Thresholds(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]skill.Standing, len(ds))
	for i, d := range ds {
		all[i] = d.Standing(t)
	}
	return all, nil
}

// Dossiers reads skills with everything that decides what they may do; ids that
// are not there are left out.
func (l *Library) Dossiers(ctx context.Context, ids []uuid.UUID) ([]Dossier, error) {
	return l.Store.Dossiers(ctx, ids)
}

// NoteIntegrityFailure audits, once per skill and pair of digests, that a synced
// skill's stored fields are not what was synced (RULES D6). It does nothing for a
// skill whose integrity holds.
func (l *Library) NoteIntegrityFailure(ctx context.Context, d Dossier) error {
	if !d.Standing(Thresholds{}).Has(skill.ReasonIntegrityFailed) {
		return nil
	}
	stored, computed := d.Skill.StoredDigest, d.Skill.Version.Digest()
	if stored == "" { // a legacy row is held to its body's checksum (RULES D7)
		stored, computed = skill.Digest(d.Skill.BodyChecksum), skill.Digest(skill.BodyChecksum(d.Skill.Version.Body))
	}
	seen, err := l.Store.IntegritySeen(ctx, d.Skill.ID, string(stored), string(computed))
	if err != nil || seen {
		return err
	}
	// Losing means that somebody else noted it meanwhile.
	_, err = change.One(change.Aside(ctx), l.Store, change.Change{
		Inserts: []change.Insert{{Table: integrityTable, Row: []change.Value{
			integrityID.To(l.World.NewID()), integritySkillID.To(d.Skill.ID), integrityStored.To(stored),
			integrityComputed.To(computed), integrityAt.To(l.World.Now()),
		}}},
		Audit: []audit.Entry{audit.Record(l.World, actor.Actor{}, audit.IntegrityFailed).
			About(d.Skill.SourceID, d.Skill.ID, string(stored)).With("computed", string(computed))},
	})
	return err
}
