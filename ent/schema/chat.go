package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"github.com/countersign/countersign/internal/chat"
)

// Conversation is a conversation's row.
type Conversation struct{ ent.Schema }

// Fields of the table.
func (Conversation) Fields() []ent.Field {
	return []ent.Field{
		id(),
		ref("owner_id", "whose it is"),
		ref("configuration_id", "what its next turn runs with"),
		text("title", ""),
		text("search", "the title without its case"),
		must("status", "guards every change (RULES V1)"),
		maybeRef("run_id", "of the last turn, which may be gone; NULL before the first"),
		number("seen", "how many events of that run are in the log"),
		maybeRef("skill_id", "its own skill, which may be gone"),
		maybe("subject", "JSON: the record it works on"),
		flag("started", "turns derive the skill from the run before"),
		maybe("card", "JSON: what it waits with and what became of it; names and codes"),
		sealed("input", "the values of an answer on its way"),
		sealed("queue", "JSON: messages for the next turn"),
		number("queued", "how many there are"),
		flag("pinned", "exempt from retention"),
		maybeMoment("archived_at", ""),
		text("lease_owner", "who brings something to the runtime"),
		maybeMoment("lease_until", "after this somebody else does"),
		number("entries", "how many entries its log has; guards every change"),
		moment("created_at", ""),
		moment("active_at", "of the last message, answer or result"),
	}
}

// Edges of the table.
func (Conversation) Edges() []ent.Edge {
	return []ent.Edge{
		to("owner", User.Type, "owner_id", entsql.Restrict),
		to("configuration", Configuration.Type, "configuration_id", entsql.Restrict),
	}
}

// Indexes of the table.
func (Conversation) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("owner_id", "id"),
		index.Fields("status"),
		index.Fields("active_at"),
		index.Fields("configuration_id"),
	}
}

// Annotations of the table.
func (Conversation) Annotations() []schema.Annotation {
	return table("conversations", enum("status", chat.Statuses...), notNegative("entries"))
}

// ConversationEntry is one entry of a conversation's log. Append-only: it goes only with
// its conversation.
type ConversationEntry struct{ ent.Schema }

// Fields of the table.
func (ConversationEntry) Fields() []ent.Field {
	return []ent.Field{
		id(),
		ref("conversation_id", ""),
		field.Int("sequence").Comment("gapless from 0 in its conversation"),
		must("kind", ""),
		must("status", "of the conversation once this was appended"),
		maybeRef("run_id", "the turn it belongs to, which may be gone"),
		sealed("text", "of a message or an answer"),
		must("data", "JSON: names, counts and codes"),
		moment("at", ""),
	}
}

// Edges of the table.
func (ConversationEntry) Edges() []ent.Edge {
	return []ent.Edge{to("conversation", Conversation.Type, "conversation_id", entsql.Cascade)}
}

// Indexes of the table.
func (ConversationEntry) Indexes() []ent.Index {
	return []ent.Index{index.Fields("conversation_id", "sequence").Unique()}
}

// Annotations of the table.
func (ConversationEntry) Annotations() []schema.Annotation {
	return table("conversation_entries", enum("kind", chat.Kinds...), enum("status", chat.Statuses...), notNegative("sequence"))
}

// OpenPoint is a finding that somebody skipped.
type OpenPoint struct{ ent.Schema }

// Fields of the table.
func (OpenPoint) Fields() []ent.Field {
	return []ent.Field{
		id(),
		field.Text("key").Unique().Comment("process, subject, target and fields, as one digest (RULES O2)"),
		ref("skill_id", "the process that found it, which may be gone"),
		maybe("subject", "JSON: the record that the process worked on"),
		must("target_table", ""),
		must("target_id", ""),
		must("fields", "JSON: the sorted names of the fields; empty for a move, a publication or a deletion"),
		must("tool", "the write that was skipped"),
		ref("skipped_by", "who skipped it last"),
		ref("conversation_id", "where, which may be gone"),
		ref("run_id", "in which turn, which may be gone"),
		moment("skipped_at", "when it was skipped last"),
		number("times", "how often it was skipped"),
		maybeMoment("closed_at", "when a write on the same record and fields was applied; NULL while it is open"),
		maybeRef("closed_run_id", "the turn that applied it"),
		moment("created_at", ""),
	}
}

// Indexes of the table.
func (OpenPoint) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("target_table", "target_id"),
		index.Fields("skill_id"),
	}
}

// Annotations of the table.
func (OpenPoint) Annotations() []schema.Annotation { return table("open_points") }
