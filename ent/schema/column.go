// Package schema declares the tables of the store. The rooms declare the columns
// they change and know nothing of this package; it knows the rooms only for the
// values of their enums, which become CHECK constraints.
//
// Conventions: ids are UUIDs made by the caller; JSON is text, because its bytes
// are kept; times are UTC cut to microseconds; an enum is text with a CHECK; an
// optional text is NULL or empty and both read the same.
package schema

import (
	"fmt"
	"strings"

	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"github.com/google/uuid"
)

// id is a primary key that the caller makes.
func id() ent.Field { return field.UUID("id", uuid.UUID{}) }

// one is the primary key of a table that has exactly one row; see single.
func one() ent.Field {
	return field.Int("id").Annotations(entsql.Annotation{Incremental: new(bool)}).Comment("always 1")
}

// text is a column that always holds text, empty when nothing else is said.
func text(name, comment string) ent.Field {
	return field.Text(name).Default("").Comment(comment)
}

// must is a text column that has no default: whoever inserts the row says it.
func must(name, comment string) ent.Field { return field.Text(name).Comment(comment) }

// maybe is a text column that may be NULL, which reads as the empty text.
func maybe(name, comment string) ent.Field { return field.Text(name).Optional().Comment(comment) }

// sealed is a text that is encrypted at rest: `key:base64`, NULL or empty.
func sealed(name, comment string) ent.Field {
	return field.Text(name).Optional().Sensitive().Comment(comment + "; encrypted at rest")
}

func number(name, comment string) ent.Field {
	return field.Int(name).Default(0).Comment(comment)
}

func flag(name, comment string) ent.Field {
	return field.Bool(name).Default(false).Comment(comment)
}

func moment(name, comment string) ent.Field { return field.Time(name).Comment(comment) }

func maybeMoment(name, comment string) ent.Field {
	return field.Time(name).Optional().Nillable().Comment(comment)
}

// ref holds the id of another row.
func ref(name, comment string) ent.Field { return field.UUID(name, uuid.UUID{}).Comment(comment) }

func maybeRef(name, comment string) ent.Field {
	return field.UUID(name, uuid.UUID{}).Optional().Nillable().Comment(comment)
}

// to is a foreign key on column. What becomes of the row when the row it refers to
// is deleted, on says.
func to(name string, table any, column string, on entsql.ReferenceOption) ent.Edge {
	return edge.To(name, table).Field(column).Unique().Required().Annotations(entsql.OnDelete(on))
}

// maybeTo is a foreign key on a column that may be NULL.
func maybeTo(name string, table any, column string, on entsql.ReferenceOption) ent.Edge {
	return edge.To(name, table).Field(column).Unique().Annotations(entsql.OnDelete(on))
}

// check is a CHECK constraint, called after its column or after what it says of
// several.
type check struct{ column, condition string }

// enum allows exactly these values in a column.
func enum[T ~string](column string, values ...T) check {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = "'" + string(v) + "'"
	}
	return check{column, fmt.Sprintf("%s IN (%s)", column, strings.Join(quoted, ", "))}
}

// enumOrNone also allows NULL and the empty text.
func enumOrNone[T ~string](column string, values ...T) check {
	return enum(column, append([]T{""}, values...)...)
}

// notNegative allows 0 and more.
func notNegative(column string) check {
	return check{column, fmt.Sprintf("%q >= 0", column)}
}

// single allows the one row of a table that has only one.
func single() check { return check{"id", "id = 1"} }

// table names a table and holds its checks, each named table_column.
func table(name string, checks ...check) []schema.Annotation {
	named := map[string]string{}
	for _, c := range checks {
		named[name+"_"+c.column] = c.condition
	}
	return []schema.Annotation{entsql.Annotation{Table: name, Checks: named}}
}
