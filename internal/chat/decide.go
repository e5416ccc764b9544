package chat

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
)

// Decision is the owner's answer to a card.
type Decision struct {
	Conversation uuid.UUID
	TurnDigest   string // of the card that was answered (RULES R19)
	Answer       agent.Answer
}

// Decide answers the card that the conversation shows. The answer is stored and the
// conversation moves to processing in one statement, before the runtime is asked (RULES
// V9): from then on it is brought there, by whoever is alive. What the runtime refuses
// takes the answer back. The same answer again gets the first result.
//
// Refusals: NOT_WAITING, STALE_TURN, ALREADY_DECIDED, ANSWER_NOT_OFFERED,
// CONVERSATION_ARCHIVED, and what deciding a run refuses.
func (c *Chat) Decide(ctx context.Context, by actor.Actor, d Decision) (Conversation, error) {
	return c.answer(ctx, by, reply{conversation: d.Conversation, turn: d.TurnDigest, answer: d.Answer})
}

// Edit is other texts for the card that a conversation shows.
type Edit struct {
	Conversation uuid.UUID
	TurnDigest   string // of the card that is changed (RULES R19)
	Texts        []agent.EditedText
}

// EditProposal changes texts of the card that the conversation shows; another card takes its
// place (RULES C8). The run holds the proposal, so the change is made there, once, and comes
// back by the way of all its steps.
//
// Refusals: NOT_WAITING, STALE_TURN, CONVERSATION_ARCHIVED, and what changing a run's
// proposal refuses.
func (c *Chat) EditProposal(ctx context.Context, by actor.Actor, e Edit) (Conversation, error) {
	if _, err := c.find(ctx, by, e.Conversation); err != nil {
		return Conversation{}, err
	}
	if err := c.catchUp(ctx, e.Conversation); err != nil {
		return Conversation{}, err
	}
	now, err := c.Store.Conversation(ctx, e.Conversation)
	if err != nil {
		return Conversation{}, err
	}
	if err := shows(now, AwaitingApproval, e.TurnDigest); err != nil {
		return Conversation{}, err
	}
	_, err = c.Runtime.EditProposal(ctx, by, agent.Edit{Run: now.RunID, TurnDigest: e.TurnDigest, Texts: e.Texts, Conversation: now.ID})
	if err != nil {
		return Conversation{}, err
	}
	if err := c.catchUp(ctx, e.Conversation); err != nil {
		return Conversation{}, err
	}
	return c.Store.Conversation(ctx, e.Conversation)
}

// Answer is the owner's answer to a question.
type Answer struct {
	Conversation uuid.UUID
	TurnDigest   string
	Values       json.RawMessage // an object that fits the question's schema
}

// answerBytes bounds the values of an answer.
const answerBytes = 64 << 10

// AnswerQuestion answers the question that the conversation shows; like Decide. Values
// that do not fit are refused and consume nothing (RULES R13).
func (c *Chat) AnswerQuestion(ctx context.Context, by actor.Actor, a Answer) (Conversation, error) {
	if len(a.Values) > answerBytes {
		return Conversation{}, fault.New(fault.BadInput, "The values have %d bytes; at most %d are accepted.", len(a.Values), answerBytes)
	}
	return c.answer(ctx, by, reply{conversation: a.Conversation, turn: a.TurnDigest, answer: Answered, values: a.Values})
}

// reply is an answer to a card or a question.
type reply struct {
	conversation uuid.UUID
	turn         string
	answer       agent.Answer
	values       json.RawMessage
}

func (c *Chat) answer(ctx context.Context, by actor.Actor, r reply) (Conversation, error) {
	if _, err := c.find(ctx, by, r.conversation); err != nil {
		return Conversation{}, err
	}
	if err := c.catchUp(ctx, r.conversation); err != nil { // so that what is judged is what the run waits with
		return Conversation{}, err
	}
	owner, repeated := c.newOwner(), false
	claimed, err := c.amend(change.Aside(ctx), r.conversation, func(now Conversation) (edit, error) {
		repeated = false
		if now.Card != nil && now.Card.Turn == r.turn && now.Card.Answer != "" {
			repeated = true
			return edit{}, again(now, by, r)
		}
		if err := r.fits(now); err != nil {
			return edit{}, err
		}
		card := *now.Card
		card.Answer, card.By = r.answer, by.ID
		set := append(c.lease(owner), cCard.To(&card), cInput.To(string(r.values)), cActiveAt.To(c.World.Now()))
		return edit{status: Processing, set: set, entries: []Entry{state("")}}, nil
	})
	if err != nil || repeated {
		return claimed, err
	}
	defer c.beat(ctx, claimed.ID, owner)()
	return c.deliver(context.WithoutCancel(ctx), by, claimed, owner, r.values)
}

