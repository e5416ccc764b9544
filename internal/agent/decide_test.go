package agent_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
)

// waiting starts a tour that waits with the card of one write.
func (h *house) waiting() agent.Run {
	h.t.Helper()
	ready(h)
	h.model.says(calls("update_element", fix))
	r := h.start(h.admin, h.tour())
	if r.Status != run.WaitingForApproval {
		h.t.Fatalf("the tour is %s: %s", r.Status, r.Message)
	}
	return r
}

// ordinary starts a run without a process that waits with the same write.
func (h *house) ordinary(by actor.Actor) agent.Run {
	h.t.Helper()
	h.model.says(calls("get_page", `{"id":"home"}`, "update_element", fix))
	r := h.start(by, h.plain())
	if r.Status != run.WaitingForApproval {
		h.t.Fatalf("the run is %s: %s", r.Status, r.Message)
	}
	return r
}

func (h *house) edit(text string) {
	h.t.Helper()
	_, err := h.content.Update(context.Background(), h.admin, content.Edit{Table: "element", ID: "hello", Fields: map[string]any{"text": text}})
	h.ok(err)
}

func decision(r agent.Run, approve bool) agent.Decision {
	return agent.Decision{Run: r.ID, TurnDigest: r.TurnDigest, Approve: approve}
}

// refused asserts that a decision is refused with a code, that this is audited, and
// that nothing else happened.
func (h *house) refused(by actor.Actor, d agent.Decision, code fault.Code) *fault.Refused {
	h.t.Helper()
	before := h.settled(d.Run)
	_, err := h.agent.Decide(context.Background(), by, d)
	refusal, ok := fault.AsRefusal(err)
	if !ok || refusal.Code != code {
		h.t.Fatalf("got %v, want %s", err, code)
	}
	after := h.settled(d.Run)
	if after.Status != before.Status || after.Events != before.Events || after.TurnDigest != before.TurnDigest {
		h.t.Errorf("%s changed the run: %s → %s", code, before.Status, after.Status)
	}
	if trail := h.trail(d.Run); trail[len(trail)-1] != audit.RunDecisionRefused {
		h.t.Errorf("U1 not audited: %v", trail)
	}
	return refusal
}

func TestSameDecisionTwiceAtOnce(t *testing.T) {
	var m *meddler
	with := func(s *store.Store) agent.Store {
		m = &meddler{Store: s}
		return m
	}
	t.Run("R18 whoever decides the same twice at once gets the first result twice", func(t *testing.T) {
		meddled(t, with, func(h *house) {
			r := h.waiting()
			var again atomic.Bool
			m.meddle(func(c change.Change) error {
				for _, e := range c.Events {
					if e.Kind == run.EventDecision && again.CompareAndSwap(false, true) {
						h.decide(h.admin, r, true, "")
					}
				}
				return nil
			})
			if r = h.decide(h.admin, r, true, ""); r.Status != run.Completed || h.text("hello") != "Hello" {
				h.t.Errorf("the run is %s", r.Status)
			}
			if trail := h.trail(r.ID); slices.Contains(trail, audit.RunDecisionRefused) {
				h.t.Errorf("a refusal was audited: %v", trail)
			}
		})
	})
}

