package library

import (
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/skill"
)

// Skill is one skill record: its current version, where it came from, and what is
// allowed with it.
type Skill struct {
	ID         uuid.UUID
	SourceID   uuid.UUID
	Identifier string // RULES S6: unique in its source, display text elsewhere
	Version    skill.Version

	// StoredDigest is what the sync wrote: empty for a legacy row, and meaningless for
	// an authored skill, whose digest is computed (RULES W1).
	StoredDigest skill.Digest
	BodyChecksum string
	RawDigest    string
	BundleDigest string
	Bundle       []skill.BundleFile
	Frontmatter  string
	ParseStatus  skill.ParseStatus
	Findings     []skill.Finding

	Enabled    bool
	Orphaned   bool
	TrustLevel skill.TrustLevel // copied from the source at sync (RULES A3)
	// Counter orders approvals and revocations of the skill; each raises it in its own
	// transaction (RULES A2).
	Counter int
	// Origin is what Counter was when the skill came to its source, or its source to its
	// type: no approval up to there matches (RULES S12).
	Origin    int
	Revision  int // of an authored skill; 1 at creation
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Approval is the immutable snapshot of one version from one source, made by a
// person (RULES A5).
type Approval struct {
	ID           uuid.UUID
	SkillID      uuid.UUID
	SourceID     uuid.UUID
	Digest       skill.Digest
	Counter      int
	Version      skill.Version
	TrustLevel   skill.TrustLevel // of the source at the time
	RawDigest    string
	BundleDigest string
	Bundle       []skill.BundleFile
	ApproverID   uuid.UUID
	Comment      string
	At           time.Time
}

// Revocation withdraws one digest of one skill and wins over every earlier approval
// of it (RULES A7).
type Revocation struct {
	ID      uuid.UUID
	SkillID uuid.UUID
	Digest  skill.Digest
	Counter int
	Reason  string
	ActorID uuid.UUID
	At      time.Time
}

// Revision is one state of an authored skill's text (RULES W2).
type Revision struct {
	ID       uuid.UUID
	SkillID  uuid.UUID
	Number   int           // 1 at creation
	Version  skill.Version // Support is derived from the body
	AuthorID uuid.UUID
	At       time.Time
}

// LoadMode says when an attached skill is composed (RULES L1).
type LoadMode string

// The load modes.
const (
	Always   LoadMode = "always"
	OnDemand LoadMode = "on_demand"
)

// Attachment offers a skill on a configuration. Attachments are ordered by Position.
type Attachment struct {
	ID              uuid.UUID
	SkillID         uuid.UUID
	ConfigurationID uuid.UUID // zero when a task offers the skill
	TaskID          uuid.UUID // zero when a configuration does
	LoadMode        LoadMode
	Position        int
	CreatedAt       time.Time
}

// Dossier is everything that decides what a skill may do, read in one go: the
// record, its source, every approval and every revocation.
type Dossier struct {
	Skill       Skill
	Source      Source
	Approvals   []Approval // newest counter first
	Revocations []Revocation
}

// Offered is a dossier together with the attachment that offers it.
type Offered struct {
	Attachment Attachment
	Dossier
}
