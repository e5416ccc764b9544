package chat_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/chat"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/run"
)

// held is a model's turn that waits until it is let go; asked is closed once it began.
func (h *house) held() (let func(), asked <-chan struct{}) {
	gate, began := make(chan struct{}), make(chan struct{})
	h.model.does(func(ctx context.Context) (agent.Turn, error) {
		close(began)
		select {
		case <-gate:
			return agent.Turn{Text: "Done."}, nil
		case <-ctx.Done():
			return agent.Turn{}, ctx.Err()
		}
	})
	return sync.OnceFunc(func() { close(gate) }), began
}

func (h *house) send(c chat.Conversation, text string, when chat.WhenBusy) (chat.Conversation, error) {
	return h.chat.Send(context.Background(), h.admin, chat.Message{Conversation: c.ID, Text: text, WhenBusy: when})
}

func (h *house) status(id uuid.UUID) run.Status {
	h.t.Helper()
	r, err := h.store.Run(context.Background(), id)
	h.ok(err)
	return r.Status
}

func TestMessages(t *testing.T) {
	each(t, func(h *house) {
		t := h.t
		t.Run("V4 a message while a turn is under way is refused and changes nothing, or begins the next turn", func(t *testing.T) {
			let, _ := h.held()
			defer let()
			c, err := h.send(h.plain(), "One.", "")
			h.ok(err)
			_, err = h.send(c, "Two.", chat.RefuseWhenBusy)
			h.refused(err, fault.Busy)
			queued, err := h.send(c, "Three.", chat.QueueWhenBusy)
			h.ok(err)
			if len(queued.Queue) != 1 || h.status(c.RunID) == run.Cancelled {
				t.Errorf("%+v", queued)
			}
			let()
			h.rests(c)
			h.tells(c, "MESSAGE One.", "ANSWER Done.", "MESSAGE Three.", "ANSWER Done.")
		})
		t.Run("V3 a message withdraws a process run that waits: discarded, nothing recorded, and the turn goes on from it", func(t *testing.T) {
			h.model.says(calls("update_element", fixHello))
			c := h.say(h.touring(), "Go.")
			next := h.say(c, "Something else.")
			h.tells(c, "MESSAGE Go.", "PROPOSAL", "OUTCOME PROPOSAL_DISCARDED", "MESSAGE Something else.", "ANSWER Done.")
			r, err := h.store.Run(context.Background(), next.RunID)
			h.ok(err)
			if h.status(c.RunID) != run.Cancelled || r.PredecessorID != c.RunID || h.text("hello") != "Helo" {
				t.Errorf("the run before is %s, %+v", h.status(c.RunID), r)
			}
			if _, held := r.Pins.Process(); !held {
				t.Error("P4 the process does not go on")
			}
			open, err := h.chat.OpenPoints(context.Background(), h.admin, chat.PointFilter{}, chat.Page{Limit: 10})
			h.ok(err)
			if len(open) != 0 {
				t.Errorf("O1 %+v", open)
			}
		})
		t.Run("V3 a question of a process is withdrawn likewise", func(t *testing.T) {
			h.model.says(calls("ask_choice", `{"question":"Which?","options":["a","b"]}`))
			c := h.say(h.touring(), "Go.")
			if c.Status != chat.AwaitingInput {
				t.Fatalf("%s", c.Status)
			}
			h.say(c, "Never mind.")
			h.tells(c, "MESSAGE Go.", "QUESTION", "NOTICE QUESTION_WITHDRAWN", "MESSAGE Never mind.", "ANSWER Done.")
		})
		t.Run("V4 a message leaves an ordinary run waiting in the inbox", func(t *testing.T) {
			h.model.says(calls("update_element", fixHello))
			c := h.say(h.plain(), "Go.")
			h.say(c, "Something else.")
			if h.status(c.RunID) != run.WaitingForApproval {
				t.Errorf("the run before is %s", h.status(c.RunID))
			}
			h.tells(c, "MESSAGE Go.", "PROPOSAL", "MESSAGE Something else.", "ANSWER Done.")
		})
		t.Run("V6 an answer of a turn that could write and wrote nothing says so", func(t *testing.T) {
			c := h.say(h.plain(), "Go.")
			log := h.log(c)
			i := slices.IndexFunc(log, func(e chat.Entry) bool { return e.Kind == chat.KindAnswer })
			if !log[i].Data.Unchanged || log[i].Data.Writes != 0 {
				t.Errorf("%+v", log[i].Data)
			}
		})
		t.Run("V5 a turn that failed is retried from its run, one that was answered is not", func(t *testing.T) {
			h.model.does(func(context.Context) (agent.Turn, error) {
				return agent.Turn{}, &agent.ProviderError{Message: "The model is not there."}
			})
			c := h.say(h.plain(), "Go.")
			if c.Status != chat.Failed {
				t.Fatalf("%s", c.Status)
			}
			_, err := h.chat.Retry(context.Background(), h.admin, c.ID)
			h.ok(err)
			again := h.rests(c)
			r, err := h.store.Run(context.Background(), again.RunID)
			h.ok(err)
			if r.PredecessorID != c.RunID {
				t.Errorf("%+v", r)
			}
			h.tells(c, "MESSAGE Go.", "NOTICE TURN_FAILED", "ANSWER Done.")
			_, err = h.chat.Retry(context.Background(), h.admin, c.ID)
			h.refused(err, fault.NothingToRetry)
		})
		t.Run("V5 an edited message takes its place and goes on from the run before it", func(t *testing.T) {
			first := h.say(h.plain(), "One.")
			second := h.say(first, "Two.")
			i := slices.IndexFunc(h.log(second), func(e chat.Entry) bool { return e.Text == "Two." })
			_, err := h.chat.Edit(context.Background(), h.admin, second.ID, h.log(second)[i].ID, "Zwei.")
			h.ok(err)
			edited := h.rests(second)
			r, err := h.store.Run(context.Background(), edited.RunID)
			h.ok(err)
			if r.PredecessorID != first.RunID {
				t.Error("it does not go on from the run before the message")
			}
			var said []string
			for _, m := range h.model.last().Messages[1:] {
				said = append(said, m.Text)
			}
			if !slices.Equal(said, []string{"One.", "Done.", "Zwei."}) {
				t.Errorf("%q", said)
			}
			_, err = h.chat.Edit(context.Background(), h.admin, second.ID, h.log(second)[i].ID, "Deux.")
			if !fault.Is(err, fault.NotFound) {
				t.Errorf("a message that was replaced: %v", err)
			}
		})
		t.Run("V5 stop ends the turn, and what waited begins the next", func(t *testing.T) {
			let, asked := h.held()
			defer let()
			c, err := h.send(h.plain(), "One.", "")
			h.ok(err)
			<-asked
			_, err = h.send(c, "Two.", chat.QueueWhenBusy)
			h.ok(err)
			_, err = h.chat.Stop(context.Background(), h.admin, c.ID)
			h.ok(err)
			h.rests(c)
			h.tells(c, "MESSAGE One.", "NOTICE TURN_STOPPED", "MESSAGE Two.", "ANSWER Done.")
		})
		t.Run("what is refused changes nothing", func(t *testing.T) {
			c := h.plain()
			before := h.log(c)
			for _, text := range []string{"", " \n", strings.Repeat("a", 64<<10+1)} {
				if _, err := h.send(c, text, ""); !fault.Is(err, fault.BadInput) {
					t.Errorf("%d bytes: %v", len(text), err)
				}
			}
			other, err := h.access.CreateUser(context.Background(), h.admin, access.NewUser{Name: "Other " + t.Name(), Kind: actor.Person})
			h.ok(err)
			if _, err := h.chat.Send(context.Background(), other.Actor(), chat.Message{Conversation: c.ID, Text: "Hi."}); !fault.Is(err, fault.NotFound) {
				t.Errorf("a conversation of somebody else's: %v", err)
			}
			if len(h.log(c)) != len(before) {
				t.Error("something was appended")
			}
		})
	})
}

