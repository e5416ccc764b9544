package store_test

import (
	"database/sql"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/pressly/goose/v3"

	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
	"github.com/countersign/countersign/internal/tool"
	"github.com/countersign/countersign/migrations"
)

// migratedTo opens an empty database at an earlier version, as an older server left
// it.
func migratedTo(t *testing.T, at string, version int64) *sql.DB {
	t.Helper()
	driver, dsn, dialect, files := "postgres", at, goose.DialectPostgres, fs.FS(migrations.Postgres)
	if path, sqlite := strings.CutPrefix(at, "sqlite:"); sqlite {
		driver, dsn = "sqlite", "file:"+path+"?_pragma=foreign_keys(1)"
		dialect, files = goose.DialectSQLite3, migrations.SQLite
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	steps, err := goose.NewProvider(dialect, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := steps.UpTo(t.Context(), version); err != nil {
		t.Fatal(err)
	}
	return db
}

// old are rows as a server of version 4 wrote them. {n} is the nth id.
const old = `
INSERT INTO users (id, name, kind, administrator, enabled, created_at) VALUES ('{1}', 'Ada', 'person', true, true, '2025-06-01 12:00:00');
INSERT INTO providers (id, name, kind, trust_zone, created_at) VALUES ('{2}', 'Script', 'scripted', 'local', '2025-06-01 12:00:00');
INSERT INTO configurations (id, name, model, provider_id, created_at) VALUES ('{3}', 'Editors', 'm', '{2}', '2025-06-01 12:00:00');
INSERT INTO sources (id, title, type, trust_level, sync_status, created_at) VALUES ('{4}', 'S', 'repo', 'verified', 'ok', '2025-06-01 12:00:00');
INSERT INTO skills (id, identifier, trust_level, created_at, updated_at, name, support_status, allowed_tools, process, source_id) VALUES
 ('{5}', 'a', 'verified', '2025-06-01 12:00:00', '2025-06-01 12:00:00', 'A', 'full', '{"State":"undeclared"}', 'no', '{4}'),
 ('{6}', 'b', 'verified', '2025-06-01 12:00:00', '2025-06-01 12:00:00', 'B', 'full', '{"State":"undeclared"}', 'no', '{4}');
INSERT INTO attachments (id, load_mode, position, created_at, skill_id, configuration_id) VALUES
 ('{7}', 'on_demand', 2, '2025-06-01 12:00:00', '{5}', '{3}'), ('{8}', 'always', 1, '2025-06-01 12:00:00', '{6}', '{3}');
INSERT INTO runs (id, status, next_seq, created_at, initiator_id, configuration_id, invocation) VALUES
 ('{9}', 'completed', 1, '2025-06-01 12:00:00', '{1}', '{3}', '{"skill":"{5}","subject":{"table":"page","id":"home"}}'),
 ('{0}', 'completed', 1, '2025-06-01 12:00:00', '{1}', '{3}', 'null');
INSERT INTO run_events (sequence, kind, at, data, run_id) VALUES (0, 'STARTED', '2025-06-01 12:00:00', '{}', '{9}')`

func TestUpgradeToTasks(t *testing.T) {
	const before = 4 // the version before snippets and tasks
	for _, database := range storetest.URLs {
		t.Run(database.Name+" keeps attachments, runs and their events, and what guards them", func(t *testing.T) {
			var ids [10]uuid.UUID
			statements := old
			for n := range ids {
				ids[n] = uuid.Must(uuid.NewV7())
				statements = strings.ReplaceAll(statements, "{"+string(rune('0'+n))+"}", ids[n].String())
			}
			at := database.URL(t)
			db := migratedTo(t, at, before)
			for _, statement := range strings.Split(statements, ";\n") {
				if _, err := db.ExecContext(t.Context(), statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}

			s := storetest.OpenAt(t, at, store.Options{})
			got, err := s.Offered(t.Context(), ids[3])
			if err != nil || len(got) != 2 {
				t.Fatalf("%+v %v", got, err)
			}
			for i, want := range []library.Attachment{
				{ID: ids[8], SkillID: ids[6], ConfigurationID: ids[3], LoadMode: library.Always, Position: 1},
				{ID: ids[7], SkillID: ids[5], ConfigurationID: ids[3], LoadMode: library.OnDemand, Position: 2},
			} {
				if want.CreatedAt = got[i].Attachment.CreatedAt; got[i].Attachment != want || want.CreatedAt.Year() != 2025 {
					t.Errorf("place %d is %+v, want %+v", i, got[i].Attachment, want)
				}
			}
			if r, err := s.Run(t.Context(), ids[9]); err != nil || r.TaskID != uuid.Nil || r.Subject == nil || *r.Subject != (tool.Record{Table: "page", ID: "home"}) {
				t.Errorf("%+v %v", r, err)
			}
			if r, err := s.Run(t.Context(), ids[0]); err != nil || r.Subject != nil || r.PredecessorID != uuid.Nil {
				t.Errorf("%+v %v", r, err)
			}
			if events, err := s.Events(t.Context(), ids[9], -1, 10); err != nil || len(events) != 1 {
				t.Errorf("%d events, %v", len(events), err)
			}
			if c, err := s.Configuration(t.Context(), ids[3]); err != nil || len(c.SnippetIDs) > 0 || c.SnippetsInCallerSystemPrompt {
				t.Errorf("%+v %v", c, err)
			}
			for _, forbidden := range []string{
				"DELETE FROM skills WHERE id = '" + ids[5].String() + "'",
				"UPDATE attachments SET configuration_id = NULL",
				"UPDATE attachments SET skill_id = '" + ids[5].String() + "'",
				"UPDATE attachments SET configuration_id = '" + ids[1].String() + "'",
			} {
				if _, err := s.Writer().ExecContext(t.Context(), forbidden); err == nil {
					t.Errorf("it is allowed: %s", forbidden)
				}
			}
		})
	}
}
