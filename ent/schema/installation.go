package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema"
)

// Installation is the one row about the installation itself.
type Installation struct{ ent.Schema }

// Fields of the table.
func (Installation) Fields() []ent.Field {
	return []ent.Field{
		one(),
		must("key_check", "a known text under the first encryption key: a start with another key is refused"),
		moment("created_at", ""),
	}
}

// Annotations of the table.
func (Installation) Annotations() []schema.Annotation { return table("installation", single()) }
