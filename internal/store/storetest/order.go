package storetest

import (
	"bytes"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
)

func sequences(t *testing.T, s *store.Store) {
	r := NewRows(t, s)
	t.Run("R5 sequences are gapless from 0, whoever appends", func(t *testing.T) {
		id := r.Run()
		const writers, each = 6, 8
		var mu sync.Mutex
		firsts := map[int]int{} // first sequence: number of events
		var all sync.WaitGroup
		for range writers {
			all.Go(func() {
				for n := range each {
					events := slices.Repeat([]run.Event{r.Event(run.EventToolCall)}, 1+n%3)
					out, err := change.One(t.Context(), s, change.Change{Run: id, Events: events})
					if err != nil || !out.Applied {
						t.Errorf("outcome %+v, %v", out, err)
						return
					}
					mu.Lock()
					firsts[out.FirstSequence] = len(events)
					mu.Unlock()
				}
			})
		}
		all.Wait()
		next := 0
		for next < len(firsts)*3 && firsts[next] > 0 {
			next += firsts[next]
		}
		events, err := s.Events(t.Context(), id, -1, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range events {
			if e.Sequence != i {
				t.Fatalf("place %d holds sequence %d", i, e.Sequence)
			}
		}
		got, err := s.Run(t.Context(), id)
		if err != nil || got.Events != len(events) || next != len(events) {
			t.Fatalf("the run counts %d events, the outcomes %d, stored are %d; %v", got.Events, next, len(events), err)
		}
	})
}

func events(t *testing.T, s *store.Store) {
	r := NewRows(t, s)
	t.Run("R5 events are read from a cursor, in order and as they were written", func(t *testing.T) {
		id := r.Run()
		approved := true
		want := []run.Event{r.Event(run.EventStarted), r.Event(run.EventDecision), r.Event(run.EventSettled)}
		want[1].Data = run.EventData{Approved: &approved, DecidedBy: "run_owner", Args: []string{"<a> & ü"}}
		r.Apply(change.Change{Run: id, Events: want[:1]})
		r.Apply(change.Change{Run: id, Events: want[1:]})
		for i := range want {
			want[i].Sequence = i
		}
		got, err := s.Events(t.Context(), id, 0, 10)
		if diff := cmp.Diff(want[1:], got); err != nil || diff != "" {
			t.Fatalf("%v %s", err, diff)
		}
		if got, _ := s.Events(t.Context(), id, -1, 1); len(got) != 1 || got[0].Sequence != 0 {
			t.Fatalf("got %+v", got)
		}
		decision, found, err := s.LastDecision(t.Context(), id)
		if diff := cmp.Diff(want[1], decision); err != nil || !found || diff != "" {
			t.Fatalf("R15 the decision: %v %v %s", found, err, diff)
		}
	})
	t.Run("R15 a run without a decision has none", func(t *testing.T) {
		if _, found, err := s.LastDecision(t.Context(), r.Run()); found || err != nil {
			t.Fatalf("%v %v", found, err)
		}
	})
	t.Run("more events than fit into one statement", func(t *testing.T) {
		id := r.Run()
		events := slices.Repeat([]run.Event{r.Event(run.EventToolCall)}, 2500)
		r.Apply(change.Change{Run: id, Events: events, Audit: slices.Collect(func(yield func(audit.Entry) bool) {
			for range 2500 {
				if !yield(r.Entry(audit.ToolDenied)) {
					return
				}
			}
		})})
		got, err := s.Events(t.Context(), id, 2497, 10)
		if err != nil || len(got) != 2 || got[1].Sequence != 2499 {
			t.Fatalf("%+v %v", got, err)
		}
	})
}

func trail(t *testing.T, s *store.Store) {
	r := NewRows(t, s)
	const writers, each = 6, 10
	t.Run("U2 indexes are gapless and in commit order, and a reader never sees a gap", func(t *testing.T) {
		stop, watched := make(chan struct{}), make(chan struct{})
		go func() { // whoever reads while others write sees a prefix
			defer close(watched)
			for {
				size, err := s.AuditSize(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				entries, err := s.AuditEntries(t.Context(), audit.Filter{}, audit.Page{Limit: 1000, OldestFirst: true})
				if err != nil || int64(len(entries)) < size {
					t.Errorf("%d entries are read where there are %d, %v", len(entries), size, err)
					return
				}
				for i, e := range entries {
					if e.Index != int64(i) {
						t.Errorf("place %d holds index %d", i, e.Index)
						return
					}
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		}()
		var all sync.WaitGroup
		for range writers {
			all.Go(func() {
				last := int64(-1)
				for range each {
					entries := []audit.Entry{r.Entry(audit.RunStarted), r.Entry(audit.RunEnded)}
					out, err := change.One(t.Context(), s, change.Change{Audit: entries})
					if err != nil || !out.Applied || out.FirstIndex <= last {
						t.Errorf("outcome %+v after %d, %v", out, last, err)
						return
					}
					last = out.FirstIndex
					if e, err := s.AuditEntry(t.Context(), entries[1].ID); err != nil || e.Index != last+1 {
						t.Errorf("U2 an entry is readable when its change is acknowledged: %+v, %v", e, err)
						return
					}
				}
			})
		}
		all.Wait()
		close(stop)
		<-watched
		if size, err := s.AuditSize(t.Context()); err != nil || size != writers*each*2 {
			t.Fatalf("the trail has %d entries, %v", size, err)
		}
	})
	t.Run("U2 an entry keeps every field and the hash of its canonical bytes", func(t *testing.T) {
		want := r.Entry(audit.VersionApproved).About(r.World.NewID(), r.World.NewID(), "1:ab").InRun(r.World.NewID()).With("name", `"<ü>"`)
		want.Actor = r.World.NewID()
		out := r.Apply(change.Change{Audit: []audit.Entry{want}})
		got, err := s.AuditEntry(t.Context(), want.ID)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Canonical(), want.Canonical()) {
			t.Fatalf("stored  %s\nwritten %s", got.Canonical(), want.Canonical())
		}
		if got.Index != out.FirstIndex || !bytes.Equal(got.LeafHash, audit.Leaf(want.Canonical())) {
			t.Fatalf("index %d of %d, leaf %x", got.Index, out.FirstIndex, got.LeafHash)
		}
	})
}

func trailPages(t *testing.T, s *store.Store) {
	r := NewRows(t, s)
	a, b := r.World.NewID(), r.World.NewID()
	times := make([]time.Time, 6)
	for i := range times {
		e := r.Entry(audit.SkillEnabled)
		if i%2 == 0 {
			e.Event, e.Actor, e.Source, e.Skill, e.Run, e.Digest = audit.SkillDisabled, a, a, a, a, "1:a"
		} else {
			e.Actor, e.Source, e.Skill, e.Run, e.Digest = b, b, b, b, "1:b"
		}
		times[i] = e.At
		r.Apply(change.Change{Audit: []audit.Entry{e}})
	}
	index := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		filter audit.Filter
		page   audit.Page
		want   []int64
	}{
		"newest first":              {audit.Filter{}, audit.Page{Limit: 3}, []int64{5, 4, 3}},
		"newest first, going on":    {audit.Filter{}, audit.Page{Limit: 3, Beyond: index(3)}, []int64{2, 1, 0}},
		"oldest first":              {audit.Filter{}, audit.Page{Limit: 2, OldestFirst: true}, []int64{0, 1}},
		"oldest first, going on":    {audit.Filter{}, audit.Page{Limit: 2, OldestFirst: true, Beyond: index(3)}, []int64{4, 5}},
		"beyond the end":            {audit.Filter{}, audit.Page{Limit: 2, OldestFirst: true, Beyond: index(5)}, []int64{}},
		"by event":                  {audit.Filter{Events: []audit.Event{audit.SkillDisabled}}, audit.Page{Limit: 9}, []int64{4, 2, 0}},
		"by two events":             {audit.Filter{Events: []audit.Event{audit.SkillDisabled, audit.SkillEnabled}}, audit.Page{Limit: 2}, []int64{5, 4}},
		"by actor":                  {audit.Filter{Actor: a}, audit.Page{Limit: 9}, []int64{4, 2, 0}},
		"by source":                 {audit.Filter{Source: b}, audit.Page{Limit: 9}, []int64{5, 3, 1}},
		"by skill":                  {audit.Filter{Skill: a}, audit.Page{Limit: 2, OldestFirst: true}, []int64{0, 2}},
		"by run":                    {audit.Filter{Run: b}, audit.Page{Limit: 9, Beyond: index(5)}, []int64{3, 1}},
		"by digest":                 {audit.Filter{Digest: "1:a"}, audit.Page{Limit: 9}, []int64{4, 2, 0}},
		"since, which is inclusive": {audit.Filter{Since: times[4]}, audit.Page{Limit: 9}, []int64{5, 4}},
		"until, which is exclusive": {audit.Filter{Until: times[1]}, audit.Page{Limit: 9}, []int64{0}},
		"by all of them":            {audit.Filter{Events: []audit.Event{audit.SkillDisabled}, Actor: a, Since: times[1], Until: times[4]}, audit.Page{Limit: 9}, []int64{2}},
	} {
		t.Run("U1 "+name, func(t *testing.T) {
			entries, err := s.AuditEntries(t.Context(), c.filter, c.page)
			if err != nil {
				t.Fatal(err)
			}
			got := []int64{}
			for _, e := range entries {
				got = append(got, e.Index)
			}
			if !slices.Equal(got, c.want) {
				t.Fatalf("got %v, want %v", got, c.want)
			}
		})
	}
	t.Run("an entry that is not there is NOT_FOUND", func(t *testing.T) {
		_, err := s.AuditEntry(t.Context(), uuid.New())
		notFound(t, err)
	})
}
