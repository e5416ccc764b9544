// Package store keeps everything in a database: SQLite in a file, or PostgreSQL.
// It implements the ports that the rooms declare; rules live in the rooms. Every
// write enters through Apply as a change.Change; every read is an ent query. It is
// the only package that imports ent.
//
// A Store is safe for concurrent use. Writes wait their turn in a fair queue: one
// at a time on SQLite, as many as there are connections on PostgreSQL. Reads never
// wait for writes. What Apply acknowledged is durable and visible to every read
// that begins afterwards.
package store

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"golang.org/x/sync/semaphore"

	"github.com/countersign/countersign/ent"
	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/chat"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/once"
)

// The ports that the store implements.
var (
	_ change.Applier = (*Store)(nil)
	_ access.Store   = (*Store)(nil)
	_ library.Store  = (*Store)(nil)
	_ agent.Store    = (*Store)(nil)
	_ content.Store  = (*Store)(nil)
	_ audit.Store    = (*Store)(nil)
	_ once.Store     = (*Store)(nil)
	_ chat.Store     = (*Store)(nil)
)

// Bell is rung after a commit, once for each topic that the commit concerns. It
// must not block.
type Bell interface {
	Ring(topics ...change.Topic)
}

// Store is a database that is open.
type Store struct {
	dialect string
	path    string // of the SQLite file
	schema  string // of PostgreSQL
	writer  *sql.DB
	reader  *sql.DB // the writer itself on PostgreSQL
	read    dialect.Driver
	client  *ent.Client
	turn    *semaphore.Weighted

	gathering gathering // of steps that wait for a turn
	bell      Bell
	log       *slog.Logger
	keys      func(installed bool) ([]Key, error)
	onClose   []func() error // in reverse order

	settling sync.Mutex
	sealer   atomic.Pointer[sealer] // nil until the store was found ready
}

// Ready reports whether the store can be used: the database answers, no migration
// is pending, history cannot be changed and the encryption key is the right one.
func (s *Store) Ready(ctx context.Context) error {
	if err := s.writer.PingContext(ctx); err != nil {
		return failed(ctx, err, "reach the database")
	}
	s.settling.Lock()
	defer s.settling.Unlock()
	if s.sealer.Load() != nil {
		return nil
	}
	return s.settle(ctx)
}

// seals returns the keys once the store is ready.
func (s *Store) seals() (*sealer, error) {
	if ready := s.sealer.Load(); ready != nil {
		return ready, nil
	}
	return nil, fault.New(fault.Unavailable, "The database is not ready: migrations are pending.")
}

// Channel is the PostgreSQL channel on which every commit of this schema is
// notified; empty on SQLite. The payload lists topics, one a line; an empty one
// means that anything may have changed.
func (s *Store) Channel() string {
	if s.dialect != dialect.Postgres {
		return ""
	}
	return channelOf(s.schema)
}

// dataVersion changes whenever another process commits to the SQLite file, as seen
// by one connection.
const dataVersion = "PRAGMA data_version"

// Watch opens a connection that tells whether another process has committed to the
// SQLite file: two equal answers mean that none has. It is for one caller at a
// time, who closes it.
func (s *Store) Watch(ctx context.Context) (version func(context.Context) (int64, error), closeIt func() error, err error) {
	if s.dialect != dialect.SQLite {
		return nil, nil, errors.New("only an SQLite database is watched; PostgreSQL notifies")
	}
	conn, err := s.reader.Conn(ctx)
	if err != nil {
		return nil, nil, failed(ctx, err, "open a connection")
	}
	return func(ctx context.Context) (v int64, err error) {
		err = conn.QueryRowContext(ctx, dataVersion).Scan(&v)
		return v, failed(ctx, err, "read the data version")
	}, conn.Close, nil
}

// Close lets go of the database. Whoever still uses the store gets errors.
func (s *Store) Close() error {
	var all error
	for i := len(s.onClose) - 1; i >= 0; i-- {
		all = errors.Join(all, s.onClose[i]())
	}
	s.onClose = nil
	return all
}

// query runs a statement that no ent builder can say.
func (s *Store) query(ctx context.Context, statement string, args []any, each func(*entsql.Rows) error) error {
	rows := &entsql.Rows{}
	if err := s.read.Query(ctx, statement, args, rows); err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
