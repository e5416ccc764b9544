package contenttest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/fault"
)

// garden is a site with two pages, a picture and a German translation of the first.
func garden(t *testing.T, open Open) *site {
	s := newSite(t, open)
	s.page("home", "", map[string]any{"language": "en", "slug": "/"})
	s.page("ferns", "home", map[string]any{"language": "en", "slug": "ferns"})
	s.create(content.Creation{Table: content.FileTable, ID: "leaf", Fields: map[string]any{"name": "leaf.jpg"}})
	s.create(content.Creation{Table: content.FileTable, ID: "moss", Fields: map[string]any{"name": "moss.jpg"}})
	s.element("intro", "ferns", map[string]any{"header": "Ferns", "image": "leaf", "alternative": "A leaf"})
	s.element("more", "ferns", map[string]any{"header": "More"})
	_, err := s.Translate(s.ctx, editor, content.Translating{
		Table: content.PageTable, ID: "ferns", Language: "de",
		Fields:   map[string]any{"title": "Farne", "slug": "farne"},
		Elements: map[string]map[string]any{"intro": {"header": "Farne", "alternative": "Ein Blatt"}, "more": {"header": "Mehr"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *site) order(page string) []string {
	s.t.Helper()
	children, err := s.Children(s.ctx, admin, content.ElementTable, page)
	if err != nil {
		s.t.Fatal(err)
	}
	return ids(children)
}

var placing = []behaviour{
	{"a translation is hidden, stands beside its original and is made once a language", func(t *testing.T, open Open) {
		s := garden(t, open)
		r, err := s.Read(s.ctx, reader, content.PageTable, "ferns-de")
		if err != nil || !r.Hidden || r.TranslationOf != "ferns" || r.ParentID != "home" || r.Fields["title"] != "Farne" || r.Fields["language"] != "de" {
			t.Fatalf("made %+v, %v", r, err)
		}
		elements, _ := s.Children(s.ctx, reader, content.ElementTable, "ferns-de")
		if len(elements) != 2 || elements[0].TranslationOf != "intro" || elements[0].Fields["image"] != "leaf" {
			t.Errorf("with the elements %+v", elements)
		}
		_, err = s.Translate(s.ctx, editor, content.Translating{Table: content.PageTable, ID: "ferns", Language: "de"})
		wantKind(t, err, fault.Conflict)
		_, err = s.Translate(s.ctx, editor, content.Translating{Table: content.PageTable, ID: "ferns-de", Language: "fr"})
		wantKind(t, err, fault.BadInput)
	}},
	{"R7 a deletion takes what depends on it, once, and keeps history and files", func(t *testing.T, open Open) {
		s := garden(t, open)
		in := content.Deletion{Table: content.PageTable, ID: "ferns", Origin: origin}
		first, err := s.Delete(s.ctx, editor, in)
		if err != nil || first.Partial() || len(first.Beside) != 5 {
			t.Fatalf("got %+v, %v", first, err)
		}
		again, err := s.Delete(s.ctx, editor, in)
		if err != nil || !again.Repeated || len(again.Beside) != 5 {
			t.Errorf("the repeat says %+v, %v", again, err)
		}
		for _, gone := range append(first.Beside, first.Record) {
			if _, err := s.Read(s.ctx, admin, gone.Table, gone.ID); !fault.Is(err, fault.NotFound) {
				t.Errorf("%s %s is still there: %v", gone.Table, gone.ID, err)
			}
			if history, err := s.store.History(s.ctx, gone.Table, gone.ID); err != nil || len(history) != 2 {
				t.Errorf("history %+v, %v", history, err)
			}
		}
		if _, err := s.Read(s.ctx, reader, content.FileTable, "leaf"); err != nil {
			t.Error(err)
		}
	}},
	{"G9 a deletion is partial when something came below while the record went", func(t *testing.T, open Open) {
		s := garden(t, open)
		s.changes.before = func() { s.element("late", "ferns", map[string]any{}) }
		out, err := s.Delete(s.ctx, editor, content.Deletion{Table: content.PageTable, ID: "ferns"})
		// Nobody but an administrator sees below a page that is gone.
		if err != nil || !out.Partial() || out.Left.Others != 1 {
			t.Errorf("got %+v, %v", out, err)
		}
	}},
	{"a deletion that loses against a write of what goes along is planned anew", func(t *testing.T, open Open) {
		s := garden(t, open)
		change := func() {
			s.update(admin, content.Edit{Table: content.ElementTable, ID: "intro", Fields: map[string]any{"header": "New"}})
		}
		s.changes.before = change
		if out, err := s.Delete(s.ctx, editor, content.Deletion{Table: content.PageTable, ID: "ferns"}); err != nil || out.Partial() {
			t.Errorf("got %+v, %v", out, err)
		}
	}},
	{"a file that is shown is not deleted", func(t *testing.T, open Open) {
		s := garden(t, open)
		_, err := s.Delete(s.ctx, editor, content.Deletion{Table: content.FileTable, ID: "leaf"})
		if refused, ok := fault.AsRefusal(err); !ok || refused.Code != fault.InUse {
			t.Errorf("got %v, want IN_USE", err)
		}
		if _, err := s.Delete(s.ctx, editor, content.Deletion{Table: content.FileTable, ID: "moss"}); err != nil {
			t.Error(err)
		}
	}},
	{"a move puts a record before another or at the end, and remembers where it stood", func(t *testing.T, open Open) {
		s := garden(t, open)
		s.element("third", "ferns", map[string]any{})
		for _, step := range []struct {
			id, before string
			want       []string
		}{
			{"third", "intro", []string{"third", "intro", "more"}},
			{"third", "more", []string{"intro", "third", "more"}},
			{"intro", "", []string{"third", "more", "intro"}},
		} {
			if _, err := s.Move(s.ctx, editor, content.Move{Table: content.ElementTable, ID: step.id, BeforeID: step.before}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(step.want, s.order("ferns")); diff != "" {
				t.Error(diff)
			}
		}
		to := "home"
		if _, err := s.Move(s.ctx, editor, content.Move{Table: content.ElementTable, ID: "third", ParentID: &to}); err != nil {
			t.Fatal(err)
		}
		history, err := s.History(s.ctx, editor, content.ElementTable, "third")
		if err != nil || history[0].Kind != content.KindMove || *history[0].ParentID != "home" || *history[1].ParentID != "ferns" {
			t.Errorf("history %+v, %v", history, err)
		}
	}},
	{"a page does not go below itself, nor where more people may read it", func(t *testing.T, open Open) {
		s := garden(t, open)
		s.page("inner", "home", map[string]any{content.ReaderIDs: []any{editor.ID.String()}})
		s.page("secret", "inner", map[string]any{})
		below, out := "ferns", "ferns"
		_, err := s.Move(s.ctx, admin, content.Move{Table: content.PageTable, ID: "home", ParentID: &below})
		wantKind(t, err, fault.BadInput)
		_, err = s.Move(s.ctx, editor, content.Move{Table: content.PageTable, ID: "secret", ParentID: &out})
		wantKind(t, err, fault.Forbidden)
		_, err = s.Copy(s.ctx, editor, content.Copying{Table: content.PageTable, ID: "secret", ParentID: &out})
		wantKind(t, err, fault.Forbidden)
		if _, err = s.Move(s.ctx, admin, content.Move{Table: content.PageTable, ID: "secret", ParentID: &out}); err != nil {
			t.Error(err)
		}
	}},
	{"R7 a copy is hidden, has its elements and no address, and is made once", func(t *testing.T, open Open) {
		s := garden(t, open)
		in := content.Copying{Table: content.PageTable, ID: "ferns", Origin: origin}
		first, err := s.Copy(s.ctx, editor, in)
		if err != nil || !first.Record.Hidden || first.Record.Fields["slug"] != nil || len(first.Beside) != 2 || first.Record.ID == "ferns" {
			t.Fatalf("made %+v, %v", first, err)
		}
		if again, err := s.Copy(s.ctx, editor, in); err != nil || again.Record.ID != first.Record.ID || !again.Repeated {
			t.Errorf("made %+v, %v", again, err)
		}
	}},
	{"publishing and hiding are writes of their own", func(t *testing.T, open Open) {
		s := garden(t, open)
		for i, hidden := range []bool{false, true} {
			out, err := s.Show(s.ctx, editor, content.Showing{Table: content.PageTable, ID: "ferns-de", Hidden: hidden, Revision: i + 1})
			if err != nil || out.Record.Hidden != hidden || out.Record.Revision != i+2 {
				t.Errorf("got %+v, %v", out, err)
			}
		}
		_, err := s.Show(s.ctx, editor, content.Showing{Table: content.PageTable, ID: "ferns-de", Revision: 1})
		wantStale(t, err, 3)
		_, err = s.Show(s.ctx, reader, content.Showing{Table: content.PageTable, ID: "ferns-de"})
		wantKind(t, err, fault.Forbidden)
	}},
	{"a replaced picture is replaced in its translations, whose text for it goes", func(t *testing.T, open Open) {
		s := garden(t, open)
		words := "Moss"
		out, err := s.Replace(s.ctx, editor, content.Picture{Table: content.ElementTable, ID: "intro", FileID: "moss", Alternative: &words, Origin: origin})
		if err != nil || out.Partial() || len(out.Beside) != 1 {
			t.Fatalf("got %+v, %v", out, err)
		}
		fields := out.Beside[0].Fields
		if fields["image"] != "moss" || fields["alternative"] != nil || fields["header"] != "Farne" || out.Record.Fields["alternative"] != "Moss" {
			t.Errorf("the translation has %v", fields)
		}
		_, err = s.Attach(s.ctx, editor, content.Picture{Table: content.ElementTable, ID: "intro", FileID: "leaf"})
		wantKind(t, err, fault.Conflict)
		_, err = s.Attach(s.ctx, editor, content.Picture{Table: content.ElementTable, ID: "more", FileID: "gone"})
		wantKind(t, err, fault.BadInput)
		_, err = s.SetAlternative(s.ctx, editor, content.Wording{Table: content.ElementTable, ID: "more", Text: "x"})
		wantKind(t, err, fault.Conflict)
	}},
	{"R12 a write that would take along what was not seen is refused", func(t *testing.T, open Open) {
		s := garden(t, open)
		seen := content.Seen{{Table: "element", ID: "more"}: 1}
		_, err := s.Delete(s.ctx, editor, content.Deletion{Table: content.ElementTable, ID: "more", Seen: seen})
		if refused, ok := fault.AsRefusal(err); !ok || refused.Code != fault.StaleRevision {
			t.Errorf("got %v: its translation was not seen", err)
		}
	}},
}
