package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/tool"
)

// samples are arguments with which each tool that writes succeeds on the test's site.
var samples = map[string]string{
	"update_element":           `{"id":"intro","fields":{"header":"Hello"}}`,
	"update_page_metadata":     `{"id":"home","fields":{"title":"Start"}}`,
	"create_element_draft":     `{"pageId":"home","fields":{"header":"News"}}`,
	"create_page_draft":        `{"parentId":"home","fields":{"title":"Cakes"}}`,
	"create_translation_draft": `{"table":"element","id":"intro","language":"de","fields":{"header":"Hallo","text":"Wir backen."}}`,
	"move_element":             `{"id":"more","beforeId":"intro"}`,
	"move_page":                `{"id":"spare","parentId":""}`,
	"copy_record":              `{"table":"element","id":"intro"}`,
	"delete_record":            `{"table":"element","id":"more"}`,
	"publish_record":           `{"table":"element","id":"sketch"}`,
	"attach_file":              `{"table":"page","id":"home","fileId":"logo","alternative":"Our logo"}`,
	"replace_file_reference":   `{"table":"element","id":"picture","fileId":"oven","alternative":"The oven"}`,
	"set_alternative_text":     `{"table":"file","id":"oven","text":"An oven"}`,
}

func TestEveryTool(t *testing.T) {
	s := newSite(t)
	for _, each := range All(s.room, nil) {
		spec := each.Spec()
		s := newGallery(t)
		if tool.EffectOf(spec) == tool.ReadOnly {
			t.Run("G1 "+spec.Name+" declares that it reads", func(t *testing.T) {
				if spec.Effect != tool.ReadOnly || spec.OffByDefault || tool.ApprovalBound(spec, tool.Approvals{}) {
					t.Errorf("declared as %+v", spec)
				}
			})
			continue
		}
		t.Run("C6 "+spec.Name+" always needs an approval and is off until switched on", func(t *testing.T) {
			freed := spec
			freed.Freed = true
			if !tool.DeclaredWrite(spec) || !tool.ApprovalBound(freed, tool.Approvals{}) || !spec.OffByDefault || spec.Group != tool.GroupContentWrite {
				t.Errorf("declared as %+v", spec)
			}
		})
		t.Run("G7 "+spec.Name+" has a preview and names its target", func(t *testing.T) {
			if _, ok := each.(tool.Previewer); !ok {
				t.Error("no preview")
			}
			if _, ok := each.(tool.Targeter); !ok {
				t.Error("no target")
			}
			before := s.call(editor, samples[spec.Name])
			lines, err := s.tools.Preview(context.Background(), spec.Name, before)
			if err != nil || len(lines) < 2 {
				t.Errorf("previews %q, %v", lines, err)
			}
		})
		t.Run("G6 "+spec.Name+" states target, kind and completeness of its write", func(t *testing.T) {
			got := s.run(spec.Name, s.call(editor, samples[spec.Name]))
			if got.IsError || got.Write == nil || got.Write.Completeness != tool.Complete || got.Write.Kind == "" || got.Write.Target.Table == "" || got.Write.Target.ID == "" {
				t.Errorf("answers %+v", got)
			}
		})
	}
	t.Run("every schema refuses arguments it does not know", func(t *testing.T) {
		for _, spec := range s.tools.Specs() {
			if r, ok := s.tools.Check(spec.Name, json.RawMessage(`{"zzz":1}`)); ok || !strings.Contains(r.Text, "unknown zzz") {
				t.Errorf("%s: %+v", spec.Name, r)
			}
		}
	})
}

