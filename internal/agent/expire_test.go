package agent_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/run"
)

// expiring lets what waits expire after some hours, as the house's configuration says.
func (h *house) expiring(hours int) {
	h.t.Helper()
	config, err := h.library.UpdateConfiguration(context.Background(), h.admin, library.ConfigurationUpdate{ID: h.config.ID, ApprovalExpiryHours: &hours})
	h.ok(err)
	h.config = config
}

// worked lets replicas that live some days later work the queue until a run has ended.
func (h *house) worked(r agent.Run, replicas, days int) agent.Run {
	h.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{}, replicas)
	for range replicas {
		replica := h.later(days)
		go func() { replica.Work(ctx); done <- struct{}{} }()
	}
	ended := h.settledAfter(r)
	stop()
	for range replicas {
		<-done
	}
	return ended
}

// settledAfter waits until a run that waits does not any more.
func (h *house) settledAfter(r agent.Run) agent.Run {
	h.t.Helper()
	for range 600 {
		now, err := h.store.Run(context.Background(), r.ID)
		h.ok(err)
		if now.Status.Terminal() {
			return now
		}
		time.Sleep(50 * time.Millisecond)
	}
	h.t.Fatal("the run still waits")
	return agent.Run{}
}

func TestExpiry(t *testing.T) {
	t.Run("R4 what nobody answers in time ends the run with its reason; nothing of it is carried out and nothing goes on", func(t *testing.T) {
		each(t, func(h *house) {
			h.expiring(24)
			h.model.says(calls("update_element", fix))
			waiting := h.start(h.admin, h.plain())
			if waiting.ExpiresAt == nil || time.Until(*waiting.ExpiresAt) > 24*time.Hour {
				h.t.Fatalf("it expires at %v", waiting.ExpiresAt)
			}
			card, err := h.agent.Card(context.Background(), h.admin, waiting)
			h.ok(err)
			if card.ExpiresAt == nil || !card.ExpiresAt.Equal(*waiting.ExpiresAt) {
				h.t.Errorf("its card says %v", card.ExpiresAt)
			}
			asked := h.model.count()
			ended := h.worked(waiting, 2, 2)
			if ended.Status != run.Cancelled || ended.Reason != run.ReasonApprovalExpired || ended.Message == "" || ended.TurnDigest != "" {
				h.t.Errorf("%s, %s: %s", ended.Status, ended.Reason, ended.Message)
			}
			if n := len(ended.Notices); n == 0 || ended.Notices[n-1].Code != run.NoticeApprovalExpired {
				h.t.Errorf("notices: %+v", ended.Notices)
			}
			if h.text("hello") != "Helo" || h.model.count() != asked {
				h.t.Errorf("the text is %q, the model was asked %d times more", h.text("hello"), h.model.count()-asked)
			}
			if _, err := h.store.State(context.Background(), waiting.ID); !fault.Is(err, fault.NotFound) {
				h.t.Errorf("R16 what it waited with is still there: %v", err)
			}
			events := kinds(h.events(waiting.ID))
			if n := len(events); !slices.Equal(events[n-2:], []run.EventKind{run.EventNotice, run.EventSettled}) {
				h.t.Errorf("events: %v", events)
			}
			ends := slices.DeleteFunc(h.trail(waiting.ID), func(e audit.Event) bool { return e != audit.RunEnded })
			if len(ends) != 1 {
				h.t.Errorf("its end is audited %d times by two replicas", len(ends))
			}
		})
	})
	t.Run("R11 an answer after its time is refused, before the run was ended for it and after", func(t *testing.T) {
		each(t, func(h *house) {
			h.expiring(24)
			h.model.says(calls("update_element", fix))
			waiting := h.start(h.admin, h.plain())
			late := agent.Decision{Run: waiting.ID, TurnDigest: waiting.TurnDigest, Approve: true}
			refused := func(a *agent.Agent) {
				h.t.Helper()
				_, err := a.Decide(context.Background(), h.admin, late)
				if refusal, ok := fault.AsRefusal(err); !ok || refusal.Code != fault.NotWaiting {
					h.t.Errorf("%v", err)
				}
			}
			refused(h.later(2))
			if now := h.settled(waiting.ID); now.Status != run.WaitingForApproval {
				h.t.Fatalf("the refusal changed the run: %s", now.Status)
			}
			h.worked(waiting, 1, 2)
			refused(h.agent)
			if h.text("hello") != "Helo" {
				h.t.Error("the refused write was carried out")
			}
		})
	})
	t.Run("R13 a question expires like a proposal", func(t *testing.T) {
		each(t, func(h *house) {
			h.approve("tour")
			h.offer("tour", library.OnDemand)
			h.expiring(24)
			h.model.says(calls("ask_choice", `{"question":"Which?","options":["One","Two"]}`))
			waiting := h.start(h.admin, h.tour())
			if waiting.Status != run.WaitingForInput || waiting.ExpiresAt == nil {
				h.t.Fatalf("%s until %v", waiting.Status, waiting.ExpiresAt)
			}
			_, err := h.later(2).SubmitInput(context.Background(), h.admin, agent.Input{Run: waiting.ID, TurnDigest: waiting.TurnDigest, Values: json.RawMessage(`{"choice":"One"}`)})
			if refusal, ok := fault.AsRefusal(err); !ok || refusal.Code != fault.NotWaiting {
				h.t.Errorf("%v", err)
			}
			ended := h.worked(waiting, 1, 2)
			if ended.Reason != run.ReasonApprovalExpired {
				h.t.Fatalf("%s, %s", ended.Status, ended.Reason)
			}
			next := h.plain()
			next.Predecessor = ended.ID
			if r := h.start(h.admin, next); len(r.Pins) != 1 || !r.Pins[0].Derived {
				h.t.Errorf("P4 a run that continues it holds the pins %+v", r.Pins)
			}
		})
	})
	t.Run("I8 the setting counts where the configuration does not say, and 0 is for ever", func(t *testing.T) {
		each(t, func(h *house) {
			h.model.says(calls("update_element", fix))
			if r := h.start(h.admin, h.plain()); r.ExpiresAt != nil {
				h.t.Errorf("it expires at %v", r.ExpiresAt)
			}
			h.setting("agent.approvalExpiryHours", "3")
			for hours, within := range map[int]time.Duration{0: 3 * time.Hour, 2: 2 * time.Hour} {
				h.expiring(hours)
				h.model.says(calls("update_element", fix))
				r := h.start(h.admin, h.plain())
				if r.ExpiresAt == nil || time.Until(*r.ExpiresAt) > within || time.Until(*r.ExpiresAt) < within-time.Hour {
					h.t.Errorf("%d hours: it expires at %v", hours, r.ExpiresAt)
				}
			}
		})
	})
	t.Run("R2 an answer in time wins, and the run that went on does not expire", func(t *testing.T) {
		each(t, func(h *house) {
			h.expiring(24)
			h.model.says(calls("update_element", fix))
			waiting := h.start(h.admin, h.plain())
			if done := h.decide(h.admin, waiting, true, ""); done.Status != run.Completed {
				h.t.Fatalf("%s: %s", done.Status, done.Message)
			}
			expired, err := h.store.Expired(context.Background(), time.Now().AddDate(0, 0, 2), 10)
			h.ok(err)
			if len(expired) != 0 || h.text("hello") != "Hello" {
				h.t.Errorf("%v expired, the text is %q", expired, h.text("hello"))
			}
		})
	})
}
