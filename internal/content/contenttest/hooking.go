package contenttest

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/internal/content"
)

var edit = content.Edit{Table: content.PageTable, ID: "home", Fields: map[string]any{"title": "Start", "keywords": "a"}}

var hooks = []behaviour{
	{"G6 a hook is told of the write that is durable", func(t *testing.T, open Open) {
		var told []content.Event
		var s *site
		s = newSite(t, open, hookFunc(func(ctx context.Context, e content.Event) error {
			if now, err := s.store.Record(ctx, e.Record.Table, e.Record.ID); err != nil || now.Revision != e.Record.Revision {
				t.Errorf("told of revision %d while the store has %+v, %v", e.Record.Revision, now, err)
			}
			told = append(told, e)
			return nil
		}))
		s.page("home", "", map[string]any{})
		out := s.update(editor, edit)
		if out.HookFailed() || len(told) != 2 {
			t.Fatalf("told %d times, %v", len(told), out.HookError)
		}
		last := told[1]
		if last.Kind != content.KindUpdate || last.By.ID != editor.ID || !cmp.Equal(last.Fields, []string{"title", "keywords"}) {
			t.Errorf("told %+v", last)
		}
	}},
	{"G6 a hook that fails after the write is reported beside it and undoes nothing", func(t *testing.T, open Open) {
		calls := 0
		failing := hookFunc(func(context.Context, content.Event) error { calls++; return errHook })
		s := newSite(t, open, failing, failing)
		s.page("home", "", map[string]any{})
		calls = 0
		out, err := s.Update(s.ctx, editor, edit)
		if err != nil || !out.HookFailed() || !errors.Is(out.HookError, errHook) || len(out.Missed) != 0 {
			t.Errorf("got %+v, %v", out, err)
		}
		if calls != 2 {
			t.Errorf("%d hooks were told, want both", calls)
		}
		if now, _ := s.Read(s.ctx, editor, content.PageTable, "home"); now.Fields["title"] != "Start" {
			t.Error("the write did not stand")
		}
	}},
	{"G6 a hook that panics is a hook that failed", func(t *testing.T, open Open) {
		s := newSite(t, open, hookFunc(func(context.Context, content.Event) error { panic("hook") }))
		if out, err := s.Create(s.ctx, admin, content.Creation{Table: content.FileTable, Fields: map[string]any{"name": "logo"}}); err != nil || !out.HookFailed() {
			t.Errorf("got %+v, %v", out, err)
		}
	}},
	{"G6 a hook works on although the caller has gone", func(t *testing.T, open Open) {
		ctx, cancel := context.WithCancel(context.Background())
		s := newSite(t, open, hookFunc(func(ctx context.Context, e content.Event) error {
			cancel()
			return ctx.Err()
		}))
		out, err := s.Create(ctx, admin, content.Creation{Table: content.FileTable, Fields: map[string]any{"name": "logo"}})
		if err != nil || out.HookFailed() {
			t.Errorf("got %+v, %v", out, err)
		}
	}},
	{"G9 a planned field that a hook put back did not take", func(t *testing.T, open Open) {
		var s *site
		s = newSite(t, open, hookFunc(func(ctx context.Context, e content.Event) error {
			if e.By.ID != editor.ID {
				return nil
			}
			_, err := s.Update(ctx, admin, content.Edit{Table: e.Record.Table, ID: e.Record.ID, Fields: map[string]any{"keywords": "locked"}})
			return err
		}))
		s.page("home", "", map[string]any{"keywords": "locked"})
		out := s.update(editor, edit)
		if diff := cmp.Diff([]string{"keywords"}, out.Missed); diff != "" || out.HookFailed() || out.Record.Fields["title"] != "Start" {
			t.Errorf("got %+v: %s", out, diff)
		}
	}},
	{"R7 a repeated call tells the hooks again, because nobody knows whether they were told", func(t *testing.T, open Open) {
		told := 0
		s := newSite(t, open, hookFunc(func(context.Context, content.Event) error { told++; return nil }))
		s.page("home", "", map[string]any{})
		keyed := edit
		keyed.Origin = content.Origin{Run: aRun, Key: "call-1"}
		s.update(editor, keyed)
		s.update(editor, keyed)
		if told != 3 {
			t.Errorf("told %d times, want once for the page and twice for the call", told)
		}
	}},
}
