package store_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/ent/migrate"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
)

var v = storetest.V

func TestAppendOnly(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.NewRows(t, s)
		user, source, id := r.User(), r.Source(), r.Run()
		skill := r.Skill(source, "proof")
		approval, revocation := r.Approval(source, skill, user, 1), r.Revocation(skill, user, 2)
		entry := r.Entry(audit.VersionApproved)
		r.Apply(change.Change{Run: id, Events: []run.Event{r.Event(run.EventStarted)}, Audit: []audit.Entry{entry}})
		for table, key := range map[string]string{
			"approvals": "id = '" + approval.String() + "'", "revocations": "id = '" + revocation.String() + "'",
			"audit_entries": "id = '" + entry.ID.String() + "'", "run_events": "run_id = '" + id.String() + "'",
		} {
			column := map[string]string{"approvals": "comment", "revocations": "reason", "audit_entries": "detail", "run_events": "data"}[table]
			statements := map[string]string{
				"an update": "UPDATE " + table + " SET " + column + " = 'forged' WHERE " + key,
				"a delete":  "DELETE FROM " + table + " WHERE " + key,
			}
			if s.Channel() == "" {
				statements["INSERT OR REPLACE"] = "INSERT OR REPLACE INTO " + table + " SELECT * FROM " + table + " WHERE " + key
				statements["UPDATE OR REPLACE"] = "UPDATE OR REPLACE " + table + " SET " + column + " = 'forged'"
			} else {
				statements["TRUNCATE"] = "TRUNCATE " + table + " CASCADE"
				statements["an upsert"] = "INSERT INTO " + table + " SELECT * FROM " + table + " WHERE " + key +
					" ON CONFLICT (id) DO UPDATE SET " + column + " = 'forged'"
			}
			for name, statement := range statements {
				t.Run("U1 "+name+" of "+table+" is refused", func(t *testing.T) {
					_, err := s.Writer().ExecContext(t.Context(), statement)
					if err == nil || !strings.Contains(err.Error(), table+" is append-only") {
						t.Fatalf("got %v", err)
					}
				})
			}
		}
		for table, id := range map[change.Table]uuid.UUID{"approvals": approval, "revocations": revocation, "audit_entries": entry.ID} {
			t.Run("A5 a change of "+string(table)+" is an internal error, not a lost change", func(t *testing.T) {
				for _, c := range []change.Change{
					{Updates: []change.Update{{Table: table, ID: id, Set: []change.Value{v("digest", "1:bb")}}}},
					{Deletes: []change.Delete{{Table: table, ID: id}}},
				} {
					if _, err := s.Apply(t.Context(), c); !fault.Is(err, fault.Internal) {
						t.Fatalf("got %v", err)
					}
				}
			})
		}
		t.Run("U1 nothing was changed by all that", func(t *testing.T) {
			got, err := s.AuditEntry(t.Context(), entry.ID)
			if err != nil || string(got.Canonical()) != string(entry.Canonical()) {
				t.Fatalf("%s %v", got.Canonical(), err)
			}
			events, err := s.Events(t.Context(), id, -1, 5)
			if err != nil || len(events) != 1 || events[0].Data.Tool != "read_page" {
				t.Fatalf("%+v %v", events, err)
			}
		})
	})
}

func TestTriggersAreMissed(t *testing.T) {
	for _, database := range storetest.URLs {
		at := database.URL(t)
		first := storetest.OpenAt(t, at, store.Options{})
		for _, name := range first.AppendOnly() {
			t.Run("U1 "+database.Name+" without "+name+" is refused", func(t *testing.T) {
				table := name[:strings.Index(name, "_no_")]
				var restore string
				drop := "DROP TRIGGER " + name
				switch {
				case first.Channel() != "":
					drop += " ON " + table
					if err := first.Writer().QueryRow("SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = $1 AND tgrelid = $2::regclass", name, table).Scan(&restore); err != nil {
						t.Fatal(err)
					}
				default:
					if err := first.Writer().QueryRow("SELECT sql FROM sqlite_master WHERE name = ?", name).Scan(&restore); err != nil {
						t.Fatal(err)
					}
				}
				execute(t, first, drop)
				defer execute(t, first, restore)
				_, err := store.Open(t.Context(), at, store.Options{Keys: []store.Key{storetest.Key}})
				if err == nil || !strings.Contains(err.Error(), name) {
					t.Fatalf("got %v", err)
				}
			})
		}
	}
}

