package builtin

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/tool"
)

// translate makes a translation into German, below parent where one is given and the
// original's place otherwise, that only an administrator may edit when locked.
func (s *site) translate(table, id, parent string, fields map[string]any) string {
	s.t.Helper()
	ctx := context.Background()
	out, err := s.room.Translate(ctx, admin, content.Translating{Table: table, ID: id, Language: "de", Fields: fields})
	if err != nil {
		s.t.Fatal(err)
	}
	if parent != "" {
		if _, err := s.room.Move(ctx, admin, content.Move{Table: table, ID: out.Record.ID, ParentID: &parent}); err != nil {
			s.t.Fatal(err)
		}
	}
	return out.Record.ID
}

// lock keeps a page to administrators' edits.
func (s *site) lock(id string) {
	s.t.Helper()
	_, err := s.room.Update(context.Background(), admin, content.Edit{Table: content.PageTable, ID: id, Fields: map[string]any{content.EditorIDs: []any{admin.ID.String()}}})
	if err != nil {
		s.t.Fatal(err)
	}
}

func TestPartial(t *testing.T) {
	partial := func(t *testing.T, got tool.Result, says string) {
		t.Helper()
		if got.IsError || got.Write == nil || got.Write.Completeness != tool.Partial || !strings.Contains(got.Text, says) {
			t.Errorf("got %+v, want a partial write that says %s", got, says)
		}
	}
	t.Run("G9 delete_record is partial when a translation was left", func(t *testing.T) {
		s := newGallery(t)
		id := s.translate(content.PageTable, "spare", "", map[string]any{"title": "Übrig"})
		s.lock(id)
		partial(t, s.do(editor, "delete_record", `{"table":"page","id":"spare"}`), `page `+id+`"]`)
	})
	t.Run("G9 move_page is partial when a translation was left", func(t *testing.T) {
		s := newGallery(t)
		id := s.translate(content.PageTable, "spare", "", map[string]any{"title": "Übrig"})
		s.lock(id)
		partial(t, s.do(editor, "move_page", `{"id":"spare","parentId":""}`), `"left":["page `+id+`"]`)
	})
	t.Run("G9 replace_file_reference is partial when a translation keeps the old file", func(t *testing.T) {
		s := newGallery(t)
		s.make(content.PageTable, "locked", "home", map[string]any{"title": "Locked"})
		id := s.translate(content.ElementTable, "picture", "locked", map[string]any{"alternative": "Unser Logo"})
		s.lock("locked")
		partial(t, s.do(editor, "replace_file_reference", samples["replace_file_reference"]), `"left":["element `+id+`"]`)
	})
	t.Run("G9 replace_file_reference is partial when its text did not take", func(t *testing.T) {
		var s *site
		s = newGallery(t, hook(func(ctx context.Context, e content.Event) error {
			if e.By.ID != editor.ID {
				return nil
			}
			_, err := s.room.Update(ctx, admin, content.Edit{Table: e.Record.Table, ID: e.Record.ID, Fields: map[string]any{"alternative": "Locked"}})
			return err
		}))
		partial(t, s.do(editor, "replace_file_reference", samples["replace_file_reference"]), `"notTaken":["alternative"]`)
	})
	t.Run("G9 create_translation_draft is partial when text stays in the original's language", func(t *testing.T) {
		s := newGallery(t)
		partial(t, s.do(editor, "create_translation_draft", `{"table":"page","id":"home","language":"de","fields":{"title":"Start"},"elements":{"more":{"header":"Mehr"}}}`),
			`"untranslated":["description","element intro: header","element intro: text","element picture: alternative"]`)
	})
	t.Run("G9 what goes along wholly is complete", func(t *testing.T) {
		s := newGallery(t)
		id := s.translate(content.PageTable, "spare", "", map[string]any{"title": "Übrig"})
		if got := s.do(editor, "move_page", `{"id":"spare","parentId":""}`); got.IsError || got.Write.Completeness != tool.Complete {
			t.Errorf("got %+v", got)
		}
		if r, err := s.room.Read(context.Background(), admin, content.PageTable, id); err != nil || r.ParentID != "" {
			t.Errorf("the translation stands at %q, %v", r.ParentID, err)
		}
		if got := s.do(editor, "delete_record", `{"table":"page","id":"spare"}`); got.IsError || got.Write.Completeness != tool.Complete {
			t.Errorf("got %+v", got)
		}
	})
}

func TestBasis(t *testing.T) {
	for name, args := range samples {
		t.Run("R12 "+name+" changes nothing that came after its preview", func(t *testing.T) {
			s := newGallery(t)
			call := s.call(editor, args)
			call.Basis = tool.Basis{}
			if _, err := s.tools.Preview(context.Background(), name, call); err != nil {
				t.Fatal(err)
			}
			for r := range call.Basis {
				field := map[string]string{"page": "title", "element": "header", "file": "title"}[r.Table]
				_, err := s.room.Update(context.Background(), admin, content.Edit{Table: r.Table, ID: r.ID, Fields: map[string]any{field: "Another"}})
				if err != nil {
					t.Fatal(err)
				}
			}
			got := s.run(name, call)
			if creates := slices.Contains([]string{"create_element_draft", "create_page_draft"}, name); creates {
				if got.IsError {
					t.Errorf("got %+v: what is made from nothing has no basis", got)
				}
				return
			}
			if !got.IsError || got.Token != "refused" || !strings.Contains(got.Text, "STALE_REVISION") {
				t.Errorf("got %+v", got)
			}
		})
		t.Run("R12 "+name+" runs on the basis of its preview", func(t *testing.T) {
			s := newGallery(t)
			call := s.call(editor, args)
			call.Basis = tool.Basis{}
			if _, err := s.tools.Preview(context.Background(), name, call); err != nil {
				t.Fatal(err)
			}
			if got := s.run(name, call); got.IsError {
				t.Errorf("got %+v", got)
			}
		})
	}
}
