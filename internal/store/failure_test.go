package store_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/pgtest"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
)

func contextWithin(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

// whole is a change with every part.
func whole(r *storetest.Rows, id uuid.UUID) change.Change {
	_, setting := r.Row("settings", v("name", "whole"), v("value", strings.Repeat("x", 1<<20)))
	return change.Change{
		Updates: []change.Update{{Table: "runs", ID: id, If: []change.Value{v("status", "queued")}, Set: []change.Value{v("status", "running")}}},
		Inserts: []change.Insert{setting}, Run: id, Events: []run.Event{r.Event(run.EventStarted)},
		Audit: []audit.Entry{r.Entry(audit.RunStarted)},
	}
}

// nothingStored fails if a part of the whole change is there.
func nothingStored(t *testing.T, s *store.Store, id uuid.UUID) {
	t.Helper()
	got, err := s.Run(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	settings, err := s.Settings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	size, err := s.AuditSize(t.Context())
	if got.Status != run.Queued || got.Events != 0 || len(settings) != 0 || size != 0 || err != nil {
		t.Fatalf("stored: %s, %d events, %d settings, %d entries; %v", got.Status, got.Events, len(settings), size, err)
	}
}

func TestUnfitText(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Run("U+0000 in what is looked for is the client's mistake, not the server's", func(t *testing.T) {
			_, err := s.Record(t.Context(), "page", "a\x00b")
			if !fault.Is(err, fault.BadInput) && !fault.Is(err, fault.NotFound) { // SQLite looks for it
				t.Errorf("got %v", err)
			}
			if _, err := s.Skills(t.Context(), library.SkillFilter{Search: "\x00"}, library.Page{Limit: 1}); err != nil && !fault.Is(err, fault.BadInput) {
				t.Errorf("got %v", err)
			}
		})
	})
}

