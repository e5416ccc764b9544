package contenttest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/fault"
)

func only(people ...actor.Actor) []any {
	out := []any{}
	for _, p := range people {
		out = append(out, p.ID.String())
	}
	return out
}

// restricted is a site whose page "team" names its reader and editors; "plan" below
// it and the elements on both name nobody.
func restricted(t *testing.T, open Open) *site {
	s := newSite(t, open)
	s.page("home", "", map[string]any{"slug": "/"})
	s.page("team", "home", map[string]any{"slug": "team", content.ReaderIDs: only(editor, other), content.EditorIDs: only(editor)})
	s.page("plan", "team", map[string]any{"slug": "plan"})
	s.element("open", "home", map[string]any{"text": "shared words"})
	s.element("on-team", "team", map[string]any{"text": "shared words"})
	s.element("on-plan", "plan", map[string]any{"text": "shared words"})
	return s
}

// below is what stands at or below the restricted page.
var below = []struct{ table, id string }{
	{content.PageTable, "team"},
	{content.PageTable, "plan"},
	{content.ElementTable, "on-team"},
	{content.ElementTable, "on-plan"},
}
var headers = map[string]string{content.PageTable: "title", content.ElementTable: "header"}

var rights = []behaviour{
	{"I6 a page's readers and editors hold for its subpages and elements", func(t *testing.T, open Open) {
		s := restricted(t, open)
		for _, r := range below {
			for _, who := range []struct {
				actor.Actor
				read, edit bool
			}{{admin, true, true}, {editor, true, true}, {other, true, false}, {reader, false, false}, {nobody, false, false}} {
				_, err := s.Read(s.ctx, who.Actor, r.table, r.id)
				if (err == nil) != who.read {
					t.Errorf("%s reads %s %s: %v", who.Name, r.table, r.id, err)
				}
				if !who.read {
					wantKind(t, err, fault.NotFound)
				}
				_, err = s.PlanUpdate(s.ctx, who.Actor, content.Edit{Table: r.table, ID: r.id, Fields: map[string]any{headers[r.table]: "x"}})
				switch {
				case who.edit && err != nil:
					t.Errorf("%s may not edit %s %s: %v", who.Name, r.table, r.id, err)
				case !who.edit && who.read:
					wantKind(t, err, fault.Forbidden)
				case !who.read:
					wantKind(t, err, fault.NotFound)
				}
			}
		}
	}},
	{"I6 a page that names nobody is everyone's with the permission", func(t *testing.T, open Open) {
		s := restricted(t, open)
		if _, err := s.Read(s.ctx, reader, content.ElementTable, "open"); err != nil {
			t.Error(err)
		}
		_, err := s.Update(s.ctx, reader, content.Edit{Table: content.ElementTable, ID: "open", Fields: map[string]any{"text": "x"}})
		wantKind(t, err, fault.Forbidden)
		s.update(other, content.Edit{Table: content.ElementTable, ID: "open", Fields: map[string]any{"text": "x"}})
	}},
	{"I6 a page that may not be seen and one that is not there are the same", func(t *testing.T, open Open) {
		s := restricted(t, open)
		_, hidden := s.Read(s.ctx, reader, content.PageTable, "team")
		_, missing := s.Read(s.ctx, reader, content.PageTable, "gone")
		if hidden.Error() != `there is no page "team"` || missing.Error() != `there is no page "gone"` {
			t.Errorf("%q against %q", hidden, missing)
		}
	}},
	{"I6 a subpage narrows what is inherited and never widens it", func(t *testing.T, open Open) {
		s := restricted(t, open)
		s.update(admin, content.Edit{Table: content.PageTable, ID: "plan", Fields: map[string]any{content.ReaderIDs: only(reader, other)}})
		for who, want := range map[*actor.Actor]bool{&reader: false, &editor: false, &other: true} {
			if _, err := s.Read(s.ctx, *who, content.ElementTable, "on-plan"); (err == nil) != want {
				t.Errorf("%s: %v", who.Name, err)
			}
		}
	}},
	{"I6 only administrators set readers and editors", func(t *testing.T, open Open) {
		s := restricted(t, open)
		for _, name := range []string{content.ReaderIDs, content.EditorIDs} {
			_, err := s.Update(s.ctx, editor, content.Edit{Table: content.PageTable, ID: "plan", Fields: map[string]any{name: only(editor)}})
			wantKind(t, err, fault.Forbidden)
			_, err = s.Create(s.ctx, editor, content.Creation{Table: content.PageTable, ParentID: "plan", Fields: map[string]any{"title": "x", name: only(editor)}})
			wantKind(t, err, fault.Forbidden)
		}
		// Fields that come back as they were read are nobody's change.
		team, err := s.Read(s.ctx, editor, content.PageTable, "team")
		if err != nil {
			t.Fatal(err)
		}
		team.Fields["title"] = "Our team"
		s.update(editor, content.Edit{Table: content.PageTable, ID: "team", Fields: team.Fields, Revision: team.Revision})
	}},
	{"I6 a right that is taken away is gone at the next call", func(t *testing.T, open Open) {
		s := restricted(t, open)
		s.update(admin, content.Edit{Table: content.PageTable, ID: "team", Fields: map[string]any{content.ReaderIDs: only(other)}})
		_, err := s.Read(s.ctx, editor, content.ElementTable, "on-plan")
		wantKind(t, err, fault.NotFound)
	}},
	{"I6 creating needs the right to edit what the record stands below", func(t *testing.T, open Open) {
		s := restricted(t, open)
		in := content.Creation{Table: content.ElementTable, ParentID: "plan", Fields: map[string]any{"header": "x"}}
		_, err := s.Create(s.ctx, other, in)
		wantKind(t, err, fault.Forbidden)
		_, err = s.Create(s.ctx, reader, in)
		wantKind(t, err, fault.NotFound)
		_, err = s.Create(s.ctx, reader, content.Creation{Table: content.PageTable, Fields: map[string]any{"title": "x"}})
		wantKind(t, err, fault.Forbidden)
		if _, err = s.Create(s.ctx, editor, in); err != nil {
			t.Error(err)
		}
	}},
	{"I6 a page whose way to the root is circular or cut is for administrators alone", func(t *testing.T, open Open) {
		s := newSite(t, open)
		s.page("orphan", "", map[string]any{})
		inside := &moved{Store: s.store, parents: map[string]string{}}
		room := content.New(inside, fixed())
		for _, parent := range []string{"orphan", "gone"} {
			inside.parents["orphan"] = parent
			_, err := room.Read(s.ctx, editor, content.PageTable, "orphan")
			wantKind(t, err, fault.NotFound)
			if _, err := room.Read(s.ctx, admin, content.PageTable, "orphan"); err != nil {
				t.Error(err)
			}
			_, err = room.Create(s.ctx, admin, content.Creation{Table: content.PageTable, ParentID: "orphan", Fields: map[string]any{"title": "x"}})
			wantKind(t, err, fault.BadInput)
		}
	}},
	{"pages nest only as deep as rights can be followed", func(t *testing.T, open Open) {
		s := newSite(t, open)
		parent := ""
		for i := range 64 {
			id := fmt.Sprint("p", i)
			s.page(id, parent, map[string]any{})
			parent = id
		}
		if _, err := s.Read(s.ctx, reader, content.PageTable, parent); err != nil {
			t.Error(err)
		}
		_, err := s.Create(s.ctx, admin, content.Creation{Table: content.PageTable, ParentID: parent, Fields: map[string]any{"title": "x"}})
		wantKind(t, err, fault.BadInput)
	}},
}

