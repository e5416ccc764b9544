package contenttest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/world"
)

// Open makes an empty store for one test.
type Open func(t *testing.T) content.Store

// behaviour is one thing that holds over every store.
type behaviour struct {
	name  string
	holds func(*testing.T, Open)
}

// Suite runs every behaviour of the room over a store.
func Suite(t *testing.T, open Open) {
	for _, part := range [][]behaviour{writing, once, hooks, rights, lists, addresses, placing} {
		for _, b := range part {
			t.Run(b.name, func(t *testing.T) { b.holds(t, open) })
		}
	}
}

// The people of the suite.
var (
	admin  = person(1, true)
	editor = person(2, false, actor.ContentRead, actor.ContentEdit)
	other  = person(3, false, actor.ContentRead, actor.ContentEdit)
	reader = person(4, false, actor.ContentRead)
	nobody = person(5, false)
	aRun   = uuid.MustParse("01900000-0000-7000-8000-0000000000aa")
)

func person(n byte, administrator bool, granted ...actor.Permission) actor.Actor {
	id := uuid.MustParse("01900000-0000-7000-8000-000000000000")
	id[15] = n
	return actor.Actor{ID: id, Name: "person " + string('0'+rune(n)), Kind: actor.Person, Administrator: administrator, Granted: granted}
}

// site is a room over a fresh store, with helpers that fail the test.
type site struct {
	t       *testing.T
	ctx     context.Context
	store   content.Store
	changes *recorder
	*content.Content
}

func newSite(t *testing.T, open Open, hooks ...content.Hook) *site {
	t.Helper()
	changes := &recorder{Store: open(t)}
	return &site{
		t: t, ctx: context.Background(), store: changes, changes: changes,
		Content: content.New(changes, fixed(), hooks...),
	}
}

func fixed() world.World {
	return world.Fixed(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), 7)
}

// recorder keeps the changes that were applied, and can let something happen right
// before one is.
type recorder struct {
	content.Store
	mu      sync.Mutex
	applied []change.Change
	before  func()
}

func (r *recorder) Apply(ctx context.Context, changes ...change.Change) ([]change.Outcome, error) {
	r.mu.Lock()
	before := r.before
	r.before = nil
	r.mu.Unlock()
	if before != nil {
		before()
	}
	out, err := r.Store.Apply(ctx, changes...)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range out {
		if out[i].Applied {
			r.applied = append(r.applied, changes[i])
		}
	}
	return out, err
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.applied)
}

func (r *recorder) last() change.Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.applied[len(r.applied)-1]
}

func (s *site) page(id, parent string, fields map[string]any) content.Record {
	s.t.Helper()
	if _, ok := fields["title"]; !ok {
		fields["title"] = "Page " + id
	}
	return s.create(content.Creation{Table: content.PageTable, ID: id, ParentID: parent, Fields: fields})
}

func (s *site) element(id, page string, fields map[string]any) content.Record {
	s.t.Helper()
	return s.create(content.Creation{Table: content.ElementTable, ID: id, ParentID: page, Fields: fields})
}

func (s *site) create(in content.Creation) content.Record {
	s.t.Helper()
	out, err := s.Create(s.ctx, admin, in)
	if err != nil {
		s.t.Fatalf("creating %s %s: %v", in.Table, in.ID, err)
	}
	return out.Record
}

func (s *site) update(as actor.Actor, in content.Edit) content.Written {
	s.t.Helper()
	out, err := s.Update(s.ctx, as, in)
	if err != nil {
		s.t.Fatalf("updating %s %s: %v", in.Table, in.ID, err)
	}
	return out
}

func wantKind(t *testing.T, err error, kind fault.Kind) {
	t.Helper()
	if _, refused := fault.AsRefusal(err); refused || !fault.Is(err, kind) {
		t.Errorf("got %v, want %s", err, kind)
	}
}

func wantStale(t *testing.T, err error, revision int) {
	t.Helper()
	refused, ok := fault.AsRefusal(err)
	if !ok || refused.Code != fault.StaleRevision {
		t.Fatalf("got %v, want STALE_REVISION", err)
	}
	if current, ok := refused.Detail.(content.Record); !ok || current.Revision != revision {
		t.Errorf("the refusal carries %v, want the record at revision %d", refused.Detail, revision)
	}
}

func ids(records []content.Record) []string {
	out := []string{}
	for _, r := range records {
		out = append(out, r.ID)
	}
	return out
}

// hookFunc is a hook from a function.
type hookFunc func(context.Context, content.Event) error

func (f hookFunc) AfterWrite(ctx context.Context, e content.Event) error { return f(ctx, e) }

var errHook = errors.New("the hook's server is away")