func execute(t *testing.T, s *store.Store, statement string) {
	t.Helper()
	if _, err := s.Writer().ExecContext(context.Background(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// enums tells where the constants of an enum column are declared.
var enums = map[string]struct{ folder, kind string }{
	"users.kind":                     {"actor", "Kind"},
	"grants.permission":              {"actor", "Permission"},
	"sources.type":                   {"library", "SourceType"},
	"sources.trust_level":            {"skill", "TrustLevel"},
	"sources.sync_status":            {"library", "SyncStatus"},
	"skills.support_status":          {"skill", "SupportStatus"},
	"skills.process":                 {"skill", "Process"},
	"skills.parse_status":            {"skill", "ParseStatus"},
	"skills.trust_level":             {"skill", "TrustLevel"},
	"skill_revisions.process":        {"skill", "Process"},
	"approvals.support_status":       {"skill", "SupportStatus"},
	"approvals.process":              {"skill", "Process"},
	"approvals.trust_level":          {"skill", "TrustLevel"},
	"providers.kind":                 {"library", "ProviderKind"},
	"providers.trust_zone":           {"library", "TrustZone"},
	"attachments.load_mode":          {"library", "LoadMode"},
	"idempotency_keys.status":        {"once", "Status"},
	"conversations.status":           {"chat", "Status"},
	"conversation_entries.kind":      {"chat", "Kind"},
	"conversation_entries.status":    {"chat", "Status"},
	"mcp_servers.transport":          {"remote", "Transport"},
	"mcp_servers.data_class":         {}, // its room counts them
	"mcp_tools.status":               {"remote", "Status"},
	"runs.privacy_level":             {"run", "Privacy"},
	"announcements.event":            {}, // all but Ping
	"notification_deliveries.event":  {"notify", "Event"},
	"notification_deliveries.status": {"notify", "Status"},
	"budgets.scope":                  {"budget", "Scope"},
	"budgets.period":                 {"budget", "Period"},
	"runs.status":                    {"run", "Status"},
	"runs.outcome":                   {"run", "Outcome"},
	"runs.termination_reason":        {"run", "Reason"},
	"run_events.kind":                {"run", "EventKind"},
	"audit_entries.event":            {"audit", "Event"},
	"content_records.table_name":     {},
	"content_revisions.kind":         {},
}

// constants reads the string constants of a type from a room's source.
func constants(t *testing.T, folder, kind string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no source of %s: %v", folder, err)
	}
	var values []string
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if of, ok := spec.Type.(*ast.Ident); ok && of.Name == kind {
				for _, value := range spec.Values {
					if text, ok := value.(*ast.BasicLit); ok && text.Kind == token.STRING {
						unquoted, _ := strconv.Unquote(text.Value)
						values = append(values, unquoted)
					}
				}
			}
			return true
		})
	}
	return values
}

func TestEnums(t *testing.T) {
	checks := map[string]string{}
	for _, table := range migrate.Tables {
		for name, condition := range table.Annotation.Checks {
			if strings.Contains(condition, " IN (") {
				checks[table.Name+"."+strings.TrimPrefix(name, table.Name+"_")] = condition
			}
		}
	}
	for column, condition := range checks {
		t.Run("the CHECK of "+column+" allows what its room knows and nothing else", func(t *testing.T) {
			enum, listed := enums[column]
			if !listed {
				t.Fatal("say in this test where its constants are declared")
			}
			if enum.folder == "" {
				return // the content room's words are no constants of a type
			}
			var allowed []string
			for _, match := range regexp.MustCompile(`'([^']*)'`).FindAllStringSubmatch(condition, -1) {
				if match[1] != "" {
					allowed = append(allowed, match[1])
				}
			}
			known := constants(t, enum.folder, enum.kind)
			slices.Sort(allowed)
			slices.Sort(known)
			if len(known) == 0 || !slices.Equal(allowed, known) {
				t.Fatalf("change ent/schema and add a migration:\nallowed %v\nknown   %v", allowed, known)
			}
		})
	}
	if len(checks) != len(enums) {
		t.Fatalf("%d enum columns have a CHECK, this test knows %d", len(checks), len(enums))
	}
}

