package agent_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
)

func TestWithdrawnInLineage(t *testing.T) {
	t.Run("P3 P2 at a continuation the stop is a stored run without every failed pin, from which one can go on", func(t *testing.T) {
		each(t, func(h *house) {
			ready(h)
			h.approve("style")
			h.offer("style", library.Always)
			first := h.start(h.admin, h.tour())
			asked := h.model.count()
			h.revoke("tour")
			h.revoke("style")
			stopped := h.stopsStart(h.admin, h.after(first), fault.InstructionWithdrawn, "Tour may not instruct any more: its approval was revoked")
			if stopped.Status != run.Failed || stopped.Reason != run.ReasonInstructionWithdrawn || len(stopped.Pins) != 0 || !stopped.Invocation.Ended || stopped.FinishedAt == nil {
				h.t.Errorf("%+v", stopped)
			}
			if h.model.count() != asked {
				h.t.Error("the model was asked")
			}
			if got := kinds(h.events(stopped.ID)); !slices.Equal(got, []run.EventKind{run.EventNotice, run.EventNotice, run.EventSettled}) {
				h.t.Errorf("%v", got)
			}
			if got := h.trail(stopped.ID); !slices.Equal(got, []audit.Event{audit.RunRefused, audit.RunEnded}) {
				h.t.Errorf("%v", got)
			}
			next := h.start(h.admin, h.after(stopped))
			if next.Status != run.Completed || len(next.Pins) != 0 || next.Invocation != nil || next.Subject != nil {
				h.t.Errorf("X9 %s %v %v", next.Status, next.Pins, next.Invocation)
			}
		})
	})
	t.Run("P3 at a start too", func(t *testing.T) {
		each(t, func(h *house) {
			ready(h)
			parts := h.agent.Parts
			parts.Skills = &turncoat{Library: h.library, then: func() { h.revoke("tour") }}
			r, err := agent.New(parts).Start(context.Background(), h.admin, h.tour())
			if refusal, ok := fault.AsRefusal(err); !ok || refusal.Code != fault.InstructionWithdrawn {
				h.t.Fatalf("got %v", err)
			}
			if r.Status != run.Failed || r.Reason != run.ReasonInstructionWithdrawn || len(r.Pins) != 0 || !r.Invocation.Ended {
				h.t.Errorf("%+v", r)
			}
			if next := h.start(h.admin, h.after(r)); next.Status != run.Completed || next.Invocation != nil {
				h.t.Errorf("%s %v", next.Status, next.Invocation)
			}
		})
	})
	t.Run("X7 P2 four eyes switched on between two turns stops the next one, and the one after goes on without the process", func(t *testing.T) {
		each(t, func(h *house) {
			ready(h)
			first := h.start(h.admin, h.tour())
			h.fourEyes()
			stopped := h.stopsStart(h.admin, h.after(first), fault.SecondApproverRequired, "requireSecondApprover")
			if stopped.Status != run.Failed || stopped.Reason != run.ReasonSecondApproverRequired || len(stopped.Pins) != 0 {
				h.t.Errorf("%s %s %v", stopped.Status, stopped.Reason, stopped.Pins)
			}
			if next := h.start(h.admin, h.after(stopped)); next.Status != run.Completed || len(next.Pins) != 0 {
				h.t.Errorf("%s %v", next.Status, next.Pins)
			}
		})
	})
}

func TestEverythingWithdrawnAtOnce(t *testing.T) {
	each(t, func(h *house) {
		ready(h)
		h.approve("style")
		h.offer("style", library.Always)
		first := h.start(h.admin, h.tour())
		h.revoke("style")
		h.fourEyes()
		stopped := h.stopsStart(h.admin, h.after(first), fault.InstructionWithdrawn, "Style may not instruct any more")
		h.t.Run("P3 X7 one stop takes everything along that does not hold, and tells it", func(t *testing.T) {
			if len(stopped.Pins) != 0 || !stopped.Invocation.Ended || !slices.Equal(codes(stopped), []run.NoticeCode{run.NoticeInstructionGone, run.NoticeSecondApprover}) {
				t.Errorf("%v %v", stopped.Pins, stopped.Notices)
			}
			if next := h.start(h.admin, h.after(stopped)); next.Status != run.Completed {
				t.Errorf("%s %q", next.Status, next.Message)
			}
		})
	})
}

// turncoat is a library in which something happens once a run's skills were read.
type turncoat struct {
	*library.Library
	then func()
}

func (t *turncoat) Offered(ctx context.Context, id uuid.UUID) ([]library.Offered, error) {
	offered, err := t.Library.Offered(ctx, id)
	t.then()
	return offered, err
}

