package chat_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/chat"
)

func TestOpenPoints(t *testing.T) {
	each(t, func(h *house) {
		t := h.t
		open := func() (out []string) {
			t.Helper()
			points, err := h.chat.OpenPoints(context.Background(), h.admin, chat.PointFilter{}, chat.Page{Limit: 50})
			h.ok(err)
			for _, p := range points {
				out = append(out, p.Target.ID+" "+strings.Join(p.Target.Fields, ","))
			}
			slices.Sort(out)
			return out
		}
		const header, both = `{"id":"hello","fields":{"header":"Hi"}}`, `{"id":"hello","fields":{"text":"Hello","header":"Hi"}}`
		skip := func(arguments string) {
			t.Helper()
			h.model.says(calls("update_element", arguments))
			h.answer(h.say(h.touring(), "Go."), agent.Skip)
		}
		t.Run("O2 different fields stay apart, the same key is one row, and a create leaves none", func(t *testing.T) {
			skip(fixHello)
			skip(header)
			skip(both)
			skip(`{"id":"hello","fields":{"header":"Hello","text":"Hi"}}`)
			h.model.says(calls("create_element_draft", `{"pageId":"home","fields":{"kind":"text","text":"New"}}`))
			c := h.say(h.touring(), "Go.")
			if c.Status == chat.AwaitingApproval {
				h.answer(c, agent.Skip)
			}
			if got := open(); !slices.Equal(got, []string{"hello header", "hello header,text", "hello text"}) {
				t.Errorf("%q", got)
			}
		})
		t.Run("O1 O3 a variant, a withdrawal and a stop record and close nothing", func(t *testing.T) {
			h.model.says(calls("update_element", fixBye), calls("update_element", fixHello))
			c := h.answer(h.say(h.touring(), "Go."), agent.Variant)
			c = h.say(c, "Leave it.")
			h.model.says(calls("update_element", fixBye))
			c = h.say(c, "Again.")
			_, err := h.chat.Stop(context.Background(), h.admin, c.ID)
			h.ok(err)
			h.rests(c)
			if got := open(); !slices.Equal(got, []string{"hello header", "hello header,text", "hello text"}) {
				t.Errorf("%q", got)
			}
		})
		t.Run("O3 an applied write closes the point of its record and field list, and no other", func(t *testing.T) {
			h.model.says(calls("update_element", header))
			h.answer(h.say(h.touring(), "Go."), agent.Apply)
			if got := open(); !slices.Equal(got, []string{"hello header,text", "hello text"}) {
				t.Errorf("%q", got)
			}
			skip(header)
			if got := open(); len(got) != 3 {
				t.Errorf("a point that was closed is not open again: %q", got)
			}
		})
		t.Run("O4 the model lists them with a read tool, without what would be written", func(t *testing.T) {
			h.model.says(calls("list_open_points", `{}`))
			h.say(h.touring(), "Go.")
			messages := h.model.last().Messages
			result := messages[len(messages)-1].Text
			if !strings.Contains(result, `"id":"hello"`) || !strings.Contains(result, `"tool":"update_element"`) || strings.Contains(result, "Hello") {
				t.Errorf("%s", result)
			}
		})
	})
}
