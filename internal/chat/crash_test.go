package chat_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/chat"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/live"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

// errCrash is how a call ends whose process is gone.
var errCrash = fault.New(fault.Unavailable, "the process is gone")

// crashing is a chat whose process goes away at the named step, with what it claimed.
func (h *house) crashing(after string) *chat.Chat {
	f := flaky{}
	switch after {
	case "claim": // before the run is started
		f.start = func(context.Context, actor.Actor, agent.StartRequest) (agent.Run, error) {
			return agent.Run{}, errCrash
		}
	case "answer": // stored, and not brought to the runtime
		f.decide = func(context.Context, actor.Actor, agent.Decision) (agent.Run, error) { return agent.Run{}, errCrash }
	case "decision": // taken by the runtime, and not noted
		f.decide = func(ctx context.Context, by actor.Actor, d agent.Decision) (agent.Run, error) {
			_, err := h.agent.Decide(ctx, by, d)
			return agent.Run{}, errors.Join(errCrash, err)
		}
	}
	return h.through(f)
}

func TestCrashes(t *testing.T) {
	for _, database := range storetest.URLs {
		t.Run(database.Name, func(t *testing.T) {
			rings := &live.Hub{}
			h := build(t, storetest.OpenAt(t, database.URL(t), store.Options{Bell: rings}), rings)
			h.chat.Lease = 300 * time.Millisecond
			h.work()
			for _, step := range []string{"answer", "decision"} {
				t.Run("V1 V9 an answer is brought to the runtime once, whoever goes away after the "+step, func(t *testing.T) {
					h.t = t
					h.model.says(calls("update_element", fixHello))
					c := h.say(h.touring(), "Go.")
					_, err := h.crashing(step).Decide(context.Background(), h.admin, chat.Decision{Conversation: c.ID, TurnDigest: c.Card.Turn, Answer: agent.Skip})
					if !fault.Is(err, fault.Unavailable) {
						t.Fatalf("%v", err)
					}
					if _, err := h.send(c, "Hm.", ""); err != nil { // while it is undelivered
						h.refused(err, fault.Busy)
					}
					if c = h.rests(c); c.Status != chat.Idle {
						t.Errorf("%+v", c)
					}
					got := slices.DeleteFunc(told(h.log(c)), func(s string) bool { return s == "NOTICE OPEN_POINTS" })
					if !slices.Equal(got, []string{"MESSAGE Go.", "PROPOSAL", "OUTCOME SKIPPED", "ANSWER Done."}) {
						t.Errorf("%q", got)
					}
				})
			}
			open, err := h.chat.OpenPoints(context.Background(), h.admin, chat.PointFilter{}, chat.Page{Limit: 10})
			if err != nil || len(open) != 1 || open[0].Times != 2 {
				t.Errorf("O2 %+v %v", open, err)
			}
		})
	}
}

// TestManyConversations lets random messages, answers, stops, retries and crashes meet in
// many conversations, from one seed, and holds every one of them to what must be true.
func TestManyConversations(t *testing.T) {
	const seed, people = 20261201, 8
	rings := &live.Hub{}
	h := build(t, storetest.OpenAt(t, "sqlite::memory:", store.Options{Bell: rings}), rings)
	h.chat.Lease = 200 * time.Millisecond
	h.work()
	h.model.script(seed)
	var all sync.WaitGroup
	for p := range people {
		all.Go(func() {
			for n := p; n < many; n += people {
				h.live(rand.New(rand.NewPCG(seed, uint64(n))))
			}
		})
	}
	all.Wait()
	var skipped int
	for page := (chat.Page{Limit: 100}); ; {
		some, err := h.chat.List(context.Background(), h.admin, chat.Filter{}, page)
		h.ok(err)
		for _, c := range some {
			page.Cursor = c.ID
			skipped += h.legal(h.rests(c))
		}
		if len(some) < page.Limit {
			break
		}
	}
	open, err := h.chat.OpenPoints(context.Background(), h.admin, chat.PointFilter{}, chat.Page{Limit: 100})
	h.ok(err)
	for _, p := range open {
		if p.Times == 0 || skipped == 0 {
			t.Errorf("O1 an open point that nobody skipped: %+v", p)
		}
	}
}