func TestDecisionRefusals(t *testing.T) {
	t.Run("R19 a decision that names another digest", func(t *testing.T) {
		each(t, func(h *house) {
			r := h.waiting()
			d := decision(r, true)
			d.TurnDigest = strings.Repeat("0", 64)
			h.refused(h.admin, d, fault.StaleTurn)
		})
	})
	t.Run("X5 a process run decided by somebody else, administrators and approvers included", func(t *testing.T) {
		each(t, func(h *house) {
			r := h.waiting()
			h.refused(h.person("approver", actor.RunApprove), decision(r, true), fault.NotInitiator)
			other := h.person("second")
			other.Administrator = true
			h.refused(other, decision(r, false), fault.NotInitiator)
			card, err := h.agent.Card(context.Background(), other, r)
			h.ok(err)
			if len(card.Answers) != 0 {
				h.t.Errorf("the inbox offers %v", card.Answers)
			}
		})
	})
	t.Run("R11 a run that does not wait", func(t *testing.T) {
		each(t, func(h *house) {
			r := h.start(h.admin, h.plain())
			h.refused(h.admin, decision(r, true), fault.NotWaiting)
		})
	})
	t.Run("R11 a configuration the initiator may not use any more", func(t *testing.T) {
		each(t, func(h *house) {
			editor := h.person("editor")
			r := h.ordinary(editor)
			h.users(h.admin.ID)
			h.refused(editor, decision(r, true), fault.ConfigurationNotAllowed)
		})
	})
	t.Run("R11 four eyes: one's own approval, administrators included, but not a denial", func(t *testing.T) {
		each(t, func(h *house) {
			h.fourEyes()
			r := h.ordinary(h.admin)
			h.refused(h.admin, decision(r, true), fault.SecondApproverRequired)
			if r = h.decide(h.admin, r, false, ""); r.Status != run.Completed {
				h.t.Errorf("the denial left %s", r.Status)
			}
		})
	})
	t.Run("R11 the decider must pass the live tool policy", func(t *testing.T) {
		each(t, func(h *house) {
			r := h.waiting()
			h.ok(h.library.SetToolEnabled(context.Background(), h.admin, "update_element", false))
			h.refused(h.admin, decision(r, true), fault.ToolNotAllowed)
		})
	})
	t.Run("C4 R14 a reason with an approval is no decision", func(t *testing.T) {
		each(t, func(h *house) {
			r := h.waiting()
			d := decision(r, true)
			d.Reason = agent.Skip
			if _, err := h.agent.Decide(context.Background(), h.admin, d); !fault.Is(err, fault.BadInput) {
				h.t.Errorf("got %v", err)
			}
		})
	})
	t.Run("G7 somebody who may not read the record is shown no preview, and may deny and no more", func(t *testing.T) {
		each(t, func(h *house) {
			editor, approver := h.person("editor"), h.person("approver", actor.RunApprove)
			r := h.ordinary(editor)
			h.readers("home", h.admin.ID, editor.ID)
			card, err := h.agent.Card(context.Background(), approver, r)
			h.ok(err)
			if len(card.Calls[0].Lines) != 0 || !slices.Equal(card.Answers, []agent.Answer{agent.Deny}) {
				h.t.Errorf("%v, answers %v", card.Calls[0].Lines, card.Answers)
			}
			h.refused(approver, decision(r, true), fault.SubjectUnreadable)
			if r = h.decide(approver, r, false, ""); r.Status != run.Completed || h.text("hello") != "Helo" {
				h.t.Errorf("%s %q", r.Status, h.text("hello"))
			}
		})
	})
	t.Run("I5 without run:approve_own an initiator may only deny", func(t *testing.T) {
		each(t, func(h *house) {
			editor := h.person("editor")
			_, err := h.access.RevokePermission(context.Background(), h.admin, editor.ID, actor.RunApproveOwn)
			h.ok(err)
			editor, err = h.access.Actor(context.Background(), editor.ID)
			h.ok(err)
			r := h.ordinary(editor)
			if _, err := h.agent.Decide(context.Background(), editor, decision(r, true)); !fault.Is(err, fault.Forbidden) {
				h.t.Errorf("got %v", err)
			}
			card, err := h.agent.Card(context.Background(), editor, r)
			h.ok(err)
			if !slices.Equal(card.Answers, []agent.Answer{agent.Deny}) {
				h.t.Errorf("the card offers %v", card.Answers)
			}
			if r = h.decide(editor, r, false, ""); r.Status != run.Completed {
				h.t.Errorf("the denial left %s", r.Status)
			}
		})
	})
	t.Run("I5 other people's runs: invisible without a grant, decided with run:approve", func(t *testing.T) {
		each(t, func(h *house) {
			r := h.ordinary(h.person("editor"))
			if _, err := h.agent.Decide(context.Background(), h.person("stranger"), decision(r, true)); !fault.Is(err, fault.NotFound) {
				h.t.Errorf("a stranger got %v", err)
			}
			if _, err := h.agent.Decide(context.Background(), h.person("watcher", actor.RunRead), decision(r, true)); !fault.Is(err, fault.Forbidden) {
				h.t.Errorf("a watcher got %v", err)
			}
			if r = h.decide(h.person("approver", actor.RunApprove), r, true, ""); r.Status != run.Completed || h.text("hello") != "Hello" {
				h.t.Errorf("%s, %q", r.Status, h.text("hello"))
			}
		})
	})
}

