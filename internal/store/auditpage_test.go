package store_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
)

// fits is what a filter means, said without a database.
func fits(f audit.Filter, e audit.Entry) bool {
	id := func(want, got uuid.UUID) bool { return want == uuid.Nil || want == got }
	return (len(f.Events) == 0 || slices.Contains(f.Events, e.Event)) && (f.Digest == "" || f.Digest == e.Digest) &&
		id(f.Actor, e.Actor) && id(f.Source, e.Source) && id(f.Skill, e.Skill) && id(f.Run, e.Run) &&
		!e.At.Before(f.Since) && (f.Until.IsZero() || e.At.Before(f.Until))
}

func TestAuditPages(t *testing.T) {
	events := []audit.Event{audit.SkillEnabled, audit.SkillDisabled, audit.RunStarted, audit.RunEnded, audit.ToolDenied}
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := storetest.NewRows(t, s)
		random := rand.New(rand.NewPCG(1, 2))
		some := func(ids []uuid.UUID) uuid.UUID { return ids[random.IntN(len(ids))] }
		ids := []uuid.UUID{r.World.NewID(), r.World.NewID(), {}}
		begin := r.World.Now()
		moment := func() time.Time { return begin.Add(time.Duration(random.IntN(60*60*10)) * time.Second / 10) }
		for n := range 600 {
			e := r.Entry(events[random.IntN(len(events))])
			e.Actor, e.Source, e.Skill, e.Run, e.Digest = some(ids), some(ids), some(ids), some(ids), []string{"", "1:a", "1:b"}[random.IntN(3)]
			// Clocks of replicas differ: entries are up to a minute out of order, and one by an hour.
			e.At = begin.Add(time.Duration(n)*6*time.Second - time.Duration(random.IntN(60))*time.Second)
			if n == 400 {
				e.At = begin
			}
			r.Apply(change.Change{Audit: []audit.Entry{e}})
			if n == 450 { // the rest is not in the tree
				if _, err := s.GrowAuditTree(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		all := kept(t, s)
		filters := []audit.Filter{{}, {Events: events[:2]}, {Events: events}, {Events: []audit.Event{events[0], events[0]}}}
		for range 60 {
			f := audit.Filter{}
			for _, narrow := range []func(){
				func() { f.Events = events[random.IntN(3):][:1+random.IntN(2)] },
				func() { f.Actor = some(ids) },
				func() { f.Source, f.Skill = some(ids), some(ids) },
				func() { f.Run = some(ids) },
				func() { f.Digest = "1:a" },
				func() { f.Since = moment() },
				func() { f.Until = moment() },
				func() { f.Since = moment(); f.Until = f.Since.Add(10 * time.Minute) },
			} {
				if random.IntN(4) == 0 {
					narrow()
				}
			}
			filters = append(filters, f)
		}
		t.Run("U1 a page holds what the filter says, whatever the order of the clocks", func(t *testing.T) {
			for _, f := range filters {
				for _, oldestFirst := range []bool{false, true} {
					var want []int64
					for _, e := range all {
						if fits(f, e.Entry) {
							want = append(want, e.Index)
						}
					}
					if !oldestFirst {
						slices.Reverse(want)
					}
					if diff := cmp.Diff(want, walked(t, s, f, oldestFirst)); diff != "" {
						t.Fatalf("%+v, oldest first %v:\n%s", f, oldestFirst, diff)
					}
				}
			}
		})
	})
}

// walked pages through everything that a filter lets through.
func walked(t *testing.T, s *store.Store, f audit.Filter, oldestFirst bool) []int64 {
	t.Helper()
	var indexes []int64
	for page := (audit.Page{Limit: 37, OldestFirst: oldestFirst}); ; {
		entries, err := s.AuditEntries(t.Context(), f, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			indexes = append(indexes, e.Index)
			page.Beyond = &e.Index
		}
		if len(entries) < page.Limit {
			return indexes
		}
	}
}

// The ids of a filled trail, of which some are frequent and some are rare.
func filledID(kind, n int) uuid.UUID {
	return uuid.MustParse(fmt.Sprintf("%08d-0000-7000-8000-%012d", kind, n))
}

var filledAt = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// fill makes n entries in the database itself, one a minute, faster than use cases
// could: every second one is a RUN_STARTED, every hundredth a VERSION_APPROVED, every
// thousandth a VERSION_REVOKED.
func fill(t testing.TB, s *store.Store, n int) {
	t.Helper()
	const columns = `INSERT INTO audit_entries (id, "index", at, event, actor_id, source_id, skill_id, run_id, digest, detail, canonical, leaf_hash) `
	const event = `CASE WHEN n %% 1000 = 7 THEN 'VERSION_REVOKED' WHEN n %% 100 = 5 THEN 'VERSION_APPROVED' WHEN n %% 2 = 0 THEN 'RUN_STARTED' ELSE 'RUN_ENDED' END`
	shape := columns + `SELECT %s, n, %s, ` + event + `, %s, %s, %s, %s, '1:' || (n %% 100), '{}', '{}', %s FROM %s`
	cast := func(kind int, number, format string) string { return fmt.Sprintf(format, kind, number) }
	var statements []string
	if s.Channel() == "" {
		id := "printf('%%08d-0000-7000-8000-%%012d', %d, %s)"
		statements = []string{"PRAGMA synchronous = OFF", fmt.Sprintf("WITH RECURSIVE counted(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM counted WHERE n < %d) ", n-1) +
			fmt.Sprintf(shape, cast(9, "n", id), "strftime('%Y-%m-%d %H:%M:%S+00:00', '2026-01-01', '+' || n || ' minutes')",
				cast(1, "n % 50", id), cast(2, "n % 20", id), cast(3, "n % 500", id), cast(4, "n / 10", id), "zeroblob(32)", "counted")}
	} else {
		id := "(lpad('%d', 8, '0') || '-0000-7000-8000-' || lpad((%s)::text, 12, '0'))::uuid"
		statements = []string{fmt.Sprintf(shape, cast(9, "n", id), "'2026-01-01Z'::timestamptz + n * interval '1 minute'",
			cast(1, "n % 50", id), cast(2, "n % 20", id), cast(3, "n % 500", id), cast(4, "n / 10", id), "decode(repeat('00', 32), 'hex')",
			fmt.Sprintf("generate_series(0, %d) n", n-1))}
	}
	statements = append(statements, fmt.Sprintf("UPDATE audit_head SET size = %d", n), "ANALYZE")
	for _, statement := range statements {
		if _, err := s.Writer().ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if _, err := s.GrowAuditTree(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// plan is a filter with the index that serves it on SQLite, which does not guess at
// how frequent a value is.
type plan struct {
	name   string
	filter audit.Filter
	index  string
}

// planned is every filter, with times from since until until.
func planned(since, until time.Time) []plan {
	return []plan{
		{"no filter", audit.Filter{}, "auditentry_index"},
		{"a frequent event", audit.Filter{Events: []audit.Event{audit.RunStarted}}, "auditentry_event_index"},
		{"a rare event", audit.Filter{Events: []audit.Event{audit.VersionRevoked}}, "auditentry_event_index"},
		{"several events", audit.Filter{Events: []audit.Event{audit.VersionRevoked, audit.VersionApproved, audit.RunEnded}}, "auditentry_event_index"},
		{"an event that never was", audit.Filter{Events: []audit.Event{audit.AdoptionFailed}}, "auditentry_event_index"},
		{"an actor", audit.Filter{Actor: filledID(1, 7)}, "auditentry_actor_id_index"},
		{"a source", audit.Filter{Source: filledID(2, 7)}, "auditentry_source_id_index"},
		{"a skill", audit.Filter{Skill: filledID(3, 7)}, "auditentry_skill_id_index"},
		{"a run", audit.Filter{Run: filledID(4, 7)}, "auditentry_run_id_index"},
		{"a digest", audit.Filter{Digest: "1:7"}, "auditentry_digest_index"},
		{"since", audit.Filter{Since: since}, "auditentry_index"},
		{"until", audit.Filter{Until: until}, "auditentry_index"},
		{"a time", audit.Filter{Since: since, Until: until}, "auditentry_index"},
		{"an event in a time", audit.Filter{Events: []audit.Event{audit.RunStarted}, Since: since, Until: until}, "auditentry_event_index"},
	}
}

// TestAuditPlans asks the databases how they would find every page: always by an
// index, never reading much more than the page holds.
func TestAuditPlans(t *testing.T) {
	const size = 50
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		entries := 100_000 // PostgreSQL plans by the size of the table
		if s.Channel() == "" {
			entries = 3_000
		}
		fill(t, s, entries)
		middle, minutes := int64(entries/5*2), time.Duration(entries/100)*time.Minute
		for _, p := range planned(filledAt.Add(25*minutes), filledAt.Add(45*minutes)) {
			for _, page := range []audit.Page{{Limit: size}, {Limit: size, Beyond: &middle}, {Limit: size, OldestFirst: true}} {
				name := "U1 an index serves " + p.name
				if page.Beyond != nil {
					name += ", far into the trail"
				}
				if page.OldestFirst {
					name += ", oldest first"
				}
				t.Run(name, func(t *testing.T) {
					asked := s.Asks(func() {
						if _, err := s.AuditEntries(t.Context(), p.filter, page); err != nil {
							t.Fatal(err)
						}
					})
					served := 0
					for _, a := range asked {
						if !strings.Contains(a.Statement, "audit_entries") {
							continue
						}
						served++
						if s.Channel() == "" {
							sqlitePlan(t, s, a, p.index)
						} else {
							postgresPlan(t, s, a, 4*size)
						}
					}
					if served == 0 {
						t.Error("no entries were read")
					}
				})
			}
		}
	})
}

var sqliteIndexed = regexp.MustCompile(`^(SEARCH|SCAN) audit_entries USING (COVERING )?INDEX (\w+)`)

func sqlitePlan(t *testing.T, s *store.Store, a store.Asked, index string) {
	t.Helper()
	rows, err := s.Writer().QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+a.Statement, a.Args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		used := sqliteIndexed.FindStringSubmatch(detail)
		// Only a list of everything may be read from its end; times are found by their own index.
		scans := used != nil && used[1] == "SCAN" && strings.Contains(a.Statement, "WHERE")
		if used == nil || scans || used[3] != index && used[3] != "auditentry_at_index" {
			t.Errorf("%s\nfor %s", detail, a.Statement)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

// node is a part of PostgreSQL's plan.
type node struct {
	Type    string  `json:"Node Type"`
	Table   string  `json:"Relation Name"`
	Rows    float64 `json:"Actual Rows"`
	Removed float64 `json:"Rows Removed by Filter"`
	Hit     float64 `json:"Shared Hit Blocks"`
	Read    float64 `json:"Shared Read Blocks"`
	Plans   []node  `json:"Plans"`
}

func postgresPlan(t *testing.T, s *store.Store, a store.Asked, most float64) {
	t.Helper()
	var text string
	if err := s.Writer().QueryRowContext(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+a.Statement, a.Args...).Scan(&text); err != nil {
		t.Fatal(err)
	}
	var plans []struct{ Plan node }
	if err := json.Unmarshal([]byte(text), &plans); err != nil {
		t.Fatal(err)
	}
	var check func(node)
	check = func(n node) {
		if n.Type == "Seq Scan" || n.Rows+n.Removed > most || n.Hit+n.Read > most {
			t.Errorf("%s reads %v rows in %v blocks\nfor %s %v\n%s", n.Type, n.Rows+n.Removed, n.Hit+n.Read, a.Statement, a.Args, text)
		}
		for _, below := range n.Plans {
			check(below)
		}
	}
	check(plans[0].Plan)
}

// BenchmarkAuditPage is a page of 50 out of 1,000,000 entries, the first and the
// 10,000th, with and without a filter; in a race build of fewer.
func BenchmarkAuditPage(b *testing.B) {
	const entries, size = benchEntries, 50
	deep := int64(entries / 2)
	eachDatabase(b, func(b *testing.B, at string) {
		s := storetest.OpenAt(b, at, store.Options{})
		fill(b, s, entries)
		for _, p := range []struct {
			name   string
			filter audit.Filter
		}{
			{"everything", audit.Filter{}},
			{"event", audit.Filter{Events: []audit.Event{audit.RunStarted}}},
			{"events", audit.Filter{Events: []audit.Event{audit.RunStarted, audit.VersionApproved}}},
			{"actor", audit.Filter{Actor: filledID(1, 6)}},
			{"time", audit.Filter{Since: filledAt, Until: filledAt.Add(entries / 10 * 9 * time.Minute)}},
			{"event and time", audit.Filter{Events: []audit.Event{audit.RunStarted}, Since: filledAt}},
		} {
			for name, page := range map[string]audit.Page{"page 1": {Limit: size}, fmt.Sprint("page ", entries/2/size): {Limit: size, Beyond: &deep}} {
				b.Run(p.name+"/"+name, func(b *testing.B) {
					for b.Loop() {
						got, err := s.AuditEntries(b.Context(), p.filter, page)
						if err != nil || len(got) != size {
							b.Fatalf("%d entries, %v", len(got), err)
						}
					}
				})
			}
		}
	})
}
