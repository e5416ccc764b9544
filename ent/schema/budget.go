package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"

	"github.com/countersign/countersign/internal/budget"
)

// Budget limits what models may use up in a period (RULES M1).
type Budget struct{ ent.Schema }

// Fields of the table.
func (Budget) Fields() []ent.Field {
	return []ent.Field{
		id(),
		must("scope", "whose runs it limits"),
		maybeRef("subject_id", "the user or the configuration; NULL for every user"),
		must("period", "how long it lasts; periods are UTC's"),
		number("requests", "0 does not limit"),
		number("tokens", "input and output together; 0 does not limit"),
		field.Int64("cost").Default(0).Comment("millionths; 0 does not limit"),
		moment("updated_at", ""),
	}
}

// Annotations of the table.
func (Budget) Annotations() []schema.Annotation {
	return table("budgets",
		enum("scope", budget.OfUser, budget.OfEveryUser, budget.OfConfiguration),
		enum("period", budget.Day, budget.Month),
	)
}

// Spending is what a user's or a configuration's runs used up on a day. It refers to
// nothing, so that deleting who spent changes no sum.
type Spending struct{ ent.Schema }

// Fields of the table.
func (Spending) Fields() []ent.Field {
	return []ent.Field{
		id(),
		ref("subject_id", "the user or the configuration"),
		must("day", "YYYY-MM-DD, UTC"),
		number("requests", ""),
		number("input_tokens", ""),
		number("output_tokens", ""),
		field.Int64("cost").Default(0).Comment("millionths"),
	}
}

// Annotations of the table.
func (Spending) Annotations() []schema.Annotation { return table("spendings") }
