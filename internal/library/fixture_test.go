package library_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/skill"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
	"github.com/countersign/countersign/internal/world"
)

// fixture is a library over a memory, with a source that a test fills.
type fixture struct {
	*library.Library
	t       testing.TB
	ctx     context.Context
	clock   *clock
	memory  *store.Store
	between *interleaved
	fetcher *files
	rules   *rules

	admin, approver, author, reader actor.Actor
	source                          library.Source
}

// clock moves a millisecond a reading, and as far as a test says.
type clock struct{ at time.Time }

func (c *clock) now() time.Time {
	c.at = c.at.Add(time.Millisecond)
	return c.at
}

// onBoth runs behaviours on both databases; each makes as many empty ones as it
// needs.
func onBoth(t *testing.T, behaviours func(t *testing.T, setUp func(*testing.T) *fixture)) {
	t.Helper()
	for _, database := range storetest.URLs {
		t.Run(database.Name, func(t *testing.T) {
			t.Parallel()
			behaviours(t, func(t *testing.T) *fixture {
				t.Helper()
				return furnish(t, storetest.OpenAt(t, database.URL(t), store.Options{}))
			})
		})
	}
}

func furnish(t testing.TB, kept *store.Store) *fixture {
	t.Helper()
	clock := &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	w := world.New(clock.now, rand.NewChaCha8([32]byte{1}))
	someone := func(name string, granted ...actor.Permission) actor.Actor {
		return actor.Actor{ID: w.NewID(), Name: name, Kind: actor.Person, Granted: granted}
	}
	f := &fixture{
		t: t, clock: clock, ctx: context.Background(), memory: kept, fetcher: &files{},
		rules: &rules{values: access.Values{
			MinTrustLevel: skill.Untrusted, InstructionTrustLevel: skill.Verified, SkillMaxBytes: 24000, SyncMaxFiles: 500, SyncMax: 2 * time.Minute,
		}},
		approver: someone("approver", actor.SkillRead, actor.SkillApprove), author: someone("author", actor.SkillRead, actor.SkillAuthor),
		reader: someone("reader", actor.SkillRead),
	}
	f.admin = someone("admin")
	f.admin.Administrator = true
	f.rules.users = []actor.Actor{f.admin, f.approver, f.author, f.reader}
	f.between = &interleaved{Store: f.memory}
	f.Library = &library.Library{Store: f.between, Fetcher: f.fetcher, World: w, Accounts: f.rules}
	f.source = f.newSource(library.Repo, "https://github.com/acme/skills", skill.Verified)
	return f
}

func (f *fixture) newSource(kind library.SourceType, url string, level skill.TrustLevel) library.Source {
	f.t.Helper()
	s, err := f.CreateSource(f.ctx, f.admin, library.NewSource{Title: "Acme", Type: kind, URL: url, TrustLevel: level})
	f.ok(err)
	return s
}

// synced syncs the files given and returns the skill of the first.
func (f *fixture) synced(contents ...string) library.Dossier {
	f.t.Helper()
	f.fetcher.set(f.t, contents...)
	_, err := f.Sync(f.ctx, f.admin, f.source.ID)
	f.ok(err)
	return f.skill(f.fetcher.fetched.Items[0].Identifier)
}

func (f *fixture) skill(identifier string) library.Dossier {
	f.t.Helper()
	skills, err := f.memory.SkillsOf(f.ctx, f.source.ID)
	f.ok(err)
	for _, s := range skills {
		if s.Identifier == identifier {
			return f.reread(s.ID)
		}
	}
	f.t.Fatalf("no skill %s", identifier)
	return library.Dossier{}
}

func (f *fixture) reread(id uuid.UUID) library.Dossier {
	f.t.Helper()
	d, err := f.FindSkill(f.ctx, f.admin, id)
	f.ok(err)
	return d
}

func (f *fixture) approved(d library.Dossier) library.Approved {
	f.t.Helper()
	a, err := f.Approve(f.ctx, f.approver, library.ApproveInput{SkillID: d.Skill.ID, Digest: string(d.Digest())})
	f.ok(err)
	return a
}

func (f *fixture) standing(id uuid.UUID) skill.Standing {
	f.t.Helper()
	s, err := f.Standing(f.ctx, f.reread(id))
	f.ok(err)
	return s
}

func (f *fixture) apply(c change.Change) {
	f.t.Helper()
	out, err := change.One(f.ctx, f.memory, c)
	f.ok(err)
	if !out.Applied {
		f.t.Fatalf("the test's own change lost in %s", out.Lost)
	}
}

