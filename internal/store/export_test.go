package store

import (
	"context"
	"database/sql"
)

// Writer is the store's own connection, for tests that do what a use case cannot.
func (s *Store) Writer() *sql.DB { return s.writer }

// AppendOnly names the triggers that a database must have.
func (s *Store) AppendOnly() []string { return appendOnly[s.dialect] }

// LockFile takes a lock as the store does.
var LockFile = tryLock

// SealedColumns are the columns that a rotation seals anew.
var SealedColumns = sealedColumns

// Occupy takes every turn to write, until the function it returns is called.
func (s *Store) Occupy(ctx context.Context) (leave func(), err error) {
	all := int64(s.writer.Stats().MaxOpenConnections)
	return func() { s.turn.Release(all) }, s.turn.Acquire(ctx, all)
}

// Waiting is how many changes wait to be gathered.
func (s *Store) Waiting() int {
	s.gathering.mu.Lock()
	defer s.gathering.mu.Unlock()
	return len(s.gathering.queue)
}
