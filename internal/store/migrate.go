package store

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"entgo.io/ent/dialect"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/countersign/countersign/migrations"
)

// appendOnly are the triggers that keep what was recorded as it was; a database
// without one of them is refused.
var appendOnly = map[string][]string{
	dialect.SQLite:   triggers("no_update", "no_delete"),
	dialect.Postgres: triggers("no_update", "no_delete", "no_truncate"),
}

func triggers(kinds ...string) []string {
	var names []string
	for _, table := range []string{
		"approvals", "revocations", "run_events", "audit_entries", "audit_tiles", "audit_tree", "audit_retention",
		"conversation_entries",
	} {
		for _, kind := range kinds {
			names = append(names, table+"_"+kind)
		}
	}
	return names
}

// migrator returns goose over the migrations of the store's database.
func (s *Store) migrator() (*goose.Provider, error) {
	options := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true)}
	if s.dialect == dialect.SQLite {
		return goose.NewProvider(goose.DialectSQLite3, s.writer, migrations.SQLite, options...)
	}
	// The lock is of the schema, because several may share a database. It is tried
	// every second for five minutes.
	id := fnv.New32a()
	id.Write([]byte("countersign/migrations/" + s.schema))
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(int64(id.Sum32())), lock.WithLockTimeout(1, 300))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, s.writer, migrations.Postgres, append(options, goose.WithSessionLocker(locker))...)
}

// Migrate applies every pending migration, one process at a time.
func (s *Store) Migrate(ctx context.Context) error {
	provider, err := s.migrator()
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	if pending, err := provider.HasPending(ctx); err == nil && !pending {
		return nil
	}
	if s.dialect == dialect.SQLite {
		release, err := waitForLock(ctx, s.path+".migrate")
		if err != nil {
			return fmt.Errorf("wait for another process to migrate %s: %w", s.path, err)
		}
		defer release()
	}
	if _, err := provider.Up(ctx); err != nil {
		return failed(ctx, err, "migrate the database")
	}
	return nil
}

// Pending counts the migrations that were not applied yet.
func (s *Store) Pending(ctx context.Context) (int, error) {
	provider, err := s.migrator()
	if err != nil {
		return 0, fmt.Errorf("read the migrations: %w", err)
	}
	all, err := provider.Status(ctx)
	if err != nil {
		return 0, failed(ctx, err, "read which migrations were applied")
	}
	pending := 0
	for _, migration := range all {
		if migration.State == goose.StatePending {
			pending++
		}
	}
	return pending, nil
}

// waitForLock takes a lock as soon as it is free.
func waitForLock(ctx context.Context, path string) (release func() error, err error) {
	for {
		release, err := tryLock(path)
		if !errors.Is(err, errHeld) {
			return release, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// listTriggers names the triggers that are there and enabled.
var listTriggers = map[string]string{
	dialect.SQLite: `SELECT name FROM sqlite_master WHERE type = 'trigger'`,
	dialect.Postgres: `SELECT t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
		WHERE c.relnamespace = current_schema()::regnamespace AND NOT t.tgisinternal AND t.tgenabled <> 'D'`,
}

// checkTriggers refuses a database in which recorded history could be changed: a
// table that was rebuilt by hand loses its triggers without a word.
func (s *Store) checkTriggers(ctx context.Context) error {
	rows, err := s.writer.QueryContext(ctx, listTriggers[s.dialect])
	if err != nil {
		return failed(ctx, err, "list the triggers")
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return failed(ctx, err, "list the triggers")
		}
		found = append(found, name)
	}
	if err := rows.Err(); err != nil {
		return failed(ctx, err, "list the triggers")
	}
	for _, name := range appendOnly[s.dialect] {
		if !slices.Contains(found, name) {
			return fmt.Errorf("the database lacks the trigger %s, which keeps recorded history from being changed; "+
				"restore it from the migration that made it, or restore a backup", name)
		}
	}
	return nil
}
