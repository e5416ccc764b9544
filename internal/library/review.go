package library

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/skill"
)

// Review is what an approver decides on (RULES A9).
type Review struct {
	Dossier Dossier
	// Digest names exactly what is shown, computed from the stored fields: it is
	// what an approval posts.
	Digest skill.Digest
	// Latest is the newest approved snapshot, which Diff starts from; nil when there is
	// none, and everything is added.
	Latest      *Approval
	Diff        []skill.DiffLine
	ToolsGained []string
	ToolsLost   []string
	Findings    []skill.Finding
	// OutsideChanges is what changed since Latest that no digest covers.
	OutsideChanges []string
	// Obstacles is what would refuse an approval now, in the order a refusal names it
	// (RULES A6).
	Obstacles []skill.Obstacle
	Standing  skill.Standing
	// BelowThreshold says that an approval would not make the version instruct yet: its
	// source's level is below the threshold, or the skill is not admitted.
	BelowThreshold bool
}

// Review shows the current version of a skill to whoever may read skills.
func (l *Library) Review(ctx context.Context, by actor.Actor, skillID uuid.UUID) (Review, error) {
	if err := need(by, actor.SkillRead); err != nil {
		return Review{}, err
	}
	d, err := l.dossier(ctx, skillID)
	if err != nil {
		return Review{}, err
	}
	return l.review(ctx, d)
}

func (l *Library) review(ctx context.Context, d Dossier) (Review, error) {
	v, err := l.values(ctx)
	if err != nil {
		return Review{}, err
	}
	t := Thresholds{Admission: v.MinTrustLevel, Instruction: v.InstructionTrustLevel, BundleBinding: v.BundleBinding}
	facts, standing := d.Facts(t), d.Standing(t)
	now := d.Skill.Version
	r := Review{
		Dossier: d, Digest: now.Digest(), Findings: slices.Clone(d.Skill.Findings), Standing: standing,
		Obstacles:      skill.ApprovalObstacles(facts, d.Skill.Orphaned, ""),
		BelowThreshold: standing.Has(skill.ReasonBelowThreshold) || standing.Has(skill.ReasonNotAdmitted),
	}
	if finding, tooLarge := skill.SizeFinding(now.Body, v.SkillMaxBytes); tooLarge {
		r.Findings = append(r.Findings, finding)
	}
	var before skill.Version
	if len(d.Approvals) > 0 {
		latest := slices.MaxFunc(d.Approvals, func(a, b Approval) int { return a.Counter - b.Counter })
		r.Latest, before = &latest, latest.Version
		r.OutsideChanges = outsideChanges(latest, d.Skill)
	}
	r.Diff = skill.Diff(before, now)
	r.ToolsGained, r.ToolsLost = skill.ToolsGained(before, now), skill.ToolsLost(before, now)
	return r, nil
}

// outsideChanges lists what changed since an approval that its digest does not
// cover.
func outsideChanges(since Approval, now Skill) []string {
	changes := skill.OutsideChanges(since.Bundle, now.Bundle)
	if since.Digest == now.Version.Digest() && since.RawDigest != now.RawDigest {
		changes = append(changes, "changed keys of the frontmatter that nothing reads")
	}
	return changes
}

// dossier reads one skill with everything that decides what it may do.
func (l *Library) dossier(ctx context.Context, skillID uuid.UUID) (Dossier, error) {
	ds, err := l.Store.Dossiers(ctx, []uuid.UUID{skillID})
	if err != nil {
		return Dossier{}, err
	}
	if len(ds) == 0 {
		return Dossier{}, fault.New(fault.NotFound, "There is no such skill.")
	}
	ds[0].Source.AccessToken = ""
	return ds[0], nil
}
