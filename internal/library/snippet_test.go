package library_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
)

func (f *fixture) editor() actor.Actor {
	return actor.Actor{ID: f.World.NewID(), Name: "editor", Kind: actor.Person, Granted: []actor.Permission{actor.SnippetEdit}}
}

func (f *fixture) snippet(name, text string) library.Snippet {
	f.t.Helper()
	s, err := f.CreateSnippet(f.ctx, f.admin, library.NewSnippet{Name: name, Text: text})
	f.ok(err)
	return s
}

func (f *fixture) marked(s library.Snippet) library.Snippet {
	f.t.Helper()
	s, err := f.MarkSnippet(f.ctx, f.admin, s.ID, s.Digest())
	f.ok(err)
	if !s.Marked() {
		f.t.Fatal("it is not marked")
	}
	return s
}

func TestSnippetMarks(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		t.Run("N3 an administrator marks the block they read, audited once with its digest", func(t *testing.T) {
			f := setUp(t)
			s := f.snippet("Profile", "We write.")
			if s.Marked() {
				t.Fatal("a new snippet is marked")
			}
			f.marked(s)
			f.marked(s)
			e := f.once(audit.SnippetMarked)
			if e.Actor != f.admin.ID || e.Digest != s.Digest() || e.Detail["snippet"] != s.ID.String() {
				t.Fatalf("%+v", e)
			}
			f.says(e, "marked", true)
		})
		t.Run("N3 another digest than the present block's is refused with the block, audited, and marks nothing", func(t *testing.T) {
			f := setUp(t)
			s := f.snippet("Profile", "We write.")
			stale := s.Digest()
			_, err := f.UpdateSnippet(f.ctx, f.admin, library.SnippetUpdate{ID: s.ID, Text: ptr("Obey me.")})
			f.ok(err)
			_, err = f.MarkSnippet(f.ctx, f.admin, s.ID, stale)
			now := f.refused(err, fault.StaleSnippet).Detail.(library.StaleSnippet).Current
			if now.Block() != "Profile:\nObey me." || now.Marked() {
				t.Fatalf("%+v", now)
			}
			e := f.once(audit.SnippetMarkRefused)
			if e.Detail["posted"] != stale || e.Detail["current"] != now.Digest() || e.Detail["code"] != string(fault.StaleSnippet) {
				t.Fatalf("%+v", e)
			}
			if len(f.audited(audit.SnippetMarked)) > 0 {
				t.Fatal("it says that it was marked")
			}
		})
		t.Run("N3 an edit between reading and marking is not marked", func(t *testing.T) {
			f := setUp(t)
			s, editor := f.snippet("Profile", "We write."), f.editor()
			f.between.before(func() {
				_, err := f.UpdateSnippet(f.ctx, editor, library.SnippetUpdate{ID: s.ID, Text: ptr("Obey me.")})
				f.ok(err)
			})
			_, err := f.MarkSnippet(f.ctx, f.admin, s.ID, s.Digest())
			f.refused(err, fault.StaleSnippet)
			if now, err := f.FindSnippet(f.ctx, f.reader, s.ID); err != nil || now.Mark != "" {
				t.Fatalf("%+v %v", now, err)
			}
		})
		t.Run("N3 nobody but an administrator marks or unmarks, and trying to mark is audited", func(t *testing.T) {
			f := setUp(t)
			s := f.snippet("Profile", "We write.")
			for _, by := range []actor.Actor{f.editor(), f.approver} {
				_, err := f.MarkSnippet(f.ctx, by, s.ID, s.Digest())
				f.failed(err, fault.Forbidden)
				_, err = f.UnmarkSnippet(f.ctx, by, s.ID)
				f.failed(err, fault.Forbidden)
			}
			entries := f.audited(audit.SnippetMarkRefused)
			if len(entries) != 2 || entries[1].Actor != f.approver.ID || entries[1].Detail["code"] != "FORBIDDEN" {
				t.Fatalf("%+v", entries)
			}
			_, err := f.MarkSnippet(f.ctx, actor.Actor{}, s.ID, s.Digest())
			f.failed(err, fault.Unauthenticated)
			_, err = f.MarkSnippet(f.ctx, f.approver, uuid.Max, s.Digest())
			f.failed(err, fault.Forbidden)
			_, err = f.MarkSnippet(f.ctx, f.admin, uuid.Max, s.Digest())
			f.failed(err, fault.NotFound)
			if len(f.audited(audit.SnippetMarkRefused)) != 2 {
				t.Fatal("nobody's act, or one on nothing, is audited")
			}
		})
		t.Run("N3 taking a mark away holds until it is given again, also when the block comes back", func(t *testing.T) {
			f := setUp(t)
			s := f.marked(f.snippet("Profile", "We write."))
			for range 2 {
				now, err := f.UnmarkSnippet(f.ctx, f.admin, s.ID)
				f.ok(err)
				if now.Marked() {
					t.Fatal("it is marked")
				}
			}
			entries := f.audited(audit.SnippetMarked)
			if len(entries) != 2 {
				t.Fatalf("%d entries for one mark and its end", len(entries))
			}
			f.says(entries[1], "marked", false)
			for _, text := range []string{"We read.", "We write."} {
				now, err := f.UpdateSnippet(f.ctx, f.admin, library.SnippetUpdate{ID: s.ID, Text: &text})
				f.ok(err)
				if now.Marked() {
					t.Fatalf("%q brought the mark back", text)
				}
			}
		})
	})
}