func TestAnswers(t *testing.T) {
	each(t, func(h *house) {
		t := h.t
		decide := func(c chat.Conversation, turn string, a agent.Answer) error {
			_, err := h.chat.Decide(context.Background(), h.admin, chat.Decision{Conversation: c.ID, TurnDigest: turn, Answer: a})
			return err
		}
		h.model.says(calls("update_element", fixHello), calls("update_element", fixBye))
		c := h.say(h.touring(), "Go.")
		first := c.Card.Turn
		t.Run("C4 an answer that the card does not offer is refused", func(t *testing.T) {
			for _, a := range []agent.Answer{agent.Approve, agent.Deny, "what"} {
				h.refused(decide(c, first, a), fault.AnswerNotOffered)
			}
		})
		t.Run("R19 another card's digest is refused", func(t *testing.T) {
			h.refused(decide(c, strings.Repeat("0", 64), agent.Apply), fault.StaleTurn)
		})
		t.Run("X5 the run is not decided beside its conversation, by its initiator neither, and its card offers nothing there", func(t *testing.T) {
			_, err := h.agent.Decide(context.Background(), h.admin, agent.Decision{Run: c.RunID, TurnDigest: first, Approve: true})
			h.refused(err, fault.DecidedInChat)
			r, err := h.store.Run(context.Background(), c.RunID)
			h.ok(err)
			card, err := h.agent.Card(context.Background(), h.admin, r)
			h.ok(err)
			if len(card.Answers) != 0 || len(card.Calls) != 1 {
				t.Errorf("%+v", card)
			}
		})
		t.Run("R18 the same answer sent at once by many takes effect once, another is told who was first", func(t *testing.T) {
			var all sync.WaitGroup
			errs := make([]error, 8)
			for i := range errs {
				all.Go(func() { errs[i] = decide(c, first, agent.Apply) })
			}
			all.Wait()
			h.ok(errors.Join(errs...))
			c = h.rests(c)
			if c.Status != chat.AwaitingApproval || h.text("hello") != "Hello" {
				t.Fatalf("%s %q", c.Status, h.text("hello"))
			}
			h.refused(decide(c, first, agent.Skip), fault.StaleTurn)
		})
		t.Run("a decision after the run ended is refused", func(t *testing.T) {
			last := c.Card.Turn
			c = h.answer(c, agent.Skip)
			h.ok(decide(c, last, agent.Skip)) // the same again
			h.refused(decide(c, last, agent.Apply), fault.AlreadyDecided)
			h.say(c, "Next.")
			h.refused(decide(c, last, agent.Apply), fault.NotWaiting)
		})
		t.Run("C3 R13 a question takes what its schema takes", func(t *testing.T) {
			h.model.says(calls("ask_choice", `{"question":"Which?","options":["a","b"]}`))
			c := h.say(h.plain(), "Go.")
			answer := func(values string) error {
				_, err := h.chat.AnswerQuestion(context.Background(), h.admin, chat.Answer{Conversation: c.ID, TurnDigest: c.Card.Turn, Values: []byte(values)})
				return err
			}
			h.refused(answer(`{"choice":"c"}`), fault.InputInvalid)
			h.refused(answer(`{"choice":"a","more":1}`), fault.InputInvalid)
			h.ok(answer(`{"choice":"a"}`))
			if c = h.rests(c); c.Status != chat.Idle {
				t.Errorf("%s", c.Status)
			}
			h.tells(c, "MESSAGE Go.", "QUESTION", "ANSWER Done.")
		})
	})
}

