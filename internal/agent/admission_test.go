package agent_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/run"
)

// long is a skill whose text alone takes most of the window that the tests give.
func long(name string) string {
	return "---\nname: " + name + "\ndescription: d\n---\n" + strings.Repeat("green ferns ", 1500) + strings.ToUpper(name) + "-TEXT\n"
}

// crowded is a house whose window takes one long skill and not two.
func crowded(h *house, mode library.LoadMode, folders ...string) {
	h.resync(map[string]string{"tone": loadable["tone"], "atlas": long("Atlas"), "bible": long("Bible")})
	h.window(12_000)
	for _, folder := range folders {
		h.approve(folder)
		h.offer(folder, mode)
	}
}

func TestAdmissionOfLoads(t *testing.T) {
	each(t, func(h *house) {
		crowded(h, library.OnDemand, "atlas", "bible", "tone")
		h.model.says(calls(slices.Concat(h.load("atlas"), h.load("bible"), h.load("tone"))...))
		r := h.start(h.admin, h.plain())
		h.t.Run("B4 a load that does not fit answers an error that names the skill; what was loaded before it counts, what is small still joins", func(t *testing.T) {
			got := h.results(h.last())
			if len(got) != 3 || got[0] != "loaded" || !strings.Contains(got[1], "section_too_large") || !strings.Contains(got[1], "Bible") || got[2] != "loaded" {
				t.Fatalf("%q", got)
			}
			if at := h.told(h.last()); !strings.Contains(at, "ATLAS-TEXT") || strings.Contains(at, "BIBLE-TEXT") || ways(h, r) != "atlas:loaded tone:loaded" || r.Status != run.Completed {
				t.Errorf("%s %s", ways(h, r), r.Status)
			}
		})
		h.window(6_000)
		next := h.start(h.admin, h.after(r))
		h.t.Run("B4 P11 what is held is not admitted again: if nothing can be sent with it, the run ends truncated", func(t *testing.T) {
			if next.Reason != run.ReasonContextTruncated || ways(h, next) != ways(h, r) {
				t.Errorf("%s %s", next.Reason, ways(h, next))
			}
		})
	})
}

func TestAdmissionAtStart(t *testing.T) {
	each(t, func(h *house) {
		t := h.t
		crowded(h, library.Always, "atlas", "tone", "bible")
		stopped := h.stopsStart(h.admin, h.plain(), fault.SectionTooLarge, "the instruction Bible does not fit")
		t.Run("B4 P3 a first run with a section too large is stored as failed, without it, and the model is not asked", func(t *testing.T) {
			if stopped.Status != run.Failed || stopped.Reason != run.ReasonPolicyDenied || ways(h, stopped) != "atlas:always tone:always" || h.model.count() != 0 {
				t.Errorf("%s %s %s", stopped.Status, stopped.Reason, ways(h, stopped))
			}
			if got := h.trail(stopped.ID); !slices.Equal(got, []audit.Event{audit.RunRefused, audit.RunEnded}) {
				t.Errorf("%v", got)
			}
		})
		next := h.start(h.admin, h.after(stopped))
		t.Run("B4 V6 a continuation leaves out what is attached always and does not fit, with a notice", func(t *testing.T) {
			if next.Status != run.Completed || ways(h, next) != "atlas:always tone:always" || !slices.Equal(codes(next), []run.NoticeCode{run.NoticeSectionLeftOut}) ||
				!slices.Equal(next.Notices[0].Args, []string{"Bible"}) || strings.Contains(h.told(h.last()), "BIBLE-TEXT") {
				t.Errorf("%s %s %+v", next.Status, ways(h, next), next.Notices)
			}
		})
		h.window(100_000)
		roomy := h.start(h.admin, h.after(next))
		t.Run("B4 it joins once there is room", func(t *testing.T) {
			if ways(h, roomy) != "atlas:always tone:always bible:always" || len(roomy.Notices) != 0 {
				t.Errorf("%s %+v", ways(h, roomy), roomy.Notices)
			}
		})
		h.window(12_000)
		for name, ask := range map[string]func(*agent.StartRequest){
			"invoked": func(r *agent.StartRequest) { r.Invocation = &agent.Invocation{Skill: h.skill("bible").ID} },
			"forced":  func(r *agent.StartRequest) { r.Forced = []uuid.UUID{h.skill("bible").ID} },
		} {
			req, asked := h.after(next), h.model.count()
			ask(&req)
			refused := h.stopsStart(h.admin, req, fault.SectionTooLarge, "Bible")
			after := h.start(h.admin, h.after(refused))
			t.Run("B4 X9 a continuation for which a skill was "+name+" fails instead, and the next one goes on without it", func(t *testing.T) {
				if ways(h, refused) != "atlas:always tone:always" || h.model.count() != asked+1 || after.Status != run.Completed || ways(h, after) != ways(h, refused) || after.Invocation != nil {
					t.Errorf("%s, then %s %s", ways(h, refused), after.Status, ways(h, after))
				}
			})
		}
		h.detach("atlas")
		req := h.plain()
		req.Messages[0].Text = strings.Repeat("green ferns ", 1500)
		h.stopsStart(h.admin, req, fault.SectionTooLarge, "Bible")
		h.t.Run("B4 the first message of the user counts, one skill fits beside a short one", func(t *testing.T) {
			if r := h.start(h.admin, h.plain()); r.Status != run.Completed || ways(h, r) != "tone:always bible:always" {
				t.Errorf("%s %s", r.Status, ways(h, r))
			}
		})
	})
}

func TestAdmissionAtPickup(t *testing.T) {
	each(t, func(h *house) {
		crowded(h, library.Always, "tone")
		h.drain()
		queued, err := h.agent.Start(context.Background(), h.admin, h.plain())
		h.ok(err)
		h.approve("atlas")
		h.offer("atlas", library.Always)
		h.approve("bible")
		h.offer("bible", library.Always)
		h.work()
		r := h.settled(queued.ID)
		h.t.Run("B4 what joins only at pickup is admitted there, and the run fails before the model is asked", func(t *testing.T) {
			if r.Status != run.Failed || r.Reason != run.ReasonPolicyDenied || !strings.Contains(r.Message, "Bible does not fit") || ways(h, r) != "tone:always atlas:always" || h.model.count() != 0 {
				t.Errorf("%s %s %q %s", r.Status, r.Reason, r.Message, ways(h, r))
			}
		})
	})
}

// work starts another worker after the house's own was drained.
func (h *house) work() {
	h.agent = agent.New(h.parts)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); h.agent.Work(ctx) }()
	h.t.Cleanup(func() { stop(); <-done })
}
