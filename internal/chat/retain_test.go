package chat_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/chat"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/world"
)

func TestRetention(t *testing.T) {
	each(t, func(h *house) {
		t := h.t
		retain := func(days int) chat.Retained {
			t.Helper()
			later := *h.chat
			later.World = world.New(func() time.Time { return time.Now().AddDate(0, 0, days) }, rand.Reader)
			done, err := later.Retain(context.Background())
			h.ok(err)
			return done
		}
		h.model.says(calls("update_element", fixHello))
		waiting := h.say(h.touring(), "Go.")
		rests, pinned := h.say(h.plain(), "One."), h.say(h.plain(), "Two.")
		_, err := h.chat.Pin(context.Background(), h.admin, pinned.ID, true)
		h.ok(err)
		t.Run("V8 Y2 what rests is archived after 30 days, what waits or is pinned is not", func(t *testing.T) {
			if done := retain(29); done != (chat.Retained{}) {
				t.Errorf("too early: %+v", done)
			}
			if done := retain(31); done != (chat.Retained{Archived: 1}) {
				t.Errorf("%+v", done)
			}
			for c, want := range map[string]bool{"rests": true, "waiting": false, "pinned": false} {
				id := map[string]chat.Conversation{"rests": rests, "waiting": waiting, "pinned": pinned}[c].ID
				now, err := h.chat.View(context.Background(), h.admin, id)
				h.ok(err)
				if (now.Archived != nil) != want {
					t.Errorf("%s: %+v", c, now)
				}
			}
		})
		t.Run("V8 and deleted after 90 more", func(t *testing.T) {
			if done := retain(31 + 89); done.Deleted != 0 {
				t.Errorf("too early: %+v", done)
			}
			if done := retain(31 + 91); done.Deleted != 1 {
				t.Errorf("%+v", done)
			}
			if _, err := h.chat.View(context.Background(), h.admin, rests.ID); !fault.Is(err, fault.NotFound) {
				t.Errorf("%v", err)
			}
			if log, err := h.store.Log(context.Background(), rests.ID, -1, 10); err != nil || len(log) != 0 {
				t.Errorf("%v %v", log, err)
			}
		})
	})
}

func TestFields(t *testing.T) {
	each(t, func(h *house) {
		t := h.t
		t.Run("V7 a new title and a turn's result do not overwrite each other", func(t *testing.T) {
			let, asked := h.held()
			defer let()
			c, err := h.send(h.plain(), "Go.", "")
			h.ok(err)
			<-asked
			renamed := make(chan error, 20)
			for i := range cap(renamed) {
				go func() {
					_, err := h.chat.Rename(context.Background(), h.admin, c.ID, string(rune('A'+i)))
					renamed <- err
				}()
			}
			let()
			for range cap(renamed) {
				h.ok(<-renamed)
			}
			now := h.rests(c)
			if now.Status != chat.Idle || len(now.Title) != 1 {
				t.Errorf("%+v", now)
			}
			h.tells(c, "MESSAGE Go.", "ANSWER Done.")
		})
		t.Run("V5 search finds by title, archived ones apart", func(t *testing.T) {
			c := h.plain()
			_, err := h.chat.Rename(context.Background(), h.admin, c.ID, "Über Moss")
			h.ok(err)
			_, err = h.chat.Archive(context.Background(), h.admin, c.ID)
			h.ok(err)
			for archived, want := range map[bool]int{true: 1, false: 0} {
				found, err := h.chat.List(context.Background(), h.admin, chat.Filter{Search: "über mo", Archived: &archived}, chat.Page{Limit: 10})
				h.ok(err)
				if len(found) != want {
					t.Errorf("archived %t: %d", archived, len(found))
				}
			}
			_, err = h.send(c, "Hi.", "")
			h.refused(err, fault.ConversationArchived)
			_, err = h.chat.Unarchive(context.Background(), h.admin, c.ID)
			h.ok(err)
			h.say(c, "Hi.")
		})
		t.Run("V5 an export tells what was said and done; a deleted conversation is gone with its log", func(t *testing.T) {
			h.model.says(calls("update_element", fixHello))
			c := h.say(h.touring(), "Go.")
			text, err := h.chat.Export(context.Background(), h.admin, c.ID)
			h.ok(err)
			for _, want := range []string{"# Go.", "Message\n\nGo.", "PROPOSAL · update_element · element hello text"} {
				if !contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
			h.ok(h.chat.Delete(context.Background(), h.admin, c.ID))
			if _, err := h.chat.View(context.Background(), h.admin, c.ID); !fault.Is(err, fault.NotFound) {
				t.Errorf("%v", err)
			}
			if h.status(c.RunID).Waiting() {
				t.Error("its process run still waits")
			}
		})
	})
}
