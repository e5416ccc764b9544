package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/skill"
)

var anyRun = agent.Run{ID: uuid.MustParse("00000000-0000-7000-8000-0000000000aa"), Status: run.Running, InitiatorID: person.ID}

func steps(n int) []run.Event {
	out := make([]run.Event, n)
	for i := range out {
		out[i] = run.Event{Sequence: i, Kind: run.EventModelCall}
	}
	return out
}

func TestRunEvents(t *testing.T) {
	const watch = `subscription($id: ID!, $after: Int) { runEvents(runId: $id, after: $after) { sequence kind } }`
	watching := func(t *testing.T, ctx context.Context, f *fakeAgent, id string, after any) *asking {
		return ask(t, ctx, Rooms{Agent: f}, person, watch, map[string]any{"id": id, "after": after})
	}
	id := runKind.id(anyRun.ID)
	sequences := func(t *testing.T, a *asking) []int {
		var got []int
		for {
			next := a.next()
			if next == nil {
				return got
			}
			if next.Errors != nil {
				t.Fatalf("got %v", next.Errors)
			}
			event := next.Data["runEvents"].(map[string]any)
			got = append(got, int(event["sequence"].(float64)))
		}
	}
	fake := func() *fakeAgent {
		return &fakeAgent{runs: map[uuid.UUID]agent.Run{anyRun.ID: anyRun}, events: steps(5)}
	}

	t.Run("R5 every step after the cursor, once and in order, then the end", func(t *testing.T) {
		for after, want := range map[any][]int{nil: {0, 1, 2, 3, 4}, 0: {1, 2, 3, 4}, 3: {4}, 4: nil, 99: nil} {
			if got := sequences(t, watching(t, t.Context(), fake(), id, after)); !slices.Equal(got, want) {
				t.Errorf("after %v: got %v, want %v", after, got, want)
			}
		}
	})

	t.Run("a response stays as it was when the next one is made", func(t *testing.T) {
		a := watching(t, t.Context(), fake(), id, 2)
		first, second := a.respond(a.ctx), a.respond(a.ctx)
		if !strings.Contains(string(first.Data), `"sequence":3`) || !strings.Contains(string(second.Data), `"sequence":4`) {
			t.Errorf("got %s, then %s", first.Data, second.Data)
		}
	})

	t.Run("a run that is not the viewer's is NOT_FOUND", func(t *testing.T) {
		if got := watching(t, t.Context(), fake(), runKind.id(uuid.New()), nil).next(); got.code() != "NOT_FOUND" {
			t.Errorf("got %+v", got)
		}
	})

	t.Run("a negative sequence is refused", func(t *testing.T) {
		if got := watching(t, t.Context(), fake(), id, -1).next(); got.code() != "BAD_USER_INPUT" {
			t.Errorf("got %+v", got)
		}
	})

	t.Run("a source that fails says why before it ends", func(t *testing.T) {
		f := fake()
		f.failure = fault.Wrap(fault.Unavailable, errors.New("connection reset"), "The database is gone.")
		a := watching(t, t.Context(), f, id, 3)
		if first := a.next(); first == nil || first.Errors != nil {
			t.Fatalf("got %+v", first)
		}
		last := a.next()
		if last == nil || last.code() != "UNAVAILABLE" || strings.Contains(last.Errors[0].Message, "reset") {
			t.Fatalf("got %+v", last)
		}
		if more := a.next(); more != nil {
			t.Errorf("it goes on: %+v", more)
		}
	})

	t.Run("a source that panics ends its subscription and nothing else", func(t *testing.T) {
		f := fake()
		f.panics = true
		a := watching(t, t.Context(), f, id, 3)
		if first := a.next(); first == nil || first.Errors != nil {
			t.Fatalf("got %+v", first)
		}
		if last := a.next(); last == nil || last.code() != "INTERNAL" || strings.Contains(last.Errors[0].Message, "nil map") {
			t.Fatalf("got %+v", last)
		}
	})

	t.Run("a client that goes away leaves nothing behind", func(t *testing.T) {
		defer goleak.VerifyNone(t)
		ctx, leave := context.WithCancel(t.Context())
		a := watching(t, ctx, fake(), id, nil)
		if a.next() == nil {
			t.Fatal("no step came")
		}
		leave()
		if more := a.next(); more != nil {
			t.Errorf("got %+v", more)
		}
	})
}

