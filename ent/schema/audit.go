package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"github.com/countersign/countersign/internal/audit"
)

// AuditEntry is one line of the trail. Append-only; it refers to nothing, so that
// it outlives what it tells of.
type AuditEntry struct{ ent.Schema }

// Fields of the table.
func (AuditEntry) Fields() []ent.Field {
	return []ent.Field{
		id(),
		field.Int64("index").Comment("gapless from 0, in commit order (RULES U2)"),
		moment("at", ""),
		must("event", ""),
		maybeRef("actor_id", "NULL: the server itself"),
		maybeRef("source_id", ""),
		maybeRef("skill_id", ""),
		maybeRef("run_id", ""),
		maybe("digest", ""),
		must("detail", "JSON: names, counts, ids and codes"),
		must("canonical", "the bytes that were hashed"),
		field.Bytes("leaf_hash").Comment("RFC 6962 leaf hash of canonical"),
	}
}

// Indexes of the table: one for each filter, each in the order of the pages.
func (AuditEntry) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("index").Unique(),
		index.Fields("event", "index"),
		index.Fields("actor_id", "index"),
		index.Fields("source_id", "index"),
		index.Fields("skill_id", "index"),
		index.Fields("run_id", "index"),
		index.Fields("digest", "index"),
		index.Fields("at", "index"),
	}
}

// Annotations of the table.
func (AuditEntry) Annotations() []schema.Annotation {
	return table("audit_entries",
		enum("event", audit.IngestCreated, audit.IngestUpdated, audit.IngestDisabledOnChange, audit.Orphaned,
			audit.FingerprintRejected, audit.SkillEnabled, audit.SkillDisabled, audit.SkillAttached,
			audit.SkillDetached, audit.SkillMoved, audit.VersionApproved, audit.VersionApprovalRefused,
			audit.VersionRevoked, audit.IntegrityFailed, audit.SourceCreated, audit.SourceUpdated,
			audit.SourceDeleted, audit.SourceTrustChanged, audit.RunStarted, audit.RunRefused, audit.RunDecided,
			audit.RunDecisionRefused, audit.RunEnded, audit.ToolDenied, audit.WriteExecuted, audit.UnapprovedWrite,
			audit.TokenCreated, audit.TokenRevoked, audit.GrantChanged, audit.SettingChanged, audit.SnippetMarked,
			audit.SnippetMarkRefused, audit.ProcessEnded, audit.InjectionBlocked, audit.AdoptionFailed,
			audit.UserCreated, audit.ProviderCreated, audit.ProviderUpdated, audit.ConfigurationCreated,
			audit.ConfigurationUpdated, audit.ToolSwitched, audit.AttachmentUpdated, audit.SourceSynced,
			audit.ContentChanged),
		notNegative("index"),
	)
}

// AuditHead is the one row that numbers audit entries: whoever takes numbers from
// it holds its lock until commit, so that indexes are gapless and in commit order.
type AuditHead struct{ ent.Schema }

// Fields of the table.
func (AuditHead) Fields() []ent.Field {
	return []ent.Field{
		one(),
		field.Int64("size").Comment("how many entries there are: the next index"),
	}
}

// Annotations of the table.
func (AuditHead) Annotations() []schema.Annotation {
	return table("audit_head", single(), notNegative("size"))
}
