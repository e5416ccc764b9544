package skill

import "github.com/google/uuid"

// Approval is what a person countersigned: a snapshot of one version from one source (RULES A5).
type Approval struct {
	ID           uuid.UUID
	Source       uuid.UUID
	Digest       Digest
	Counter      int64 // position on the skill row's counter, which orders approvals and revocations without a clock
	Snapshot     Version
	BundleDigest string // of the bundled files at that time; empty when there were none to see
}

// Revocation withdraws one digest of a skill, whatever source it came from (RULES A7).
type Revocation struct {
	Digest  Digest
	Counter int64
}

// Facts is everything the standing of one skill depends on, as read in one transaction.
type Facts struct {
	Skill  uuid.UUID
	Source uuid.UUID // the skill's current source

	Version            Version
	Authored           bool   // written here: its digest is computed, never stored and trusted (RULES W1)
	StoredDigest       Digest // what the sync stored; empty for a legacy row; not read when authored
	StoredBodyChecksum string // what a legacy row is verified against; not read otherwise

	CopiedLevel      TrustLevel // the source's level as copied at the last sync: admits synced skills (RULES A3)
	SourceLevel      TrustLevel // the source's level now: admits authored skills and gates instructing
	MinLevel         TrustLevel // see Threshold
	InstructionLevel TrustLevel // see Threshold

	Approvals   []Approval   // of this skill, any digest and source
	Revocations []Revocation // of this skill, any digest

	BundleDigest  string // of the bundled files now
	BundleBinding bool   // skills.bundleBinding: a changed bundle voids the standing
}

// Reason says why a version does not instruct.
type Reason string

const (
	ReasonNoApproval      Reason = "no_approval"
	ReasonRevoked         Reason = "revoked"
	ReasonBelowThreshold  Reason = "below_threshold"
	ReasonNotAdmitted     Reason = "not_admitted"
	ReasonIntegrityFailed Reason = "integrity_failed"
	ReasonLegacy          Reason = "legacy"
	ReasonBundleChanged   Reason = "bundle_changed"
)

// Standing answers whether a version may be composed into the system message.
type Standing struct {
	Instructs bool
	Reasons   []Reason // every reason against it, in a fixed order; empty when it instructs
}