// flaky is a runtime that a test interferes with.
type flaky struct {
	chat.Runtime
	cancel func(context.Context, actor.Actor, uuid.UUID) (bool, run.Status, error)
	decide func(context.Context, actor.Actor, agent.Decision) (agent.Run, error)
	start  func(context.Context, actor.Actor, agent.StartRequest) (agent.Run, error)
}

func (f flaky) CancelIfWaiting(ctx context.Context, by actor.Actor, id uuid.UUID) (bool, run.Status, error) {
	if f.cancel != nil {
		return f.cancel(ctx, by, id)
	}
	return f.Runtime.CancelIfWaiting(ctx, by, id)
}

func (f flaky) Decide(ctx context.Context, by actor.Actor, d agent.Decision) (agent.Run, error) {
	if f.decide != nil {
		return f.decide(ctx, by, d)
	}
	return f.Runtime.Decide(ctx, by, d)
}

func (f flaky) Start(ctx context.Context, by actor.Actor, req agent.StartRequest) (agent.Run, error) {
	if f.start != nil {
		return f.start(ctx, by, req)
	}
	return f.Runtime.Start(ctx, by, req)
}

// through is the house's chat over a runtime that is interfered with.
func (h *house) through(f flaky) *chat.Chat {
	other := *h.chat
	f.Runtime = h.agent
	other.Runtime = f
	return &other
}

