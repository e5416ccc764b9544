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

// ApproveInput names a version by the digest its approver saw.
type ApproveInput struct {
	SkillID uuid.UUID
	Digest  string
	Comment string
}

// Approved is an approval, and how its version stands after it: an approval below
// the threshold is kept and does not instruct yet (RULES A9).
type Approved struct {
	Approval Approval
	Dossier  Dossier
	Standing skill.Standing
}

// StaleVersion is the detail of a STALE_DIGEST: what the approver should look at
// now.
type StaleVersion struct {
	Posted  skill.Digest
	Current Review
}

// refusals says how an obstacle is refused. Their order is the obstacles' own
// (RULES A6).
var refusals = map[skill.ObstacleCode]fault.Code{
	skill.ObstacleOrphaned:            fault.SkillOrphaned,
	skill.ObstacleIntegrityFailed:     fault.IntegrityFailed,
	skill.ObstacleLegacy:              fault.LegacyVersion,
	skill.ObstacleStaleDigest:         fault.StaleDigest,
	skill.ObstacleProcessUnreadable:   fault.ProcessUnreadable,
	skill.ObstacleInvisibleCharacters: fault.InvisibleCharacters,
}

// Approve countersigns the version with the digest the approver saw: it recomputes
// the digest, keeps a snapshot, and raises the skill's counter only if neither the
// text nor its source moved meanwhile (RULES A2, A5, A6). It needs skill:approve. Every
// refusal is audited, the missing permission too (RULES A8).
//
// Refusals: SKILL_ORPHANED, INTEGRITY_FAILED, LEGACY_VERSION, STALE_DIGEST with a
// StaleVersion, PROCESS_UNREADABLE, INVISIBLE_CHARACTERS with []skill.Obstacle.
func (l *Library) Approve(ctx context.Context, by actor.Actor, in ApproveInput) (Approved, error) {
	if err := need(by, actor.SkillApprove); err != nil {
		if failed := l.noteForbiddenApproval(ctx, by, in); failed != nil {
			return Approved{}, failed
		}
		return Approved{}, err
	}
	posted, err := skill.ParseDigest(in.Digest)
	if err != nil {
		return Approved{}, fault.Wrap(fault.BadInput, err, "digest must be the digest that the review showed: 1: and 64 lower-case hexadecimal digits.")
	}
	comment, err := prose("comment", in.Comment, maxDescription)
	if err != nil {
		return Approved{}, err
	}
	var approval Approval
	err = l.retried(ctx, "the skill", func() (change.Change, error) {
		d, err := l.approvable(ctx, by, in.SkillID, posted)
		if err != nil {
			return change.Change{}, err
		}
		approval = l.snapshot(by, d, posted, comment)
		return l.approvalChange(by, d, approval), nil
	})
	if err != nil {
		return Approved{}, err
	}
	d, err := l.dossier(ctx, in.SkillID)
	if err != nil {
		return Approved{}, err
	}
	standing, err := l.Standing(ctx, d)
	return Approved{Approval: approval, Dossier: d, Standing: standing}, err
}

// approvable reads the skill as it is now and refuses it, audited, when anything
// stands against its approval.
func (l *Library) approvable(ctx context.Context, by actor.Actor, id uuid.UUID, posted skill.Digest) (Dossier, error) {
	d, err := l.dossier(ctx, id)
	if err != nil {
		return Dossier{}, err
	}
	obstacles := skill.ApprovalObstacles(d.Facts(Thresholds{}), d.Skill.Orphaned, posted)
	if len(obstacles) == 0 {
		return d, nil
	}
	refused := fault.Refuse(refusals[obstacles[0].Code], "The version is not approved: %s.", obstacles[0].Message)
	switch obstacles[0].Code {
	case skill.ObstacleStaleDigest:
		current, err := l.review(ctx, d)
		if err != nil {
			return Dossier{}, err
		}
		refused = refused.With(StaleVersion{Posted: posted, Current: current})
	case skill.ObstacleInvisibleCharacters:
		refused = refused.With(obstacles)
	case skill.ObstacleIntegrityFailed:
		if err := l.NoteIntegrityFailure(ctx, d); err != nil {
			return Dossier{}, err
		}
	}
	if err := l.noteRefusedApproval(ctx, by, d, string(posted), string(refused.Code), refused); err != nil {
		return Dossier{}, err
	}
	return Dossier{}, refused
}

