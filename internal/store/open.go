package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/lib/pq"
	"golang.org/x/sync/semaphore"
	_ "modernc.org/sqlite" // registers the driver

	"github.com/countersign/countersign/ent"
	"github.com/countersign/countersign/internal/change"
)

// Options say how a database is opened. The zero value is good for a command on an
// embedded database.
type Options struct {
	// Keys encrypt at rest; the first one encrypts. Without any, an embedded
	// database gets a key file beside it; PostgreSQL needs them.
	Keys []Key
	// Bell is rung after every commit.
	Bell Bell
	// Logger is told what nobody is answered with; slog's default when nil.
	Logger *slog.Logger
	// Connections bounds the PostgreSQL connections; 0 is one more than there are
	// processors. More make it slower.
	Connections int
	// Serve refuses a second server on one SQLite file. Commands leave it false and
	// may share the file with a server.
	Serve bool
	// KeepSchema leaves pending migrations alone; Ready fails until somebody else
	// applied them.
	KeepSchema bool
	// OnQuery sees every read's statement, for tracing and tests.
	OnQuery func(statement string)
}

// silent is the bell of a store without one.
type silent struct{}

func (silent) Ring(...change.Topic) {}

// Open opens `sqlite:PATH`, `sqlite::memory:` (a database that is gone when it is
// closed) or `postgres://…`, migrates it unless told otherwise, and refuses one
// whose history could be changed or whose encryption key is another.
func Open(ctx context.Context, at string, options Options) (*Store, error) {
	s := &Store{bell: options.Bell, log: options.Logger}
	if s.bell == nil {
		s.bell = silent{}
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	if err := s.open(ctx, at, options); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, at string, options Options) error {
	scheme, rest, _ := strings.Cut(at, ":")
	var err error
	switch scheme {
	case "sqlite":
		err = s.openSQLite(rest, options)
	case "postgres", "postgresql":
		err = s.openPostgres(ctx, at, options)
	default:
		err = fmt.Errorf("the database URL must begin with sqlite: or postgres://, not %q", scheme+":")
	}
	if err != nil {
		return err
	}
	s.read = observed{entsql.OpenDB(s.dialect, s.reader), options.OnQuery}
	s.client = ent.NewClient(ent.Driver(s.read))
	if options.KeepSchema {
		pending, err := s.Pending(ctx)
		if err != nil || pending > 0 {
			return err
		}
	} else if err := s.Migrate(ctx); err != nil {
		return err
	}
	return s.settle(ctx)
}

// pragmas are set on every SQLite connection. Without recursive triggers INSERT OR
// REPLACE would pass the append-only ones; synchronous FULL is what makes an
// acknowledged commit durable in WAL mode.
var pragmas = []string{
	"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "recursive_triggers(1)",
}

func (s *Store) openSQLite(path string, options Options) error {
	s.dialect, s.path = dialect.SQLite, path
	if path == "" {
		return errors.New("the database URL names no file: write sqlite:PATH")
	}
	if path == ":memory:" {
		folder, err := os.MkdirTemp("", "countersign-")
		if err != nil {
			return fmt.Errorf("make a database: %w", err)
		}
		s.onClose = append(s.onClose, func() error { return os.RemoveAll(folder) })
		s.path = filepath.Join(folder, "countersign.db")
	}
	if options.Serve {
		release, err := tryLock(s.path + ".lock")
		if errors.Is(err, errHeld) {
			return fmt.Errorf("another server uses %s: one SQLite file has one server; use PostgreSQL for more", s.path)
		}
		if err != nil {
			return fmt.Errorf("lock %s: %w", s.path, err)
		}
		s.onClose = append(s.onClose, release)
	}
	if err := private(s.path); err != nil {
		return err
	}
	s.keys = func(installed bool) ([]Key, error) {
		if len(options.Keys) > 0 {
			return options.Keys, nil
		}
		return keyFile(strings.TrimSuffix(s.path, filepath.Ext(s.path))+".key", installed)
	}
	for _, pool := range []struct {
		db    **sql.DB
		size  int
		extra []string
	}{
		{&s.writer, 1, nil},
		{&s.reader, max(4, runtime.NumCPU()) + 1, []string{"query_only(1)"}},
	} {
		db, err := sql.Open("sqlite", sqliteDSN(s.path, pool.extra...))
		if err != nil {
			return fmt.Errorf("open %s: %w", s.path, err)
		}
		db.SetMaxOpenConns(pool.size)
		db.SetMaxIdleConns(pool.size)
		s.onClose = append(s.onClose, db.Close)
		*pool.db = db
	}
	s.turn = semaphore.NewWeighted(1)
	return nil
}

// private makes a new database's file readable by its owner alone. SQLite gives its
// journal files the same mode.
func private(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	return file.Close()
}

func sqliteDSN(path string, extra ...string) string {
	query := url.Values{
		"_pragma":      append(append([]string{}, pragmas...), extra...),
		"_txlock":      {"immediate"},
		"_time_format": {"sqlite"},
		"_timezone":    {"UTC"},
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + query.Encode()
}

func (s *Store) openPostgres(ctx context.Context, at string, options Options) error {
	s.dialect = dialect.Postgres
	config, err := pq.NewConfig(at)
	if err != nil {
		return fmt.Errorf("read the database URL: %w", withoutURL(err))
	}
	// A statement and its arguments go in one round trip instead of two.
	config.BinaryParameters = true
	connector, err := pq.NewConnectorConfig(config)
	if err != nil {
		return fmt.Errorf("read the database URL: %w", withoutURL(err))
	}
	if len(options.Keys) == 0 {
		return fmt.Errorf("a PostgreSQL database needs an encryption key: set COUNTERSIGN_ENCRYPTION_KEY, for example to\n  %s", newKey())
	}
	s.keys = func(bool) ([]Key, error) { return options.Keys, nil }
	size := options.Connections
	if size < 1 {
		size = max(3, runtime.NumCPU()+1)
	}
	s.writer = sql.OpenDB(connector)
	s.writer.SetMaxOpenConns(size)
	s.writer.SetMaxIdleConns(size)
	s.onClose = append(s.onClose, s.writer.Close)
	s.reader = s.writer
	s.turn = semaphore.NewWeighted(int64(size))
	var schema sql.NullString
	if err := s.writer.QueryRowContext(ctx, "SELECT current_schema()").Scan(&schema); err != nil {
		return failed(ctx, err, "reach the database")
	}
	if !schema.Valid {
		return errors.New("the database URL's search_path names no schema that exists")
	}
	s.schema = schema.String
	return nil
}

// withoutURL keeps a URL with its password out of a message.
func withoutURL(err error) error {
	var parsing *url.Error
	if errors.As(err, &parsing) {
		return parsing.Err
	}
	return err
}

// keyFile reads the key file of an embedded database, and makes it for a new one.
func keyFile(path string, installed bool) ([]Key, error) {
	content, err := os.ReadFile(path)
	switch {
	case err == nil:
		return ParseKeys(string(content))
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read the encryption key: %w", err)
	case installed:
		return nil, fmt.Errorf("the key file %s is missing: put it back, or set COUNTERSIGN_ENCRYPTION_KEY; "+
			"without it nobody can read what the database keeps encrypted", path)
	}
	key := newKey()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the encryption key: %w", err)
	}
	_, err = file.WriteString(key.String() + "\n")
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return nil, fmt.Errorf("make the encryption key: %w", err)
	}
	return []Key{key}, nil
}

// observed is a driver whose queries are seen.
type observed struct {
	dialect.Driver
	see func(statement string)
}

func (o observed) Query(ctx context.Context, statement string, args, v any) error {
	if o.see != nil {
		o.see(statement)
	}
	return o.Driver.Query(ctx, statement, args, v)
}
