package store_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/pgtest"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
)

// appendLimit is the least share of pgbench's rate at which steps are appended.
const appendLimit = 0.60

// pgbenchScript is what appending a step does to the database: in one UPDATE the lease is
// guarded and renewed and the step numbered under its run's row lock, then it is
// stored. A client finds its run by its number.
const pgbenchScript = `BEGIN;
UPDATE runs SET lease_until = now(), next_seq = next_seq + 1
	WHERE id = (SELECT run_id FROM bench WHERE client = :client_id) AND status = 'running' AND lease_owner = 'w'
	RETURNING next_seq - 1 AS sequence \gset
INSERT INTO run_events (run_id, sequence, kind, round, duration_ms, at, data)
	VALUES ((SELECT run_id FROM bench WHERE client = :client_id), :sequence, 'TOOL_CALL', 1, 12, now(), '%s');
COMMIT;
`

// BenchmarkAppend compares the rate at which steps are appended with that at which
// pgbench, PostgreSQL's own client, runs the same transaction with as many clients on
// the same server. The two take turns, so that whatever else the machine does meets
// both. Every client has a run of its own, as every worker has.
func BenchmarkAppend(b *testing.B) {
	program, err := pgtest.Program("pgbench")
	if err != nil {
		b.Fatal(err)
	}
	const turn = time.Second
	pairs := 5
	if testing.Short() {
		pairs = 1
	}
	for _, clients := range []int{1, 8, 32} {
		b.Run(fmt.Sprint(clients, " clients"), func(b *testing.B) {
			at := pgtest.Schema(b)
			s := storetest.OpenAt(b, at, store.Options{})
			runs := benched(b, s, clients)
			var ratios []float64
			for b.Loop() {
				for range pairs {
					theirs := pgbench(b, program, at, clients, turn)
					ratios = append(ratios, appends(b, s, runs, turn)/theirs)
				}
			}
			slices.Sort(ratios)
			median := ratios[len(ratios)/2]
			b.ReportMetric(median, "of-pgbench")
			if !testing.Short() && median < appendLimit {
				b.Errorf("steps are appended at %.2f of pgbench's rate, the limit is %.2f: %.2f", median, appendLimit, ratios)
			}
		})
	}
}

// toolCall is what the appended steps hold.
var toolCall = run.EventData{Tool: "read_page", Bytes: 3}

// appends is the rate of steps that are appended, a second.
func appends(b *testing.B, s *store.Store, runs []uuid.UUID, turn time.Duration) float64 {
	b.Helper()
	var done atomic.Int64
	var clients sync.WaitGroup
	began := time.Now()
	for _, id := range runs {
		clients.Go(func() {
			for time.Since(began) < turn {
				out, err := change.One(b.Context(), s, change.Change{
					Updates: []change.Update{{
						Table: "runs", ID: id,
						If:  []change.Value{v("status", "running"), v("lease_owner", "w")},
						Set: []change.Value{v("lease_until", time.Now())},
					}},
					Run: id, Events: []run.Event{{Kind: run.EventToolCall, Round: 1, DurationMS: 12, At: time.Now(), Data: toolCall}},
				})
				if err != nil || !out.Applied {
					b.Errorf("%+v, %v", out, err)
					return
				}
				done.Add(1)
			}
		})
	}
	clients.Wait()
	return float64(done.Load()) / time.Since(began).Seconds()
}

var tps = regexp.MustCompile(`tps = ([0-9.]+) \(without`)

// pgbench is the rate at which it runs the transaction, a second.
func pgbench(b *testing.B, program, at string, clients int, turn time.Duration) float64 {
	b.Helper()
	file := filepath.Join(b.TempDir(), "step.sql")
	if err := os.WriteFile(file, fmt.Appendf(nil, pgbenchScript, toolCall.Encode()), 0o600); err != nil {
		b.Fatal(err)
	}
	server, err := url.Parse(at)
	if err != nil {
		b.Fatal(err)
	}
	query := server.Query()
	schema := query.Get("search_path")
	query.Del("search_path") // libpq takes it in its options only
	server.RawQuery = query.Encode()
	c := exec.CommandContext(b.Context(), program, "--no-vacuum", "--file", file, "--client", strconv.Itoa(clients),
		"--jobs", strconv.Itoa(min(clients, runtime.NumCPU())), "--time", strconv.Itoa(int(turn.Seconds())), server.String())
	c.Env = append(os.Environ(), "PGOPTIONS=-c search_path="+schema)
	out, err := c.CombinedOutput()
	found := tps.FindSubmatch(out)
	if err != nil || found == nil {
		b.Fatalf("pgbench: %v\n%s", err, out)
	}
	rate, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	return rate
}

// benched makes a run for every client, and the table in which pgbench finds them.
func benched(b *testing.B, s *store.Store, clients int) []uuid.UUID {
	b.Helper()
	r := storetest.NewRows(b, s)
	user, configuration := r.User(), r.Configuration()
	statement := func(text string, args ...any) {
		b.Helper()
		if _, err := s.Writer().ExecContext(b.Context(), text, args...); err != nil {
			b.Fatal(err)
		}
	}
	statement("CREATE TABLE bench (client int PRIMARY KEY, run_id uuid NOT NULL)")
	runs := make([]uuid.UUID, clients)
	for i := range runs {
		runs[i] = r.RunOf(user, configuration, v("status", "running"), v("lease_owner", "w"))
		statement("INSERT INTO bench VALUES ($1, $2)", i, runs[i])
	}
	return runs
}
