package skill

import "github.com/google/uuid"

// Pin names the version an instruction section was composed from.
type Pin struct {
	Skill  uuid.UUID
	Source uuid.UUID // the source the version was approved from; moving the skill does not change it
	Digest Digest
}

// PinFacts is what a held pin depends on, as read in one transaction. `enabled` is not among it: disabling gates new use only.
type PinFacts struct {
	SkillExists      bool
	Orphaned         bool
	SourceExists     bool       // the pin's own source
	SourceLevel      TrustLevel // the pin's own source's level now
	InstructionLevel TrustLevel // see Threshold
	Approvals        []Approval // of the pin's skill
	Revocations      []Revocation
}

// PinFailure says why a pin no longer holds.
type PinFailure string

const (
	PinSkillMissing   PinFailure = "skill_missing"
	PinOrphaned       PinFailure = "orphaned"
	PinSourceMissing  PinFailure = "source_missing"
	PinNoApproval     PinFailure = "no_approval"
	PinRevoked        PinFailure = "revoked"
	PinSnapshotBroken PinFailure = "snapshot_broken"
	PinBelowThreshold PinFailure = "below_threshold"
)

// PinHolds checks a pin as RULES P2 asks for at start, pickup, every resume and every continuation. When it holds, snapshot is the text to compose;
// otherwise failure is the first condition that does not, and nothing may stand in for the section.
func PinHolds(pin Pin, f PinFacts) (snapshot Version, failure PinFailure, holds bool) {
	approval, approved, revoked := pin.approval(f)
	conditions := []struct {
		failure PinFailure
		holds   bool
	}{
		{PinSkillMissing, f.SkillExists},
		{PinOrphaned, !f.Orphaned},
		{PinSourceMissing, f.SourceExists},
		{PinRevoked, !revoked},
		{PinNoApproval, approved},
		{PinSnapshotBroken, approval.Snapshot.Digest() == pin.Digest},
		{PinBelowThreshold, f.SourceLevel.AtLeast(f.InstructionLevel)},
	}
	for _, condition := range conditions {
		if !condition.holds {
			return Version{}, condition.failure, false
		}
	}
	return approval.Snapshot, "", true
}

// approval finds the newest approval the pin can rest on. revoked means that the latest word on the digest is a revocation.
func (p Pin) approval(f PinFacts) (newest Approval, approved, revoked bool) {
	for _, candidate := range f.Approvals {
		if candidate.Digest == p.Digest && candidate.Source == p.Source && (!approved || candidate.Counter > newest.Counter) {
			newest, approved = candidate, true
		}
	}
	revokedAt, isRevoked := lastRevocation(f.Revocations, p.Digest)
	return newest, approved, isRevoked && (!approved || newest.Counter <= revokedAt)
}
