package chat_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/chat"
	"github.com/countersign/countersign/internal/fault"
)

// stand is a conversation as a message finds it. let lets a turn that is held go on.
type stand struct {
	name string
	make func(*house) (c chat.Conversation, let func())
}

func still(c chat.Conversation) (chat.Conversation, func()) { return c, func() {} }

func (h *house) asking(c chat.Conversation) (chat.Conversation, func()) {
	h.model.says(calls("ask_choice", `{"question":"Which?","options":["a","b"]}`))
	return still(h.say(c, "Go."))
}

func (h *house) proposing(c chat.Conversation) (chat.Conversation, func()) {
	h.model.says(calls("update_element", fixHello))
	return still(h.say(c, "Go."))
}

var stands = []stand{
	{"idle", func(h *house) (chat.Conversation, func()) { return still(h.say(h.plain(), "Go.")) }},
	{"idle with a process", func(h *house) (chat.Conversation, func()) { return still(h.say(h.touring(), "Go.")) }},
	{"failed", func(h *house) (chat.Conversation, func()) {
		h.model.does(func(context.Context) (agent.Turn, error) { return agent.Turn{}, &agent.ProviderError{Message: "gone"} })
		return still(h.say(h.plain(), "Go."))
	}},
	{"processing", func(h *house) (chat.Conversation, func()) {
		let, asked := h.held()
		c, err := h.send(h.plain(), "Go.", "")
		h.ok(err)
		<-asked
		return c, let
	}},
	{"awaiting approval", func(h *house) (chat.Conversation, func()) { return h.proposing(h.plain()) }},
	{"awaiting approval of a process", func(h *house) (chat.Conversation, func()) { return h.proposing(h.touring()) }},
	{"awaiting input", func(h *house) (chat.Conversation, func()) { return h.asking(h.plain()) }},
	{"awaiting input of a process", func(h *house) (chat.Conversation, func()) { return h.asking(h.touring()) }},
	{"archived", func(h *house) (chat.Conversation, func()) {
		c, err := h.chat.Archive(context.Background(), h.admin, h.say(h.plain(), "Go.").ID)
		h.ok(err)
		return still(c)
	}},
}

// rival is what happens at the same moment as a message arrives.
type rival struct {
	name string
	do   func(h *house, room *chat.Chat, c chat.Conversation) error
}

func turnOf(c chat.Conversation) string {
	if c.Card == nil {
		return strings.Repeat("0", 64)
	}
	return c.Card.Turn
}

var rivals = []rival{
	{"another message", func(h *house, room *chat.Chat, c chat.Conversation) error {
		_, err := room.Send(context.Background(), h.admin, chat.Message{Conversation: c.ID, Text: "Other."})
		return err
	}},
	{"a message for the queue", func(h *house, room *chat.Chat, c chat.Conversation) error {
		_, err := room.Send(context.Background(), h.admin, chat.Message{Conversation: c.ID, Text: "Other.", WhenBusy: chat.QueueWhenBusy})
		return err
	}},
	{"a decision", func(h *house, room *chat.Chat, c chat.Conversation) error {
		answer := agent.Approve
		if c.Card != nil && c.Card.Process != uuid.Nil {
			answer = agent.Apply
		}
		_, err := room.Decide(context.Background(), h.admin, chat.Decision{Conversation: c.ID, TurnDigest: turnOf(c), Answer: answer})
		return err
	}},
	{"an answer", func(h *house, room *chat.Chat, c chat.Conversation) error {
		_, err := room.AnswerQuestion(context.Background(), h.admin, chat.Answer{Conversation: c.ID, TurnDigest: turnOf(c), Values: []byte(`{"choice":"a"}`)})
		return err
	}},
	{"a stop", func(h *house, room *chat.Chat, c chat.Conversation) error {
		_, err := room.Stop(context.Background(), h.admin, c.ID)
		return err
	}},
	{"a retry", func(h *house, room *chat.Chat, c chat.Conversation) error {
		_, err := room.Retry(context.Background(), h.admin, c.ID)
		return err
	}},
	{"archiving", func(h *house, room *chat.Chat, c chat.Conversation) error {
		_, err := room.Archive(context.Background(), h.admin, c.ID)
		return err
	}},
}

// TestMessageArrivesWhile forces every pair of what a conversation is and what happens at
// the moment a message arrives, from two replicas at once.
func TestMessageArrivesWhile(t *testing.T) {
	each(t, func(h *house) {
		other := *h.chat
		for _, s := range stands {
			for _, r := range rivals {
				h.t.Run("V1 V3 V4 V9 a message and "+r.name+" while "+s.name, func(t *testing.T) {
					for range collisions {
						h.collide(t, &other, s, r)
					}
				})
			}
		}
	})
}

func (h *house) collide(t *testing.T, other *chat.Chat, s stand, r rival) {
	t.Helper()
	c, let := s.make(h)
	defer let()
	var both sync.WaitGroup
	var sent, raced error
	both.Go(func() { _, sent = h.send(c, "Mine.", chat.RefuseWhenBusy) })
	both.Go(func() { raced = r.do(h, other, c) })
	both.Wait()
	let()
	for _, err := range []error{sent, raced} {
		if _, refused := fault.AsRefusal(err); err != nil && !refused {
			t.Errorf("neither done nor refused: %v", err)
		}
	}
	now := h.rests(c)
	for !now.Status.Waits() && (!now.Status.Rests() || len(now.Queue) > 0 && now.Archived == nil) {
		now = h.rests(c) // the next turn has begun
	}
	h.fair(t, now, map[string]error{"Mine.": sent, "Other.": raced}, strings.Contains(r.name, "message"))
}

// fair holds a conversation after a race to what both sides were told.
func (h *house) fair(t *testing.T, now chat.Conversation, told map[string]error, twoMessages bool) {
	t.Helper()
	if now.LeaseOwner != "" {
		t.Errorf("it is still claimed by %s", now.LeaseOwner)
	}
	said, turns := []string{}, map[uuid.UUID]bool{}
	for _, e := range h.log(now) {
		if e.Kind == chat.KindMessage {
			said = append(said, e.Text)
			turns[e.RunID] = true
		}
	}
	for _, w := range now.Queue {
		said = append(said, w.Text)
	}
	for text, err := range told {
		want := 1
		if err != nil || text == "Other." && !twoMessages {
			want = 0
		}
		if n := count(said, text); n != want {
			t.Errorf("%q is there %d times, and was answered %v", text, n, err)
		}
	}
	runs, err := h.store.Runs(context.Background(), agent.Filter{}, agent.Page{Limit: 100})
	h.ok(err)
	for _, r := range runs {
		if r.ConversationID == now.ID && !turns[r.ID] && h.retried(now, r.ID) == 0 {
			t.Errorf("the run %s (%s) belongs to no message", r.ID, r.Status)
		}
	}
	if r := h.status(now.RunID); map[string]chat.Status{
		"completed": chat.Idle, "cancelled": chat.Idle, "failed": chat.Failed,
		"waiting_for_approval": chat.AwaitingApproval, "waiting_for_input": chat.AwaitingInput,
	}[string(r)] != now.Status {
		t.Errorf("the conversation is %s, its run %s", now.Status, r)
	}
}

// retried counts what the log tells of a run that no message began: a turn that was
// retried.
func (h *house) retried(c chat.Conversation, id uuid.UUID) (n int) {
	for _, e := range h.log(c) {
		if e.RunID == id {
			n++
		}
	}
	return n
}