func TestChecks(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.NewRows(t, s)
		rows := map[string]uuid.UUID{"users": r.User(), "sources": r.Source(), "runs": r.Run()}
		rows["skills"] = r.Skill(rows["sources"], "proof")
		rows["grants"] = r.Insert("grants", v("user_id", rows["users"]), v("permission", "run:start"))
		rows["providers"] = r.Insert("providers", v("name", "p"), v("kind", "scripted"), v("trust_zone", "local"), v("created_at", storetest.Start))
		rows["content_records"] = r.Insert("content_records", v("table_name", "page"), v("record_id", "a"), v("fields", "{}"), v("updated_at", storetest.Start))
		rows["content_revisions"] = r.Insert("content_revisions", v("record", rows["content_records"]), v("kind", "create"), v("fields", "{}"), v("at", storetest.Start))
		rows["skill_revisions"] = r.Insert("skill_revisions", v("skill_id", rows["skills"]), v("name", "n"), v("allowed_tools", "{}"), v("process", "no"), v("author_id", rows["users"]), v("at", storetest.Start))
		for column := range enums {
			table, name, _ := strings.Cut(column, ".")
			id, updatable := rows[table]
			if !updatable {
				continue // an append-only table: below
			}
			t.Run("a value that no rule knows is refused in "+column, func(t *testing.T) {
				c := change.Change{Updates: []change.Update{{Table: change.Table(table), ID: id, Set: []change.Value{v(name, "no such value")}}}}
				if _, err := s.Apply(t.Context(), c); !fault.Is(err, fault.Internal) {
					t.Fatalf("got %v", err)
				}
			})
		}
		for name, c := range map[string]change.Change{
			"run_events.kind":     {Run: rows["runs"], Events: []run.Event{{Kind: "NO_SUCH_KIND", At: storetest.Start}}},
			"audit_entries.event": {Audit: []audit.Entry{{ID: uuid.New(), At: storetest.Start, Event: "NO_SUCH_EVENT"}}},
			"attachments.load_mode": {Inserts: []change.Insert{{Table: "attachments", Row: []change.Value{
				v("id", uuid.New()), v("skill_id", rows["skills"]), v("configuration_id", r.Configuration()), v("load_mode", "sometimes"), v("created_at", storetest.Start),
			}}}},
		} {
			t.Run("a value that no rule knows is refused in "+name, func(t *testing.T) {
				if _, err := s.Apply(t.Context(), c); !fault.Is(err, fault.Internal) {
					t.Fatalf("got %v", err)
				}
			})
		}
		for _, table := range []string{"audit_head", "installation"} {
			t.Run(table+" has one row", func(t *testing.T) {
				columns := map[string]string{"audit_head": "(id, size) VALUES (2, 0)", "installation": "(id, key_check, created_at) VALUES (2, '', '2025-01-01')"}[table]
				if _, err := s.Writer().ExecContext(t.Context(), "INSERT INTO "+table+" "+columns); err == nil {
					t.Fatal("a second row was stored")
				}
			})
		}
	})
}

func TestDeclaredColumns(t *testing.T) {
	known := map[string]bool{}
	for _, table := range migrate.Tables {
		for _, column := range table.Columns {
			known[table.Name+"."+column.Name] = true
		}
	}
	declared := change.Columns()
	if len(declared) == 0 {
		t.Fatal("no room declares a column")
	}
	var missing []error
	for _, c := range declared {
		if name := fmt.Sprintf("%s.%s", c.Table, c.Column); !known[name] {
			missing = append(missing, fmt.Errorf("%s is declared by a room and is in no table", name))
		}
	}
	if err := errors.Join(missing...); err != nil {
		t.Fatal(err)
	}
}
