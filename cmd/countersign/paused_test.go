package main

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/graph"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
)

// The limits that docs/benchmarks.md names.
const (
	// pausedHeapLimit is what all the paused runs together may keep on the heap: next to
	// nothing each.
	pausedHeapLimit = 2 << 20
	resumeLimit     = 20 * time.Millisecond
)

// proposesDraft is a script that proposes to make an element, and is done once it was
// answered. A create has no lines that another run's write could move.
const proposesDraft = `
steps:
  - calls: [{tool: create_element_draft, arguments: {pageId: home, fields: {header: News}}}]
default: Done.
`

// BenchmarkPaused measures what 10,000 runs that wait for a person cost: memory and
// goroutines of the server, and the time in which one of them goes on once it is
// approved, over HTTP, until it has settled. Its model is a script, whose time is in it.
func BenchmarkPaused(b *testing.B) {
	paused, started := 10_000, 50
	if testing.Short() {
		paused, started = 200, 5
	}
	for _, database := range storetest.URLs {
		b.Run(database.Name, func(b *testing.B) {
			at := database.URL(b)
			s := startSite(b, demoAt(at))
			configuration := proposer(s)
			waiting(s, configuration) // what is made once is there before it is measured
			heap, routines := resting()
			for range started {
				waiting(s, configuration)
			}
			copies := multiply(b, at, paused-started)
			if n := len(s.must(`{ inbox(first: 100) { nodes { id } } }`, nil)["inbox"].(object)["nodes"].([]any)); n != 100 {
				b.Fatalf("%d runs are in the inbox", n)
			}
			heapAfter, routinesAfter := resting()
			for range 100 { // connections close, and statements end
				if routinesAfter <= routines {
					break
				}
				time.Sleep(50 * time.Millisecond)
				_, routinesAfter = resting()
			}
			if routinesAfter > routines {
				b.Errorf("there are %d goroutines with %d paused runs, and %d without", routinesAfter, paused, routines)
			}
			grown := float64(heapAfter) - float64(heap)

			next := 0
			var took []time.Duration
			for b.Loop() {
				b.StopTimer()
				if next == len(copies) {
					b.Fatalf("all %d runs were resumed", next)
				}
				id := copies[next]
				next++
				card := s.must(`query($id: ID!) { node(id: $id) { ... on Run { pendingDecision { turnDigest } } } }`, object{"id": id})
				digest := card["node"].(object)["pendingDecision"].(object)["turnDigest"]
				approve := operation(b, `mutation($id: ID!, $digest: Digest!) {
					decideRun(input: {runId: $id, turnDigest: $digest, decision: APPROVE}) { run { status } refusal { code message } }
				}`, object{"id": id, "digest": digest})
				b.StartTimer()
				began := time.Now()
				if a := s.send(approve); len(a.Errors) > 0 || !strings.Contains(a.Raw, `"COMPLETED"`) {
					b.Fatal(a.Raw)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took) // the median: what else the machine does meets a few of them
			resume := float64(took[len(took)/2]) / float64(resumeLimit)
			b.ReportMetric(resume, "limits/op")
			b.ReportMetric(grown/pausedHeapLimit, "heap-limits")
			if testing.Short() {
				return
			}
			if grown > pausedHeapLimit {
				b.Errorf("%d paused runs keep %.0f bytes of memory, the limit is %d", paused, grown, pausedHeapLimit)
			}
			if resume > 1 {
				b.Errorf("resuming a run takes %.2f of %v", resume, resumeLimit)
			}
		})
	}
}

// proposer makes a configuration whose model proposes one write.
func proposer(s *site) any {
	s.t.Helper()
	provider := s.must(`mutation($script: String!) {
		createProvider(input: {name: "Proposes", kind: SCRIPTED, trustZone: LOCAL, script: $script}) { provider { id } }
	}`, object{"script": proposesDraft})["createProvider"].(object)["provider"].(object)["id"]
	return s.must(`mutation($provider: ID!) {
		createConfiguration(input: {name: "Proposes", providerId: $provider, model: "scripted"}) { configuration { id } }
	}`, object{"provider": provider})["createConfiguration"].(object)["configuration"].(object)["id"]
}

// waiting starts a run that waits for an approval.
func waiting(s *site, configuration any) string {
	s.t.Helper()
	run := s.must(`mutation($configuration: ID!) {
		startRun(input: {configurationId: $configuration, prompt: "Write something."}) { run { id status } refusal { code message } }
	}`, object{"configuration": configuration})["startRun"].(object)["run"].(object)
	if run["status"] != "WAITING_FOR_APPROVAL" {
		s.t.Fatalf("the run does not wait: %v", run)
	}
	return run["id"].(string)
}

// resting is what is on the heap after a collection, and how many goroutines there are.
func resting() (heap uint64, routines int) {
	http.DefaultClient.CloseIdleConnections()
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, runtime.NumGoroutine()
}

// multiply makes n more runs that wait exactly as the oldest does, with its events, and returns
// their ids. What is sealed is sealed for each of them, through the store.
func multiply(b *testing.B, at string, n int) []string {
	b.Helper()
	s, err := store.Open(b.Context(), at, store.Options{Keys: []store.Key{storetest.Key}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	db := sideDoor(b, at)
	defer db.Close()
	var original uuid.UUID
	err = db.QueryRowContext(b.Context(), "SELECT id FROM runs WHERE status = 'waiting_for_approval' ORDER BY created_at LIMIT 1").Scan(&original)
	if err != nil {
		b.Fatal(err)
	}
	state, err := s.State(b.Context(), original)
	if err != nil {
		b.Fatal(err)
	}
	sealed, err := json.Marshal(state)
	if err != nil {
		b.Fatal(err)
	}
	row := rowOf(b, db, original)
	var ids []string
	for len(ids) < n {
		var c change.Change
		for range min(500, n-len(ids)) {
			id := uuid.Must(uuid.NewV7())
			values := append(row[:len(row):len(row)], storetest.V("id", id), storetest.Sealed("state", string(sealed)))
			c.Inserts = append(c.Inserts, change.Insert{Table: "runs", Row: values})
			ids = append(ids, graph.RunID(id))
		}
		if out, err := change.One(b.Context(), s, c); err != nil || !out.Applied {
			b.Fatalf("%+v, %v", out, err)
		}
	}
	_, err = db.ExecContext(b.Context(), `INSERT INTO run_events (run_id, sequence, kind, round, duration_ms, at, data)
		SELECT r.id, e.sequence, e.kind, e.round, e.duration_ms, e.at, e.data FROM runs r JOIN run_events e ON e.run_id = $1
		WHERE NOT EXISTS (SELECT 1 FROM run_events x WHERE x.run_id = r.id)`, original)
	if err != nil {
		b.Fatal(err)
	}
	return ids
}

// sideDoor opens a database beside its server.
func sideDoor(b *testing.B, at string) *sql.DB {
	b.Helper()
	driver, name := "postgres", at
	if path, embedded := strings.CutPrefix(at, "sqlite:"); embedded {
		driver, name = "sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_time_format=sqlite&_timezone=UTC"
	}
	db, err := sql.Open(driver, name)
	if err != nil {
		b.Fatal(err)
	}
	return db
}

// rowOf are the columns of a run as they can be written again, but those that are the
// run's own.
func rowOf(b *testing.B, db *sql.DB, id uuid.UUID) []change.Value {
	b.Helper()
	rows, err := db.QueryContext(b.Context(), "SELECT * FROM runs WHERE id = $1", id)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil || !rows.Next() {
		b.Fatalf("there is no run %s: %v", id, err)
	}
	values, places := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		places[i] = &values[i]
	}
	if err := rows.Scan(places...); err != nil {
		b.Fatal(err)
	}
	var out []change.Value
	for i, name := range names {
		if name == "id" || name == "state" || name == "request" || values[i] == nil {
			continue
		}
		if text, ok := values[i].([]byte); ok {
			values[i] = string(text)
		}
		out = append(out, storetest.V(name, values[i]))
	}
	return out
}
