package agent_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/ingest"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/tool"
)

// after is a request that continues a run and says nothing else.
func (h *house) after(r agent.Run) agent.StartRequest {
	req := h.plain()
	req.Messages[0].Text, req.Predecessor = "And now?", r.ID
	return req
}

// resync publishes files beside, or instead of, those that are there.
func (h *house) resync(files map[string]string) {
	h.t.Helper()
	all := maps.Clone(skillFiles)
	for name, text := range files {
		all[name+"/SKILL.md"] = &fstest.MapFile{Data: []byte(text)}
	}
	host, err := ingest.Memory("acme", "skills", all)
	h.ok(err)
	h.library.Fetcher = ingest.New(host)
	_, err = h.library.Sync(context.Background(), h.admin, h.source.ID)
	h.ok(err)
}

func (h *house) revoke(folder string) {
	h.t.Helper()
	s := h.skill(folder)
	_, err := h.library.Revoke(context.Background(), h.admin, library.RevokeInput{SkillID: s.ID, Digest: string(s.StoredDigest), Reason: "r"})
	h.ok(err)
}

func (h *house) detach(folder string) {
	h.t.Helper()
	offered, err := h.library.Offered(context.Background(), h.config.ID)
	h.ok(err)
	for _, o := range offered {
		if o.Skill.Identifier == folder {
			h.ok(h.library.Detach(context.Background(), h.admin, o.Attachment.ID))
		}
	}
}

func (h *house) bot() actor.Actor {
	h.t.Helper()
	u, err := h.access.CreateUser(context.Background(), h.admin, access.NewUser{Name: "bot", Kind: actor.ServiceAccount})
	h.ok(err)
	for _, p := range actor.Permissions {
		_, err = h.access.GrantPermission(context.Background(), h.admin, u.ID, p)
		h.ok(err)
	}
	a, err := h.access.Actor(context.Background(), u.ID)
	h.ok(err)
	return a
}

// stopsStart asserts that a start is refused, and returns what was stored of it.
func (h *house) stopsStart(by actor.Actor, req agent.StartRequest, code fault.Code, says string) agent.Run {
	h.t.Helper()
	r, err := h.agent.Start(context.Background(), by, req)
	refusal, ok := fault.AsRefusal(err)
	if !ok || refusal.Code != code || !strings.Contains(refusal.Message, says) {
		h.t.Fatalf("got %v, want %s: %s", err, code, says)
	}
	return r
}

func names(h *house, pins run.Pins) string {
	var out []string
	for _, p := range pins {
		for _, folder := range []string{"tour", "style", "reference", "survey"} {
			if s, err := h.store.Skill(context.Background(), p.Skill); err == nil && s.Identifier == folder {
				out = append(out, folder)
			}
		}
	}
	return strings.Join(out, " ")
}

func process(pins run.Pins) run.Pin {
	p, _ := pins.Process()
	return p
}

func codes(r agent.Run) []run.NoticeCode {
	out := []run.NoticeCode{}
	for _, n := range r.Notices {
		out = append(out, n.Code)
	}
	return out
}

func home() *tool.Record { return &tool.Record{Table: "page", ID: "home"} }

// changedTour is another version of the tour, with other tools.
const changedTour = "---\nname: Tour\ndescription: d\nprocess: true\nallowed-tools: list_pages\n---\nCHANGED-TOUR\n"

