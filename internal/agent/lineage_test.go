package agent_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

func TestDroppedPins(t *testing.T) {
	each(t, func(h *house) {
		t := h.t
		ready(h)
		h.approve("style")
		h.offer("style", library.Always)
		first := h.start(h.admin, h.tour())
		h.detach("tour")
		second := h.start(h.admin, h.after(first))
		t.Run("P8 X9 the pin of a detached skill is dropped with a notice, its tools and its invocation", func(t *testing.T) {
			if names(h, second.Pins) != "style" || !slices.Equal(codes(second), []run.NoticeCode{run.NoticePinDetached}) || second.Notices[0].Args[0] != "Tour" {
				t.Errorf("%v %v", second.Pins, second.Notices)
			}
			if second.SkillAllowList != nil || second.Invocation != nil || second.Subject != nil {
				t.Errorf("tools %v, invocation %v, subject %v", second.SkillAllowList, second.Invocation, second.Subject)
			}
			if system, rest := h.read(); strings.Contains(system+rest, "point by point") {
				t.Error("the tour was composed")
			}
		})
		t.Run("P8 the notice stands before the answer", func(t *testing.T) {
			got := kinds(h.events(second.ID))
			if want := []run.EventKind{run.EventStarted, run.EventNotice, run.EventModelCall, run.EventSettled}; !slices.Equal(got, want) {
				t.Errorf("%v", got)
			}
		})
		h.offer("tour", library.OnDemand)
		third := h.start(h.admin, h.after(second))
		t.Run("X9 attached again, nothing starts it by itself", func(t *testing.T) {
			if names(h, third.Pins) != "style" || third.Invocation != nil || len(third.Notices) != 0 {
				t.Errorf("%v %v %v", third.Pins, third.Invocation, third.Notices)
			}
		})
		again := h.tour()
		again.Predecessor = third.ID
		fourth := h.start(h.admin, again)
		t.Run("X9 an explicit invocation does", func(t *testing.T) {
			if names(h, fourth.Pins) != "style tour" || fourth.Invocation.Derived {
				t.Errorf("%v %+v", fourth.Pins, fourth.Invocation)
			}
		})

		forced := h.after(fourth)
		forced.Forced = []uuid.UUID{h.skill("style").ID}
		fifth := h.start(h.admin, forced)
		h.detach("style")
		sixth := h.start(h.admin, h.after(fifth))
		t.Run("P8 L11 what was forced in the lineage needs no attachment", func(t *testing.T) {
			if names(h, sixth.Pins) != "style tour" || len(sixth.Notices) != 0 {
				t.Errorf("%v %v", sixth.Pins, sixth.Notices)
			}
		})
		other, err := h.library.CreateConfiguration(context.Background(), h.admin, library.NewConfiguration{
			Name: "Other", ProviderID: h.config.ProviderID, Model: "m",
		})
		h.ok(err)
		elsewhere := h.after(sixth)
		elsewhere.ConfigurationID = other.ID
		seventh := h.start(h.admin, elsewhere)
		t.Run("P8 X9 another configuration drops every pin with a notice, forced ones and the process too", func(t *testing.T) {
			if len(seventh.Pins) != 0 || seventh.Invocation != nil || seventh.Subject != nil ||
				!slices.Equal(codes(seventh), []run.NoticeCode{run.NoticePinConfiguration, run.NoticePinConfiguration}) {
				t.Errorf("%v %v %v", seventh.Pins, seventh.Invocation, seventh.Notices)
			}
			if seventh.Status != run.Completed || seventh.SkillAllowList != nil {
				t.Errorf("%s %q, tools %v", seventh.Status, seventh.Message, seventh.SkillAllowList)
			}
		})
		t.Run("X9 back again, it has not come back", func(t *testing.T) {
			if r := h.start(h.admin, h.after(seventh)); len(r.Pins) != 0 || r.Invocation != nil {
				t.Errorf("%v %v", r.Pins, r.Invocation)
			}
		})
	})
}

