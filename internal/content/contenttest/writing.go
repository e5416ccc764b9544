package contenttest

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/fault"
)

const secretText = "Words that must not reach the audit trail."

var writing = []behaviour{
	{"an update raises the revision, keeps the other fields and the history", func(t *testing.T, open Open) {
		s := newSite(t, open)
		s.page("home", "", map[string]any{})
		s.element("intro", "home", map[string]any{"header": "Helo", "text": "Old"})
		out := s.update(editor, content.Edit{Table: content.ElementTable, ID: "intro", Fields: map[string]any{"header": "Hello"}, Revision: 1})
		want := map[string]any{"header": "Hello", "text": "Old"}
		stored, err := s.Read(s.ctx, editor, content.ElementTable, "intro")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, stored.Fields) + cmp.Diff(want, out.Record.Fields); diff != "" {
			t.Error(diff)
		}
		if stored.Revision != 2 || !cmp.Equal(stored, out.Record) {
			t.Errorf("stored %+v, answered %+v, want the same at revision 2", stored, out.Record)
		}
		history, err := s.History(s.ctx, reader, content.ElementTable, "intro")
		if err != nil || len(history) != 2 {
			t.Fatalf("history %v, %v, want two revisions", history, err)
		}
		newest, first := history[0], history[1]
		if newest.Kind != content.KindUpdate || newest.Fields["header"] != "Hello" || newest.Actor != editor.ID || newest.Revision != 2 {
			t.Errorf("newest revision %+v", newest)
		}
		if first.Kind != content.KindCreate || first.Fields["header"] != "Helo" || first.Actor != admin.ID || first.Run != uuid.Nil {
			t.Errorf("first revision %+v", first)
		}
	}},
	{"a stale revision is refused with the current record", func(t *testing.T, open Open) {
		s := newSite(t, open)
		s.page("home", "", map[string]any{})
		edit := content.Edit{Table: content.PageTable, ID: "home", Fields: map[string]any{"title": "Start"}, Revision: 1}
		s.update(editor, edit)
		edit.Fields = map[string]any{"title": "Home again"}
		_, err := s.Update(s.ctx, editor, edit)
		wantStale(t, err, 2)
	}},
	{"a write that comes between reading and writing is refused as stale, with or without a revision given", func(t *testing.T, open Open) {
		for _, revision := range []int{0, 1} {
			s := newSite(t, open)
			s.page("home", "", map[string]any{})
			s.changes.before = func() {
				s.update(other, content.Edit{Table: content.PageTable, ID: "home", Fields: map[string]any{"title": "Theirs"}})
			}
			_, err := s.Update(s.ctx, editor, content.Edit{Table: content.PageTable, ID: "home", Fields: map[string]any{"title": "Mine"}, Revision: revision})
			wantStale(t, err, 2)
			if now, _ := s.Read(s.ctx, editor, content.PageTable, "home"); now.Fields["title"] != "Theirs" {
				t.Errorf("title %v, want the one that won", now.Fields["title"])
			}
		}
	}},
	{"of many edits from one revision exactly one is made", func(t *testing.T, open Open) {
		s := newSite(t, open)
		s.page("home", "", map[string]any{})
		const writers = 8
		errs := make([]error, writers)
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() {
				_, errs[i] = s.Update(s.ctx, editor, content.Edit{
					Table: content.PageTable, ID: "home", Revision: 1, Fields: map[string]any{"title": fmt.Sprint("Title ", i)},
				})
			})
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
				continue
			}
			wantStale(t, err, 2)
		}
		if won != 1 {
			t.Errorf("%d edits were made, want 1", won)
		}
	}},
	{"null clears a field, and an edit that changes nothing writes nothing", func(t *testing.T, open Open) {
		s := newSite(t, open)
		s.page("home", "", map[string]any{"description": "Welcome", "noIndex": true})
		out := s.update(editor, content.Edit{Table: content.PageTable, ID: "home", Fields: map[string]any{"description": nil, "noIndex": false}})
		if _, still := out.Record.Fields["description"]; still || len(out.Changed) != 2 || len(out.Missed) != 0 {
			t.Errorf("after clearing: %+v", out)
		}
		before := s.changes.count()
		out = s.update(editor, content.Edit{Table: content.PageTable, ID: "home", Fields: map[string]any{"title": "Page home", "description": ""}})
		if s.changes.count() != before || out.Record.Revision != 2 || len(out.Changed) != 0 {
			t.Errorf("an edit without a change wrote: %+v", out)
		}
	}},
	{"U1 every write is audited by names and ids and never by text", func(t *testing.T, open Open) {
		s := newSite(t, open)
		s.page("home", "", map[string]any{})
		s.element("intro", "home", map[string]any{"header": "Hi"})
		s.update(editor, content.Edit{
			Table: content.ElementTable, ID: "intro", Fields: map[string]any{"text": secretText, "header": "Hi"},
			Origin: content.Origin{Run: aRun, Key: "call-1"},
		})
		for _, c := range s.changes.applied {
			if len(c.Audit) != 1 || c.Audit[0].Event != audit.ContentChanged {
				t.Fatalf("a write was audited by %v", c.Audit)
			}
		}
		entry := s.changes.last().Audit[0]
		want := map[string]any{"table": "element", "record": "intro", "kind": "update", "revision": 2, "fields": []string{"text"}}
		if diff := cmp.Diff(want, entry.Detail); diff != "" {
			t.Error(diff)
		}
		if entry.Actor != editor.ID || entry.Run != aRun {
			t.Errorf("the entry names actor %s and run %s", entry.Actor, entry.Run)
		}
		if strings.Contains(fmt.Sprint(entry), secretText) {
			t.Error("the entry holds content")
		}
	}},
	{"an id is used once", func(t *testing.T, open Open) {
		s := newSite(t, open)
		s.page("home", "", map[string]any{})
		_, err := s.Create(s.ctx, admin, content.Creation{Table: content.PageTable, ID: "home", Fields: map[string]any{"title": "Another"}})
		wantKind(t, err, fault.BadInput)
	}},
	{"records made without an id get one, and stand at the end", func(t *testing.T, open Open) {
		s := newSite(t, open)
		s.page("home", "", map[string]any{})
		a := s.element("", "home", map[string]any{"header": "first"})
		b := s.element("", "home", map[string]any{"header": "second"})
		children, err := s.Children(s.ctx, reader, content.ElementTable, "home")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{a.ID, b.ID}, ids(children)); diff != "" || a.ID == b.ID || len(a.ID) != 16 {
			t.Errorf("ids %q and %q: %s", a.ID, b.ID, diff)
		}
	}},
	{"a hidden record is made hidden", func(t *testing.T, open Open) {
		s := newSite(t, open)
		s.page("home", "", map[string]any{})
		s.create(content.Creation{Table: content.ElementTable, ID: "draft", ParentID: "home", Fields: map[string]any{}, Hidden: true})
		if r, err := s.Read(s.ctx, editor, content.ElementTable, "draft"); err != nil || !r.Hidden {
			t.Errorf("read %+v, %v", r, err)
		}
	}},
}