// moved is a store in which pages stand elsewhere than they should.
type moved struct {
	content.Store
	parents map[string]string
}

func (m *moved) Record(ctx context.Context, table, id string) (content.Record, error) {
	r, err := m.Store.Record(ctx, table, id)
	if parent, ok := m.parents[id]; ok {
		r.ParentID = parent
	}
	return r, err
}

var lists = []behaviour{
	{"I6 lists and searches hold what the actor may read and nothing else", func(t *testing.T, open Open) {
		s := restricted(t, open)
		for who, want := range map[*actor.Actor][]string{
			&admin: {"on-plan", "on-team", "open"}, &other: {"on-plan", "on-team", "open"}, &reader: {"open"},
		} {
			found, err := s.Search(s.ctx, *who, "", "shared words", 10)
			if err != nil {
				t.Fatal(err)
			}
			got := ids(found)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s finds %s", who.Name, diff)
			}
		}
		children, err := s.Children(s.ctx, reader, content.PageTable, "home")
		if err != nil || len(children) != 0 {
			t.Errorf("children %v, %v", ids(children), err)
		}
		_, err = s.Children(s.ctx, reader, content.ElementTable, "team")
		wantKind(t, err, fault.NotFound)
		_, err = s.History(s.ctx, reader, content.ElementTable, "on-team")
		wantKind(t, err, fault.NotFound)
	}},
	{"whoever may read nothing is told that the permission is missing", func(t *testing.T, open Open) {
		s := restricted(t, open)
		_, err := s.Children(s.ctx, nobody, content.PageTable, "")
		wantKind(t, err, fault.Forbidden)
		_, err = s.Search(s.ctx, nobody, "", "words", 10)
		wantKind(t, err, fault.Forbidden)
		_, err = s.ResolveURL(s.ctx, nobody, "/")
		wantKind(t, err, fault.Forbidden)
	}},
	{"a search is newest first, bounded and checked", func(t *testing.T, open Open) {
		s := newSite(t, open)
		s.page("a", "", map[string]any{"title": "Blue whale"})
		s.page("b", "", map[string]any{"title": "Blue bird"})
		found, err := s.Search(s.ctx, reader, content.PageTable, "blue", 10)
		if diff := cmp.Diff([]string{"b", "a"}, ids(found)); diff != "" || err != nil {
			t.Error(diff, err)
		}
		if one, err := s.Search(s.ctx, reader, content.PageTable, "BLUE whale", 1); err != nil || !cmp.Equal(ids(one), []string{"a"}) {
			t.Errorf("found %v, %v", ids(one), err)
		}
		for _, bad := range []struct {
			table, words string
			limit        int
		}{{"", " ", 1}, {"", "x", 0}, {"", "x", content.MaxSearch + 1}, {"cats", "x", 1}} {
			_, err := s.Search(s.ctx, reader, bad.table, bad.words, bad.limit)
			wantKind(t, err, fault.BadInput)
		}
	}},
	{"a tree is depth first, as deep and as long as asked", func(t *testing.T, open Open) {
		s := restricted(t, open)
		s.page("about", "home", map[string]any{"slug": "about"})
		for _, c := range []struct {
			as           actor.Actor
			parent       string
			depth, limit int
			want         []string
			more         bool
		}{
			{editor, "", 9, 9, []string{"0 home /", "1 team /team", "2 plan /team/plan", "1 about /about"}, false},
			{reader, "", 9, 9, []string{"0 home /", "1 about /about"}, false},
			{editor, "", 2, 9, []string{"0 home /", "1 team /team", "1 about /about"}, true},
			{editor, "team", 9, 9, []string{"0 plan /team/plan"}, false},
			{editor, "", 9, 2, []string{"0 home /", "1 team /team"}, true},
		} {
			nodes, more, err := s.Tree(s.ctx, c.as, c.parent, c.depth, c.limit)
			got := []string{}
			for _, n := range nodes {
				got = append(got, fmt.Sprint(n.Depth, " ", n.Page.ID, " ", n.Path))
			}
			if diff := cmp.Diff(c.want, got); diff != "" || more != c.more || err != nil {
				t.Errorf("%+v: %s more=%v %v", c, diff, more, err)
			}
		}
	}},
}