// snapshot is the approval of a dossier's current version.
func (l *Library) snapshot(by actor.Actor, d Dossier, digest skill.Digest, comment string) Approval {
	return Approval{
		ID: l.World.NewID(), SkillID: d.Skill.ID, SourceID: d.Skill.SourceID, Digest: digest, Counter: d.Skill.Counter + 1,
		Version: d.Skill.Version, TrustLevel: d.Source.TrustLevel, RawDigest: d.Skill.RawDigest, BundleDigest: d.Skill.BundleDigest,
		Bundle: d.Skill.Bundle, ApproverID: by.ID, Comment: comment, At: l.World.Now(),
	}
}

// approvalChange stores an approval while everything it was judged by still holds:
// the counter, the source and its level, the text and the bundle.
func (l *Library) approvalChange(by actor.Actor, d Dossier, a Approval) change.Change {
	return change.Change{
		Updates: []change.Update{
			{
				Table: skillsTable, ID: a.SkillID,
				If: []change.Value{
					skillCounter.Is(d.Skill.Counter), skillSourceID.Is(a.SourceID), skillDigest.Is(d.Skill.StoredDigest),
					skillRevision.Is(d.Skill.Revision), skillOrphaned.Is(false), skillBundleDigest.Is(a.BundleDigest),
					skillRawDigest.Is(a.RawDigest),
				},
				Set: []change.Value{skillCounter.To(a.Counter)},
			},
			holds(sourcesTable, a.SourceID, sourceTrust.Is(a.TrustLevel)),
		},
		Inserts: []change.Insert{{Table: approvalsTable, Row: []change.Value{
			approvalID.To(a.ID), approvalSkillID.To(a.SkillID), approvalSourceID.To(a.SourceID), approvalDigest.To(a.Digest),
			approvalCounter.To(a.Counter), approvalName.To(a.Version.Name), approvalDescr.To(a.Version.Description),
			approvalBody.To(a.Version.Body), approvalSupport.To(a.Version.Support), approvalTools.To(a.Version.Tools),
			approvalProcess.To(a.Version.Process), approvalTrust.To(a.TrustLevel), approvalRaw.To(a.RawDigest),
			approvalBundleD.To(a.BundleDigest), approvalBundle.To(a.Bundle), approvalApprover.To(a.ApproverID),
			approvalComment.To(a.Comment), approvalAt.To(a.At),
		}}},
		Audit: []audit.Entry{audit.Record(l.World, by, audit.VersionApproved).
			About(a.SourceID, a.SkillID, string(a.Digest)).With("level", string(a.TrustLevel)).With("approval", a.ID.String())},
	}
}

// noteForbiddenApproval audits an attempt without the permission. Nothing is known
// of a skill that does not exist, and whoever is not signed in is nobody's act.
func (l *Library) noteForbiddenApproval(ctx context.Context, by actor.Actor, in ApproveInput) error {
	if by.IsNobody() {
		return nil
	}
	d, err := l.dossier(ctx, in.SkillID)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return l.noteRefusedApproval(ctx, by, d, clip(in.Digest, 80), string(fault.Forbidden), nil)
}

// noteRefusedApproval audits a refused approval with the posted and the current
// digest (RULES A8). A missing permission is no refusal of the rules: then refused is nil.
func (l *Library) noteRefusedApproval(ctx context.Context, by actor.Actor, d Dossier, posted, code string, refused *fault.Refused) error {
	_, err := change.One(ctx, l.Store, change.Change{Refused: refused, Audit: []audit.Entry{
		audit.Record(l.World, by, audit.VersionApprovalRefused).About(d.Skill.SourceID, d.Skill.ID, string(d.Skill.Version.Digest())).
			With("posted", posted).With("current", string(d.Skill.Version.Digest())).With("code", code),
	}})
	return err
}
