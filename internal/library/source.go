package library

import (
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/skill"
)

// SyncStatus is how the last sync of a source went (RULES S1).
type SyncStatus string

// The statuses.
const (
	NeverSynced SyncStatus = "never_synced"
	Syncing     SyncStatus = "syncing"
	SyncOK      SyncStatus = "ok"
	SyncPartial SyncStatus = "partial"
	SyncError   SyncStatus = "error"
)

// Source is where skills come from (RULES S1).
type Source struct {
	ID                  uuid.UUID
	Title               string
	Type                SourceType
	URL                 string
	Ref                 string
	PinnedCommit        string
	AccessToken         string // in the clear only in memory; never readable over the API
	HasToken            bool   // whether one is kept
	TrustLevel          skill.TrustLevel
	ExpectedFingerprint string
	Enabled             bool
	SyncStatus          SyncStatus
	SyncError           string
	LastSyncedAt        *time.Time
	HeadCommit          string   // of the last complete sync
	Progress            Progress // of the sync that runs, else of the last one
	// LeaseOwner and LeaseUntil say who syncs now (RULES S11); after LeaseUntil anybody
	// may take over.
	LeaseOwner string
	LeaseUntil *time.Time
	CreatedAt  time.Time
}