func TestSnippetEdits(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		t.Run("N4 an edit of name or text by anyone ends the mark, audited with who did it", func(t *testing.T) {
			f := setUp(t)
			editor := f.editor()
			for n, by := range []actor.Actor{editor, f.admin} {
				for i, edit := range []library.SnippetUpdate{{Name: ptr("Voice")}, {Text: ptr("Obey me.")}} {
					s := f.marked(f.snippet("Profile", "We write."))
					edit.ID = s.ID
					now, err := f.UpdateSnippet(f.ctx, by, edit)
					f.ok(err)
					if now.Marked() || now.Revision != 2 || now.EditorID != by.ID {
						t.Fatalf("%+v", now)
					}
					entries := f.audited(audit.SnippetMarked)
					last := entries[len(entries)-1]
					if want := 2 * (2*n + i + 1); len(entries) != want || last.Actor != by.ID || last.Digest != now.Digest() {
						t.Fatalf("%d entries, want %d; the last is %+v", len(entries), want, last)
					}
					f.says(last, "marked", false)
					f.says(last, "through", "edit")
				}
			}
		})
		t.Run("N4 the marked block is marked again when an edit brings it back, and space around it is none of it", func(t *testing.T) {
			f := setUp(t)
			s := f.marked(f.snippet("Profile", "We write."))
			spaced, err := f.UpdateSnippet(f.ctx, f.editor(), library.SnippetUpdate{ID: s.ID, Text: ptr("\n  We write.\n")})
			f.ok(err)
			if !spaced.Marked() || spaced.Text != "\n  We write.\n" {
				t.Fatalf("%+v", spaced)
			}
			for _, text := range []string{"Other.", "We write."} {
				_, err := f.UpdateSnippet(f.ctx, f.editor(), library.SnippetUpdate{ID: s.ID, Text: &text})
				f.ok(err)
			}
			entries := f.audited(audit.SnippetMarked)
			if len(entries) != 3 {
				t.Fatalf("%d entries", len(entries))
			}
			f.says(entries[1], "marked", false)
			f.says(entries[2], "marked", true)
		})
		t.Run("N4 editing is open to editors and to nobody else", func(t *testing.T) {
			f := setUp(t)
			editor := f.editor()
			s, err := f.CreateSnippet(f.ctx, editor, library.NewSnippet{Name: " Profile ", Text: "We write.\r\n"})
			f.ok(err)
			if s.Name != "Profile" || s.Text != "We write.\n" || s.Revision != 1 || s.EditorID != editor.ID {
				t.Fatalf("%+v", s)
			}
			for _, by := range []actor.Actor{f.reader, f.author, f.approver} {
				_, err := f.CreateSnippet(f.ctx, by, library.NewSnippet{Name: "a", Text: "b"})
				f.failed(err, fault.Forbidden)
				_, err = f.UpdateSnippet(f.ctx, by, library.SnippetUpdate{ID: s.ID})
				f.failed(err, fault.Forbidden)
			}
		})
		t.Run("N4 an edit of a text that moved on is refused with the text as it is", func(t *testing.T) {
			f := setUp(t)
			s := f.snippet("Profile", "We write.")
			f.between.before(func() {
				_, err := f.UpdateSnippet(f.ctx, f.admin, library.SnippetUpdate{ID: s.ID, Text: ptr("Mine.")})
				f.ok(err)
			})
			_, err := f.UpdateSnippet(f.ctx, f.editor(), library.SnippetUpdate{ID: s.ID, Revision: ptr(1), Text: ptr("Theirs.")})
			if now := f.refused(err, fault.StaleRevision).Detail.(library.StaleSnippet).Current; now.Text != "Mine." || now.Revision != 2 {
				t.Fatalf("%+v", now)
			}
			same, err := f.UpdateSnippet(f.ctx, f.editor(), library.SnippetUpdate{ID: s.ID, Revision: ptr(2), Text: ptr("Mine.")})
			f.ok(err)
			if same.Revision != 2 {
				t.Fatal("an edit that changes nothing is counted")
			}
		})
		t.Run("wrong input", func(t *testing.T) {
			f := setUp(t)
			for _, in := range []library.NewSnippet{
				{Text: "a"},
				{Name: "a"},
				{Name: "a", Text: " \n "},
				{Name: "a\nb", Text: "c"},
				{Name: "a", Text: "\x00"},
				{Name: "a", Text: strings.Repeat("x", 64<<10+1)},
			} {
				_, err := f.CreateSnippet(f.ctx, f.admin, in)
				f.failed(err, fault.BadInput)
			}
			_, err := f.UpdateSnippet(f.ctx, f.admin, library.SnippetUpdate{ID: uuid.Max})
			f.failed(err, fault.NotFound)
		})
		t.Run("snippets are read by those who edit them or read skills", func(t *testing.T) {
			f := setUp(t)
			s := f.snippet("Profile", "We write.")
			for _, by := range []actor.Actor{f.reader, f.editor(), f.admin} {
				all, err := f.ListSnippets(f.ctx, by, library.Page{Limit: 5})
				if err != nil || len(all) != 1 || all[0] != s {
					t.Fatalf("%+v %v", all, err)
				}
			}
			_, err := f.ListSnippets(f.ctx, actor.Actor{ID: uuid.Max}, library.Page{Limit: 5})
			f.failed(err, fault.Forbidden)
			_, err = f.FindSnippet(f.ctx, actor.Actor{}, s.ID)
			f.failed(err, fault.Unauthenticated)
		})
	})
}

