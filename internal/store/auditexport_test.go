package store

import (
	"context"

	"entgo.io/ent/dialect"

	"github.com/countersign/countersign/ent"
)

// Asked is a query that the store sent.
type Asked struct {
	Statement string
	Args      []any
}

// Asks lists the queries that a read sends.
func (s *Store) Asks(read func()) []Asked {
	var seen []Asked
	client, driver := s.client, s.read
	s.read = asking{driver, &seen}
	s.client = ent.NewClient(ent.Driver(s.read))
	defer func() { s.client, s.read = client, driver }()
	read()
	return seen
}

type asking struct {
	dialect.Driver
	seen *[]Asked
}

func (a asking) Query(ctx context.Context, statement string, args, v any) error {
	*a.seen = append(*a.seen, Asked{statement, args.([]any)})
	return a.Driver.Query(ctx, statement, args, v)
}