func TestRunText(t *testing.T) {
	watching := func(t *testing.T, f *fakeAgent, id string) *asking {
		return ask(t, t.Context(), Rooms{Agent: f}, person, `subscription($id: ID!) { runText(runId: $id) { round offset text } }`, map[string]any{"id": id})
	}
	id, runs := runKind.id(anyRun.ID), map[uuid.UUID]agent.Run{anyRun.ID: anyRun}
	t.Run("M1 every delta, then why it ended", func(t *testing.T) {
		a := watching(t, &fakeAgent{runs: runs, failure: fault.New(fault.Unavailable, "The database is gone.")}, id)
		got := fmt.Sprint(a.next().Data, a.next().Data)
		if got != "map[runText:map[offset:0 round:2 text:👋]] map[runText:map[offset:2 round:2 text:!]]" {
			t.Error(got)
		}
		if last := a.next(); last == nil || last.code() != "UNAVAILABLE" {
			t.Errorf("got %+v", last)
		}
	})
	t.Run("a run that is not the viewer's is NOT_FOUND", func(t *testing.T) {
		if got := watching(t, &fakeAgent{runs: runs}, runKind.id(uuid.New())).next(); got.code() != "NOT_FOUND" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("an id of something else is refused", func(t *testing.T) {
		if got := watching(t, &fakeAgent{runs: runs}, "skill_x").next(); got.code() != "BAD_USER_INPUT" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestAuditEntries(t *testing.T) {
	trail := &fakeTrail{}
	for i := range 5 {
		trail.entries = append(trail.entries, audit.Entry{ID: uuid.New(), Index: int64(i), Event: audit.VersionApproved})
	}
	t.Run("everything after an index, then what comes", func(t *testing.T) {
		bell := &ring{rung: make(chan struct{}, 1)}
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		a := ask(t, ctx, Rooms{Audit: trail, Bell: bell}, admin, `subscription { auditEntries(after: 2) { index event } }`, nil)
		for _, want := range []float64{3, 4, 5} {
			if want == 5 {
				trail.mu.Lock()
				trail.entries = append(trail.entries, audit.Entry{ID: uuid.New(), Index: 5, Event: audit.VersionRevoked})
				trail.mu.Unlock()
				bell.rung <- struct{}{}
			}
			got := a.next()
			if entry := got.Data["auditEntries"].(map[string]any); entry["index"] != want {
				t.Fatalf("got %v, want %v", entry, want)
			}
		}
	})
	t.Run("needs audit:read", func(t *testing.T) {
		got := ask(t, t.Context(), Rooms{Audit: trail}, person, `subscription { auditEntries { index } }`, nil).next()
		if got.code() != "FORBIDDEN" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("the trail comes newest first, in pages either way", func(t *testing.T) {
		read := func(arguments string) []any {
			got := ask(t, t.Context(), Rooms{Audit: trail}, admin, `{ auditTrail`+arguments+` { nodes { index } pageInfo { endCursor startCursor } } }`, nil).next()
			if got.Errors != nil {
				t.Fatalf("got %+v", got.Errors)
			}
			var out []any
			for _, n := range got.Data["auditTrail"].(map[string]any)["nodes"].([]any) {
				out = append(out, n.(map[string]any)["index"])
			}
			return out
		}
		for arguments, want := range map[string]string{
			"(first: 2)": "[5 4]", fmt.Sprintf("(first: 2, after: %q)", cursor("4")): "[3 2]",
			"(last: 2)": "[1 0]", fmt.Sprintf("(last: 2, before: %q)", cursor("1")): "[3 2]", "": "[5 4 3 2 1 0]",
		} {
			if got := fmt.Sprint(read(arguments)); got != want {
				t.Errorf("auditTrail%s is %s, want %s", arguments, got, want)
			}
		}
	})
}

// ring is a bell that a test rings.
type ring struct{ rung chan struct{} }

func (r *ring) Listen(...change.Topic) (<-chan struct{}, func()) { return r.rung, func() {} }

func TestSyncProgress(t *testing.T) {
	lease := time.Now().Add(time.Hour)
	source := library.Source{ID: uuid.New(), SyncStatus: library.Syncing, LeaseUntil: &lease}
	source.Progress = library.Progress{Seen: 3, Done: 1}
	f, bell := &fakeLibrary{source: source}, &ring{make(chan struct{})}
	rooms := Rooms{Library: f.library(), Bell: bell}
	watch := func(t *testing.T, by actor.Actor) *asking {
		return ask(t, t.Context(), rooms, by, `subscription($id: ID!) { syncProgress(sourceId: $id) { status seen done errors } }`,
			map[string]any{"id": sourceKind.id(source.ID)})
	}
	t.Run("S11 where it stands, every change, how it ended, and the end", func(t *testing.T) {
		defer goleak.VerifyNone(t)
		a := watch(t, person)
		want := func(status string, seen, done float64) {
			t.Helper()
			got := a.next()
			if p := got.Data["syncProgress"].(map[string]any); p["status"] != status || p["seen"] != seen || p["done"] != done {
				t.Fatalf("got %v, want %s %v %v", p, status, seen, done)
			}
		}
		want("SYNCING", 3, 1)
		f.set(library.Syncing, library.Progress{Seen: 3, Done: 3})
		bell.rung <- struct{}{}
		want("SYNCING", 3, 3)
		f.set(library.SyncOK, library.Progress{Seen: 3, Done: 3})
		bell.rung <- struct{}{}
		want("OK", 3, 3)
		if more := a.next(); more != nil {
			t.Errorf("it goes on: %v", more)
		}
	})
	t.Run("needs skill:read", func(t *testing.T) {
		if got := watch(t, actor.Actor{ID: uuid.New(), Kind: actor.Person}).next(); got.code() != "FORBIDDEN" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestWhatAnErrorLeavesOfOtherChanges(t *testing.T) {
	start := 0
	f := &fakeAgent{runs: map[uuid.UUID]agent.Run{anyRun.ID: anyRun}}
	f.start = func(agent.StartRequest) (agent.Run, error) {
		if start++; start == 2 {
			return agent.Run{}, fault.New(fault.Forbidden, "No.")
		}
		return anyRun, nil
	}
	query := `mutation($i: StartRunInput!) { a: startRun(input: $i) { run { id } } b: startRun(input: $i) { run { id } } c: startRun(input: $i) { run { id } } }`
	got := ask(t, t.Context(), Rooms{Agent: f}, person, query,
		map[string]any{"i": map[string]any{"configurationId": configurationKind.id(uuid.New()), "prompt": "x"}}).next()
	if got.code() != "FORBIDDEN" || got.Data["a"] == nil || got.Data["b"] != nil || got.Data["c"] == nil {
		t.Errorf("got %+v", got)
	}
}

func manySkills(n int) []library.Dossier {
	source := library.Source{ID: uuid.New(), Title: "Ours", Type: library.Repo, TrustLevel: skill.Verified, SyncStatus: library.SyncOK}
	out := make([]library.Dossier, n)
	for i := range out {
		id := uuid.UUID{15: byte(i + 1)}
		v := skill.Version{Name: fmt.Sprint("skill ", i), Support: skill.SupportFull, Tools: skill.NoTools(), Process: skill.ProcessNo}
		out[i] = library.Dossier{
			Skill: library.Skill{
				ID: id, SourceID: source.ID, Version: v, StoredDigest: v.Digest(), ParseStatus: skill.ParseOK, TrustLevel: skill.Verified, Enabled: true,
			},
			Source: source,
		}
		if i%2 == 0 {
			out[i].Approvals = []library.Approval{{
				ID: uuid.New(), SkillID: id, SourceID: source.ID, Digest: v.Digest(), Counter: 1, Version: v, ApproverID: admin.ID, TrustLevel: skill.Verified,
			}}
		}
	}
	return out
}

func TestListsReadAsOftenWhateverTheirLength(t *testing.T) {
	reads := func(t *testing.T, query string, n int, rooms func(*fakeLibrary) Rooms) (int, *answer) {
		f := &fakeLibrary{dossiers: manySkills(n)}
		got := ask(t, t.Context(), rooms(f), admin, query, nil).next()
		if got.Errors != nil {
			t.Fatalf("got %+v", got.Errors)
		}
		return f.reads, got
	}
	for name, query := range map[string]string{
		"nodes": `{ skills(first: 90) { nodes { id digest standing { instructs reasons } source { title } approvals { nodes { digest approver { name } } } } } }`,
		"edges": `{ skills(first: 90) { edges { node { id standing { instructs reasons } source { id } revocations { nodes { digest } } } } } }`,
	} {
		t.Run("standing in "+name, func(t *testing.T) {
			rooms := func(f *fakeLibrary) Rooms { return Rooms{Library: f.library(), Access: people()} }
			few, _ := reads(t, query, 2, rooms)
			many, _ := reads(t, query, 80, rooms)
			if few != many {
				t.Errorf("2 skills cost %d reads, 80 cost %d", few, many)
			}
		})
	}

	t.Run("A2 standing is the skill's own", func(t *testing.T) {
		_, got := reads(t, `{ skills { nodes { standing { instructs reasons } } } }`, 2, func(f *fakeLibrary) Rooms { return Rooms{Library: f.library()} })
		nodes := got.Data["skills"].(map[string]any)["nodes"].([]any)
		want := "[map[standing:map[instructs:true reasons:[]]] map[standing:map[instructs:false reasons:[NO_APPROVAL]]]]"
		if fmt.Sprint(nodes) != want {
			t.Errorf("got %v", nodes)
		}
	})

	t.Run("skills that entries point at", func(t *testing.T) {
		query := `{ auditTrail(first: 90) { nodes { skill { name standing { instructs } } } } }`
		rooms := func(f *fakeLibrary) Rooms {
			trail := &fakeTrail{}
			for i, d := range f.dossiers {
				trail.entries = append(trail.entries, audit.Entry{ID: uuid.New(), Index: int64(i), Event: audit.VersionApproved, Skill: d.Skill.ID})
			}
			return Rooms{Library: f.library(), Audit: trail}
		}
		few, _ := reads(t, query, 2, rooms)
		many, _ := reads(t, query, 80, rooms)
		if many > few+4 { // a busy machine may need another batch, never one a skill
			t.Errorf("2 entries cost %d reads, 80 cost %d", few, many)
		}
	})
}

func TestLoader(t *testing.T) {
	t.Run("reads each object once, and nothing twice", func(t *testing.T) {
		var mu sync.Mutex
		asked := map[uuid.UUID]int{}
		l := newLoader(func(_ context.Context, ids []uuid.UUID) (map[uuid.UUID]int, error) {
			mu.Lock()
			defer mu.Unlock()
			found := map[uuid.UUID]int{}
			for _, id := range ids {
				asked[id]++
				found[id] = int(id[15])
			}
			return found, nil
		})
		var wrong atomic.Int32
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				id := uuid.UUID{15: byte(i%20 + 1)}
				if v, ok, err := l.load(t.Context(), id); err != nil || !ok || v != int(id[15]) {
					wrong.Add(1)
				}
			})
		}
		all.Wait()
		if wrong.Load() > 0 || len(asked) != 20 {
			t.Errorf("%d answers are wrong; %d objects were read", wrong.Load(), len(asked))
		}
		for id, n := range asked {
			if n != 1 {
				t.Errorf("%s was read %d times", id, n)
			}
		}
	})
	t.Run("what is not there, or hidden, is nothing", func(t *testing.T) {
		l := newLoader(each(func(_ context.Context, id uuid.UUID) (int, error) {
			return 0, map[byte]error{1: fault.New(fault.NotFound, "no"), 2: fault.New(fault.Forbidden, "no"), 3: errors.New("broken")}[id[15]]
		}))
		for last, want := range map[byte]struct{ found, fails bool }{0: {}, 1: {}, 2: {}, 4: {found: true}} {
			_, found, err := l.load(t.Context(), uuid.UUID{15: last})
			if found != want.found || err != nil {
				t.Errorf("%d: %v, %v", last, found, err)
			}
		}
		if _, _, err := l.load(t.Context(), uuid.UUID{15: 3}); err == nil {
			t.Error("a failure is hidden")
		}
	})
	t.Run("a panic behind it is an error of everybody who waits", func(t *testing.T) {
		l := newLoader(func(context.Context, []uuid.UUID) (map[uuid.UUID]int, error) { panic("nil map") })
		if _, _, err := l.load(t.Context(), uuid.New()); !fault.Is(err, fault.Internal) {
			t.Errorf("got %v", err)
		}
	})
}

func TestBadInputIsAnsweredInOurWords(t *testing.T) {
	f := &fakeAgent{runs: map[uuid.UUID]agent.Run{}}
	id := runKind.id(uuid.New())
	for _, c := range []struct {
		name, query string
		variables   map[string]any
		code        string
	}{
		{"no GraphQL", `{`, nil, "BAD_USER_INPUT"},
		{"an unknown field", `{ nothing { id } }`, nil, "BAD_USER_INPUT"},
		{"an id of another kind", `{ configuration(id: "` + id + `") { id } }`, nil, "BAD_USER_INPUT"},
		{"an id of no kind", `{ node(id: "1234") { id } }`, nil, "BAD_USER_INPUT"},
		{"an id that nobody has", `{ node(id: "` + id + `") { id } }`, nil, "NOT_FOUND"},
		{"an enum value that is none", `query($s: [RunStatus!]) { runs(filter: {status: $s}) { nodes { id } } }`, map[string]any{"s": []any{"SLEEPING"}}, "BAD_USER_INPUT"},
		{"a number too large", `{ runs(first: 99999999999) { nodes { id } } }`, nil, "BAD_USER_INPUT"},
		{"a number that is a text", `query($n: Int) { runs(first: $n) { nodes { id } } }`, map[string]any{"n": "three"}, "BAD_USER_INPUT"},
		{"a fraction", `query($n: Int) { runs(first: $n) { nodes { id } } }`, map[string]any{"n": 1.5}, "BAD_USER_INPUT"},
		{"a moment that is none", `query($d: DateTime) { auditTrail(filter: {since: $d}) { nodes { id } } }`, map[string]any{"d": "yesterday"}, "BAD_USER_INPUT"},
		{"a digest of a wrong shape", `mutation { approveSkillVersion(input: {skillId: "skl_x", digest: "1:xyz"}) { refusal { code } } }`, nil, "BAD_USER_INPUT"},
		{"a page too large", `{ runs(first: 101) { nodes { id } } }`, nil, "BAD_USER_INPUT"},
		{"a cursor of nothing", `{ runs(after: "???") { nodes { id } } }`, nil, "BAD_USER_INPUT"},
		{"neither prompt nor messages", `mutation($c: ID!) { startRun(input: {configurationId: $c}) { run { id } } }`, map[string]any{"c": configurationKind.id(uuid.New())}, "BAD_USER_INPUT"},
		{"fields that are no object", `mutation { createRecord(input: {table: "page", fields: [1]}) { record { id } } }`, nil, "BAD_USER_INPUT"},
		{"an unknown argument", `{ runs(size: 3) { nodes { id } } }`, nil, "BAD_USER_INPUT"},
		{"nobody is signed in", `{ viewer { id } }`, nil, "UNAUTHENTICATED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			by := admin
			if c.code == "UNAUTHENTICATED" {
				by = actor.Actor{}
			}
			got := ask(t, t.Context(), Rooms{Agent: f, Audit: &fakeTrail{}, Tools: noTools(t)}, by, c.query, c.variables).next()
			if got.code() != c.code {
				t.Fatalf("got %+v", got)
			}
			for _, leak := range []string{"strconv", "json:", "cannot unmarshal", "runtime error", "parsing time", "base64"} {
				if strings.Contains(got.Errors[0].Message, leak) {
					t.Errorf("the message leaks: %s", got.Errors[0].Message)
				}
			}
		})
	}
}
