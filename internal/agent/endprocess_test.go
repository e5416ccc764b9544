package agent_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
)

const done = `{"position":1,"total":1,"done":true}`

func TestCompletionReport(t *testing.T) {
	t.Run("X8 in a turn in which nothing waits it releases the process at once, and nothing else", func(t *testing.T) {
		each(t, func(h *house) {
			ready(h)
			h.approve("style")
			h.offer("style", library.Always)
			h.model.says(
				calls("report_progress", done),
				calls("update_element", fix, "update_element", `{"id":"hello","fields":{"header":"Hi"}}`),
			)
			r := h.start(h.admin, h.tour())
			if names(h, r.Pins) != "style" || !slices.Equal(codes(r), []run.NoticeCode{run.NoticeProcessEnded}) || r.Notices[0].Args[0] != "Tour" {
				h.t.Errorf("%v %v", r.Pins, r.Notices)
			}
			if r.Invocation == nil || !r.Invocation.Ended || r.Progress == nil || !r.Progress.Done {
				h.t.Errorf("X9 %+v %+v", r.Invocation, r.Progress)
			}
			card, err := h.agent.Card(context.Background(), h.admin, r)
			h.ok(err)
			if len(card.Calls) != 2 || card.IsProcess || !slices.Equal(card.Answers, []agent.Answer{agent.Approve, agent.Deny}) {
				h.t.Errorf("from then on it is an ordinary run: %+v", card)
			}
			if !slices.Contains(h.trail(r.ID), audit.ProcessEnded) {
				h.t.Errorf("U1 %v", h.trail(r.ID))
			}
			if got := kinds(h.events(r.ID)); !slices.Equal(got[1:5], []run.EventKind{run.EventModelCall, run.EventToolCall, run.EventProgress, run.EventNotice}) {
				h.t.Errorf("%v", got)
			}
			approver := h.person("approver", actor.RunApprove, actor.RunRead)
			if r = h.decide(approver, r, true, ""); r.Status != run.Completed || names(h, r.Pins) != "style" {
				h.t.Errorf("X5 no longer applies: %s %q %v", r.Status, r.Message, r.Pins)
			}
			next := h.start(h.admin, h.after(r))
			system, _ := h.read()
			if names(h, next.Pins) != "style" || strings.Contains(system, "point by point") || next.Invocation != nil || next.Subject != nil {
				h.t.Errorf("X9 the next run has %v, %v on %v", next.Pins, next.Invocation, next.Subject)
			}
		})
	})
	t.Run("X8 in a turn with a proposal it is an error and releases nothing", func(t *testing.T) {
		each(t, func(h *house) {
			ready(h)
			h.model.says(calls("report_progress", done, "update_element", fix))
			r := h.start(h.admin, h.tour())
			if names(h, r.Pins) != "tour" || len(r.Notices) != 0 || r.Progress != nil || r.Status != run.WaitingForApproval {
				h.t.Errorf("%s %v %v %v", r.Status, r.Pins, r.Notices, r.Progress)
			}
			r = h.decide(h.admin, r, false, agent.Variant)
			messages := h.model.asked(1).Messages
			if !strings.Contains(messages[len(messages)-2].Text, `"error":"report_completion_after_decision"`) || names(h, r.Pins) != "tour" {
				h.t.Errorf("%+v, %v", messages, r.Pins)
			}
		})
	})
	t.Run("X8 C7 and in a turn with a question", func(t *testing.T) {
		each(t, func(h *house) {
			ready(h)
			h.model.says(calls("report_progress", done, "ask_choice", `{"question":"q","options":["a","b"]}`))
			r := h.start(h.admin, h.tour())
			if names(h, r.Pins) != "tour" || r.Status != run.WaitingForInput || r.Progress != nil {
				h.t.Errorf("%s %v", r.Status, r.Pins)
			}
		})
	})
	t.Run("X8 a report that is refused, or says no end, releases nothing", func(t *testing.T) {
		each(t, func(h *house) {
			ready(h)
			h.model.says(calls("report_progress", `{"position":3,"total":2,"done":true}`, "report_progress", `{"position":1,"total":2}`))
			if r := h.start(h.admin, h.tour()); names(h, r.Pins) != "tour" || len(r.Notices) != 0 {
				h.t.Errorf("%v %v", r.Pins, r.Notices)
			}
		})
	})
	t.Run("X8 a release that could not be stored did not happen", func(t *testing.T) {
		var m *meddler
		with := func(s *store.Store) agent.Store {
			m = &meddler{Store: s}
			return m
		}
		meddled(t, with, func(h *house) {
			ready(h)
			h.model.says(calls("report_progress", done))
			var refused atomic.Bool
			m.meddle(func(c change.Change) error {
				if _, ends := sets(c, "progress"); ends && !refused.Swap(true) {
					return errDisk
				}
				return nil
			})
			r := h.start(h.admin, h.tour())
			if r.Status != run.Failed || names(h, r.Pins) != "tour" || len(r.Notices) != 0 || r.Invocation.Ended {
				h.t.Errorf("%s %v %v", r.Status, r.Pins, r.Notices)
			}
		})
	})
}

