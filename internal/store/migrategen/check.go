package main

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql/schema"
	"github.com/pressly/goose/v3"

	entmigrate "github.com/countersign/countersign/ent/migrate"
)

// checks says which statements give every CHECK constraint the values that ent's schema
// lists. Atlas takes a constraint that has its name for the same constraint, so that a
// new value of an enum would be refused for ever by databases that are there already.
// The database is empty and is left with the migrations applied.
func checks(ctx context.Context, name string, db *sql.DB, migrations fs.FS) ([]string, error) {
	kind := map[string]goose.Dialect{dialect.Postgres: goose.DialectPostgres, dialect.SQLite: goose.DialectSQLite3}[name]
	provider, err := goose.NewProvider(kind, db, migrations, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, err
	}
	if _, err := provider.Up(ctx); err != nil {
		return nil, fmt.Errorf("apply the %s migrations: %w", name, err)
	}
	var statements []string
	for _, table := range entmigrate.Tables {
		for _, constraint := range constraints(table) {
			is, err := existing[name](ctx, db, table.Name, constraint)
			if err != nil {
				return nil, fmt.Errorf("read the constraint %s of %s: %w", constraint, table.Name, err)
			}
			want := table.Annotation.Checks[constraint]
			if is != "" && !slices.Equal(values(is), values(want)) { // one that is not there yet is atlas's
				statements = append(statements, replaced[name](table.Name, constraint, is, want)...)
			}
		}
	}
	return statements, nil
}

// constraints are the names of a table's CHECK constraints, in order.
func constraints(table *schema.Table) []string {
	if table.Annotation == nil {
		return nil
	}
	var names []string
	for name := range table.Annotation.Checks {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

var literal = regexp.MustCompile(`'[^']*'`)

// values are the literals of a constraint: PostgreSQL keeps an expression of its own
// making, with the same literals in it.
func values(expression string) []string {
	found := literal.FindAllString(expression, -1)
	slices.Sort(found)
	return found
}

// existing reads a constraint's expression; empty when it is not there.
var existing = map[string]func(ctx context.Context, db *sql.DB, table, constraint string) (string, error){
	dialect.Postgres: func(ctx context.Context, db *sql.DB, table, constraint string) (string, error) {
		return text(db.QueryRowContext(ctx, `SELECT pg_get_constraintdef(c.oid) FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid
			WHERE t.relname = $1 AND c.conname = $2 AND t.relnamespace = current_schema()::regnamespace`, table, constraint))
	},
	dialect.SQLite: func(ctx context.Context, db *sql.DB, table, constraint string) (string, error) {
		definition, err := text(db.QueryRowContext(ctx, `SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?`, table))
		if err != nil {
			return "", err
		}
		_, after, found := strings.Cut(definition, "CONSTRAINT `"+constraint+"` CHECK (")
		if !found {
			return "", nil
		}
		return enclosed(after), nil
	},
}

// enclosed is what stands before the parenthesis that closes the one before s.
func enclosed(s string) string {
	depth := 1
	for i, r := range s {
		switch r {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return s[:i]
			}
		}
	}
	return s
}

func text(row *sql.Row) (string, error) {
	var s string
	if err := row.Scan(&s); err != nil && err != sql.ErrNoRows {
		return "", err
	}
	return s, nil
}

// replaced are the statements that put a constraint in another's place. SQLite has none
// for it; its documentation (Making Other Kinds Of Table Schema Changes) has the text of
// the schema edited for that, which rebuilds no table and loses no trigger. The table
// that comes and goes makes every connection read the schema anew.
var replaced = map[string]func(table, constraint, is, want string) []string{
	dialect.Postgres: func(table, constraint, _, want string) []string {
		return []string{fmt.Sprintf(`ALTER TABLE %q DROP CONSTRAINT %q, ADD CONSTRAINT %q CHECK (%s);`, table, constraint, constraint, want)}
	},
	dialect.SQLite: func(table, constraint, is, want string) []string {
		named := "CONSTRAINT `" + constraint + "` CHECK ("
		return []string{
			"PRAGMA writable_schema = on;",
			fmt.Sprintf("UPDATE sqlite_schema SET sql = replace(sql, %s, %s) WHERE type = 'table' AND name = %s;",
				quoted(named+is+")"), quoted(named+want+")"), quoted(table)),
			"PRAGMA writable_schema = reset;",
			"CREATE TABLE reread_schema (id integer);",
			"DROP TABLE reread_schema;",
		}
	},
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
