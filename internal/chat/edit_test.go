package chat_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/chat"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/tool"
)

func rewording(c chat.Conversation, text string) chat.Edit {
	return chat.Edit{
		Conversation: c.ID, TurnDigest: c.Card.Turn,
		Texts: []agent.EditedText{{Text: tool.Text{Pointer: "/fields/text", Text: text}}},
	}
}

func TestEditProposal(t *testing.T) {
	each(t, func(h *house) {
		yes := true
		_, err := h.library.UpdateConfiguration(context.Background(), h.admin, library.ConfigurationUpdate{ID: h.config.ID, AllowProposalEdits: &yes})
		h.ok(err)
		h.model.says(
			calls("update_element", fixHello),
			calls("report_progress", `{"position":1,"total":1,"done":true}`),
		)
		before := h.say(h.touring(), "Start.")
		after, err := h.chat.EditProposal(context.Background(), h.admin, rewording(before, "Hello there"))
		h.ok(err)
		h.t.Run("C8 the conversation shows the edited card in the place of the first, and its log says so", func(t *testing.T) {
			if after.Status != chat.AwaitingApproval || after.Card.Turn == before.Card.Turn || !after.Card.Edited || after.Card.Process != h.tour.ID {
				t.Fatalf("%s %+v", after.Status, after.Card)
			}
			h.tells(after, "MESSAGE Start.", "PROPOSAL", "PROPOSAL")
			log := h.log(after)
			cards := slices.DeleteFunc(log, func(e chat.Entry) bool { return e.Kind != chat.KindProposal })
			if cards[0].Data.Edited || !cards[1].Data.Edited {
				t.Errorf("%+v", cards)
			}
			card, err := h.chat.Card(context.Background(), h.admin, after)
			h.ok(err)
			if !strings.Contains(strings.Join(card.Calls[0].Lines, "\n"), "Hello there") || !slices.Contains(card.Answers, agent.Apply) {
				t.Errorf("%+v", card)
			}
		})
		h.t.Run("C8 R19 neither an answer nor an edit of the first card counts any more", func(t *testing.T) {
			_, err := h.chat.Decide(context.Background(), h.admin, chat.Decision{Conversation: before.ID, TurnDigest: before.Card.Turn, Answer: agent.Apply})
			h.refused(err, fault.StaleTurn)
			_, err = h.chat.EditProposal(context.Background(), h.admin, rewording(before, "Late"))
			h.refused(err, fault.StaleTurn)
			if h.text("hello") == "Late" {
				t.Error("it was written")
			}
		})
		h.t.Run("C8 X5 the run of a conversation is edited there and nowhere else", func(t *testing.T) {
			_, err := h.agent.EditProposal(context.Background(), h.admin, agent.Edit{
				Run: after.RunID, TurnDigest: after.Card.Turn, Texts: rewording(after, "x").Texts,
			})
			h.refused(err, fault.DecidedInChat)
		})
		h.t.Run("C8 what is applied is the edited text, and the outcome says that it was edited", func(t *testing.T) {
			ended := h.answer(after, agent.Apply)
			if h.text("hello") != "Hello there" {
				t.Fatalf("%q", h.text("hello"))
			}
			log := h.log(ended)
			at := slices.IndexFunc(log, func(e chat.Entry) bool { return e.Kind == chat.KindOutcome })
			if at < 0 || log[at].Data.Code != string(chat.Applied) || !log[at].Data.Edited {
				t.Errorf("%v", told(log))
			}
			_, err := h.chat.EditProposal(context.Background(), h.admin, rewording(after, "Late"))
			h.refused(err, fault.NotWaiting)
		})
	})
}
