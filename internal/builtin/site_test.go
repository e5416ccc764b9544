package builtin

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/content/contenttest"
	"github.com/countersign/countersign/internal/tool"
	"github.com/countersign/countersign/internal/world"
)

var (
	admin  = actor.Actor{ID: uuid.UUID{1}, Kind: actor.Person, Administrator: true}
	editor = actor.Actor{ID: uuid.UUID{2}, Kind: actor.Person, Granted: []actor.Permission{actor.ContentRead, actor.ContentEdit}}
	reader = actor.Actor{ID: uuid.UUID{3}, Kind: actor.Person, Granted: []actor.Permission{actor.ContentRead}}
	aRun   = uuid.UUID{9}
)

// site is the shipped tools over a small site: "home" with the elements "intro" and
// "more" and the subpage "team", which only the editor may read.
type site struct {
	t     *testing.T
	room  *content.Content
	tools *tool.Registry
	calls int

	writes int // changes that the store was given
}

func newSite(t *testing.T, hooks ...content.Hook) *site {
	t.Helper()
	w := world.Fixed(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), 7)
	s := &site{t: t}
	s.room = content.New(&counting{Store: contenttest.NewMemory(), writes: &s.writes}, w, hooks...)
	var err error
	if s.tools, err = tool.New(All(s.room, nil)...); err != nil {
		t.Fatal(err)
	}
	s.make(content.PageTable, "home", "", map[string]any{"title": "Home", "slug": "/", "description": "Welcome"})
	s.make(content.PageTable, "team", "home", map[string]any{"title": "Team", "slug": "team", content.ReaderIDs: []any{editor.ID.String()}})
	s.make(content.ElementTable, "intro", "home", map[string]any{"kind": "text", "header": "Helo", "text": "We bake <bread> & cake."})
	s.make(content.ElementTable, "more", "home", map[string]any{"kind": "text", "header": "More"})
	s.make(content.ElementTable, "members", "team", map[string]any{"kind": "text", "text": "Bread is baked by Ann."})
	s.make(content.FileTable, "logo", "", map[string]any{"name": "logo.svg"})
	return s
}

// newGallery is newSite with what the other tools need: the subpage "spare" with the
// hidden element "sketch", another file, and the element "picture" that shows one.
func newGallery(t *testing.T, hooks ...content.Hook) *site {
	t.Helper()
	s := newSite(t, hooks...)
	s.make(content.PageTable, "spare", "home", map[string]any{"title": "Spare"})
	if _, err := s.room.Create(context.Background(), admin, content.Creation{Table: content.ElementTable, ID: "sketch", ParentID: "spare", Fields: map[string]any{"header": "Soon"}, Hidden: true}); err != nil {
		t.Fatal(err)
	}
	s.make(content.FileTable, "oven", "", map[string]any{"name": "oven.jpg"})
	s.make(content.ElementTable, "picture", "home", map[string]any{"kind": "image", "image": "logo", "alternative": "Our logo"})
	return s
}

// counting counts the changes that its store applies.
type counting struct {
	content.Store
	writes *int
}

func (c *counting) Apply(ctx context.Context, changes ...change.Change) ([]change.Outcome, error) {
	*c.writes += len(changes)
	return c.Store.Apply(ctx, changes...)
}

func (s *site) make(table, id, parent string, fields map[string]any) {
	s.t.Helper()
	if _, err := s.room.Create(context.Background(), admin, content.Creation{Table: table, ID: id, ParentID: parent, Fields: fields}); err != nil {
		s.t.Fatal(err)
	}
}

// call is the next call of the run, by an actor.
func (s *site) call(as actor.Actor, args string) tool.Call {
	s.calls++
	return tool.Call{Run: aRun, Key: string(rune('a' + s.calls)), Actor: as, Arguments: json.RawMessage(args)}
}

func (s *site) do(as actor.Actor, name, args string) tool.Result {
	s.t.Helper()
	return s.run(name, s.call(as, args))
}

func (s *site) run(name string, call tool.Call) tool.Result {
	s.t.Helper()
	answer := s.tools.Execute(context.Background(), name, call)
	if answer.Failure != nil && !answer.Result.HookFailedAfterWrite {
		s.t.Errorf("%s failed: %v", name, answer.Failure)
	}
	return answer.Result
}

func (s *site) want(as actor.Actor, name, args, want string) {
	s.t.Helper()
	if got := s.do(as, name, args); got.IsError || got.Text != want {
		s.t.Errorf("%s %s\n got %s\nwant %s", name, args, got.Text, want)
	}
}

func (s *site) wantError(as actor.Actor, name, args, token string) {
	s.t.Helper()
	if got := s.do(as, name, args); !got.IsError || got.Token != token || got.Write != nil || got.Report != nil {
		s.t.Errorf("%s %s: got %+v, want the error %s", name, args, got, token)
	}
}

func (s *site) field(table, id, name string) any {
	s.t.Helper()
	r, err := s.room.Read(context.Background(), admin, table, id)
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Fields[name]
}