func TestDatabaseGone(t *testing.T) {
	t.Run("PostgreSQL that goes away during a mutation is UNAVAILABLE and nothing is half stored", postgresGone)
	t.Run("SQLite whose disk is full is UNAVAILABLE and nothing is half stored", diskFull)
	t.Run("a caller that gives up while it waits for its turn gets its own error", callerGone)
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.NewRows(t, s)
		id := r.Run()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		t.Run("a store that was closed is UNAVAILABLE for writes, reads and probes", func(t *testing.T) {
			_, write := s.Apply(t.Context(), whole(r, id))
			_, read := s.Run(t.Context(), id)
			for name, err := range map[string]error{"write": write, "read": read, "probe": s.Ready(t.Context())} {
				if !fault.Is(err, fault.Unavailable) {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	})
}

func postgresGone(t *testing.T) {
	at := pgtest.Schema(t)
	s := storetest.OpenAt(t, at, store.Options{})
	r := storetest.NewRows(t, s)
	id := r.Run()
	// Whoever holds the head stops the change at its last statement but one.
	blocker, err := sql.Open("postgres", at)
	if err != nil {
		t.Fatal(err)
	}
	defer blocker.Close()
	held, err := blocker.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := held.Exec("SELECT size FROM audit_head FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	applied := make(chan error, 1)
	go func() {
		_, err := s.Apply(context.Background(), whole(r, id))
		applied <- err
	}()
	for killed := 0; killed == 0; {
		err := blocker.QueryRow(`SELECT count(pg_terminate_backend(pid)) FROM pg_locks JOIN pg_class ON pg_class.oid = relation
			WHERE relname = 'audit_head' AND relnamespace = current_schema()::regnamespace AND pid <> pg_backend_pid()
			AND pid IN (SELECT pid FROM pg_locks WHERE NOT granted)`).Scan(&killed)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := <-applied; !fault.Is(err, fault.Unavailable) {
		t.Fatalf("got %v", err)
	}
	if err := held.Rollback(); err != nil {
		t.Fatal(err)
	}
	nothingStored(t, s, id)
	if out, err := change.One(t.Context(), s, whole(r, id)); err != nil || !out.Applied {
		t.Fatalf("the same change afterwards: %+v %v", out, err)
	}
}

func diskFull(t *testing.T) {
	s := storetest.Open(t)
	r := storetest.NewRows(t, s)
	id := r.Run()
	var pages int
	if err := s.Writer().QueryRow("PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	execute(t, s, "PRAGMA max_page_count = 1") // SQLite takes this as: no more than there are
	if _, err := s.Apply(t.Context(), whole(r, id)); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("got %v", err)
	}
	nothingStored(t, s, id)
	execute(t, s, "PRAGMA max_page_count = 100000")
	if out, err := change.One(t.Context(), s, whole(r, id)); err != nil || !out.Applied {
		t.Fatalf("the same change afterwards: %+v %v", out, err)
	}
}

func callerGone(t *testing.T) {
	s := storetest.Open(t)
	r := storetest.NewRows(t, s)
	id := r.Run()
	conn, err := s.Writer().Conn(t.Context()) // the one writer
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := contextWithin(t, 20*time.Millisecond)
	defer cancel()
	if _, err := s.Apply(ctx, whole(r, id)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	conn.Close()
	nothingStored(t, s, id)
}

// bell keeps what was rung.
type bell struct {
	mu    sync.Mutex
	rings [][]change.Topic
}

func (b *bell) Ring(topics ...change.Topic) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rings = append(b.rings, topics)
}

func TestBell(t *testing.T) {
	for _, database := range storetest.URLs {
		at := database.URL(t)
		var rung bell
		s := storetest.OpenAt(t, at, store.Options{Bell: &rung})
		r := storetest.NewRows(t, s)
		id := r.Run()
		var listener *pq.Listener
		if s.Channel() != "" {
			listener = pq.NewListener(at, time.Second, time.Second, nil)
			defer listener.Close()
			if err := listener.Listen(s.Channel()); err != nil {
				t.Fatal(err)
			}
		}
		heard := func(t *testing.T, want string) {
			t.Helper()
			if listener == nil {
				return
			}
			if note := <-listener.Notify; note.Extra != want {
				t.Fatalf("notified %q, want %q", note.Extra, want)
			}
		}
		t.Run(database.Name+": a commit rings its topics once, those of the run and the trail by themselves", func(t *testing.T) {
			rung.rings = nil
			c := whole(r, id)
			c.Ring = []change.Topic{change.QueueTopic, change.QueueTopic}
			if out, err := s.Apply(t.Context(), c, change.Change{Audit: []audit.Entry{r.Entry(audit.ToolDenied)}}); err != nil || !out[0].Applied {
				t.Fatalf("%+v %v", out, err)
			}
			want := []change.Topic{change.AuditTopic, change.QueueTopic, change.RunTopic(id), change.StepsTopic}
			if len(rung.rings) != 1 || !slices.Equal(rung.rings[0], want) {
				t.Fatalf("rung: %v", rung.rings)
			}
			heard(t, "audit\nqueue\nrun:"+id.String()+"\nsteps")
		})
		t.Run(database.Name+": a change that lost rings nothing", func(t *testing.T) {
			rung.rings = nil
			if out, err := change.One(t.Context(), s, whole(r, id)); err != nil || out.Applied || len(rung.rings) > 0 {
				t.Fatalf("%+v %v, rung: %v", out, err, rung.rings)
			}
		})
		t.Run(database.Name+": more topics than a notification holds become one that means everything", func(t *testing.T) {
			var c change.Change
			for range 400 {
				c.Ring = append(c.Ring, change.RunTopic(uuid.New()))
			}
			r.Apply(c)
			heard(t, "")
		})
	}
}

func TestQueries(t *testing.T) {
	for _, database := range storetest.URLs {
		var mu sync.Mutex
		var statements []string
		s := storetest.OpenAt(t, database.URL(t), store.Options{OnQuery: func(statement string) {
			mu.Lock()
			defer mu.Unlock()
			statements = append(statements, statement)
		}})
		r := storetest.NewRows(t, s)
		user, configuration := r.User(), r.Configuration()
		var skills []uuid.UUID
		for n := range 12 {
			source := r.Source()
			skill := r.Skill(source, "s")
			r.Approval(source, skill, user, 1)
			r.Revocation(skill, user, 2)
			r.Insert("attachments", v("skill_id", skill), v("configuration_id", configuration), v("load_mode", "always"),
				v("position", int64(n)), v("created_at", storetest.Start))
			skills = append(skills, skill)
		}
		t.Run(database.Name+": dossiers take three queries, whatever their number", func(t *testing.T) {
			statements = nil
			if got, err := s.Dossiers(t.Context(), skills); err != nil || len(got) != 12 || len(statements) > 3 {
				t.Fatalf("%d dossiers in %d queries, %v", len(got), len(statements), err)
			}
		})
		t.Run(database.Name+": what a configuration offers takes four", func(t *testing.T) {
			statements = nil
			if got, err := s.Offered(t.Context(), configuration); err != nil || len(got) != 12 || len(statements) > 4 {
				t.Fatalf("%d offered in %d queries, %v", len(got), len(statements), err)
			}
		})
		t.Run(database.Name+": the queue is read in the order of its index", func(t *testing.T) {
			statements = nil
			if _, err := s.Queued(t.Context(), time.Now(), 5); err != nil || len(statements) != 1 {
				t.Fatalf("%d statements, %v", len(statements), err)
			}
			plan := explain(t, s, statements[0])
			if !strings.Contains(plan, "run_status_created_at_id") || strings.Contains(plan, "TEMP B-TREE") || strings.Contains(plan, "Sort") {
				t.Fatalf("the plan is\n%s", plan)
			}
		})
	}
}

// explain is how a database would answer the statement of the queue.
func explain(t *testing.T, s *store.Store, statement string) string {
	t.Helper()
	arguments := []string{"'queued'", "'2000-01-01'"} // in their order
	statement = regexp.MustCompile(`\$\d|\?`).ReplaceAllStringFunc(statement, func(string) string {
		next := arguments[0]
		arguments = arguments[1:]
		return next
	})
	how := "EXPLAIN QUERY PLAN "
	if s.Channel() != "" {
		execute(t, s, "SET enable_seqscan = off") // an empty table is always scanned
		how = "EXPLAIN "
	}
	rows, err := s.Writer().Query(how + statement)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, _ := rows.Columns()
	var plan strings.Builder
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		if err := rows.Scan(values...); err != nil {
			t.Fatal(err)
		}
		switch line := (*values[len(values)-1].(*any)).(type) {
		case []byte:
			plan.Write(line)
		case string:
			plan.WriteString(line)
		}
		plan.WriteByte('\n')
	}
	return plan.String()
}

// TestLibc: modernc.org/sqlite is translated against one version of its C library
// and misbehaves with another.
func TestLibc(t *testing.T) {
	version := func(file, module string) string {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`(?m)^\s*(?:require )?` + regexp.QuoteMeta(module) + ` (v\S+)`).FindSubmatch(content)
		if found == nil {
			t.Fatalf("%s does not name %s", file, module)
		}
		return string(found[1])
	}
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "modernc.org/sqlite").Output()
	if err != nil {
		t.Fatal(err)
	}
	ours := version(filepath.Join("..", "..", "go.mod"), "modernc.org/libc")
	theirs := version(filepath.Join(strings.TrimSpace(string(folder)), "go.mod"), "modernc.org/libc")
	if ours != theirs {
		t.Fatalf("go.mod has modernc.org/libc %s, modernc.org/sqlite was made for %s", ours, theirs)
	}
}
