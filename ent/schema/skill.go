package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/index"

	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/skill"
)

// trustLevels are the levels a source may have (RULES A1).
var trustLevels = []skill.TrustLevel{skill.Untrusted, skill.Community, skill.Verified, skill.FirstParty}

// processes are what a version may say about being a process (RULES S14).
var processes = []skill.Process{skill.ProcessNo, skill.ProcessYes, skill.ProcessUnreadable}

// Source is where skills come from.
type Source struct{ ent.Schema }

// Fields of the table.
func (Source) Fields() []ent.Field {
	return []ent.Field{
		id(),
		must("title", "shown to people"),
		must("type", "how it is read"),
		text("url", "empty for an authored source"),
		text("ref", "branch, tag or commit; empty asks for the default branch"),
		text("pinned_commit", "40 hexadecimal digits; beats ref"),
		sealed("access_token", "of the upstream"),
		must("trust_level", "acts at once on instructing and pins (RULES A10)"),
		text("expected_fingerprint", "what a sync must match, if anything (RULES S10)"),
		flag("enabled", "a disabled source is not synced"),
		must("sync_status", "how the last sync went"),
		text("sync_error", "why it did not go well"),
		maybeMoment("last_synced_at", "NULL: never"),
		text("head_commit", "of the last complete sync"),
		number("files_seen", "by the sync that runs, or by the last one (RULES S11)"),
		number("files_done", "of those seen"),
		number("files_failed", "of those done"),
		maybe("lease_owner", "who syncs now (RULES S11)"),
		maybeMoment("lease_until", "after this anybody may take over"),
		moment("created_at", ""),
	}
}

// Annotations of the table.
func (Source) Annotations() []schema.Annotation {
	return table("sources",
		enum("type", library.SingleFile, library.Repo, library.Marketplace, library.Authored),
		enum("trust_level", trustLevels...),
		enum("sync_status", library.NeverSynced, library.Syncing, library.SyncOK, library.SyncPartial, library.SyncError),
	)
}

// versionFields are the columns of everything a digest covers (RULES D1). A record
// and a snapshot have them under the same names.
func versionFields() []ent.Field {
	return []ent.Field{
		must("name", ""),
		text("description", ""),
		text("body", "without frontmatter"),
		must("support_status", "from the body alone"),
		must("allowed_tools", "JSON: state and items"),
		must("process", ""),
	}
}

func versionChecks() []check {
	return []check{
		enum("support_status", skill.SupportFull, skill.SupportPartial),
		enum("process", processes...),
	}
}

// Skill is a skill's record: its current version, where it came from, and what is
// allowed with it.
type Skill struct{ ent.Schema }

// Fields of the table.
func (Skill) Fields() []ent.Field {
	return append([]ent.Field{
		id(),
		ref("source_id", "where it comes from"),
		must("identifier", "unique in its source (RULES S6)"),
		text("digest", "written by the sync; empty for a legacy row, not read for an authored skill (RULES W1)"),
		text("body_checksum", "SHA-256 of the body alone (RULES D4)"),
		text("raw_digest", "over all frontmatter text and the body"),
		text("bundle_digest", "over the bundled files"),
		maybe("bundle", "JSON: the bundled files' list"),
		text("frontmatter", "as the file had it"),
		maybe("parse_status", "NULL for an authored skill"),
		maybe("findings", "JSON: advisory findings"),
		flag("enabled", "the installation-wide switch (RULES L1)"),
		flag("orphaned", "absent upstream (RULES S8)"),
		must("trust_level", "copied from the source at sync (RULES A3)"),
		number("counter", "orders approvals and revocations (RULES A2)"),
		number("origin_counter", "approvals up to here were made before it moved or its source changed its type (RULES S12)"),
		number("revision", "of an authored skill; 1 at creation"),
		moment("created_at", ""),
		moment("updated_at", ""),
	}, versionFields()...)
}

// Edges of the table.
func (Skill) Edges() []ent.Edge {
	return []ent.Edge{to("source", Source.Type, "source_id", entsql.Restrict)}
}

// Indexes of the table.
func (Skill) Indexes() []ent.Index {
	return []ent.Index{index.Fields("source_id", "identifier").Unique()}
}

