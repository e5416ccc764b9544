// Command migrategen writes the next migration: what leads from the migrations
// there are to ent's schema, one file under the same number for each database.
//
//	go run ./internal/store/migrategen NAME
//
// It replays the migrations on an empty SQLite database in memory and on a scratch
// database of a PostgreSQL server (see internal/pgtest). What it writes is a
// draft: read it, and mind that SQLite rebuilds a table by dropping it, which
// drops its triggers and, with foreign keys on, deletes what refers to it
// (migrations/README.md).
package main

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	_ "modernc.org/sqlite" // registers the driver

	"github.com/countersign/countersign/internal/pgtest"
	"github.com/countersign/countersign/migrations"
)

// folder is where the migrations live, from the module's root.
const folder = "migrations"

func main() {
	if err := generate(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "migrategen:", err)
		os.Exit(1)
	}
}

func generate(ctx context.Context, args []string) error {
	if len(args) != 1 || !regexp.MustCompile(`^[a-z0-9_]+$`).MatchString(args[0]) {
		return fmt.Errorf("give the migration one name of lower-case letters, digits and underscores")
	}
	files, err := fs.Glob(migrations.SQLite, "*.sql")
	if err != nil {
		return err
	}
	bodies := map[string]string{}
	for name := range dialects {
		statements, err := differences(ctx, name)
		if err != nil {
			return err
		}
		bodies[name] = strings.Join(statements, "\n")
	}
	if bodies["sqlite"] == "" && bodies["postgres"] == "" {
		fmt.Println("the migrations agree with the schema")
		return nil
	}
	for name, body := range bodies {
		if body == "" {
			body = "-- Nothing changes on this database; the number is kept equal on both.\nSELECT 1;"
		}
		path := filepath.Join(folder, name, fmt.Sprintf("%05d_%s.sql", len(files)+1, args[0]))
		if err := os.WriteFile(path, []byte("-- +goose Up\n"+body+"\n"), 0o644); err != nil {
			return err
		}
		fmt.Println("wrote", path)
	}
	return nil
}

// differences compares the migrations of one database with the schema.
func differences(ctx context.Context, name string) ([]string, error) {
	if name == "sqlite" {
		db, err := memory()
		if err != nil {
			return nil, err
		}
		defer db.Close()
		return diff(ctx, dialects[name], db, migrations.SQLite)
	}
	server, err := pgtest.URL()
	if err != nil {
		return nil, err
	}
	scratch, drop, err := pgtest.Scratch(server, "DATABASE")
	if err != nil {
		return nil, err
	}
	defer drop()
	at, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	at.Path = "/" + scratch
	db, err := sql.Open("postgres", at.String())
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return diff(ctx, dialects[name], db, migrations.Postgres)
}
