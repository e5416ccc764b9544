package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"github.com/countersign/countersign/internal/content"
)

// ContentRecord is a record as it stands now.
type ContentRecord struct{ ent.Schema }

// Fields of the table.
func (ContentRecord) Fields() []ent.Field {
	return []ent.Field{
		id(),
		must("table_name", "page, element or file"),
		must("record_id", "the record's own name"),
		text("parent_id", "record id of its page; empty at the root"),
		maybe("translation_of", "record id in the same table of what it translates; empty for an original"),
		number("position", "among its siblings"),
		field.Text("values").StorageKey("fields").Comment("JSON object whose keys the table declares"),
		number("revision", "1 at creation, one more at each write"),
		flag("hidden", "not published"),
		flag("deleted", "kept for its history"),
		moment("updated_at", ""),
	}
}

// Indexes of the table.
func (ContentRecord) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("table_name", "record_id").Unique(),
		index.Fields("table_name", "parent_id", "position"),
		index.Fields("table_name", "updated_at"),
		index.Fields("table_name", "translation_of"),
	}
}

// Annotations of the table.
func (ContentRecord) Annotations() []schema.Annotation {
	return table("content_records",
		enum("table_name", content.PageTable, content.ElementTable, content.FileTable))
}

// ContentRevision is one entry of a record's history.
type ContentRevision struct{ ent.Schema }

// Fields of the table.
func (ContentRevision) Fields() []ent.Field {
	return []ent.Field{
		id(),
		ref("record", "the record's row"),
		number("revision", "the record's revision from this entry on"),
		must("kind", "create, update, move, delete, publish"),
		field.Text("values").StorageKey("fields").Comment("JSON object: the fields from this revision on"),
		field.Text("parent_id").Optional().Nillable().Comment("where it stood from this revision on; NULL before that was kept"),
		field.Bool("hidden").Optional().Nillable().Comment("whether it was hidden from this revision on; NULL before that was kept"),
		maybeRef("actor_id", "who wrote"),
		maybeRef("run_id", "NULL without a run"),
		field.Text("call_key").Optional().Nillable().Comment("NULL without a run; a call writes once"),
		moment("at", ""),
	}
}

// Edges of the table.
func (ContentRevision) Edges() []ent.Edge {
	return []ent.Edge{to("of", ContentRecord.Type, "record", entsql.Cascade)}
}

// Indexes of the table.
func (ContentRevision) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("record", "revision").Unique(),
		index.Fields("run_id", "call_key").Unique(),
	}
}

// Annotations of the table.
func (ContentRevision) Annotations() []schema.Annotation {
	return table("content_revisions", enum("kind", "create", "update", "move", "delete", "publish"))
}
