package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/index"

	"github.com/countersign/countersign/internal/once"
)

// IdempotencyKey is a key that a client gave a mutation. Its id is a hash of actor,
// mutation and key.
type IdempotencyKey struct{ ent.Schema }

// Fields of the table.
func (IdempotencyKey) Fields() []ent.Field {
	return []ent.Field{
		id(),
		ref("actor_id", "whose key it is"),
		must("mutation", ""),
		sealed("input", "digest of the input: the key with another one is a conflict"),
		must("status", "how far the mutation is"),
		text("holder", "the request that carries the mutation out"),
		maybeMoment("lease_until", "after this the holder is taken for dead"),
		sealed("effect", "JSON: what has been done under the key, stored with it"),
		sealed("answer", "JSON: the payload, with ids for objects"),
		moment("created_at", ""),
		moment("expires_at", "the key is free again after this"),
	}
}

// Indexes of the table.
func (IdempotencyKey) Indexes() []ent.Index {
	return []ent.Index{index.Fields("expires_at")}
}

// Annotations of the table.
func (IdempotencyKey) Annotations() []schema.Annotation {
	return table("idempotency_keys", enum("status", once.Statuses...))
}