func TestRepeatedDecisions(t *testing.T) {
	each(t, func(h *house) {
		t := h.t
		first := h.waiting()
		done := h.decide(h.admin, first, true, "")
		t.Run("R11 the same decider repeating the same decision gets the first result", func(t *testing.T) {
			again, err := h.agent.Decide(context.Background(), h.admin, decision(first, true))
			if err != nil || again.Status != run.Completed || again.Events != done.Events {
				t.Errorf("%s, %v", again.Status, err)
			}
		})
		t.Run("I7 another decision learns who decided what and when", func(t *testing.T) {
			_, err := h.agent.Decide(context.Background(), h.admin, decision(first, false))
			refusal, ok := fault.AsRefusal(err)
			if !ok || refusal.Code != fault.AlreadyDecided {
				t.Fatalf("got %v", err)
			}
			who, ok := refusal.Detail.(agent.Decided)
			if !ok || who.By != h.admin.ID || !who.Approved || who.At.IsZero() {
				t.Errorf("%+v", refusal.Detail)
			}
		})
	})
}

func TestRacingDeciders(t *testing.T) {
	twice(t, func(h *house, replicas [2]*agent.Agent) {
		editor := h.person("editor")
		deciders := []actor.Actor{editor, h.admin}
		for range 62 {
			deciders = append(deciders, h.person("approver", actor.RunApprove))
		}
		r := h.ordinary(editor)
		var (
			wg   sync.WaitGroup
			errs = make([]error, len(deciders))
		)
		for i, by := range deciders {
			wg.Go(func() { _, errs[i] = replicas[i%2].Decide(context.Background(), by, decision(r, i%4 < 2)) })
		}
		wg.Wait()
		won, winner := 0, uuid.Nil
		for i, err := range errs {
			if err == nil {
				won++
				winner = deciders[i].ID
			}
		}
		for _, err := range errs {
			if err == nil {
				continue
			}
			refusal, ok := fault.AsRefusal(err)
			if !ok || refusal.Code != fault.AlreadyDecided {
				h.t.Errorf("I7 a loser got %v", err)
				continue
			}
			if first, ok := refusal.Detail.(agent.Decided); !ok || first.By != winner || first.At.IsZero() {
				h.t.Errorf("I7 a loser learns %+v, not that %s decided", refusal.Detail, winner)
			}
		}
		r = h.settled(r.ID)
		decided := 0
		for _, e := range h.events(r.ID) {
			if e.Kind == run.EventDecision {
				decided++
			}
		}
		if won != 1 || decided != 1 || r.Status != run.Completed {
			h.t.Errorf("R2 %d won, %d decision events, the run is %s", won, decided, r.Status)
		}
	})
}

// ahead lets a test act just before a run's state is read.
type ahead struct {
	*store.Store
	act *func()
}

func (s ahead) State(ctx context.Context, id uuid.UUID) (agent.State, error) {
	if act := *s.act; act != nil {
		*s.act = nil
		act()
	}
	return s.Store.State(ctx, id)
}

func TestDecidedWhileItIsChecked(t *testing.T) {
	for _, c := range []struct {
		name    string
		approve bool
		refused bool
	}{
		{"R11 whoever is overtaken by their own decision gets the first result, though the run has ended", true, false},
		{"I7 whoever is overtaken by another decision learns of it, though the run has ended", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			act := new(func())
			meddled(t, func(s *store.Store) agent.Store { return ahead{s, act} }, func(h *house) {
				r := h.waiting()
				*act = func() { h.decide(h.admin, r, true, "") }
				got, err := h.agent.Decide(context.Background(), h.admin, decision(r, c.approve))
				refusal, refused := fault.AsRefusal(err)
				switch {
				case c.refused && (!refused || refusal.Code != fault.AlreadyDecided):
					h.t.Errorf("got %v", err)
				case !c.refused && (err != nil || got.Status != run.Completed):
					h.t.Errorf("%s, %v", got.Status, err)
				}
			})
		})
	}
}

