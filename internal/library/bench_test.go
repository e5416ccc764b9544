package library_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/ingest"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/skill"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
)

// many are n skill files of 4 KiB, each in a folder of its own.
func many(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		body := fmt.Sprintf("# Skill %d\n\n", i) + strings.Repeat("Read the page, then say what is wrong with it, and why.\n", 70)
		files[fmt.Sprintf("skills/group-%d/skill-%d/SKILL.md", i%20, i)] = file(fmt.Sprintf("skill-%d", i), "allowed-tools: get_page, list_pages\n", body)
	}
	return files
}

// syncLimit is how long the first sync of a thousand files from the mirror may take on
// SQLite.
const syncLimit = 5 * time.Second

// BenchmarkSync is the first sync of a thousand files from the mirror: read, parsed,
// digested, stored with an audit entry each, in one transaction.
func BenchmarkSync(b *testing.B) {
	mirror := b.TempDir()
	inMirror(b, mirror, "acme/many", many(1000))
	for _, database := range storetest.URLs {
		b.Run(database.Name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				f := furnish(b, storetest.OpenAt(b, database.URL(b), store.Options{}))
				f.Fetcher, f.rules.values.SyncMaxFiles = ingest.New(ingest.Mirror(mirror)), 2000
				f.source = f.newSource(library.Repo, "https://github.com/acme/many", skill.Verified)
				b.StartTimer()
				if r := f.sync(); r.Loaded != 1000 {
					b.Fatalf("%+v", r)
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(syncLimit), "limits/op")
		})
	}
}

// standingOf is a library with a thousand skills of which every second is approved, and
// the statements that it made since it was last asked.
func standingOf(t testing.TB, url string) (f *fixture, ids []uuid.UUID, statements func() int) {
	t.Helper()
	var mu sync.Mutex
	n := 0
	f = furnish(t, storetest.OpenAt(t, url, store.Options{OnQuery: func(string) {
		mu.Lock()
		defer mu.Unlock()
		n++
	}}))
	f.fetcher.fetched = library.Fetched{Commit: "c1", Reached: []string{"acme/skills"}}
	for at, content := range many(1000) {
		f.fetcher.fetched.Items = append(f.fetcher.fetched.Items, item(t, strings.TrimSuffix(at, "/SKILL.md"), content))
	}
	f.sync()
	skills, err := f.memory.SkillsOf(f.ctx, f.source.ID)
	f.ok(err)
	for i, s := range skills {
		if ids = append(ids, s.ID); i%2 == 0 {
			f.approved(library.Dossier{Skill: s, Source: f.source})
		}
	}
	return f, ids, func() int {
		mu.Lock()
		defer mu.Unlock()
		defer func() { n = 0 }()
		return n
	}
}

func TestStandingOfMany(t *testing.T) {
	for _, database := range storetest.URLs {
		t.Run("A2 the standing of a thousand skills takes three queries, on "+database.Name, func(t *testing.T) {
			f, ids, statements := standingOf(t, database.URL(t))
			statements()
			dossiers, err := f.Dossiers(f.ctx, ids)
			f.ok(err)
			standings, err := f.Standings(f.ctx, dossiers)
			f.ok(err)
			if n := statements(); n > 3 {
				t.Errorf("%d statements", n)
			}
			instructing := 0
			for _, s := range standings {
				if s.Instructs {
					instructing++
				}
			}
			if len(standings) != 1000 || instructing != 500 {
				t.Errorf("%d of %d instruct", instructing, len(standings))
			}
		})
	}
}

// BenchmarkStanding is the standing of a thousand skills: read, digested, judged.
func BenchmarkStanding(b *testing.B) {
	for _, database := range storetest.URLs {
		b.Run(database.Name, func(b *testing.B) {
			f, ids, _ := standingOf(b, database.URL(b))
			for b.Loop() {
				dossiers, err := f.Dossiers(f.ctx, ids)
				if err == nil {
					_, err = f.Standings(f.ctx, dossiers)
				}
				f.ok(err)
			}
		})
	}
}