func TestEndProcess(t *testing.T) {
	end := func(h *house, by actor.Actor, r agent.Run) agent.Run {
		h.t.Helper()
		r, err := h.agent.EndProcess(context.Background(), by, r.ID)
		h.ok(err)
		return r
	}
	t.Run("X10 it takes the process pin of a run that ended, alone, with a notice", func(t *testing.T) {
		each(t, func(h *house) {
			ready(h)
			h.approve("style")
			h.offer("style", library.Always)
			editor := h.person("editor")
			first := h.start(editor, h.tour())
			events := len(h.events(first.ID))
			ended := end(h, editor, first)
			if names(h, ended.Pins) != "style" || !slices.Equal(codes(ended), []run.NoticeCode{run.NoticeProcessEnded}) || !ended.Invocation.Ended || ended.Status != run.Completed {
				h.t.Errorf("%s %v %v", ended.Status, ended.Pins, ended.Notices)
			}
			if got := h.trail(first.ID); got[len(got)-1] != audit.ProcessEnded {
				h.t.Errorf("U1 %v", got)
			}
			if len(h.events(first.ID)) != events {
				h.t.Error("R5 a run that ended got another event")
			}
			trail := len(h.trail(first.ID))
			if again := end(h, h.admin, ended); len(again.Notices) != 1 || len(h.trail(first.ID)) != trail {
				h.t.Errorf("ended twice: %v", again.Notices)
			}
			next := h.start(editor, h.after(ended))
			if names(h, next.Pins) != "style" || next.Invocation != nil || next.Subject != nil {
				h.t.Errorf("X9 %v %v", next.Pins, next.Invocation)
			}
			again := h.tour()
			again.Predecessor = next.ID
			if r := h.start(editor, again); names(h, r.Pins) != "style tour" {
				h.t.Errorf("X9 only a new invocation starts it again: %v", r.Pins)
			}
		})
	})
	t.Run("X10 a run that waits is withdrawn with it", func(t *testing.T) {
		each(t, func(h *house) {
			r := end(h, h.admin, h.waiting())
			if r.Status != run.Cancelled || len(r.Pins) != 0 || r.TurnDigest != "" || h.text("hello") != "Helo" {
				h.t.Errorf("%s %v", r.Status, r.Pins)
			}
			got := kinds(h.events(r.ID))
			if !slices.Equal(got[len(got)-2:], []run.EventKind{run.EventNotice, run.EventSettled}) {
				h.t.Errorf("%v", got)
			}
			trail := h.trail(r.ID)
			if !slices.Equal(trail[len(trail)-2:], []audit.Event{audit.ProcessEnded, audit.RunEnded}) {
				h.t.Errorf("%v", trail)
			}
			if next := h.start(h.admin, h.after(r)); next.Status != run.Completed || len(next.Pins) != 0 {
				h.t.Errorf("%s %v", next.Status, next.Pins)
			}
		})
	})
	t.Run("X10 a run that is executed is in the way", func(t *testing.T) {
		each(t, func(h *house) {
			ready(h)
			asked, answer := make(chan struct{}), make(chan struct{})
			h.model.does(func(context.Context) (agent.Turn, error) {
				close(asked)
				<-answer
				return agent.Turn{Text: "Done."}, nil
			})
			r, err := h.agent.Start(context.Background(), h.admin, h.tour())
			h.ok(err)
			<-asked
			_, err = h.agent.EndProcess(context.Background(), h.admin, r.ID)
			close(answer)
			if refusal, ok := fault.AsRefusal(err); !ok || refusal.Code != fault.Busy {
				h.t.Errorf("got %v", err)
			}
			if r = h.settled(r.ID); r.Status != run.Completed || names(h, r.Pins) != "tour" {
				h.t.Errorf("%s %v", r.Status, r.Pins)
			}
		})
	})
	t.Run("X10 a decision that came first wins", func(t *testing.T) {
		var m *meddler
		with := func(s *store.Store) agent.Store {
			m = &meddler{Store: s}
			return m
		}
		meddled(t, with, func(h *house) {
			r := h.waiting()
			asked, answer := make(chan struct{}), make(chan struct{})
			h.model.does(func(context.Context) (agent.Turn, error) {
				close(asked)
				<-answer
				return agent.Turn{Text: "Done."}, nil
			})
			var decided atomic.Bool
			m.meddle(func(c change.Change) error {
				if status, is := sets(c, "status"); is && status == string(run.Cancelled) && !decided.Swap(true) {
					_, err := h.agent.Decide(context.Background(), h.admin, decision(r, true))
					h.ok(err)
					<-asked
				}
				return nil
			})
			_, err := h.agent.EndProcess(context.Background(), h.admin, r.ID)
			close(answer)
			if refusal, ok := fault.AsRefusal(err); !ok || refusal.Code != fault.Busy {
				h.t.Errorf("got %v", err)
			}
			if r = h.settled(r.ID); r.Status != run.Completed || h.text("hello") != "Hello" || names(h, r.Pins) != "tour" {
				h.t.Errorf("%s %v", r.Status, r.Pins)
			}
		})
	})
	t.Run("X10 it is its initiator's and an administrator's", func(t *testing.T) {
		each(t, func(h *house) {
			r := h.waiting()
			_, err := h.agent.EndProcess(context.Background(), h.person("approver", actor.RunApprove, actor.RunRead, actor.RunCancel), r.ID)
			if refusal, ok := fault.AsRefusal(err); !ok || refusal.Code != fault.NotInitiator {
				h.t.Errorf("got %v", err)
			}
			_, err = h.agent.EndProcess(context.Background(), h.person("stranger"), r.ID)
			if !fault.Is(err, fault.NotFound) {
				h.t.Errorf("got %v", err)
			}
			if now := h.settled(r.ID); now.Status != run.WaitingForApproval || names(h, now.Pins) != "tour" {
				h.t.Errorf("%s %v", now.Status, now.Pins)
			}
		})
	})
	t.Run("X10 an ordinary run that waits stays as it is", func(t *testing.T) {
		each(t, func(h *house) {
			r := h.ordinary(h.admin)
			if now := end(h, h.admin, r); now.Status != run.WaitingForApproval || now.TurnDigest != r.TurnDigest {
				h.t.Errorf("%s", now.Status)
			}
		})
	})
}

func TestDetachedWhileWaiting(t *testing.T) {
	each(t, func(h *house) {
		h.resync(map[string]string{"style": "---\nname: Style\ndescription: d\nallowed-tools: get_page\n---\nWrite short sentences.\n"})
		h.approve("style")
		h.offer("style", library.Always)
		r := h.waiting()
		h.detach("tour")
		h.decide(h.admin, r, true, "")
		h.t.Run("T4 T3 at a resume a detached skill counts with nothing: its tools are gone before the approved write", func(t *testing.T) {
			messages := h.model.asked(1).Messages
			if last := messages[len(messages)-1]; h.text("hello") != "Helo" || !strings.Contains(last.Text, "not_offered") {
				t.Errorf("%q, %q", h.text("hello"), last.Text)
			}
		})
	})
}