func TestContinuation(t *testing.T) {
	each(t, func(h *house) {
		t := h.t
		ready(h)
		h.approve("style")
		h.offer("style", library.Always)
		first := h.start(h.admin, h.tour())
		second := h.start(h.admin, h.after(first))
		t.Run("P4 a continuation names the run before, and has its pins, invocation and subject", func(t *testing.T) {
			want := slices.Clone(first.Pins)
			for i := range want {
				want[i].Derived = true
			}
			if !slices.Equal(second.Pins, want) || len(want) != 2 {
				t.Errorf("pins %v, want %v", second.Pins, want)
			}
			if second.PredecessorID != first.ID || second.Subject == nil || *second.Subject != *home() {
				t.Errorf("after %s on %v", second.PredecessorID, second.Subject)
			}
			if i := second.Invocation; i == nil || i.Skill != h.skill("tour").ID || !i.Derived {
				t.Errorf("invocation %+v", i)
			}
		})
		t.Run("P4 what was said before is the caller's to give", func(t *testing.T) {
			if m := h.model.asked(1).Messages; len(m) != 2 || m[1].Text != "And now?" {
				t.Errorf("%+v", m)
			}
		})

		h.resync(map[string]string{"tour": changedTour})
		before := h.skill("tour")
		third := h.start(h.admin, h.after(second))
		t.Run("P11 P10 a pin taken over is composed once from its snapshot; a sync that disabled and changed the skill adds nothing", func(t *testing.T) {
			system, rest := h.read()
			if before.Enabled || strings.Count(system, "Go point by point.") != 1 || strings.Contains(system+rest, "CHANGED") || strings.Contains(rest, "UNTRUSTED") {
				t.Errorf("enabled %v; system %q, rest %q", before.Enabled, system, rest)
			}
		})
		t.Run("T4 a pinned skill counts with its snapshot's tools, disabled and changed", func(t *testing.T) {
			if !slices.Equal(third.SkillAllowList, first.SkillAllowList) || slices.Contains(third.SkillAllowList, "list_pages") {
				t.Errorf("%v, first %v", third.SkillAllowList, first.SkillAllowList)
			}
		})
		again := h.tour()
		again.Predecessor = third.ID
		fourth := h.start(h.admin, again)
		t.Run("X4 L6 invoking what is held is never refused for digest, switch or X3, and appends nothing", func(t *testing.T) {
			system, _ := h.read()
			if !slices.Equal(fourth.Pins, third.Pins) || strings.Count(system, "# Instruction: Tour") != 1 || !fourth.Invocation.Derived {
				t.Errorf("%s %q: %v, %q", fourth.Status, fourth.Message, fourth.Pins, system)
			}
		})

		h.approve("tour")
		_, err := h.library.SetSkillEnabled(context.Background(), h.admin, before.ID, true)
		h.ok(err)
		fifth := h.start(h.admin, h.after(fourth))
		t.Run("P9 a newer approval replaces no pin that is held", func(t *testing.T) {
			if system, _ := h.read(); !slices.Equal(fifth.Pins, third.Pins) || strings.Contains(system, "CHANGED") {
				t.Errorf("%v", fifth.Pins)
			}
		})
		fresh := h.start(h.admin, h.tour())
		t.Run("P9 a new conversation takes the present version", func(t *testing.T) {
			if system, _ := h.read(); !strings.Contains(system, "CHANGED-TOUR") || process(fresh.Pins).Digest != before.StoredDigest {
				t.Errorf("%v", fresh.Pins)
			}
		})

		forced := h.after(fifth)
		forced.Forced = []uuid.UUID{before.ID}
		sixth := h.start(h.admin, forced)
		t.Run("X2 a forced process that a held pin names is no notice, and adds nothing", func(t *testing.T) {
			if len(sixth.Notices) != 0 || names(h, sixth.Pins) != names(h, fifth.Pins) {
				t.Errorf("%v %v", sixth.Notices, sixth.Pins)
			}
		})

		_, err = h.library.Revoke(context.Background(), h.admin, library.RevokeInput{SkillID: before.ID, Digest: string(process(first.Pins).Digest), Reason: "r"})
		h.ok(err)
		t.Run("P9 P3 a revocation of what is held ends it, though the present version is approved", func(t *testing.T) {
			stopped := h.stopsStart(h.admin, h.after(sixth), fault.InstructionWithdrawn, "Tour may not instruct any more: its approval was revoked")
			if stopped.Status != run.Failed || stopped.Reason != run.ReasonInstructionWithdrawn || names(h, stopped.Pins) != "style" {
				t.Errorf("%s %s %v", stopped.Status, stopped.Reason, stopped.Pins)
			}
		})
	})
}

