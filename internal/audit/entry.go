// Package audit is the record of who allowed what: entries, their canonical
// bytes and hashes, and their verification. It is pure but for the reader that
// pages through stored entries. Entries are immutable; the store appends them and
// the database refuses to change them.
package audit

import (
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/world"
)

// Event names what happened (API.md, AuditEntry.event).
type Event string

// The events.
const (
	IngestCreated          Event = "INGEST_CREATED"
	IngestUpdated          Event = "INGEST_UPDATED"
	IngestDisabledOnChange Event = "INGEST_DISABLED_ON_CHANGE"
	Orphaned               Event = "ORPHANED"
	FingerprintRejected    Event = "FINGERPRINT_REJECTED"
	SkillEnabled           Event = "SKILL_ENABLED"
	SkillDisabled          Event = "SKILL_DISABLED"
	SkillAttached          Event = "SKILL_ATTACHED"
	SkillDetached          Event = "SKILL_DETACHED"
	SkillMoved             Event = "SKILL_MOVED"
	VersionApproved        Event = "VERSION_APPROVED"
	VersionApprovalRefused Event = "VERSION_APPROVAL_REFUSED"
	VersionRevoked         Event = "VERSION_REVOKED"
	IntegrityFailed        Event = "INTEGRITY_FAILED"
	SourceCreated          Event = "SOURCE_CREATED"
	SourceUpdated          Event = "SOURCE_UPDATED"
	SourceDeleted          Event = "SOURCE_DELETED"
	SourceTrustChanged     Event = "SOURCE_TRUST_CHANGED"
	RunStarted             Event = "RUN_STARTED"
	RunRefused             Event = "RUN_REFUSED"
	RunDecided             Event = "RUN_DECIDED"
	RunDecisionRefused     Event = "RUN_DECISION_REFUSED"
	ProposalEdited         Event = "PROPOSAL_EDITED"
	RunEnded               Event = "RUN_ENDED"
	RunRequeued            Event = "RUN_REQUEUED"
	ToolDenied             Event = "TOOL_DENIED"
	WriteExecuted          Event = "WRITE_EXECUTED"
	UnapprovedWrite        Event = "UNAPPROVED_WRITE"
	TokenCreated           Event = "TOKEN_CREATED"
	TokenRevoked           Event = "TOKEN_REVOKED"
	GrantChanged           Event = "GRANT_CHANGED"
	SettingChanged         Event = "SETTING_CHANGED"
	SnippetMarked          Event = "SNIPPET_MARKED"
	SnippetMarkRefused     Event = "SNIPPET_MARK_REFUSED"
	ProcessEnded           Event = "PROCESS_ENDED"
	InjectionBlocked       Event = "INJECTION_BLOCKED"
	AdoptionFailed         Event = "ADOPTION_FAILED"
	UserCreated            Event = "USER_CREATED"
	ProviderCreated        Event = "PROVIDER_CREATED"
	ProviderUpdated        Event = "PROVIDER_UPDATED"
	ConfigurationCreated   Event = "CONFIGURATION_CREATED"
	ConfigurationUpdated   Event = "CONFIGURATION_UPDATED"
	ToolSwitched           Event = "TOOL_SWITCHED"
	AttachmentUpdated      Event = "ATTACHMENT_UPDATED"
	SourceSynced           Event = "SOURCE_SYNCED"
	ContentChanged         Event = "CONTENT_CHANGED"
	RunsRemoved            Event = "RUNS_REMOVED"
	NotificationsChanged   Event = "NOTIFICATIONS_CHANGED"
	BudgetSet              Event = "BUDGET_SET"
	BudgetDeleted          Event = "BUDGET_DELETED"
	MCPServerImported      Event = "MCP_SERVER_IMPORTED"
	MCPServerDeleted       Event = "MCP_SERVER_DELETED"
	MCPToolReviewed        Event = "MCP_TOOL_REVIEWED"
	MCPToolReviewRefused   Event = "MCP_TOOL_REVIEW_REFUSED"
	MCPToolChanged         Event = "MCP_TOOL_CHANGED"
)

// Entry is one line of the trail. Index and LeafHash are the store's; everything
// else is given by whoever acted. An id that does not apply is the zero id.
type Entry struct {
	ID     uuid.UUID
	At     time.Time
	Event  Event
	Actor  uuid.UUID // zero: the server itself
	Source uuid.UUID
	Skill  uuid.UUID
	Run    uuid.UUID
	Digest string
	// Detail holds names, counts, ids and codes: never free text of a model and never
	// content (RULES R15, Y1).
	Detail map[string]any

	Index    int64
	LeafHash []byte
}

// Record starts an entry: who did what, now.
func Record(w world.World, by actor.Actor, event Event) Entry {
	return Entry{ID: w.NewID(), At: w.Now(), Event: event, Actor: by.ID}
}

// About sets what the entry is about; the zero id says that it does not apply.
func (e Entry) About(source, skill uuid.UUID, digest string) Entry {
	e.Source, e.Skill, e.Digest = source, skill, digest
	return e
}

// InRun sets the run.
func (e Entry) InRun(run uuid.UUID) Entry {
	e.Run = run
	return e
}

// With adds one detail.
func (e Entry) With(key string, value any) Entry {
	detail := make(map[string]any, len(e.Detail)+1)
	for k, v := range e.Detail {
		detail[k] = v
	}
	detail[key] = value
	e.Detail = detail
	return e
}