func TestPutBack(t *testing.T) {
	each(t, func(h *house) {
		t := h.t
		t.Run("V3 a run that is being carried out is not withdrawn: the conversation is put back as it was", func(t *testing.T) {
			h.model.says(calls("update_element", fixHello))
			c := h.say(h.touring(), "Go.")
			carried := h.through(flaky{cancel: func(context.Context, actor.Actor, uuid.UUID) (bool, run.Status, error) {
				return false, run.Running, nil
			}})
			now, err := carried.Send(context.Background(), h.admin, chat.Message{Conversation: c.ID, Text: "Wait."})
			h.refused(err, fault.Busy)
			if now.Status != chat.AwaitingApproval || now.RunID != c.RunID || now.LeaseOwner != "" || now.Card == nil || now.Card.Turn != c.Card.Turn {
				t.Errorf("%+v", now)
			}
			h.tells(c, "MESSAGE Go.", "PROPOSAL")
			h.answer(c, agent.Apply)
			h.tells(c, "MESSAGE Go.", "PROPOSAL", "OUTCOME APPLIED", "ANSWER Done.")
		})
		t.Run("a start that is refused leaves the conversation as it was, the message unsaid", func(t *testing.T) {
			c := h.say(h.plain(), "One.")
			allowed, err := h.access.CreateUser(context.Background(), h.admin, access.NewUser{Name: "Ada", Kind: actor.Person})
			h.ok(err)
			h.ok(updateUsers(h, []uuid.UUID{allowed.ID}))
			defer func() { h.ok(updateUsers(h, []uuid.UUID{})) }()
			person, err := h.access.CreateUser(context.Background(), h.admin, access.NewUser{Name: "Pat", Kind: actor.Person})
			h.ok(err)
			_, err = h.chat.Start(context.Background(), person.Actor(), chat.NewConversation{ConfigurationID: h.config.ID})
			h.refused(err, fault.ConfigurationNotAllowed)
			gone := h.through(flaky{start: func(context.Context, actor.Actor, agent.StartRequest) (agent.Run, error) {
				return agent.Run{}, fault.Refuse(fault.PredecessorMissing, "gone")
			}})
			now, err := gone.Send(context.Background(), h.admin, chat.Message{Conversation: c.ID, Text: "Two."})
			h.refused(err, fault.PredecessorMissing)
			if now.Status != chat.Idle || now.LeaseOwner != "" {
				t.Errorf("%+v", now)
			}
			h.tells(c, "MESSAGE One.", "ANSWER Done.")
		})
		t.Run("V9 an answer that did not reach the runtime is stored before, and a refusal takes it back", func(t *testing.T) {
			h.model.says(calls("update_element", fixHello))
			c := h.say(h.touring(), "Go.")
			var seen chat.Conversation
			refusing := h.through(flaky{decide: func(ctx context.Context, _ actor.Actor, _ agent.Decision) (agent.Run, error) {
				seen, _ = h.store.Conversation(ctx, c.ID)
				return agent.Run{}, fault.Refuse(fault.ConfigurationGone, "gone")
			}})
			now, err := refusing.Decide(context.Background(), h.admin, chat.Decision{Conversation: c.ID, TurnDigest: c.Card.Turn, Answer: agent.Skip})
			h.refused(err, fault.ConfigurationGone)
			if seen.Status != chat.Processing || seen.Card.Answer != agent.Skip || now.Status != chat.AwaitingApproval || now.Card.Answer != "" {
				t.Errorf("before %+v, after %+v", seen, now)
			}
		})
	})
}

func updateUsers(h *house, users []uuid.UUID) error {
	_, err := h.library.UpdateConfiguration(context.Background(), h.admin, library.ConfigurationUpdate{ID: h.config.ID, AllowedUserIDs: &users})
	return err
}