func TestForcedLineage(t *testing.T) {
	each(t, func(h *house) {
		t := h.t
		h.resync(map[string]string{"style": "---\nname: Style\ndescription: d\nallowed-tools: get_page\n---\nWrite short sentences.\n"})
		h.approve("style")
		for _, folder := range []string{"style", "reference"} {
			_, err := h.library.SetSkillEnabled(context.Background(), h.admin, h.skill(folder).ID, true)
			h.ok(err)
		}
		forced := h.plain()
		forced.Forced = []uuid.UUID{h.skill("style").ID, h.skill("reference").ID}
		first := h.start(h.admin, forced)
		if _, rest := h.read(); !strings.Contains(rest, "FENCED-REFERENCE-TEXT") {
			t.Fatal("the forced skill was not fenced")
		}
		second := h.start(h.admin, h.after(first))
		t.Run("L11 a forced skill's pin goes on without being forced again, with its tools", func(t *testing.T) {
			if names(h, second.Pins) != "style" || len(second.Forced) != 0 || !slices.Equal(second.SkillAllowList, []string{"get_page"}) {
				t.Errorf("%v %v %v", second.Pins, second.Forced, second.SkillAllowList)
			}
		})
		t.Run("L11 P13 a forced skill that is fenced does not", func(t *testing.T) {
			if _, rest := h.read(); strings.Contains(rest, "FENCED-REFERENCE-TEXT") {
				t.Errorf("%q", rest)
			}
		})
	})
}

func TestFencedLineage(t *testing.T) {
	each(t, func(h *house) {
		t := h.t
		h.offer("reference", library.OnDemand)
		invoked := h.plain()
		invoked.Invocation = &agent.Invocation{Skill: h.skill("reference").ID, Subject: home()}
		first := h.start(h.admin, invoked)
		h.resync(map[string]string{"reference": "---\nname: Reference\ndescription: d\n---\nFENCED-NOW\n"})
		_, err := h.library.SetSkillEnabled(context.Background(), h.admin, h.skill("reference").ID, true)
		h.ok(err)
		second := h.start(h.admin, h.after(first))
		t.Run("P13 P4 an invoked skill that is fenced goes on with the record as it is now, and is never pinned", func(t *testing.T) {
			_, rest := h.read()
			if len(second.Pins) != 0 || strings.Contains(rest, "FENCED-REFERENCE-TEXT") || !strings.Contains(rest, "FENCED-NOW") || second.Subject == nil {
				t.Errorf("%v %v %q", second.Pins, second.Subject, rest)
			}
		})
		h.resync(map[string]string{"reference": "---\nname: Reference\ndescription: d\nprocess: true\n---\nA-PROCESS-NOW\n"})
		h.approve("reference")
		_, err = h.library.SetSkillEnabled(context.Background(), h.admin, h.skill("reference").ID, true)
		h.ok(err)
		third := h.start(h.admin, h.after(second))
		t.Run("X1 X2 what became a process meanwhile is not started by going on", func(t *testing.T) {
			system, rest := h.read()
			if len(third.Pins) != 0 || !slices.Equal(codes(third), []run.NoticeCode{run.NoticeProcessSkipped}) || strings.Contains(system+rest, "A-PROCESS-NOW") {
				t.Errorf("%v %v", third.Pins, third.Notices)
			}
		})
	})
}

func TestNewInvocationInALineage(t *testing.T) {
	each(t, func(h *house) {
		t := h.t
		ready(h)
		h.approve("style")
		h.offer("style", library.OnDemand)
		req := h.after(h.start(h.admin, h.tour()))
		req.Invocation = &agent.Invocation{Skill: h.skill("style").ID}
		second := h.start(h.admin, req)
		t.Run("P12 a new invocation is a start for its skill and a continuation for the rest; the process keeps its subject", func(t *testing.T) {
			if names(h, second.Pins) != "tour style" || second.Invocation.Skill != h.skill("style").ID || second.Invocation.Derived || *second.Subject != *home() {
				t.Errorf("%v %+v %v", second.Pins, second.Invocation, second.Subject)
			}
		})
		h.detach("style")
		third := h.start(h.admin, h.after(second))
		t.Run("P12 P8 the subject stays with the process when the other skill goes", func(t *testing.T) {
			if names(h, third.Pins) != "tour" || third.Invocation != nil || third.Subject == nil || *third.Subject != *home() {
				t.Errorf("%v %v %v", third.Pins, third.Invocation, third.Subject)
			}
		})
		h.t.Run("P12 the same subject is no other one", func(t *testing.T) {
			again := h.tour()
			again.Predecessor = third.ID
			if r := h.start(h.admin, again); names(h, r.Pins) != "tour" || *r.Invocation.Subject != *home() {
				t.Errorf("%v %+v", r.Pins, r.Invocation)
			}
		})
	})
}

