package chat_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/chat"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/ingest"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
)

// styled is a conversation of so many turns whose third loaded the style.
func (h *house) styled(turns int) chat.Conversation {
	h.t.Helper()
	c := h.plain()
	for n := range turns {
		if n == 2 {
			h.model.says(calls("load_skill", `{"skillId":"`+h.style.ID.String()+`"}`))
		}
		c = h.say(c, fmt.Sprint("Message ", n+1))
	}
	return c
}

// instructed reports whether the last turn's model was instructed by the style, with which
// text, and whether its run pins it.
func (h *house) instructed(c chat.Conversation) (system string, pinned bool) {
	h.t.Helper()
	for _, m := range h.model.last().Messages {
		if m.Role == prompt.System {
			system = m.Text
		}
	}
	r, err := h.store.Run(context.Background(), c.RunID)
	h.ok(err)
	_, pinned = r.Pins.Of(h.style.ID)
	return system, pinned
}

// notices are the codes of the notices in the log.
func (h *house) notices(c chat.Conversation) (codes []string) {
	for _, e := range h.log(c) {
		if e.Kind == chat.KindNotice {
			codes = append(codes, e.Data.Code)
		}
	}
	return codes
}

const style = "Write short sentences."

func TestLineageOfAConversation(t *testing.T) {
	t.Run("P1 P4 P12 what turn 3 loaded instructs turn 12, in the version it had, whatever was synced in between", func(t *testing.T) {
		each(t, func(h *house) {
			c := h.styled(7)
			files := maps.Clone(skillFiles)
			files["style/SKILL.md"] = &fstest.MapFile{Data: []byte("---\nname: Style\ndescription: d\n---\nWrite in capitals.\n")}
			host, err := ingest.Memory("acme", "skills", files)
			h.ok(err)
			h.library.Fetcher = ingest.New(host)
			_, err = h.library.Sync(context.Background(), h.admin, h.style.SourceID)
			h.ok(err)
			for n := 8; n <= 12; n++ {
				c = h.say(c, fmt.Sprint("Message ", n))
			}
			system, pinned := h.instructed(c)
			if !pinned || !strings.Contains(system, style) || strings.Contains(system, "capitals") || c.Status != chat.Idle {
				h.t.Errorf("%s, pinned: %v, %q", c.Status, pinned, system)
			}
			if said := h.model.last().Messages; len(said) < 24 { // twelve messages and the answers between them
				h.t.Errorf("%d messages were sent", len(said))
			}
		})
	})
	t.Run("P8 a skill that was detached is left behind with a notice", func(t *testing.T) {
		each(t, func(h *house) {
			c := h.styled(4)
			offered, err := h.library.Offered(context.Background(), h.config.ID)
			h.ok(err)
			for _, o := range offered {
				if o.Skill.ID == h.style.ID {
					h.ok(h.library.Detach(context.Background(), h.admin, o.Attachment.ID))
				}
			}
			c = h.say(c, "And now?")
			if system, pinned := h.instructed(c); pinned || strings.Contains(system, style) || !slices.Contains(h.notices(c), string(run.NoticePinDetached)) {
				h.t.Errorf("pinned: %v, %v", pinned, h.notices(c))
			}
		})
	})
	t.Run("P8 under another configuration what was held is left behind with a notice", func(t *testing.T) {
		each(t, func(h *house) {
			c := h.styled(4)
			other, err := h.library.CreateConfiguration(context.Background(), h.admin, library.NewConfiguration{Name: "Other", ProviderID: h.config.ProviderID, Model: "m"})
			h.ok(err)
			_, err = h.chat.SetConfiguration(context.Background(), h.admin, c.ID, other.ID)
			h.ok(err)
			c = h.say(c, "And now?")
			if system, pinned := h.instructed(c); pinned || strings.Contains(system, style) || !slices.Contains(h.notices(c), string(run.NoticePinConfiguration)) {
				h.t.Errorf("pinned: %v, %v", pinned, h.notices(c))
			}
		})
	})
	t.Run("P7 a turn whose predecessor was removed is refused, and the conversation is as it was", func(t *testing.T) {
		each(t, func(h *house) {
			c := h.styled(4)
			before := told(h.log(c))
			_, err := h.store.Apply(context.Background(), change.Change{Deletes: []change.Delete{{Table: "runs", ID: c.RunID}}})
			h.ok(err)
			_, err = h.chat.Send(context.Background(), h.admin, chat.Message{Conversation: c.ID, Text: "And now?"})
			h.refused(err, fault.PredecessorMissing)
			now, err := h.store.Conversation(context.Background(), c.ID)
			h.ok(err)
			after := slices.DeleteFunc(told(h.log(now)), func(s string) bool { return strings.HasPrefix(s, "STATE") })
			before = slices.DeleteFunc(before, func(s string) bool { return strings.HasPrefix(s, "STATE") })
			if now.Status != chat.Idle || !slices.Equal(before, after) {
				h.t.Errorf("%s %v, was %v", now.Status, after, before)
			}
		})
	})
	t.Run("P2 P3 a revoked version stops the next turn, and the one after it goes on without", func(t *testing.T) {
		each(t, func(h *house) {
			c := h.styled(4)
			_, err := h.library.Revoke(context.Background(), h.admin, library.RevokeInput{SkillID: h.style.ID, Digest: string(h.style.StoredDigest), Reason: "r"})
			h.ok(err)
			_, err = h.chat.Send(context.Background(), h.admin, chat.Message{Conversation: c.ID, Text: "And now?"})
			h.refused(err, fault.InstructionWithdrawn)
			c = h.say(c, "Once more?")
			if system, pinned := h.instructed(c); pinned || strings.Contains(system, style) || c.Status != chat.Idle {
				h.t.Errorf("%s, pinned: %v", c.Status, pinned)
			}
		})
	})
	t.Run("P2 a revocation while a card waits stops its turn before the write", func(t *testing.T) {
		each(t, func(h *house) {
			h.model.says(calls("update_element", fixHello))
			c := h.say(h.touring(), "Start.")
			_, err := h.library.Revoke(context.Background(), h.admin, library.RevokeInput{SkillID: h.tour.ID, Digest: string(h.tour.StoredDigest), Reason: "r"})
			h.ok(err)
			c = h.answer(c, agent.Apply)
			if c.Status != chat.Failed || h.text("hello") != "Helo" || !slices.Contains(h.notices(c), chat.NoticeSkillCleared) {
				h.t.Errorf("%s with %q, %v", c.Status, h.text("hello"), h.notices(c))
			}
		})
	})
}