func TestUpdate(t *testing.T) {
	t.Run("G6 an update writes under the initiator's rights and says what it did", func(t *testing.T) {
		s := newSite(t)
		got := s.do(editor, "update_element", `{"id":"intro","fields":{"header":"Hello","kind":"text"}}`)
		want := tool.Wrote(`{"table":"element","id":"intro","revision":2,"changed":["header"]}`, "update", tool.Record{Table: "element", ID: "intro"}, tool.Complete)
		if diff := cmp.Diff(want, got); diff != "" || s.field("element", "intro", "header") != "Hello" {
			t.Error(diff)
		}
	})

	t.Run("G9 an update is partial when a planned field did not take", func(t *testing.T) {
		var s *site
		locked := hook(func(ctx context.Context, e content.Event) error {
			if e.By.ID != editor.ID {
				return nil
			}
			_, err := s.room.Update(ctx, admin, content.Edit{Table: e.Record.Table, ID: e.Record.ID, Fields: map[string]any{"header": "Locked"}})
			return err
		})
		s = newSite(t, locked)
		got := s.do(editor, "update_element", `{"id":"intro","fields":{"header":"Hello","text":"New"}}`)
		want := tool.Wrote(`{"table":"element","id":"intro","revision":3,"changed":["header","text"],"notTaken":["header"]}`, "update", tool.Record{Table: "element", ID: "intro"}, tool.Partial)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("G6 a hook that failed after the write raises the flag beside the completeness", func(t *testing.T) {
		broken := errors.New("the hook's server is away")
		s := newSite(t, hook(func(context.Context, content.Event) error { return broken }))
		answer := s.tools.Execute(context.Background(), "update_element", s.call(editor, samples["update_element"]))
		if r := answer.Result; r.IsError || !r.HookFailedAfterWrite || r.Write.Completeness != tool.Complete || strings.Contains(r.Text, broken.Error()) {
			t.Errorf("got %+v", r)
		}
		if !errors.Is(answer.Failure, broken) {
			t.Errorf("the log gets %v", answer.Failure)
		}
	})
}

func TestWrites(t *testing.T) {
	t.Run("R7 a call that is executed again writes once and answers alike", func(t *testing.T) {
		for name, args := range samples {
			s := newGallery(t)
			before := s.writes
			call := s.call(editor, args)
			first, second := s.run(name, call), s.run(name, call)
			if diff := cmp.Diff(first.Write, second.Write); diff != "" || second.IsError {
				t.Errorf("%s: %s", name, diff)
			}
			if s.writes-before != 1 {
				t.Errorf("%s: %d writes", name, s.writes-before)
			}
		}
	})

	t.Run("I6 what the initiator may not see is not found, what they may not edit is forbidden", func(t *testing.T) {
		s := newSite(t)
		s.wantError(reader, "update_element", samples["update_element"], "forbidden")
		s.wantError(reader, "create_element_draft", samples["create_element_draft"], "forbidden")
		s.wantError(reader, "update_page_metadata", `{"id":"team","fields":{"title":"x"}}`, "not_found")
		s.wantError(editor, "update_element", `{"id":"gone","fields":{"header":"x"}}`, "not_found")
		if s.field("element", "intro", "header") != "Helo" {
			t.Error("something was written")
		}
	})

	t.Run("I6 no tool sets who may read and edit, not even for an administrator", func(t *testing.T) {
		s := newSite(t)
		s.wantError(admin, "update_page_metadata", `{"id":"home","fields":{"readerIds":[]}}`, tool.TokenInvalidArguments)
	})

	t.Run("a value that the table refuses is an error that names the field", func(t *testing.T) {
		s := newSite(t)
		got := s.do(editor, "update_page_metadata", `{"id":"home","fields":{"title":" "}}`)
		if !got.IsError || got.Text != "title: must not be empty" {
			t.Errorf("got %+v", got)
		}
	})

	t.Run("a draft is hidden and stands at the end", func(t *testing.T) {
		s := newSite(t)
		got := s.do(editor, "create_element_draft", samples["create_element_draft"])
		r, err := s.room.Read(context.Background(), editor, got.Write.Target.Table, got.Write.Target.ID)
		if err != nil || !r.Hidden || r.ParentID != "home" || r.Position != 2 || got.Write.Kind != "create" {
			t.Errorf("made %+v, %v, says %+v", r, err, got.Write)
		}
	})
}

// hook is a hook from a function.
type hook func(context.Context, content.Event) error

func (f hook) AfterWrite(ctx context.Context, e content.Event) error { return f(ctx, e) }

func TestPendingTarget(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct {
		name, tool, args string
		want             tool.Target
		ok               bool
	}{
		{
			"G7 an update names the record and its fields, sorted", "update_element", `{"id":"intro","fields":{"text":"b","header":"a"}}`,
			tool.Target{Record: tool.Record{Table: "element", ID: "intro"}, Fields: []string{"header", "text"}},
			true,
		},
		{
			"G7 metadata is about the page", "update_page_metadata", `{"id":"home","fields":{"title":"a"}}`,
			tool.Target{Record: tool.Record{Table: "page", ID: "home"}, Fields: []string{"title"}},
			true,
		},
		{"G7 a create has no target", "create_element_draft", samples["create_element_draft"], tool.Target{}, false},
		{"G7 a read has no target", "get_page", `{"id":"home"}`, tool.Target{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok, err := s.tools.PendingTarget(context.Background(), c.tool, s.call(editor, c.args))
			if diff := cmp.Diff(c.want, got); diff != "" || ok != c.ok || err != nil {
				t.Error(diff, ok, err)
			}
		})
	}
}
