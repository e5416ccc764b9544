package agent_test

import (
	"context"
	"maps"
	"slices"
	"strings"
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
	"github.com/countersign/countersign/internal/run"
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
