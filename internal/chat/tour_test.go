package chat_test

import (
	"context"
	"slices"
	"testing"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/chat"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/tool"
)

func TestTour(t *testing.T) {
	each(t, func(h *house) {
		t := h.t
		h.model.says(
			calls("report_progress", `{"position":1,"total":2}`, "highlight_record", `{"table":"element","id":"hello"}`, "update_element", fixHello),
			calls("report_progress", `{"position":2,"total":2}`, "update_element", `{"id":"bye","fields":{"text":"Goodbye"}}`),
			calls("update_element", fixBye),
			calls("update_element", `{"id":"hello","fields":{"text":"Hello!"}}`),
			calls("report_progress", `{"position":2,"total":2,"done":true}`),
		)
		c := h.say(h.touring(), "Start.")
		t.Run("C4 the card offers apply, variant and skip, and shows what would change", func(t *testing.T) {
			card, err := h.chat.Card(context.Background(), h.admin, c)
			h.ok(err)
			if !slices.Equal(card.Answers, []agent.Answer{agent.Apply, agent.Variant, agent.Skip}) || len(card.Calls) != 1 {
				t.Errorf("%+v", card)
			}
		})
		c = h.answer(c, agent.Apply)
		if c.Status != chat.AwaitingApproval || h.text("hello") != "Hello" {
			t.Fatalf("%s, the text is %q", c.Status, h.text("hello"))
		}
		c = h.answer(c, agent.Variant)
		c = h.answer(c, agent.Apply)
		if h.text("bye") != "Bye" {
			t.Fatalf("the text is %q", h.text("bye"))
		}
		c = h.answer(c, agent.Skip)
		t.Run("V6 C5 the log tells what became of every card, from the server", func(t *testing.T) {
			h.tells(c,
				"MESSAGE Start.", "PROGRESS", "HIGHLIGHT", "PROPOSAL",
				"OUTCOME APPLIED", "PROGRESS", "PROPOSAL",
				"OUTCOME VARIANT", "PROPOSAL",
				"OUTCOME APPLIED", "PROPOSAL",
				"OUTCOME SKIPPED", "PROGRESS", "NOTICE PROCESS_ENDED", "ANSWER Done.", "NOTICE SKILL_CLEARED")
			answer := h.log(c)[slices.IndexFunc(h.log(c), func(e chat.Entry) bool { return e.Kind == chat.KindAnswer })]
			if answer.Data.Writes != 2 || answer.Data.Unchanged {
				t.Errorf("%+v", answer.Data)
			}
		})
		t.Run("O1 O2 the skipped point is recorded with its process, subject, record and fields", func(t *testing.T) {
			open, err := h.chat.OpenPoints(context.Background(), h.admin, chat.PointFilter{}, chat.Page{Limit: 10})
			h.ok(err)
			if len(open) != 1 || open[0].SkillID != h.tour.ID || open[0].Subject.ID != "home" || open[0].Target.ID != "hello" ||
				!slices.Equal(open[0].Target.Fields, []string{"text"}) || open[0].SkippedBy != h.admin.ID {
				t.Fatalf("%+v", open)
			}
		})
		t.Run("X9 the conversation's own skill is cleared with a notice, and the next turn does not start it", func(t *testing.T) {
			if c.Status != chat.Idle {
				t.Fatalf("%s", c.Status)
			}
			after := h.say(c, "And now?")
			r, err := h.store.Run(context.Background(), after.RunID)
			h.ok(err)
			if _, held := r.Pins.Process(); held || r.Invocation != nil || r.PredecessorID != c.RunID {
				t.Errorf("%+v", r)
			}
		})
		t.Run("V2 only the final answers join the history", func(t *testing.T) {
			var said []string
			for _, m := range h.model.last().Messages {
				if m.Role != prompt.System {
					said = append(said, string(m.Role)+" "+m.Text)
				}
			}
			if !slices.Equal(said, []string{"user Start.", "assistant Done.", "user And now?"}) {
				t.Errorf("%q", said)
			}
		})
		t.Run("O4 the point is offered again when the process starts on the record, O3 and closed by an applied write", func(t *testing.T) {
			h.model.says(calls("update_element", `{"id":"hello","fields":{"text":"Hello!"}}`), calls("report_progress", `{"position":1,"total":1,"done":true}`))
			again := h.say(h.touring(), "Again.")
			h.tells(again, "MESSAGE Again.", "NOTICE OPEN_POINTS", "PROPOSAL")
			h.answer(again, agent.Apply)
			open, err := h.chat.OpenPoints(context.Background(), h.admin, chat.PointFilter{Target: &tool.Record{Table: "element", ID: "hello"}}, chat.Page{Limit: 10})
			h.ok(err)
			if len(open) != 0 {
				t.Errorf("%+v", open)
			}
		})
	})
}
