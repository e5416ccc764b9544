package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"ariga.io/atlas/sql/migrate"
	"ariga.io/atlas/sql/sqltool"
	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/schema"

	entmigrate "github.com/countersign/countersign/ent/migrate"
)

// diff says which statements lead from the migrations to ent's schema; none when
// they agree. The database is empty and is left in any state; atlas compares the tables,
// checks the values that their constraints allow.
func diff(ctx context.Context, name string, db *sql.DB, migrations fs.FS) ([]string, error) {
	folder, err := os.MkdirTemp("", "migrations-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	dir, err := replayable(folder, migrations)
	if err != nil {
		return nil, fmt.Errorf("read the %s migrations: %w", name, err)
	}
	var capture plan
	atlas, err := schema.NewMigrate(entsql.OpenDB(name, db),
		schema.WithDir(dir), schema.WithMigrationMode(schema.ModeReplay), schema.WithFormatter(&capture),
		schema.WithDropColumn(true), schema.WithDropIndex(true), schema.WithErrNoPlan(true))
	if err != nil {
		return nil, err
	}
	if err := atlas.NamedDiff(ctx, "diff", entmigrate.Tables...); err != nil && !errors.Is(err, migrate.ErrNoPlan) {
		return nil, fmt.Errorf("compare the %s migrations with the schema: %w", name, err)
	}
	if found, err := fs.Glob(migrations, "*.sql"); err != nil || len(found) == 0 {
		return capture.statements, err
	}
	more, err := checks(ctx, name, db, migrations)
	return append(capture.statements, more...), err
}

// replayable copies the migrations into a folder with the sum that atlas asks for.
func replayable(folder string, migrations fs.FS) (migrate.Dir, error) {
	dir, err := sqltool.NewGooseDir(folder)
	if err != nil {
		return nil, err
	}
	files, err := fs.Glob(migrations, "*.sql")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		content, err := fs.ReadFile(migrations, file)
		if err != nil {
			return nil, err
		}
		if err := dir.WriteFile(file, content); err != nil {
			return nil, err
		}
	}
	sum, err := dir.Checksum()
	if err != nil {
		return nil, err
	}
	return dir, migrate.WriteSumFile(dir, sum)
}

// plan keeps the statements that atlas would have written to a file.
type plan struct{ statements []string }

func (p *plan) Format(from *migrate.Plan) ([]migrate.File, error) {
	for _, change := range from.Changes {
		p.statements = append(p.statements, strings.TrimSuffix(change.Cmd, ";")+";")
	}
	return []migrate.File{migrate.NewLocalFile("99999_diff.sql", nil)}, nil
}

// memory opens an empty SQLite database for a comparison.
func memory() (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file::memory:?_pragma=foreign_keys(1)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // every further connection would be another database
	return db, nil
}

// dialects are the two databases, by the folder of their migrations.
var dialects = map[string]string{"postgres": dialect.Postgres, "sqlite": dialect.SQLite}