// live lives one conversation: a handful of acts that may come at a bad time.
func (h *house) live(r *rand.Rand) {
	ctx := context.Background()
	c := h.plain()
	if r.IntN(2) == 0 {
		c = h.touring()
	}
	for n := range 2 + r.IntN(4) {
		now, err := h.store.Conversation(ctx, c.ID)
		h.ok(err)
		room := h.chat
		if r.IntN(12) == 0 {
			room = h.crashing([]string{"claim", "answer", "decision"}[r.IntN(3)])
		}
		switch act := r.IntN(6); {
		case act == 0:
			_, err = room.Stop(ctx, h.admin, c.ID)
		case act == 1 && now.Status == chat.Failed:
			_, err = room.Retry(ctx, h.admin, c.ID)
		case act == 2 && r.IntN(3) == 0 && now.Status == chat.AwaitingApproval && now.Card != nil:
			_, err = room.EditProposal(ctx, h.admin, rewording(now, fmt.Sprint("Edited ", n)))
		case act <= 3 && now.Status == chat.AwaitingApproval && now.Card != nil:
			answers := []agent.Answer{agent.Apply, agent.Variant, agent.Skip, agent.Approve, agent.Deny}
			_, err = room.Decide(ctx, h.admin, chat.Decision{Conversation: c.ID, TurnDigest: now.Card.Turn, Answer: answers[r.IntN(len(answers))]})
		default:
			when := []chat.WhenBusy{chat.RefuseWhenBusy, chat.QueueWhenBusy}[r.IntN(2)]
			if _, err = room.Send(ctx, h.admin, chat.Message{Conversation: c.ID, Text: fmt.Sprint("Message ", n), WhenBusy: when}); err == nil {
				h.model.acknowledge(c.ID, fmt.Sprint("Message ", n))
			}
		}
		if _, refused := fault.AsRefusal(err); err != nil && !refused && !fault.Is(err, fault.Unavailable) {
			h.t.Errorf("%v", err)
		}
		if r.IntN(3) > 0 {
			if _, err := h.chat.Wait(ctx, c.ID); err != nil {
				h.t.Errorf("%v", err)
			}
		}
	}
}

// legal holds one conversation to what must be true of it, and counts its skips.
func (h *house) legal(c chat.Conversation) (skipped int) {
	ctx := context.Background()
	if !c.Status.Rests() && !c.Status.Waits() || c.LeaseOwner != "" || c.Status.Rests() && len(c.Queue) > 0 {
		h.t.Errorf("V1 %s ends %s, claimed by %q, with %d messages that wait", c.ID, c.Status, c.LeaseOwner, len(c.Queue))
	}
	log := h.log(c)
	turns := map[uuid.UUID]bool{}
	var said []string
	for _, e := range log {
		if e.Kind == chat.KindMessage {
			said = append(said, e.Text)
			turns[e.RunID] = true
		}
		if e.Kind == chat.KindOutcome && e.Data.Code == string(chat.Skipped) {
			skipped++
		}
	}
	for _, w := range c.Queue { // until the owner has answered
		said = append(said, w.Text)
	}
	for _, text := range h.model.acknowledged(c.ID) {
		if n := count(said, text); n != 1 {
			h.t.Errorf("a message that was acknowledged is there %d times: %q in %q", n, text, said)
		}
	}
	runs, err := h.store.Runs(ctx, agent.Filter{}, agent.Page{Limit: 1})
	if err != nil || len(runs) == 0 {
		h.t.Errorf("%v", err)
	}
	if c.RunID != uuid.Nil {
		r, err := h.store.Run(ctx, c.RunID)
		h.ok(err)
		want := map[run.Status]chat.Status{
			run.Completed: chat.Idle, run.Cancelled: chat.Idle, run.Failed: chat.Failed,
			run.WaitingForApproval: chat.AwaitingApproval, run.WaitingForInput: chat.AwaitingInput,
		}[r.Status]
		if c.Status != want || c.Seen != r.Events || r.ConversationID != c.ID {
			h.t.Errorf("V1 %s is %s while its run is %s; %d of %d events are in its log", c.ID, c.Status, r.Status, c.Seen, r.Events)
		}
	}
	return skipped
}

func count(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}
