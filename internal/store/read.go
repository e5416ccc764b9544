package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/countersign/countersign/ent"
	"github.com/countersign/countersign/internal/fault"
)

// reading is the error of a read: NOT_FOUND for a row that is not there, said with
// what was looked for.
func reading(ctx context.Context, err error, what string) error {
	if ent.IsNotFound(err) {
		return fault.New(fault.NotFound, "There is no such %s.", what)
	}
	return failed(ctx, err, "read a "+what)
}

// one maps the row that a query found.
func one[R, T any](ctx context.Context, what string, row *R, err error, to func(*R) T) (T, error) {
	if err != nil {
		var none T
		return none, reading(ctx, err, what)
	}
	return to(row), nil
}

// all maps the rows that a query found; no rows are an empty list.
func all[R, T any](ctx context.Context, what string, rows []*R, err error, to func(*R) T) ([]T, error) {
	if err != nil {
		return nil, reading(ctx, err, what)
	}
	out := make([]T, len(rows))
	for i, row := range rows {
		out[i] = to(row)
	}
	return out, nil
}

// decoded reads a JSON column; NULL, the empty text and null are the zero value.
func decoded[T any](text string) (T, error) {
	var v T
	if text == "" {
		return v, nil
	}
	err := json.Unmarshal([]byte(text), &v)
	return v, err
}

// lenient reads a JSON column whose content is not trusted but checked elsewhere:
// what cannot be read is the zero value.
func lenient[T any](text string) T {
	v, err := decoded[T](text)
	if err != nil {
		var none T
		return none
	}
	return v
}

// utc is a stored time as it was written: PostgreSQL answers in the session's zone.
func utc(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	moved := at.UTC()
	return &moved
}

// known is the zero id for NULL.
func known(id *uuid.UUID) uuid.UUID {
	if id == nil {
		return uuid.Nil
	}
	return *id
}

// paged is a page of rows ordered by id, ascending or descending. Reading backward
// begins at the other end; in turns such a page around, so that it is always in the
// list's order.
type paged struct {
	cursor     uuid.UUID
	limit      int
	backward   bool
	descending bool // the list's order
}

// on bounds and orders a query.
func (p paged) on(s *entsql.Selector) {
	column := s.C("id")
	up := p.descending == p.backward // which way the query walks through the ids
	switch {
	case p.cursor == uuid.Nil:
	case up:
		s.Where(entsql.GT(column, p.cursor))
	default:
		s.Where(entsql.LT(column, p.cursor))
	}
	if up {
		s.OrderBy(entsql.Asc(column))
	} else {
		s.OrderBy(entsql.Desc(column))
	}
	s.Limit(p.limit)
}

// in turns the rows of a backward page around.
func in[T any](p paged, rows []T) []T {
	if p.backward {
		slices.Reverse(rows)
	}
	return rows
}

// places are n parameters of a statement written by hand, after the first from.
func (s *Store) places(from, n int) string {
	places := make([]string, n)
	for i := range places {
		places[i] = "?"
		if s.dialect == dialect.Postgres {
			places[i] = fmt.Sprintf("$%d", from+i+1)
		}
	}
	return strings.Join(places, ", ")
}
