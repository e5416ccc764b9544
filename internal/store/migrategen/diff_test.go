package main

import (
	"database/sql"
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/countersign/countersign/internal/pgtest"
	"github.com/countersign/countersign/migrations"
)

// open gives an empty database of each kind.
var open = map[string]func(t *testing.T) *sql.DB{
	"sqlite": func(t *testing.T) *sql.DB {
		db, err := memory()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	},
	"postgres": func(t *testing.T) *sql.DB {
		db, err := sql.Open("postgres", pgtest.Database(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	},
}

func folderOf(name string) fs.FS {
	return map[string]fs.FS{"postgres": migrations.Postgres, "sqlite": migrations.SQLite}[name]
}

func TestDrift(t *testing.T) {
	for name, dialect := range dialects {
		t.Run("the "+name+" migrations lead to the schema", func(t *testing.T) {
			statements, err := diff(t.Context(), dialect, open[name](t), folderOf(name))
			if err != nil {
				t.Fatal(err)
			}
			if len(statements) > 0 {
				t.Fatalf("add a migration (go run ./internal/store/migrategen NAME); missing is:\n%q", statements)
			}
		})
		t.Run("a missing "+name+" migration is noticed", func(t *testing.T) {
			statements, err := diff(t.Context(), dialect, open[name](t), fstest.MapFS{})
			if err != nil {
				t.Fatal(err)
			}
			if len(statements) == 0 {
				t.Fatal("an empty folder was found to agree with the schema")
			}
		})
	}
}

func TestChecks(t *testing.T) {
	first := map[string]string{
		"sqlite":   "CREATE TABLE `audit_entries` (`event` text, CONSTRAINT `audit_entries_event` CHECK (event IN ('A', 'B')));\nCREATE INDEX e ON audit_entries (event);",
		"postgres": `CREATE TABLE "audit_entries" ("event" text, CONSTRAINT "audit_entries_event" CHECK (event IN ('A', 'B')));`,
	}
	for name, dialect := range dialects {
		t.Run("a "+name+" constraint whose values changed is replaced", func(t *testing.T) {
			db, files := open[name](t), fstest.MapFS{"00001_first.sql": {Data: []byte("-- +goose Up\n" + first[name] + "\n")}}
			statements, err := checks(t.Context(), dialect, db, files)
			if err != nil || len(statements) == 0 {
				t.Fatalf("the change was not noticed: %v", err)
			}
			for _, s := range statements {
				if _, err := db.ExecContext(t.Context(), s); err != nil {
					t.Fatalf("%s: %v", s, err)
				}
			}
			if _, err := db.ExecContext(t.Context(), `INSERT INTO audit_entries (event) VALUES ('RUN_STARTED')`); err != nil {
				t.Errorf("a new value is refused: %v", err)
			}
			if _, err := db.ExecContext(t.Context(), `INSERT INTO audit_entries (event) VALUES ('A')`); err == nil {
				t.Error("an old value is taken")
			}
		})
	}
}

func TestNumbers(t *testing.T) {
	names := func(files fs.FS) []string {
		found, err := fs.Glob(files, "*.sql")
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if sqlite, postgres := names(migrations.SQLite), names(migrations.Postgres); !slices.Equal(sqlite, postgres) {
		t.Fatalf("a number must mean the same step on both databases:\nsqlite   %v\npostgres %v", sqlite, postgres)
	}
}