// TestMeanwhile lets something happen between the moment a continuation is judged and
// the moment it is stored or picked up.
func TestMeanwhile(t *testing.T) {
	var m *meddler
	with := func(s *store.Store) agent.Store {
		m = &meddler{Store: s}
		return m
	}
	// once does something before the first change that is such a one.
	once := func(such func(change.Change) bool, do func()) {
		var done atomic.Bool
		m.meddle(func(c change.Change) error {
			if such(c) && !done.Swap(true) {
				do()
			}
			return nil
		})
	}
	stored := func(c change.Change) bool { return len(c.Inserts) == 1 && c.Inserts[0].Table == "runs" }
	pickedUp := func(c change.Change) bool { _, is := sets(c, "started_at"); return is }

	t.Run("P7 the run before is purged while the next one starts", func(t *testing.T) {
		meddled(t, with, func(h *house) {
			ready(h)
			first := h.start(h.admin, h.tour())
			once(stored, func() { h.purge(first.ID) })
			if r := h.stopsStart(h.admin, h.after(first), fault.PredecessorMissing, "start a new conversation"); r.ID != uuid.Nil {
				h.t.Errorf("%+v", r)
			}
		})
	})
	t.Run("X10 the process is ended while the next run starts", func(t *testing.T) {
		meddled(t, with, func(h *house) {
			ready(h)
			first := h.start(h.admin, h.tour())
			once(stored, func() {
				_, err := h.agent.EndProcess(context.Background(), h.admin, first.ID)
				h.ok(err)
			})
			if r := h.start(h.admin, h.after(first)); len(r.Pins) != 0 || r.Invocation != nil {
				h.t.Errorf("%v %v", r.Pins, r.Invocation)
			}
		})
	})
	t.Run("P2 P3 a revocation between start and pickup stops the run, which keeps the other pins", func(t *testing.T) {
		meddled(t, with, func(h *house) {
			ready(h)
			h.approve("style")
			h.offer("style", library.Always)
			first := h.start(h.admin, h.tour())
			once(pickedUp, func() { h.revoke("tour") })
			r := h.start(h.admin, h.after(first))
			if r.Status != run.Failed || r.Reason != run.ReasonInstructionWithdrawn || names(h, r.Pins) != "style" || !r.Invocation.Ended {
				h.t.Errorf("%s %s %v %+v", r.Status, r.Reason, r.Pins, r.Invocation)
			}
			if next := h.start(h.admin, h.after(r)); next.Status != run.Completed || names(h, next.Pins) != "style" || next.Invocation != nil {
				h.t.Errorf("%s %v", next.Status, next.Pins)
			}
		})
	})
	t.Run("P11 T4 a sync between start and pickup that disables and changes a pinned skill touches nothing", func(t *testing.T) {
		meddled(t, with, func(h *house) {
			ready(h)
			first := h.start(h.admin, h.tour())
			once(pickedUp, func() { h.resync(map[string]string{"tour": changedTour}) })
			h.start(h.admin, h.after(first))
			system, rest := h.read()
			if strings.Count(system, "Go point by point.") != 1 || strings.Contains(system+rest, "CHANGED") {
				h.t.Errorf("%q %q", system, rest)
			}
			if !slices.ContainsFunc(h.model.asked(h.model.count()-1).Tools, func(d prompt.Definition) bool { return d.Name == "update_element" }) {
				h.t.Error("the snapshot's tools are gone")
			}
		})
	})
	t.Run("X7 P2 four eyes switched on between start and pickup stop the run without its process", func(t *testing.T) {
		meddled(t, with, func(h *house) {
			ready(h)
			once(pickedUp, h.fourEyes)
			r := h.start(h.admin, h.tour())
			if r.Status != run.Failed || r.Reason != run.ReasonSecondApproverRequired || len(r.Pins) != 0 || !strings.Contains(r.Message, "requireSecondApprover") {
				h.t.Errorf("%s %s %v %q", r.Status, r.Reason, r.Pins, r.Message)
			}
			if next := h.start(h.admin, h.after(r)); next.Status != run.Completed || next.Invocation != nil {
				h.t.Errorf("X9 %s %v", next.Status, next.Invocation)
			}
		})
	})
	t.Run("P10 L3 what is asked at start is asked again at pickup", func(t *testing.T) {
		meddled(t, with, func(h *house) {
			ready(h)
			editor := h.person("editor")
			first := h.start(editor, h.tour())
			once(pickedUp, func() { h.readers("home", h.admin.ID) })
			r := h.start(editor, h.after(first))
			if r.Status != run.Failed || r.Reason != run.ReasonPolicyDenied || names(h, r.Pins) != "tour" {
				h.t.Errorf("%s %s %v", r.Status, r.Reason, r.Pins)
			}
		})
	})
	t.Run("L3 P4 a start that is refused at pickup leaves no pin to go on with", func(t *testing.T) {
		meddled(t, with, func(h *house) {
			ready(h)
			h.approve("style")
			h.offer("style", library.Always)
			once(pickedUp, func() {
				_, err := h.library.SetSkillEnabled(context.Background(), h.admin, h.skill("tour").ID, false)
				h.ok(err)
			})
			r := h.start(h.admin, h.tour())
			if r.Status != run.Failed || r.Reason != run.ReasonPolicyDenied || names(h, r.Pins) != "style" || !r.Invocation.Ended {
				h.t.Errorf("%s %s %v %+v", r.Status, r.Reason, r.Pins, r.Invocation)
			}
			if next := h.start(h.admin, h.after(r)); names(h, next.Pins) != "style" || next.Invocation != nil {
				h.t.Errorf("%v %v", next.Pins, next.Invocation)
			}
		})
	})
	t.Run("P13 a forced skill is read again by id at pickup", func(t *testing.T) {
		meddled(t, with, func(h *house) {
			_, err := h.library.SetSkillEnabled(context.Background(), h.admin, h.skill("reference").ID, true)
			h.ok(err)
			forced := h.plain()
			forced.Forced = []uuid.UUID{h.skill("reference").ID}
			once(pickedUp, func() {
				h.resync(map[string]string{"reference": "---\nname: Reference\ndescription: d\n---\nFENCED-NOW\n"})
				_, err := h.library.SetSkillEnabled(context.Background(), h.admin, h.skill("reference").ID, true)
				h.ok(err)
			})
			h.start(h.admin, forced)
			if _, rest := h.read(); !strings.Contains(rest, "FENCED-NOW") || strings.Contains(rest, "FENCED-REFERENCE-TEXT") {
				h.t.Errorf("%q", rest)
			}
		})
	})
}