func (f *fixture) ok(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// refused expects a refusal and returns it.
func (f *fixture) refused(err error, code fault.Code) *fault.Refused {
	f.t.Helper()
	r, yes := fault.AsRefusal(err)
	if !yes || r.Code != code {
		f.t.Fatalf("got %v, want the refusal %s", err, code)
	}
	return r
}

// failed expects an error of a kind.
func (f *fixture) failed(err error, kind fault.Kind) {
	f.t.Helper()
	if _, refusal := fault.AsRefusal(err); refusal || !fault.Is(err, kind) {
		f.t.Fatalf("got %v, want an error of kind %s", err, kind)
	}
}

func (f *fixture) instructs(id uuid.UUID, want bool, reasons ...skill.Reason) {
	f.t.Helper()
	s := f.standing(id)
	if s.Instructs != want || !slices.Equal(s.Reasons, reasons) {
		f.t.Fatalf("instructs %v for %v, want %v for %v", s.Instructs, s.Reasons, want, reasons)
	}
}

// audited lists the entries of an event, oldest first.
func (f *fixture) audited(event audit.Event) []audit.Entry {
	var found []audit.Entry
	for _, e := range f.trail() {
		if e.Event == event {
			found = append(found, e)
		}
	}
	return found
}

// trail is every audit entry, oldest first. What was counted in one comes back as
// text: compare it with says.
func (f *fixture) trail() []audit.Entry {
	f.t.Helper()
	const page = 1000
	var all []audit.Entry
	for p := (audit.Page{Limit: page, OldestFirst: true}); ; {
		entries, err := f.memory.AuditEntries(f.ctx, audit.Filter{}, p)
		f.ok(err)
		if all = append(all, entries...); len(entries) < page {
			return all
		}
		p.Beyond = &entries[page-1].Index
	}
}

// says expects a detail of an entry, as it prints.
func (f *fixture) says(e audit.Entry, key string, want any) {
	f.t.Helper()
	if got := fmt.Sprint(e.Detail[key]); got != fmt.Sprint(want) {
		f.t.Fatalf("%s says %s=%s, want %v", e.Event, key, got, want)
	}
}

// once expects exactly one entry of an event and returns it.
func (f *fixture) once(event audit.Event) audit.Entry {
	f.t.Helper()
	found := f.audited(event)
	if len(found) != 1 {
		f.t.Fatalf("%d entries %s, want one: %v", len(found), event, found)
	}
	return found[0]
}

// interleaved lets a test act between what a use case read and what it applies.
type interleaved struct {
	library.Store
	mu      sync.Mutex
	next    []func()
	applied []change.Change
	read    int   // how often dossiers were read
	broken  error // returned instead of reading dossiers or applying
}

func (i *interleaved) Dossiers(ctx context.Context, ids []uuid.UUID) ([]library.Dossier, error) {
	i.mu.Lock()
	i.read++
	i.mu.Unlock()
	if i.broken != nil {
		return nil, i.broken
	}
	return i.Store.Dossiers(ctx, ids)
}

// before runs act just before the next change is applied, once.
func (i *interleaved) before(act func()) { i.next = append(i.next, act) }

func (i *interleaved) Apply(ctx context.Context, changes ...change.Change) ([]change.Outcome, error) {
	if len(i.next) > 0 {
		act := i.next[0]
		i.next = i.next[1:]
		act()
	}
	if i.broken != nil {
		return nil, i.broken
	}
	i.mu.Lock()
	i.applied = append(i.applied, changes...)
	i.mu.Unlock()
	return i.Store.Apply(ctx, changes...)
}

// files is a fetcher that finds what a test puts there.
type files struct {
	fetched library.Fetched
	err     error
	between func()                    // called after each file but the last
	during  func(ctx context.Context) // called once all are read
	calls   []library.Origin
	limits  library.FetchLimits
}

// set parses contents as the skill files s1, s2, …; one that starts with a name and
// ": " has that identifier.
func (f *files) set(t testing.TB, contents ...string) {
	t.Helper()
	f.fetched = library.Fetched{Commit: "c1", Branch: "main", Reached: []string{"acme/skills"}}
	for i, content := range contents {
		f.fetched.Items = append(f.fetched.Items, item(t, "s"+string(rune('1'+i)), content))
	}
}

func item(t testing.TB, identifier, content string) library.Item {
	t.Helper()
	file, err := skill.Parse([]byte(content))
	if err != nil {
		t.Fatalf("%s: %v", identifier, err)
	}
	status := library.ItemLoaded
	if file.Status == skill.ParseRepaired {
		status = library.ItemRepaired
	}
	return library.Item{
		Path: identifier + "/SKILL.md", Identifier: identifier, Scope: "acme/skills", Status: status, Offset: -1, File: file,
		Bundle: []skill.BundleFile{{Path: "SKILL.md", Mode: "100644", Size: int64(len(content)), SHA256: skill.BodyChecksum(content)}},
	}
}

func (f *files) Fetch(ctx context.Context, from library.Origin, limits library.FetchLimits, progress func(library.Progress)) (library.Fetched, error) {
	f.calls, f.limits = append(f.calls, from), limits
	for i := range f.fetched.Items {
		progress(library.Progress{Seen: len(f.fetched.Items), Done: i + 1})
		if f.between != nil && i+1 < len(f.fetched.Items) {
			f.between()
		}
	}
	if f.during != nil {
		f.during(ctx)
	}
	if err := ctx.Err(); err != nil {
		return library.Fetched{}, err
	}
	return f.fetched, f.err
}

// rules are settings and users that a test changes while the library runs.
type rules struct {
	values access.Values
	users  []actor.Actor
}

func (r *rules) Values(context.Context) (access.Values, error) { return r.values, nil }

func (r *rules) Actor(_ context.Context, id uuid.UUID) (actor.Actor, error) {
	for _, u := range r.users {
		if u.ID == id {
			return u, nil
		}
	}
	return actor.Actor{}, fault.New(fault.NotFound, "There is no such user.")
}

// file is a skill file with a name, more frontmatter, and a body.
func file(name, more, body string) string {
	return "---\nname: " + name + "\ndescription: Does what " + name + " does.\n" + more + "---\n" + body
}