func TestConfigurationSnippets(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		t.Run("N5 a configuration lists its snippets in order, and can be given another order", func(t *testing.T) {
			f := setUp(t)
			a, b := f.snippet("a", "1"), f.snippet("b", "2")
			c := f.configuration()
			for _, order := range [][]uuid.UUID{{b.ID, a.ID}, {a.ID, b.ID}, {b.ID}, {}} {
				var err error
				c, err = f.UpdateConfiguration(f.ctx, f.admin, library.ConfigurationUpdate{ID: c.ID, SnippetIDs: &order})
				f.ok(err)
				got, err := f.Snippets(f.ctx, c)
				f.ok(err)
				if len(got) != len(order) {
					t.Fatalf("%d snippets, want %d", len(got), len(order))
				}
				for i := range order {
					if got[i].ID != order[i] {
						t.Fatalf("place %d is %s", i, got[i].Name)
					}
				}
			}
		})
		t.Run("N5 a list that names nothing or one twice is refused", func(t *testing.T) {
			f := setUp(t)
			a, c := f.snippet("a", "1"), f.configuration()
			for kind, list := range map[fault.Kind][]uuid.UUID{
				fault.BadInput: {a.ID, a.ID}, fault.NotFound: {a.ID, uuid.Max},
			} {
				_, err := f.UpdateConfiguration(f.ctx, f.admin, library.ConfigurationUpdate{ID: c.ID, SnippetIDs: &list})
				f.failed(err, kind)
				_, err = f.CreateConfiguration(f.ctx, f.admin, library.NewConfiguration{Name: "C", ProviderID: c.ProviderID, Model: "m", SnippetIDs: list})
				f.failed(err, kind)
			}
		})
		t.Run("N2 the opt-in is off at first, an administrator's and audited", func(t *testing.T) {
			f := setUp(t)
			c := f.configuration()
			if c.SnippetsInCallerSystemPrompt {
				t.Fatal("a new configuration opted in")
			}
			in := library.ConfigurationUpdate{ID: c.ID, SnippetsInCallerSystemPrompt: ptr(true)}
			for _, by := range []actor.Actor{f.editor(), f.author, f.approver} {
				_, err := f.UpdateConfiguration(f.ctx, by, in)
				f.failed(err, fault.Forbidden)
			}
			c, err := f.UpdateConfiguration(f.ctx, f.admin, in)
			f.ok(err)
			if !c.SnippetsInCallerSystemPrompt {
				t.Fatal("it did not opt in")
			}
			f.says(f.once(audit.ConfigurationUpdated), "snippetsInCallers", true)
		})
	})
}
