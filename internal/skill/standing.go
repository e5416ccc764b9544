package skill

import (
	"slices"

	"github.com/google/uuid"
)

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
	Origin      int64        // approvals up to this counter were made before the skill moved or its source changed its type: none of them matches (RULES S12)
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

// Has tells whether a reason is among those against the version.
func (s Standing) Has(reason Reason) bool { return slices.Contains(s.Reasons, reason) }

// Stand answers whether the skill's version instructs now and, if not, names every reason (RULES A2). Enabled, attached and orphaned gate use, not
// standing: see Effective.
func Stand(f Facts) Standing {
	own := f.ownApprovals()
	revokedAt, isRevoked := f.lastRevocation()
	unrevoked := slices.DeleteFunc(slices.Clone(own), func(a Approval) bool { return isRevoked && a.Counter <= revokedAt })
	against := []struct {
		reason Reason
		stands bool
	}{
		{ReasonNoApproval, len(own) == 0},
		{ReasonRevoked, isRevoked && len(unrevoked) == 0},
		{ReasonBelowThreshold, !f.SourceLevel.AtLeast(f.InstructionLevel)},
		{ReasonNotAdmitted, !f.Admitted()},
		{ReasonIntegrityFailed, f.integrityFailed()},
		{ReasonLegacy, f.legacy()},
		{ReasonBundleChanged, f.BundleBinding && len(unrevoked) > 0 && !slices.ContainsFunc(unrevoked, f.bindsBundle)},
	}
	var standing Standing
	for _, row := range against {
		if row.stands {
			standing.Reasons = append(standing.Reasons, row.reason)
		}
	}
	standing.Instructs = len(standing.Reasons) == 0
	return standing
}

// Admitted tells whether the source's level lets the skill in at all (RULES A3): the level copied at sync for a synced skill, the live one for a skill
// written here.
func (f Facts) Admitted() bool {
	if f.Authored {
		return f.SourceLevel.AtLeast(f.MinLevel)
	}
	return f.CopiedLevel.AtLeast(f.MinLevel)
}

// Effective tells whether any path may use the skill (RULES A11). One that is not effective is composed by no path, not even fenced, and adds no tools;
// only a held pin does not ask.
func Effective(enabled, orphaned bool, f Facts) bool { return enabled && !orphaned && f.Admitted() }

// ownApprovals are the approvals that name the current digest and the current source.
func (f Facts) ownApprovals() []Approval {
	digest := f.Version.Digest()
	var own []Approval
	for _, approval := range f.Approvals {
		if approval.Digest == digest && f.matches(approval) {
			own = append(own, approval)
		}
	}
	return own
}

// matches tells whether an approval was made for the skill where and as it comes from now: from its source, since it came to it (RULES A2, S12).
func (f Facts) matches(a Approval) bool { return a.Source == f.Source && a.Counter > f.Origin }

func (f Facts) lastRevocation() (counter int64, ok bool) {
	return lastRevocation(f.Revocations, f.Version.Digest())
}

// lastRevocation is the latest revocation of a digest. An approval stands only when its counter is higher (RULES A2, A7).
func lastRevocation(revocations []Revocation, digest Digest) (counter int64, ok bool) {
	for _, revocation := range revocations {
		if revocation.Digest == digest && (!ok || revocation.Counter > counter) {
			counter, ok = revocation.Counter, true
		}
	}
	return counter, ok
}

func (f Facts) bindsBundle(a Approval) bool { return a.BundleDigest == f.BundleDigest }

// legacy tells a row imported from an older installation, without a digest (RULES D7). A skill written here never has a stored one.
func (f Facts) legacy() bool { return !f.Authored && f.StoredDigest == "" }

// integrityFailed tells whether the stored fields are not what was synced (RULES D6); a legacy row is held to its body checksum (RULES D7).
func (f Facts) integrityFailed() bool {
	switch {
	case f.Authored:
		return false
	case f.StoredDigest == "":
		return f.StoredBodyChecksum != BodyChecksum(f.Version.Body)
	}
	return f.StoredDigest != f.Version.Digest()
}

// approvedSnapshot selects the newest matching approval that no later revocation of its digest withdraws (RULES W3). ok is false when there is none.
func (f Facts) approvedSnapshot() (newest Approval, ok bool) {
	for _, approval := range f.Approvals {
		if !f.matches(approval) || (ok && approval.Counter <= newest.Counter) {
			continue
		}
		if revokedAt, isRevoked := lastRevocation(f.Revocations, approval.Digest); isRevoked && approval.Counter <= revokedAt {
			continue
		}
		newest, ok = approval, true
	}
	return newest, ok
}

// ContributedTools is the declaration an unpinned skill brings to a run's allow-list. A skill written here brings its newest approved snapshot's, so that
// an edit cannot widen a run (RULES W3); a synced one its own, unless its integrity fails (RULES T9). Both fall back to a declared empty list, never to
// none, because no declaration restricts nothing.
func ContributedTools(f Facts) Tools {
	if f.Authored {
		if approved, ok := f.approvedSnapshot(); ok {
			return approved.Snapshot.Tools
		}
		return DeclareTools()
	}
	if f.integrityFailed() {
		return DeclareTools()
	}
	return f.Version.Tools
}