// fits holds an answer against what the conversation waits with.
func (r reply) fits(now Conversation) error {
	waits := AwaitingApproval
	if r.answer == Answered {
		waits = AwaitingInput
	}
	if err := shows(now, waits, r.turn); err != nil {
		return err
	}
	if !slices.Contains(now.Card.offers(), r.answer) {
		return fault.Refuse(fault.AnswerNotOffered, "This card does not offer the answer %s; it offers %v.", r.answer, now.Card.offers())
	}
	return nil
}

// shows refuses what is meant for a card that the conversation does not show.
func shows(now Conversation, waits Status, turn string) error {
	switch {
	case now.Archived != nil:
		return archived()
	case now.Status != waits || now.Card == nil:
		return fault.Refuse(fault.NotWaiting, "The conversation does not wait for this; it is %s.", now.Status)
	case now.Card.Turn != turn:
		return fault.Refuse(fault.StaleTurn, "The conversation waits with something else now; look at it again.")
	}
	return nil
}

// again answers for a card that was answered: the same answer gets the first result.
func again(now Conversation, by actor.Actor, r reply) error {
	card := now.Card
	if card.Answer == r.answer && card.By == by.ID {
		return nil
	}
	return fault.Refuse(fault.AlreadyDecided, "This was answered already.").With(agent.Decided{
		By: card.By, Approved: card.Answer == agent.Apply || card.Answer == agent.Approve, Reason: reason(card.Answer), At: now.ActiveAt,
	})
}

// reason is the reason of a denial that an answer gives, if any.
func reason(a agent.Answer) string {
	if a == agent.Variant || a == agent.Skip {
		return string(a)
	}
	return ""
}

// deliver brings the answer that a conversation holds to the runtime. What is refused there
// is taken back; what fails for another reason is brought again once the claim has
// ended.
func (c *Chat) deliver(ctx context.Context, by actor.Actor, now Conversation, owner string, values json.RawMessage) (Conversation, error) {
	card := *now.Card
	var err error
	if card.Question {
		_, err = c.Runtime.SubmitInput(ctx, by, agent.Input{Run: now.RunID, TurnDigest: card.Turn, Values: values, Conversation: now.ID})
	} else {
		_, err = c.Runtime.Decide(ctx, by, agent.Decision{
			Run: now.RunID, TurnDigest: card.Turn, Approve: card.Answer == agent.Apply || card.Answer == agent.Approve,
			Reason: agent.Answer(reason(card.Answer)), Conversation: now.ID,
		})
	}
	if err != nil && transient(err) {
		return now, err
	}
	stored, storing := c.amend(change.Aside(ctx), now.ID, func(now Conversation) (edit, error) {
		if now.LeaseOwner != owner || now.Card == nil {
			return edit{}, nil
		}
		card := *now.Card
		e := edit{set: append(free(), cInput.Null())}
		if err != nil { // back to what it waits with
			card.Answer, card.By = "", uuid.Nil
			e.status, e.entries = waiting(card), []Entry{state("")}
		}
		card.Delivered = err == nil
		e.set = append(e.set, cCard.To(&card))
		return e, nil
	})
	if storing != nil {
		c.Log.Warn("what became of an answer could not be stored; it is brought again", slog.String("conversation", now.ID.String()), slog.Any("error", storing))
		stored = now
	}
	return stored, err
}

func waiting(card Card) Status {
	if card.Question {
		return AwaitingInput
	}
	return AwaitingApproval
}

// transient reports whether the same call may succeed later.
func transient(err error) bool {
	_, refused := fault.AsRefusal(err)
	return !refused && (fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Internal))
}