func TestContinuationRefusals(t *testing.T) {
	tests := []struct {
		name  string
		given func(*house) (actor.Actor, agent.StartRequest)
		code  fault.Code
		says  string
	}{
		{"P5 the approve grant does not help", func(h *house) (actor.Actor, agent.StartRequest) {
			ready(h)
			return h.person("approver", actor.RunApprove, actor.RunRead), h.after(h.start(h.admin, h.tour()))
		}, fault.NotInitiator, "only the person who started a run"},
		{"P5 a service account never continues, its own run neither", func(h *house) (actor.Actor, agent.StartRequest) {
			bot := h.bot()
			return bot, h.after(h.start(bot, h.plain()))
		}, fault.ServiceAccount, "service account"},
		{"P6 a process run that waits, with where it stands", func(h *house) (actor.Actor, agent.StartRequest) {
			return h.admin, h.after(h.waiting())
		}, fault.PredecessorOpen, "waiting_for_approval"},
		{"P7 a run that is gone", func(h *house) (actor.Actor, agent.StartRequest) {
			r := h.start(h.admin, h.plain())
			h.purge(r.ID)
			return h.admin, h.after(r)
		}, fault.PredecessorMissing, "start a new conversation"},
		{"P7 a run that cannot be read", func(h *house) (actor.Actor, agent.StartRequest) {
			r := h.start(h.admin, h.plain())
			h.set(r.ID, change.Text[string]("runs", "pins").To("["))
			return h.admin, h.after(r)
		}, fault.PredecessorMissing, "start a new conversation"},
		{"P7 a run that one may not see", func(h *house) (actor.Actor, agent.StartRequest) {
			return h.person("stranger"), h.after(h.start(h.admin, h.plain()))
		}, fault.PredecessorMissing, "start a new conversation"},
		{"P10 a configuration that one may not use any more", func(h *house) (actor.Actor, agent.StartRequest) {
			ready(h)
			editor := h.person("editor")
			r := h.start(editor, h.tour())
			h.users(h.admin.ID)
			return editor, h.after(r)
		}, fault.ConfigurationNotAllowed, "Editors"},
		{"P10 a subject that one may not read any more", func(h *house) (actor.Actor, agent.StartRequest) {
			ready(h)
			editor := h.person("editor")
			r := h.start(editor, h.tour())
			h.readers("home", h.admin.ID)
			return editor, h.after(r)
		}, fault.SubjectUnreadable, "home"},
		{"P12 another subject while a process is held", func(h *house) (actor.Actor, agent.StartRequest) {
			ready(h)
			req := h.tour()
			req.Invocation.Subject = &tool.Record{Table: "element", ID: "hello"}
			req.Predecessor = h.start(h.admin, h.tour()).ID
			return h.admin, req
		}, fault.ProcessRunning, `"Tour" is running on page home`},
		{"X3 a second process, with the name of the first", func(h *house) (actor.Actor, agent.StartRequest) {
			r := h.surveyed()
			req := h.after(r)
			req.Invocation = &agent.Invocation{Skill: h.skill("survey").ID}
			return h.admin, req
		}, fault.ProcessRunning, `"Tour" is running`},
		{"P12 L3 a new invocation is a start: the skill is not attached", func(h *house) (actor.Actor, agent.StartRequest) {
			ready(h)
			h.approve("style")
			req := h.after(h.start(h.admin, h.tour()))
			req.Invocation = &agent.Invocation{Skill: h.skill("style").ID}
			return h.admin, req
		}, fault.NotAttached, `"Style"`},
		{"X9 P8 invoking what was detached is a start", func(h *house) (actor.Actor, agent.StartRequest) {
			ready(h)
			req := h.tour()
			req.Predecessor = h.start(h.admin, h.tour()).ID
			h.detach("tour")
			return h.admin, req
		}, fault.NotAttached, `"Tour"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(h *house) {
				by, req := tt.given(h)
				if r := h.stopsStart(by, req, tt.code, tt.says); r.ID != uuid.Nil {
					h.t.Errorf("a run was stored: %+v", r)
				}
				entries, err := h.store.AuditEntries(context.Background(), audit.Filter{Events: []audit.Event{audit.RunRefused}}, audit.Page{Limit: 10})
				h.ok(err)
				if len(entries) != 1 || entries[0].Actor != by.ID || entries[0].Detail["predecessor"] != req.Predecessor.String() {
					h.t.Errorf("U1 audited as %v", entries)
				}
			})
		})
	}
}

// purge deletes a run as retention does.
func (h *house) purge(id uuid.UUID) {
	h.t.Helper()
	out, err := h.store.Apply(context.Background(), change.Change{Deletes: []change.Delete{{Table: "runs", ID: id}}})
	h.ok(err)
	if !out[0].Applied {
		h.t.Fatal("the run was not deleted")
	}
}

func (h *house) set(id uuid.UUID, values ...change.Value) {
	h.t.Helper()
	_, err := h.store.Apply(context.Background(), change.Change{Updates: []change.Update{{Table: "runs", ID: id, Set: values}}})
	h.ok(err)
}

// surveyed is a tour that ended, on a configuration that offers a second process.
func (h *house) surveyed() agent.Run {
	h.t.Helper()
	h.resync(map[string]string{"survey": "---\nname: Survey\ndescription: d\nprocess: true\n---\nAsk around.\n"})
	ready(h)
	h.approve("survey")
	h.offer("survey", library.OnDemand)
	return h.start(h.admin, h.tour())
}

func TestWhoContinues(t *testing.T) {
	each(t, func(h *house) {
		ready(h)
		editor := h.person("editor")
		first := h.start(editor, h.tour())
		h.t.Run("P5 the initiator continues, and so does an administrator, whose run it becomes", func(t *testing.T) {
			if r := h.start(editor, h.after(first)); r.InitiatorID != editor.ID || names(h, r.Pins) != "tour" {
				t.Errorf("%v", r)
			}
			if r := h.start(h.admin, h.after(first)); r.InitiatorID != h.admin.ID || names(h, r.Pins) != "tour" {
				t.Errorf("%v", r)
			}
		})
		waits := h.ordinary(h.admin)
		next := h.start(h.admin, h.after(waits))
		h.t.Run("P6 an ordinary run may still wait when it is continued, and stays decidable", func(t *testing.T) {
			if next.Status != run.Completed {
				t.Fatalf("%s %q", next.Status, next.Message)
			}
			if waits = h.decide(h.admin, waits, true, ""); waits.Status != run.Completed || h.text("hello") != "Hello" {
				t.Errorf("%s, %q", waits.Status, h.text("hello"))
			}
		})
	})
}

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