var addresses = []behaviour{
	{"an address is resolved to its page", resolving},
}

func resolving(t *testing.T, open Open) {
	s := restricted(t, open)
	s.page("group", "home", map[string]any{})
	s.page("jobs", "group", map[string]any{"slug": "jobs"})
	s.page("legal", "group", map[string]any{"slug": "/legal/terms/"})
	for _, c := range []struct {
		address, want string
	}{
		{"/", "home"},
		{"", "home"},
		{"https://example.org", "home"},
		{"https://example.org/team/?x=1#y", "team"},
		{"team/plan", "plan"},
		{"/jobs", "jobs"},
		{"/legal/terms", "legal"},
	} {
		if page, err := s.ResolveURL(s.ctx, editor, c.address); err != nil || page.ID != c.want {
			t.Errorf("%q is %q, %v, want %s", c.address, page.ID, err, c.want)
		}
	}
	_, err := s.ResolveURL(s.ctx, editor, "/nowhere")
	wantKind(t, err, fault.NotFound)
	_, err = s.ResolveURL(s.ctx, reader, "/team/plan") // I6
	wantKind(t, err, fault.NotFound)
	_, err = s.ResolveURL(s.ctx, editor, "mailto:a@b")
	wantKind(t, err, fault.BadInput)
	group, err := s.Read(s.ctx, editor, content.PageTable, "group")
	if err != nil {
		t.Fatal(err)
	}
	if at, err := s.Path(s.ctx, group); at != "" || err != nil {
		t.Errorf("a page without an address answers at %q, %v", at, err)
	}
}