func TestSubjectsInALineage(t *testing.T) {
	each(t, func(h *house) {
		t := h.t
		h.approve("style")
		h.offer("style", library.OnDemand)
		h.offer("reference", library.OnDemand)
		style, reference := h.skill("style").ID, h.skill("reference").ID
		element := &tool.Record{Table: "element", ID: "hello"}
		invoke := func(after agent.Run, skill uuid.UUID, on *tool.Record) agent.Run {
			req := h.after(after)
			req.Invocation = &agent.Invocation{Skill: skill, Subject: on}
			return h.start(h.admin, req)
		}
		first := invoke(agent.Run{}, style, home())
		t.Run("X4 naming a held skill without a subject changes nothing", func(t *testing.T) {
			if r := invoke(first, style, nil); *r.Subject != *home() || !r.Invocation.Derived || names(h, r.Pins) != "style" {
				t.Errorf("%v %+v %v", r.Subject, r.Invocation, r.Pins)
			}
		})
		moved := invoke(first, style, element)
		t.Run("X4 P12 without a process another subject may be named, and goes on", func(t *testing.T) {
			for _, r := range []agent.Run{moved, h.start(h.admin, h.after(moved))} {
				if *r.Subject != *element || !r.Invocation.Derived || names(h, r.Pins) != "style" {
					t.Errorf("%v %+v %v", r.Subject, r.Invocation, r.Pins)
				}
			}
			if system, _ := h.read(); strings.Count(system, "# Instruction: Style") != 1 {
				t.Errorf("%q", system)
			}
		})
		t.Run("P12 another skill that is started brings its own subject, or none", func(t *testing.T) {
			if r := invoke(moved, reference, nil); r.Subject != nil || r.Invocation.Derived || names(h, r.Pins) != "style" {
				t.Errorf("%v %+v %v", r.Subject, r.Invocation, r.Pins)
			}
		})
		t.Run("P10 L3 a subject that cannot be read is refused, whoever names it", func(t *testing.T) {
			req := h.after(moved)
			req.Invocation = &agent.Invocation{Skill: style, Subject: &tool.Record{Table: "page", ID: "nowhere"}}
			h.stopsStart(h.admin, req, fault.SubjectUnreadable, "nowhere")
		})
	})
}

func TestLineageKeepsItsSource(t *testing.T) {
	each(t, func(h *house) {
		ready(h)
		first := h.start(h.admin, h.tour())
		h.model.says(calls("update_element", fix))
		waits := h.start(h.admin, h.after(first))
		err := h.library.DeleteSource(context.Background(), h.admin, h.source.ID)
		h.t.Run("S15 an open run keeps the source of a pin that it took over", func(t *testing.T) {
			refusal, ok := fault.AsRefusal(err)
			if !ok || refusal.Code != fault.InUse {
				t.Fatalf("got %v", err)
			}
			use := library.Use{Kind: library.UsedByRun, ID: waits.ID, SkillID: h.skill("tour").ID}
			if uses := refusal.Detail.([]library.Use); !slices.Contains(uses, use) {
				t.Errorf("%v", uses)
			}
		})
	})
}

func TestRunStatus(t *testing.T) {
	each(t, func(h *house) {
		t := h.t
		ready(h)
		h.approve("style")
		offered := h.offer("style", library.Always)
		first := h.start(h.admin, h.tour())
		h.ok(h.library.Detach(context.Background(), h.admin, offered.Attachment.ID))
		h.model.says(calls("report_progress", `{"position":2,"total":3}`, "update_element", fix))
		r := h.start(h.admin, h.after(first))
		t.Run("I3 a run that waits tells its process, the pending write's target, its last progress and its notices", func(t *testing.T) {
			card, err := h.agent.Card(context.Background(), h.admin, r)
			h.ok(err)
			if process(r.Pins).Skill != h.skill("tour").ID || r.Progress == nil || r.Progress.Position != 2 || !slices.Equal(codes(r), []run.NoticeCode{run.NoticePinDetached}) {
				t.Errorf("%v %+v %v", r.Pins, r.Progress, r.Notices)
			}
			if target := card.Calls[0].Target; target == nil || target.ID != "hello" || !slices.Equal(target.Fields, []string{"text"}) {
				t.Errorf("%+v", target)
			}
		})
		won, status, err := h.agent.CancelIfWaiting(context.Background(), h.admin, r.ID)
		h.ok(err)
		t.Run("I3 withdrawn, it keeps nothing of the proposal, and still its process, progress and notices", func(t *testing.T) {
			r = h.settled(r.ID)
			card, err := h.agent.Card(context.Background(), h.admin, r)
			if !won || status != run.Cancelled || card != nil || err != nil || r.TurnDigest != "" {
				t.Errorf("%v %s %+v %v", won, status, card, err)
			}
			if _, err := h.store.State(context.Background(), r.ID); !fault.Is(err, fault.NotFound) {
				t.Errorf("the state is kept: %v", err)
			}
			if names(h, r.Pins) != "tour" || r.Progress == nil || len(r.Notices) != 1 {
				t.Errorf("%v %+v %v", r.Pins, r.Progress, r.Notices)
			}
		})
	})
}
