package library

import (
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/skill"
	"github.com/countersign/countersign/internal/tool"

	"github.com/google/uuid"
)

// The tables this room changes. Reading goes through Store. Deleting a skill takes
// its revisions and integrity failures with it (ON DELETE CASCADE); everything else
// that names a row keeps it from being deleted (RULES S15).
const (
	sourcesTable        change.Table = "sources"
	skillsTable         change.Table = "skills"
	revisionsTable      change.Table = "skill_revisions"
	approvalsTable      change.Table = "approvals"
	revocationsTable    change.Table = "revocations"
	attachmentsTable    change.Table = "attachments"
	providersTable      change.Table = "providers"
	configurationsTable change.Table = "configurations"
	snippetsTable       change.Table = "snippets"
	tasksTable          change.Table = "tasks"
	toolSwitchesTable   change.Table = "tool_switches"
	groupSwitchesTable  change.Table = "tool_group_switches"
	integrityTable      change.Table = "integrity_failures"
)

// The columns, by table. A snapshot's columns have the same names as the record's.
var (
	sourceID           = change.ID(sourcesTable, "id")
	sourceTitle        = change.Text[string](sourcesTable, "title")
	sourceType         = change.Text[SourceType](sourcesTable, "type")
	sourceURL          = change.Text[string](sourcesTable, "url")
	sourceRef          = change.Text[string](sourcesTable, "ref")
	sourcePinned       = change.Text[string](sourcesTable, "pinned_commit")
	sourceToken        = change.Sealed(sourcesTable, "access_token")
	sourceTrust        = change.Text[skill.TrustLevel](sourcesTable, "trust_level")
	sourceFingerprint  = change.Text[string](sourcesTable, "expected_fingerprint")
	sourceEnabled      = change.Bool(sourcesTable, "enabled")
	sourceSyncStatus   = change.Text[SyncStatus](sourcesTable, "sync_status")
	sourceSyncError    = change.Text[string](sourcesTable, "sync_error")
	sourceLastSyncedAt = change.Time(sourcesTable, "last_synced_at")
	sourceHeadCommit   = change.Text[string](sourcesTable, "head_commit")
	sourceFilesSeen    = change.Int(sourcesTable, "files_seen")
	sourceFilesDone    = change.Int(sourcesTable, "files_done")
	sourceFilesFailed  = change.Int(sourcesTable, "files_failed")
	sourceLeaseOwner   = change.Text[string](sourcesTable, "lease_owner")
	sourceLeaseUntil   = change.Time(sourcesTable, "lease_until")
	sourceCreatedAt    = change.Time(sourcesTable, "created_at")

	skillID           = change.ID(skillsTable, "id")
	skillSourceID     = change.ID(skillsTable, "source_id")
	skillIdentifier   = change.Text[string](skillsTable, "identifier")
	skillName         = change.Text[string](skillsTable, "name")
	skillDescription  = change.Text[string](skillsTable, "description")
	skillBody         = change.Text[string](skillsTable, "body")
	skillSupport      = change.Text[skill.SupportStatus](skillsTable, "support_status")
	skillTools        = change.JSON[skill.Tools](skillsTable, "allowed_tools")
	skillProcess      = change.Text[skill.Process](skillsTable, "process")
	skillDigest       = change.Text[skill.Digest](skillsTable, "digest")
	skillBodyChecksum = change.Text[string](skillsTable, "body_checksum")
	skillRawDigest    = change.Text[string](skillsTable, "raw_digest")
	skillBundleDigest = change.Text[string](skillsTable, "bundle_digest")
	skillBundle       = change.JSON[[]skill.BundleFile](skillsTable, "bundle")
	skillFrontmatter  = change.Text[string](skillsTable, "frontmatter")
	skillParseStatus  = change.Text[skill.ParseStatus](skillsTable, "parse_status")
	skillFindings     = change.JSON[[]skill.Finding](skillsTable, "findings")
	skillEnabled      = change.Bool(skillsTable, "enabled")
	skillOrphaned     = change.Bool(skillsTable, "orphaned")
	skillTrust        = change.Text[skill.TrustLevel](skillsTable, "trust_level")
	skillCounter      = change.Int(skillsTable, "counter")
	skillOrigin       = change.Int(skillsTable, "origin_counter")
	skillRevision     = change.Int(skillsTable, "revision")
	skillCreatedAt    = change.Time(skillsTable, "created_at")
	skillUpdatedAt    = change.Time(skillsTable, "updated_at")

	revisionID       = change.ID(revisionsTable, "id")
	revisionSkillID  = change.ID(revisionsTable, "skill_id")
	revisionNumber   = change.Int(revisionsTable, "revision")
	revisionName     = change.Text[string](revisionsTable, "name")
	revisionDescr    = change.Text[string](revisionsTable, "description")
	revisionBody     = change.Text[string](revisionsTable, "body")
	revisionTools    = change.JSON[skill.Tools](revisionsTable, "allowed_tools")
	revisionProcess  = change.Text[skill.Process](revisionsTable, "process")
	revisionAuthorID = change.ID(revisionsTable, "author_id")
	revisionAt       = change.Time(revisionsTable, "at")

	approvalID       = change.ID(approvalsTable, "id")
	approvalSkillID  = change.ID(approvalsTable, "skill_id")
	approvalSourceID = change.ID(approvalsTable, "source_id")
	approvalDigest   = change.Text[skill.Digest](approvalsTable, "digest")
	approvalCounter  = change.Int(approvalsTable, "counter")
	approvalName     = change.Text[string](approvalsTable, "name")
	approvalDescr    = change.Text[string](approvalsTable, "description")
	approvalBody     = change.Text[string](approvalsTable, "body")
	approvalSupport  = change.Text[skill.SupportStatus](approvalsTable, "support_status")
	approvalTools    = change.JSON[skill.Tools](approvalsTable, "allowed_tools")
	approvalProcess  = change.Text[skill.Process](approvalsTable, "process")
	approvalTrust    = change.Text[skill.TrustLevel](approvalsTable, "trust_level")
	approvalRaw      = change.Text[string](approvalsTable, "raw_digest")
	approvalBundleD  = change.Text[string](approvalsTable, "bundle_digest")
	approvalBundle   = change.JSON[[]skill.BundleFile](approvalsTable, "bundle")
	approvalApprover = change.ID(approvalsTable, "approver_id")
	approvalComment  = change.Text[string](approvalsTable, "comment")
	approvalAt       = change.Time(approvalsTable, "at")

	revocationID      = change.ID(revocationsTable, "id")
	revocationSkillID = change.ID(revocationsTable, "skill_id")
	revocationDigest  = change.Text[skill.Digest](revocationsTable, "digest")
	revocationCounter = change.Int(revocationsTable, "counter")
	revocationReason  = change.Text[string](revocationsTable, "reason")
	revocationActor   = change.ID(revocationsTable, "actor_id")
	revocationAt      = change.Time(revocationsTable, "at")

	attachmentID       = change.ID(attachmentsTable, "id")
	attachmentSkillID  = change.ID(attachmentsTable, "skill_id")
	attachmentConfID   = change.ID(attachmentsTable, "configuration_id")
	attachmentTaskID   = change.ID(attachmentsTable, "task_id")
	attachmentMode     = change.Text[LoadMode](attachmentsTable, "load_mode")
	attachmentPosition = change.Int(attachmentsTable, "position")
	attachmentCreated  = change.Time(attachmentsTable, "created_at")

	providerID      = change.ID(providersTable, "id")
	providerName    = change.Text[string](providersTable, "name")
	providerKind    = change.Text[ProviderKind](providersTable, "kind")
	providerBaseURL = change.Text[string](providersTable, "base_url")
	providerAPIKey  = change.Sealed(providersTable, "api_key")
	providerZone    = change.Text[TrustZone](providersTable, "trust_zone")
	providerScript  = change.Text[string](providersTable, "script")
	providerCreated = change.Time(providersTable, "created_at")

	configurationID         = change.ID(configurationsTable, "id")
	configurationName       = change.Text[string](configurationsTable, "name")
	configurationProvider   = change.ID(configurationsTable, "provider_id")
	configurationModel      = change.Text[string](configurationsTable, "model")
	configurationWindow     = change.Int(configurationsTable, "context_window")
	configurationPrompt     = change.Text[string](configurationsTable, "system_prompt")
	configurationGroups     = change.JSON[[]tool.Group](configurationsTable, "allowed_tool_groups")
	configurationEdits      = change.Bool(configurationsTable, "allow_proposal_edits")
	configurationFourEyes   = change.Bool(configurationsTable, "require_second_approver")
	configurationSnippets   = change.Bool(configurationsTable, "snippets_in_caller_system_message")
	configurationSnippetIDs = change.JSON[[]uuid.UUID](configurationsTable, "snippet_ids")
	configurationMaxRounds  = change.Int(configurationsTable, "max_iterations")
	configurationExpiry     = change.Int(configurationsTable, "approval_expiry_hours")
	configurationUsers      = change.JSON[[]uuid.UUID](configurationsTable, "allowed_user_ids")
	configurationMaxOutput  = change.Int(configurationsTable, "max_output_tokens")
	configurationPrice      = change.JSON[*Price](configurationsTable, "price")
	configurationFallbacks  = change.JSON[[]Choice](configurationsTable, "fallbacks")
	configurationRevision   = change.Int(configurationsTable, "revision")
	configurationArranged   = change.Int(configurationsTable, "arrangement")
	configurationCreated    = change.Time(configurationsTable, "created_at")

	snippetID        = change.ID(snippetsTable, "id")
	snippetName      = change.Text[string](snippetsTable, "name")
	snippetText      = change.Text[string](snippetsTable, "text")
	snippetMark      = change.Text[string](snippetsTable, "mark")
	snippetRevision  = change.Int(snippetsTable, "revision")
	snippetEditorID  = change.ID(snippetsTable, "editor_id")
	snippetCreatedAt = change.Time(snippetsTable, "created_at")
	snippetUpdatedAt = change.Time(snippetsTable, "updated_at")

	taskID            = change.ID(tasksTable, "id")
	taskName          = change.Text[string](tasksTable, "name")
	taskConfiguration = change.ID(tasksTable, "configuration_id")
	taskPrompt        = change.Text[string](tasksTable, "prompt")
	taskArranged      = change.Int(tasksTable, "arrangement")
	taskCreatedAt     = change.Time(tasksTable, "created_at")

	toolSwitchID      = change.ID(toolSwitchesTable, "id")
	toolSwitchName    = change.Text[string](toolSwitchesTable, "name")
	toolSwitchEnabled = change.Bool(toolSwitchesTable, "enabled")

	groupSwitchID      = change.ID(groupSwitchesTable, "id")
	groupSwitchName    = change.Text[tool.Group](groupSwitchesTable, "name")
	groupSwitchEnabled = change.Bool(groupSwitchesTable, "enabled")

	integrityID       = change.ID(integrityTable, "id")
	integritySkillID  = change.ID(integrityTable, "skill_id")
	integrityStored   = change.Text[skill.Digest](integrityTable, "stored")
	integrityComputed = change.Text[skill.Digest](integrityTable, "computed")
	integrityAt       = change.Time(integrityTable, "at")
)
