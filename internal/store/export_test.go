package store

import "database/sql"

// Writer is the store's own connection, for tests that do what a use case cannot.
func (s *Store) Writer() *sql.DB { return s.writer }

// AppendOnly names the triggers that a database must have.
func (s *Store) AppendOnly() []string { return appendOnly[s.dialect] }

// LockFile takes a lock as the store does.
var LockFile = tryLock

// SealedColumns are the columns that a rotation seals anew.
var SealedColumns = sealedColumns