// Annotations of the table.
func (Skill) Annotations() []schema.Annotation {
	return table("skills", append(versionChecks(),
		enumOrNone("parse_status", skill.ParseOK, skill.ParseRepaired),
		enum("trust_level", trustLevels...),
	)...)
}

// SkillRevision is one edit of an authored skill (RULES W2). Its support status is
// derived from the body.
type SkillRevision struct{ ent.Schema }

// Fields of the table.
func (SkillRevision) Fields() []ent.Field {
	return []ent.Field{
		id(),
		ref("skill_id", ""),
		number("revision", "1 at creation"),
		must("name", ""),
		text("description", ""),
		text("body", ""),
		must("allowed_tools", "JSON: state and items"),
		must("process", ""),
		ref("author_id", "who made the edit"),
		moment("at", ""),
	}
}

// Edges of the table.
func (SkillRevision) Edges() []ent.Edge {
	return []ent.Edge{to("skill", Skill.Type, "skill_id", entsql.Cascade)}
}

// Indexes of the table.
func (SkillRevision) Indexes() []ent.Index {
	return []ent.Index{index.Fields("skill_id", "revision").Unique()}
}

// Annotations of the table.
func (SkillRevision) Annotations() []schema.Annotation {
	return table("skill_revisions", enum("process", processes...))
}

// Approval is the immutable snapshot of one version from one source (RULES A5).
type Approval struct{ ent.Schema }

// Fields of the table.
func (Approval) Fields() []ent.Field {
	return append([]ent.Field{
		id(),
		ref("skill_id", ""),
		ref("source_id", "the source at the time"),
		must("digest", "of the snapshot"),
		number("counter", "its place among the skill's approvals and revocations"),
		must("trust_level", "of the source at the time"),
		text("raw_digest", "at the time"),
		text("bundle_digest", "at the time"),
		maybe("bundle", "JSON: the bundled files' list at the time"),
		ref("approver_id", "the person who countersigned"),
		text("comment", ""),
		moment("at", ""),
	}, versionFields()...)
}

// Edges of the table.
func (Approval) Edges() []ent.Edge {
	return []ent.Edge{
		to("skill", Skill.Type, "skill_id", entsql.Restrict),
		to("source", Source.Type, "source_id", entsql.Restrict),
	}
}

// Indexes of the table.
func (Approval) Indexes() []ent.Index {
	return []ent.Index{index.Fields("skill_id", "counter").Unique(), index.Fields("source_id")}
}

// Annotations of the table.
func (Approval) Annotations() []schema.Annotation {
	return table("approvals", append(versionChecks(), enum("trust_level", trustLevels...))...)
}

// Revocation withdraws one digest of one skill (RULES A7).
type Revocation struct{ ent.Schema }

// Fields of the table.
func (Revocation) Fields() []ent.Field {
	return []ent.Field{
		id(),
		ref("skill_id", ""),
		must("digest", ""),
		number("counter", "its place among the skill's approvals and revocations"),
		text("reason", ""),
		ref("actor_id", "who withdrew it"),
		moment("at", ""),
	}
}

// Edges of the table.
func (Revocation) Edges() []ent.Edge {
	return []ent.Edge{to("skill", Skill.Type, "skill_id", entsql.Restrict)}
}

// Indexes of the table.
func (Revocation) Indexes() []ent.Index {
	return []ent.Index{index.Fields("skill_id", "counter").Unique()}
}

// Annotations of the table.
func (Revocation) Annotations() []schema.Annotation { return table("revocations") }

// IntegrityFailure remembers that a failed integrity check was audited, so that it
// is audited once (RULES D6).
type IntegrityFailure struct{ ent.Schema }

// Fields of the table.
func (IntegrityFailure) Fields() []ent.Field {
	return []ent.Field{
		id(),
		ref("skill_id", ""),
		must("stored", "the digest on the row"),
		must("computed", "the digest of the row's fields"),
		moment("at", ""),
	}
}

// Edges of the table.
func (IntegrityFailure) Edges() []ent.Edge {
	return []ent.Edge{to("skill", Skill.Type, "skill_id", entsql.Cascade)}
}

// Indexes of the table.
func (IntegrityFailure) Indexes() []ent.Index {
	return []ent.Index{index.Fields("skill_id", "stored", "computed").Unique()}
}

// Annotations of the table.
func (IntegrityFailure) Annotations() []schema.Annotation { return table("integrity_failures") }