func TestPinsAtResume(t *testing.T) {
	withdrawals := []struct {
		name string
		do   func(*house)
		says string
	}{
		{"P2 A7 a revocation stops even a paused run, before its approved write", func(h *house) {
			s := h.skill("tour")
			_, err := h.library.Revoke(context.Background(), h.admin, library.RevokeInput{SkillID: s.ID, Digest: string(s.StoredDigest), Reason: "r"})
			h.ok(err)
		}, "Tour may not instruct any more: its approval was revoked."},
		{
			"P2 A4 A10 a source that was demoted meanwhile", func(h *house) { h.demote() },
			"Tour may not instruct any more: its source's trust level is below the threshold.",
		},
	}
	for _, w := range withdrawals {
		t.Run(w.name, func(t *testing.T) {
			each(t, func(h *house) {
				h.approve("style")
				h.offer("style", library.Always)
				r := h.waiting()
				if len(r.Pins) != 2 {
					h.t.Fatalf("pins %v", r.Pins)
				}
				w.do(h)
				r = h.decide(h.admin, r, true, "")
				if r.Status != run.Failed || r.Reason != run.ReasonInstructionWithdrawn || !strings.Contains(r.Message, w.says) {
					h.t.Errorf("%s %s %q", r.Status, r.Reason, r.Message)
				}
				if h.text("hello") != "Helo" {
					h.t.Error("P2 the write was carried out")
				}
				if _, still := r.Pins.Process(); still {
					h.t.Errorf("P3 the failed pin is stored: %v", r.Pins)
				}
			})
		})
	}
	t.Run("P2 disabling does not end a pin", func(t *testing.T) {
		each(t, func(h *house) {
			r := h.waiting()
			_, err := h.library.SetSkillEnabled(context.Background(), h.admin, h.skill("tour").ID, false)
			h.ok(err)
			if r = h.decide(h.admin, r, true, ""); r.Status != run.Completed || h.text("hello") != "Hello" {
				h.t.Errorf("%s %q", r.Status, r.Message)
			}
		})
	})
	t.Run("X6 X7 four eyes switched on stops a waiting process run", func(t *testing.T) {
		each(t, func(h *house) {
			r := h.waiting()
			h.fourEyes()
			_, err := h.agent.Decide(context.Background(), h.admin, decision(r, true))
			if refusal, ok := fault.AsRefusal(err); !ok || refusal.Code != fault.SecondApproverRequired {
				h.t.Fatalf("got %v", err)
			}
			r = h.settled(r.ID)
			if r.Status != run.Failed || r.Reason != run.ReasonSecondApproverRequired || len(r.Pins) != 0 || h.text("hello") != "Helo" {
				h.t.Errorf("%s %s %v", r.Status, r.Reason, r.Pins)
			}
		})
	})
}

