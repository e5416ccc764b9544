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

// RevokeInput names the version that is withdrawn.
type RevokeInput struct {
	SkillID uuid.UUID
	Digest  string
	Reason  string
}

// Revoked is a revocation, and how the skill's current version stands after it.
type Revoked struct {
	Revocation Revocation
	// Withdrawn counts the approvals it took back; none when the digest was never
	// approved or was revoked before. It holds against every later sync or edit all the same.
	Withdrawn int
	Dossier   Dossier
	Standing  skill.Standing
}

// Revoke withdraws one digest of one skill and wins over every earlier approval of
// it, whatever source it came from; only a later explicit approval lifts it
// (RULES A7). It needs skill:approve; audited.
func (l *Library) Revoke(ctx context.Context, by actor.Actor, in RevokeInput) (Revoked, error) {
	if err := need(by, actor.SkillApprove); err != nil {
		return Revoked{}, err
	}
	digest, err := skill.ParseDigest(in.Digest)
	if err != nil {
		return Revoked{}, fault.Wrap(fault.BadInput, err, "digest must be the digest of the version to revoke: 1: and 64 lower-case hexadecimal digits.")
	}
	reason, err := prose("reason", in.Reason, maxDescription)
	if err != nil {
		return Revoked{}, err
	}
	var result Revoked
	err = l.retried(ctx, "the skill", func() (change.Change, error) {
		d, err := l.dossier(ctx, in.SkillID)
		if err != nil {
			return change.Change{}, err
		}
		result.Withdrawn = standingApprovals(d, digest)
		result.Revocation = Revocation{
			ID: l.World.NewID(), SkillID: d.Skill.ID, Digest: digest, Counter: d.Skill.Counter + 1, Reason: reason, ActorID: by.ID, At: l.World.Now(),
		}
		return l.revocationChange(by, d, result), nil
	})
	if err != nil {
		return Revoked{}, err
	}
	if result.Dossier, err = l.dossier(ctx, in.SkillID); err != nil {
		return Revoked{}, err
	}
	result.Standing, err = l.Standing(ctx, result.Dossier)
	return result, err
}

func (l *Library) revocationChange(by actor.Actor, d Dossier, result Revoked) change.Change {
	r := result.Revocation
	return change.Change{
		Updates: []change.Update{{
			Table: skillsTable, ID: r.SkillID, If: []change.Value{skillCounter.Is(d.Skill.Counter)}, Set: []change.Value{skillCounter.To(r.Counter)},
		}},
		Inserts: []change.Insert{{Table: revocationsTable, Row: []change.Value{
			revocationID.To(r.ID), revocationSkillID.To(r.SkillID), revocationDigest.To(r.Digest), revocationCounter.To(r.Counter),
			revocationReason.To(r.Reason), revocationActor.To(r.ActorID), revocationAt.To(r.At),
		}}},
		Audit: []audit.Entry{audit.Record(l.World, by, audit.VersionRevoked).
			About(d.Skill.SourceID, r.SkillID, string(r.Digest)).With("withdrawn", result.Withdrawn).With("revocation", r.ID.String())},
	}
}

// standingApprovals counts the approvals of a digest that no revocation has
// withdrawn.
func standingApprovals(d Dossier, digest skill.Digest) int {
	last := 0
	for _, r := range d.Revocations {
		if r.Digest == digest {
			last = max(last, r.Counter)
		}
	}
	n := 0
	for _, a := range d.Approvals {
		if a.Digest == digest && a.Counter > last {
			n++
		}
	}
	return n
}
