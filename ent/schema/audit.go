package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
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
			audit.RunDecisionRefused, audit.ProposalEdited, audit.RunEnded, audit.ToolDenied, audit.WriteExecuted, audit.UnapprovedWrite,
			audit.TokenCreated, audit.TokenRevoked, audit.GrantChanged, audit.SettingChanged, audit.SnippetMarked,
			audit.SnippetMarkRefused, audit.ProcessEnded, audit.InjectionBlocked, audit.AdoptionFailed,
			audit.UserCreated, audit.ProviderCreated, audit.ProviderUpdated, audit.ConfigurationCreated,
			audit.ConfigurationUpdated, audit.ToolSwitched, audit.AttachmentUpdated, audit.SourceSynced,
			audit.ContentChanged, audit.RunsRemoved, audit.BudgetSet, audit.BudgetDeleted, audit.NotificationsChanged, audit.RunRequeued,
			audit.MCPServerImported, audit.MCPServerDeleted, audit.MCPToolReviewed, audit.MCPToolReviewRefused, audit.MCPToolChanged),
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

// AuditTile holds hashes of the trail's Merkle tree: up to 256 neighbours of one
// level. It is derived from the entries, grows at its end and never changes
// otherwise; the hashes of removed entries stay in it (RULES U2, U3).
type AuditTile struct{ ent.Schema }

// Fields of the table.
func (AuditTile) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id").Annotations(entsql.Annotation{Incremental: new(bool)}).
			Comment("level·2⁵⁶ + index: tiles of level 0 hold leaves, each level above holds the roots of full tiles below"),
		field.Bytes("hashes").Comment("32 bytes a hash, from the left"),
	}
}

// Annotations of the table.
func (AuditTile) Annotations() []schema.Annotation { return table("audit_tiles", notNegative("id")) }

// AuditTree is the one row that says how far the tiles reach. Whoever adds to them
// moves size in the same transaction, from what it was.
type AuditTree struct{ ent.Schema }

// Fields of the table.
func (AuditTree) Fields() []ent.Field {
	return []ent.Field{
		one(),
		field.Int64("size").Comment("how many entries are in the tiles"),
		maybeMoment("latest", "the latest time among them"),
		field.Int64("disorder").Comment("by how many microseconds at most an entry is older than one before it"),
	}
}

// Annotations of the table.
func (AuditTree) Annotations() []schema.Annotation {
	return table("audit_tree", single(), notNegative("size"))
}

// AuditRetention is the one row that says which entries may be removed: those
// below floor (RULES U3). It only rises, never above the size of the tree.
type AuditRetention struct{ ent.Schema }

// Fields of the table.
func (AuditRetention) Fields() []ent.Field {
	return []ent.Field{
		one(),
		field.Int64("floor").Comment("the index of the oldest entry that must stay"),
	}
}

// Annotations of the table.
func (AuditRetention) Annotations() []schema.Annotation {
	return table("audit_retention", single(), notNegative("floor"))
}

// AuditKey is the one key that signs the checkpoints of this trail. It is made when
// the database is installed.
type AuditKey struct{ ent.Schema }

// Fields of the table.
func (AuditKey) Fields() []ent.Field {
	return []ent.Field{
		one(),
		must("verifier", "the public key, as signed notes write it"),
		field.Text("signer").Sensitive().Comment("the private key; encrypted at rest"),
	}
}

// Annotations of the table.
func (AuditKey) Annotations() []schema.Annotation { return table("audit_key", single()) }