func TestPreviewBinding(t *testing.T) {
	t.Run("R12 a record that changed meanwhile brings a fresh card, and the old digest decides nothing", func(t *testing.T) {
		each(t, func(h *house) {
			first := h.waiting()
			h.edit("Helo there")
			again := h.decide(h.admin, first, true, "")
			if again.Status != run.WaitingForApproval || again.TurnDigest == first.TurnDigest || h.text("hello") != "Helo there" {
				h.t.Fatalf("%s %q, text %q", again.Status, again.Message, h.text("hello"))
			}
			card, err := h.agent.Card(context.Background(), h.admin, again)
			h.ok(err)
			if !card.Calls[0].Stale || !strings.Contains(strings.Join(card.Calls[0].Lines, " "), "Helo there") {
				h.t.Errorf("%+v", card.Calls[0])
			}
			if len(again.Notices) != 1 || again.Notices[0].Code != run.NoticePreviewMoved || again.Notices[0].Args[0] != "update_element" {
				h.t.Errorf("%v", again.Notices)
			}
			stale := decision(first, false)
			if _, err := h.agent.Decide(context.Background(), h.admin, stale); err == nil {
				h.t.Error("the old card still decides")
			}
			if done := h.decide(h.admin, again, true, ""); done.Status != run.Completed || h.text("hello") != "Hello" {
				h.t.Errorf("%s, %q", done.Status, h.text("hello"))
			}
		})
	})
	t.Run("R12 a preview that fails now refuses: the card comes again and nothing is written", func(t *testing.T) {
		each(t, func(h *house) {
			editor := h.person("editor")
			r := h.ordinary(editor)
			h.readers("home", h.admin.ID)
			r = h.decide(editor, r, true, "")
			if r.Status != run.WaitingForApproval || h.text("hello") != "Helo" {
				h.t.Errorf("%s %q", r.Status, h.text("hello"))
			}
		})
	})
}

func TestAllowListAtResume(t *testing.T) {
	each(t, func(h *house) {
		h.approve("style")
		h.model.says(calls("ask_choice", `{"question":"Which?","options":["a","b"]}`), calls("search_records", `{"table":"page","words":"x"}`))
		ready(h)
		r := h.start(h.admin, h.tour())
		if r.Status != run.WaitingForInput {
			h.t.Fatalf("%s %q", r.Status, r.Message)
		}
		_, err := h.library.SetSkillEnabled(context.Background(), h.admin, h.skill("tour").ID, false)
		h.ok(err)
		_, err = h.agent.SubmitInput(context.Background(), h.admin, agent.Input{Run: r.ID, TurnDigest: r.TurnDigest, Values: []byte(`{"choice":"a"}`)})
		h.ok(err)
		r = h.settled(r.ID)
		h.t.Run("T3 T4 a disabled declaring skill does not widen a resumed run", func(t *testing.T) {
			last := h.model.asked(h.model.count() - 1)
			if len(last.Tools) != 4 {
				t.Errorf("offered %v", last.Tools)
			}
			text := last.Messages[len(last.Messages)-1].Text
			if !strings.Contains(text, "not_offered") {
				t.Errorf("search_records answered %q", text)
			}
		})
	})
}

func TestCancel(t *testing.T) {
	t.Run("R10 R2 a cancel aborts the model call, and the late answer is discarded", func(t *testing.T) {
		each(t, func(h *house) {
			asked := make(chan struct{})
			h.model.does(func(ctx context.Context) (agent.Turn, error) {
				close(asked)
				<-ctx.Done()
				return agent.Turn{Text: "late"}, nil
			})
			r, err := h.agent.Start(context.Background(), h.admin, h.plain())
			h.ok(err)
			<-asked
			won, err := h.agent.Cancel(context.Background(), h.admin, r.ID)
			if !won || err != nil {
				h.t.Fatalf("%v %v", won, err)
			}
			again, err := h.agent.Cancel(context.Background(), h.admin, r.ID)
			if again || err != nil {
				h.t.Errorf("a second cancel: %v %v", again, err)
			}
			r = h.settled(r.ID)
			if r.Status != run.Cancelled || r.Answer != "" {
				h.t.Errorf("%s %q", r.Status, r.Answer)
			}
		})
	})
	t.Run("R10 the guarded cancel wins only while the run waits", func(t *testing.T) {
		each(t, func(h *house) {
			r := h.waiting()
			won, status, err := h.agent.CancelIfWaiting(context.Background(), h.admin, r.ID)
			if !won || status != run.Cancelled || err != nil {
				h.t.Errorf("%v %s %v", won, status, err)
			}
			won, status, err = h.agent.CancelIfWaiting(context.Background(), h.admin, r.ID)
			if won || status != run.Cancelled || err != nil {
				h.t.Errorf("again: %v %s %v", won, status, err)
			}
			if _, err := h.store.State(context.Background(), r.ID); !fault.Is(err, fault.NotFound) {
				h.t.Errorf("R16 the state is still there: %v", err)
			}
		})
	})
	t.Run("R10 somebody else's run needs run:cancel", func(t *testing.T) {
		each(t, func(h *house) {
			r := h.ordinary(h.person("editor"))
			if _, err := h.agent.Cancel(context.Background(), h.person("watcher", actor.RunRead), r.ID); !fault.Is(err, fault.Forbidden) {
				h.t.Errorf("got %v", err)
			}
			if won, err := h.agent.Cancel(context.Background(), h.person("operator", actor.RunRead, actor.RunCancel), r.ID); !won || err != nil {
				h.t.Errorf("%v %v", won, err)
			}
		})
	})
}