var origin = content.Origin{Run: aRun, Key: "call-1"}

var once = []behaviour{
	{"R7 a call that is executed twice updates once and answers what it wrote", func(t *testing.T, open Open) {
		s := newSite(t, open)
		s.page("home", "", map[string]any{})
		edit := content.Edit{Table: content.PageTable, ID: "home", Fields: map[string]any{"title": "Start"}, Origin: origin}
		first := s.update(editor, edit)
		second := s.update(editor, edit)
		if first.Repeated || !second.Repeated || second.Record.Revision != 2 || len(second.Missed) != 0 {
			t.Errorf("first %+v, second %+v", first, second)
		}
	}},
	{"R7 a call that is executed twice creates once", func(t *testing.T, open Open) {
		s := newSite(t, open)
		s.page("home", "", map[string]any{})
		in := content.Creation{Table: content.ElementTable, ParentID: "home", Fields: map[string]any{"header": "New"}, Origin: origin}
		first, second := s.create(in), s.create(in)
		if first.ID != second.ID {
			t.Errorf("made %s and %s", first.ID, second.ID)
		}
		in.Origin.Key = "call-2"
		if third := s.create(in); third.ID == first.ID {
			t.Error("another call was taken for the same")
		}
	}},
	{"R7 what a call wrote counts as taken although somebody changed it since", func(t *testing.T, open Open) {
		s := newSite(t, open)
		s.page("home", "", map[string]any{})
		edit := content.Edit{Table: content.PageTable, ID: "home", Fields: map[string]any{"title": "Start"}, Origin: origin}
		s.update(editor, edit)
		s.update(other, content.Edit{Table: content.PageTable, ID: "home", Fields: map[string]any{"title": "Theirs"}})
		again := s.update(editor, edit)
		if !again.Repeated || len(again.Missed) != 0 || again.Record.Fields["title"] != "Theirs" {
			t.Errorf("the repeat says %+v", again)
		}
	}},
	{"R7 a call that loses against itself answers what the other execution wrote", func(t *testing.T, open Open) {
		s := newSite(t, open)
		s.page("home", "", map[string]any{})
		edit := content.Edit{Table: content.PageTable, ID: "home", Fields: map[string]any{"title": "Start"}, Origin: origin}
		s.changes.before = func() { s.update(editor, edit) }
		if out := s.update(editor, edit); !out.Repeated || out.Record.Revision != 2 {
			t.Errorf("the update answers %+v", out)
		}
		in := content.Creation{Table: content.ElementTable, ParentID: "home", Fields: map[string]any{}, Origin: content.Origin{Run: aRun, Key: "call-2"}}
		var first content.Record
		s.changes.before = func() { first = s.create(in) }
		if second := s.create(in); first.ID == "" || second.ID != first.ID {
			t.Errorf("made %q and %q", first.ID, second.ID)
		}
	}},
	{"R7 the same call executed at the same time writes once", func(t *testing.T, open Open) {
		s := newSite(t, open)
		s.page("home", "", map[string]any{})
		before := s.changes.count()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				out, err := s.Update(s.ctx, editor, content.Edit{Table: content.PageTable, ID: "home", Fields: map[string]any{"title": "Start"}, Origin: origin})
				// A loser that read after the winner wrote finds nothing left to change.
				if err != nil || out.Record.Revision != 2 {
					t.Errorf("got %+v, %v", out, err)
				}
			})
		}
		wg.Wait()
		if n := s.changes.count() - before; n != 1 {
			t.Errorf("%d changes were made, want 1", n)
		}
	}},
	{"a call's key cannot be used for another record, nor one half of an origin at all", func(t *testing.T, open Open) {
		s := newSite(t, open)
		s.page("home", "", map[string]any{})
		s.page("about", "", map[string]any{})
		edit := content.Edit{Table: content.PageTable, ID: "home", Fields: map[string]any{"title": "Start"}, Origin: origin}
		s.update(editor, edit)
		edit.ID = "about"
		_, err := s.Update(s.ctx, editor, edit)
		wantKind(t, err, fault.Conflict)
		edit.Origin.Key = ""
		_, err = s.Update(s.ctx, editor, edit)
		wantKind(t, err, fault.Internal)
	}},
	{"the revision names the run and the change holds all of the write", func(t *testing.T, open Open) {
		s := newSite(t, open)
		s.page("home", "", map[string]any{})
		s.update(editor, content.Edit{Table: content.PageTable, ID: "home", Fields: map[string]any{"title": "Start"}, Origin: origin})
		history, err := s.History(s.ctx, editor, content.PageTable, "home")
		if err != nil || history[0].Run != aRun {
			t.Errorf("history %+v, %v", history, err)
		}
		var c change.Change = s.changes.last()
		if len(c.Updates) != 1 || len(c.Inserts) != 1 || len(c.Updates[0].If) != 2 {
			t.Errorf("the change is %+v", c)
		}
	}},
}
