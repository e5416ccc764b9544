package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"github.com/countersign/countersign/internal/actor"
)

// User is a person or a service account.
type User struct{ ent.Schema }

// Fields of the table.
func (User) Fields() []ent.Field {
	return []ent.Field{
		id(),
		must("name", "shown to other people"),
		must("kind", "person or service account"),
		flag("administrator", "holds every permission"),
		field.Bool("enabled").Default(true).Comment("a disabled user is nobody"),
		moment("created_at", ""),
	}
}

// Annotations of the table.
func (User) Annotations() []schema.Annotation {
	return table("users", enum("kind", actor.Person, actor.ServiceAccount))
}

// Grant gives one permission to one user.
type Grant struct{ ent.Schema }

// Fields of the table.
func (Grant) Fields() []ent.Field {
	return []ent.Field{id(), ref("user_id", "who holds it"), must("permission", "as actor.Permissions names it")}
}

// Edges of the table.
func (Grant) Edges() []ent.Edge {
	return []ent.Edge{to("user", User.Type, "user_id", entsql.Cascade)}
}

// Indexes of the table.
func (Grant) Indexes() []ent.Index {
	return []ent.Index{index.Fields("user_id", "permission").Unique()}
}

// Annotations of the table.
func (Grant) Annotations() []schema.Annotation {
	return table("grants", enum("permission", actor.Permissions...))
}

// Token is a bearer token.
type Token struct{ ent.Schema }

// Fields of the table.
func (Token) Fields() []ent.Field {
	return []ent.Field{
		id(),
		ref("user_id", "whom it signs in"),
		text("name", "what its owner calls it"),
		must("hash", "SHA-256 of the secret, hexadecimal; the secret itself is kept nowhere"),
		moment("created_at", ""),
		maybeMoment("expires_at", "NULL: never"),
		maybeMoment("revoked_at", "NULL: not revoked"),
	}
}

// Edges of the table.
func (Token) Edges() []ent.Edge {
	return []ent.Edge{to("user", User.Type, "user_id", entsql.Cascade)}
}

// Indexes of the table.
func (Token) Indexes() []ent.Index {
	return []ent.Index{index.Fields("hash").Unique(), index.Fields("user_id")}
}

// Annotations of the table.
func (Token) Annotations() []schema.Annotation { return table("tokens") }

// Session is a signed-in browser.
type Session struct{ ent.Schema }

// Fields of the table.
func (Session) Fields() []ent.Field {
	return []ent.Field{
		id(),
		ref("user_id", "who is signed in"),
		must("hash", "SHA-256 of the cookie's secret, hexadecimal"),
		moment("created_at", ""),
		moment("expires_at", ""),
	}
}

// Edges of the table.
func (Session) Edges() []ent.Edge {
	return []ent.Edge{to("user", User.Type, "user_id", entsql.Cascade)}
}

// Indexes of the table.
func (Session) Indexes() []ent.Index {
	return []ent.Index{index.Fields("hash").Unique(), index.Fields("user_id"), index.Fields("expires_at")}
}

// Annotations of the table.
func (Session) Annotations() []schema.Annotation { return table("sessions") }

// SignInCode is the one-time code of a sign-in link.
type SignInCode struct{ ent.Schema }

// Fields of the table.
func (SignInCode) Fields() []ent.Field {
	return []ent.Field{
		id(),
		ref("user_id", "who may sign in with it"),
		must("hash", "SHA-256 of the code, hexadecimal"),
		moment("created_at", ""),
		moment("expires_at", ""),
		maybeMoment("used_at", "NULL: not used"),
	}
}

// Edges of the table.
func (SignInCode) Edges() []ent.Edge {
	return []ent.Edge{to("user", User.Type, "user_id", entsql.Cascade)}
}

// Indexes of the table.
func (SignInCode) Indexes() []ent.Index {
	return []ent.Index{index.Fields("hash").Unique(), index.Fields("user_id"), index.Fields("expires_at")}
}

// Annotations of the table.
func (SignInCode) Annotations() []schema.Annotation { return table("sign_in_codes") }

// Setting is a setting that was changed at least once.
type Setting struct{ ent.Schema }

// Fields of the table.
func (Setting) Fields() []ent.Field {
	return []ent.Field{
		id(),
		must("name", "as the settings' list names it"),
		field.Text("content").StorageKey("value").Comment("as text; checked again whenever it is read"),
	}
}

// Indexes of the table.
func (Setting) Indexes() []ent.Index { return []ent.Index{index.Fields("name").Unique()} }

// Annotations of the table.
func (Setting) Annotations() []schema.Annotation { return table("settings") }