func TestSecondLook(t *testing.T) {
	var m *meddler
	with := func(s *store.Store) agent.Store { m = &meddler{Store: s}; return m }
	// claimed does something between the checks of a decision and its claim.
	claimed := func(kind run.EventKind, do func()) {
		done := false
		m.meddle(func(c change.Change) error {
			if !done && slices.ContainsFunc(c.Events, func(e run.Event) bool { return e.Kind == kind }) {
				done = true
				do()
			}
			return nil
		})
	}
	yes, somebody := true, []uuid.UUID{uuid.New()}
	for name, meanwhile := range map[string]func(*house, actor.Actor){
		"R11 a second approver is demanded meanwhile": func(h *house, _ actor.Actor) {
			_, err := h.library.UpdateConfiguration(context.Background(), h.admin, library.ConfigurationUpdate{ID: h.config.ID, RequireSecondApprover: &yes})
			h.ok(err)
		},
		"R11 the initiator may not use the configuration any more": func(h *house, _ actor.Actor) {
			somebody[0] = h.admin.ID
			_, err := h.library.UpdateConfiguration(context.Background(), h.admin, library.ConfigurationUpdate{ID: h.config.ID, AllowedUserIDs: &somebody})
			h.ok(err)
		},
		"R11 the decider may not approve any more": func(h *house, by actor.Actor) {
			_, err := h.access.RevokePermission(context.Background(), h.admin, by.ID, actor.RunApproveOwn)
			h.ok(err)
		},
		"R11 the tool is switched off meanwhile": func(h *house, _ actor.Actor) {
			h.ok(h.library.SetToolEnabled(context.Background(), h.admin, "update_element", false))
		},
	} {
		t.Run(name, func(t *testing.T) {
			meddled(t, with, func(h *house) {
				ada := h.person("Ada", actor.RunApproveOwn)
				r := h.ordinary(ada)
				claimed(run.EventDecision, func() { meanwhile(h, ada) })
				again := h.decide(ada, r, true, "")
				if again.Status != run.WaitingForApproval || again.TurnDigest == r.TurnDigest || h.text("hello") != "Helo" {
					h.t.Fatalf("%s with %q: %s", again.Status, h.text("hello"), again.Message)
				}
				if last := again.Notices[len(again.Notices)-1]; last.Code != run.NoticeAnswerVoid {
					h.t.Errorf("%+v", last)
				}
				if trail := h.trail(r.ID); !slices.Contains(trail, audit.RunDecisionRefused) {
					h.t.Errorf("%v", trail)
				}
			})
		})
	}
	t.Run("X7 four eyes that a process run meets after the claim stop it before its write", func(t *testing.T) {
		meddled(t, with, func(h *house) {
			r := h.waiting()
			claimed(run.EventDecision, func() {
				_, err := h.library.UpdateConfiguration(context.Background(), h.admin, library.ConfigurationUpdate{ID: h.config.ID, RequireSecondApprover: &yes})
				h.ok(err)
			})
			stopped := h.decide(h.admin, r, true, "")
			if stopped.Reason != run.ReasonSecondApproverRequired || h.text("hello") != "Helo" {
				h.t.Fatalf("%s %s with %q", stopped.Status, stopped.Reason, h.text("hello"))
			}
			if _, held := stopped.Pins.Process(); held {
				h.t.Error("it keeps the process")
			}
		})
	})
}
