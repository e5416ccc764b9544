// Package storetest opens databases for tests and holds the one suite that a store
// must pass on both of them. Other packages' tests use Each to run their use cases
// on both.
package storetest

import (
	"crypto/sha256"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/pgtest"
	"github.com/countersign/countersign/internal/store"
)

// Key is an encryption key for tests.
var Key = store.Key{ID: "test", Secret: sha256.Sum256([]byte("a key that encrypts nothing worth hiding"))}

// URLs give the address of an empty database of each kind.
var URLs = []struct {
	Name string
	URL  func(t testing.TB) string
}{
	{"SQLite", func(t testing.TB) string { return "sqlite:" + t.TempDir() + "/countersign.db" }},
	{"PostgreSQL", func(t testing.TB) string { return pgtest.Schema(t) }},
}

// Open opens an empty SQLite database until the test ends.
func Open(t testing.TB) *store.Store {
	t.Helper()
	return OpenAt(t, "sqlite::memory:", store.Options{})
}

// OpenAt opens a database until the test ends. Without keys in the options it uses
// Key, without a logger it logs nothing.
func OpenAt(t testing.TB, at string, options store.Options) *store.Store {
	t.Helper()
	if options.Keys == nil {
		options.Keys = []store.Key{Key}
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	s, err := store.Open(t.Context(), at, options)
	if err != nil {
		t.Fatalf("open the database: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the database: %v", err)
		}
	})
	return s
}

// Each runs a test on an empty SQLite database and on an empty PostgreSQL one.
func Each(t *testing.T, test func(t *testing.T, s *store.Store)) {
	t.Helper()
	for _, database := range URLs {
		t.Run(database.Name, func(t *testing.T) {
			test(t, OpenAt(t, database.URL(t), store.Options{}))
		})
	}
}

// Everything is all rows of a table as text, as somebody reads them who has the database
// and not its key.
func Everything(t testing.TB, at, table string) string {
	t.Helper()
	driver, dsn := "postgres", at
	if path, sqlite := strings.CutPrefix(at, "sqlite:"); sqlite {
		driver, dsn = "sqlite", path
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), "SELECT * FROM "+table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	values := make([]any, len(columns))
	for i := range values {
		values[i] = new(any)
	}
	for rows.Next() {
		if err := rows.Scan(values...); err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			switch v := (*v.(*any)).(type) {
			case []byte:
				all.Write(v)
			default:
				fmt.Fprint(&all, v)
			}
			all.WriteByte(0)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all.String()
}
