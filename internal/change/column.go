package change

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Table names a table of the store. The rooms declare the tables and columns
// they change; a test of the store holds every declaration against its schema.
type Table string

// Value is one column with the value it is compared with or set to.
type Value struct {
	Column string
	// Arg is nil, a string, bool, int64, time.Time, uuid.UUID or []byte.
	Arg any
	// Seal asks the store to encrypt Arg (a string) at rest.
	Seal bool
	// In, when not nil, makes a guard hold for any of these.
	In []any
	// Before, when set, makes a guard hold for times before it.
	Before time.Time
}

// Column is a typed column: what may be written to it is what its room says.
type Column[T any] struct {
	table  Table
	name   string
	encode func(T) any
	seal   bool
}

// Table returns the table the column belongs to.
func (c Column[T]) Table() Table { return c.table }

// Name returns the column's name.
func (c Column[T]) Name() string { return c.name }

// Declared is a column that some room declared, as the store's test needs it.
type Declared struct {
	Table  Table
	Column string
	Sealed bool
}

// declared grows only while packages initialise.
var declared []Declared

// Columns lists every column that the rooms of this program declare.
func Columns() []Declared { return slices.Clone(declared) }

func column[T any](table Table, name string, seal bool, encode func(T) any) Column[T] {
	declared = append(declared, Declared{Table: table, Column: name, Sealed: seal})
	return Column[T]{table: table, name: name, encode: encode, seal: seal}
}

// To is the column set to v, or compared with it.
func (c Column[T]) To(v T) Value { return Value{Column: c.name, Arg: c.encode(v), Seal: c.seal} }

// Is guards that the column holds v.
func (c Column[T]) Is(v T) Value { return c.To(v) }

// In guards that the column holds one of vs.
func (c Column[T]) In(vs ...T) Value {
	out := Value{Column: c.name, In: make([]any, len(vs))}
	for i, v := range vs {
		out.In[i] = c.encode(v)
	}
	return out
}

// Null is the column set to NULL, or guarded to be NULL.
func (c Column[T]) Null() Value { return Value{Column: c.name} }

// Maybe is To for a pointer: nil is NULL.
func (c Column[T]) Maybe(v *T) Value {
	if v == nil {
		return c.Null()
	}
	return c.To(*v)
}

// Text declares a column of text or of a string enum.
func Text[T ~string](table Table, name string) Column[T] {
	return column(table, name, false, func(v T) any { return string(v) })
}

// Sealed declares a text column that is encrypted at rest. It cannot be guarded.
func Sealed(table Table, name string) Column[string] {
	return column(table, name, true, func(v string) any { return v })
}

// Int declares an integer column.
func Int(table Table, name string) Column[int] {
	return column(table, name, false, func(v int) any { return int64(v) })
}

// Bool declares a boolean column.
func Bool(table Table, name string) Column[bool] {
	return column(table, name, false, func(v bool) any { return v })
}

// ID declares a column that holds the id of a row.
func ID(table Table, name string) Column[uuid.UUID] {
	return column(table, name, false, func(v uuid.UUID) any { return v })
}

// JSON declares a text column that holds v as JSON. What is kept are the bytes:
// it is never a database's own JSON type, which would rewrite them.
func JSON[T any](table Table, name string) Column[T] {
	return column(table, name, false, func(v T) any {
		b, err := json.Marshal(v)
		if err != nil {
			panic(fmt.Sprintf("change: %s.%s cannot hold %T: %v", table, name, v, err))
		}
		return string(b)
	})
}

// TimeColumn is a column of times, which can also be guarded to lie in the past.
type TimeColumn struct{ Column[time.Time] }

// Time declares a column of times (UTC, microseconds).
func Time(table Table, name string) TimeColumn {
	return TimeColumn{column(table, name, false, func(v time.Time) any {
		return v.UTC().Truncate(time.Microsecond)
	})}
}

// Before guards that the column holds a time before t. NULL does not.
func (c TimeColumn) Before(t time.Time) Value {
	return Value{Column: c.name, Before: t.UTC().Truncate(time.Microsecond)}
}
