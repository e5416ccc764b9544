package agent_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/skill"
	"github.com/countersign/countersign/internal/tool"
)

func TestStartRefusals(t *testing.T) {
	tests := []struct {
		name  string
		given func(*house) (actor.Actor, agent.StartRequest)
		code  fault.Code
		says  string
	}{
		{"L3 X3 a skill that is not attached", func(h *house) (actor.Actor, agent.StartRequest) {
			h.approve("tour")
			return h.admin, h.tour()
		}, fault.NotAttached, `"Tour"`},
		{"L3 A11 a skill that is disabled", func(h *house) (actor.Actor, agent.StartRequest) {
			ready(h)
			_, err := h.library.SetSkillEnabled(context.Background(), h.admin, h.skill("tour").ID, false)
			h.ok(err)
			return h.admin, h.tour()
		}, fault.NotEffective, "disabled"},
		{"X3 X1 a process that nobody approved", func(h *house) (actor.Actor, agent.StartRequest) {
			h.offer("tour", library.OnDemand)
			return h.admin, h.tour()
		}, fault.NotInstruction, "nobody approved"},
		{"X3 A7 a process whose approval was revoked, naming the skill and the reason", func(h *house) (actor.Actor, agent.StartRequest) {
			ready(h)
			s := h.skill("tour")
			_, err := h.library.Revoke(context.Background(), h.admin, library.RevokeInput{SkillID: s.ID, Digest: string(s.StoredDigest), Reason: "wrong"})
			h.ok(err)
			return h.admin, h.tour()
		}, fault.NotInstruction, `"Tour" may not instruct: its approval was revoked`},
		{"X3 a configuration that requires a second approver", func(h *house) (actor.Actor, agent.StartRequest) {
			ready(h)
			h.fourEyes()
			return h.admin, h.tour()
		}, fault.SecondApproverRequired, "requireSecondApprover"},
		{"X3 a service account", func(h *house) (actor.Actor, agent.StartRequest) {
			ready(h)
			u, err := h.access.CreateUser(context.Background(), h.admin, access.NewUser{Name: "bot", Kind: actor.ServiceAccount})
			h.ok(err)
			for _, p := range []actor.Permission{actor.RunStart, actor.ContentRead} {
				_, err = h.access.GrantPermission(context.Background(), h.admin, u.ID, p)
				h.ok(err)
			}
			a, err := h.access.Actor(context.Background(), u.ID)
			h.ok(err)
			return a, h.tour()
		}, fault.ServiceAccount, "service account"},
		{"L3 I6 a subject the actor may not read", func(h *house) (actor.Actor, agent.StartRequest) {
			ready(h)
			other := h.person("other")
			h.readers("home", h.admin.ID)
			return other, h.tour()
		}, fault.SubjectUnreadable, "home"},
		{"I6 a configuration that names other users", func(h *house) (actor.Actor, agent.StartRequest) {
			ready(h)
			other := h.person("other")
			h.users(h.admin.ID)
			return other, h.tour()
		}, fault.ConfigurationNotAllowed, "Editors"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(h *house) {
				by, req := tt.given(h)
				_, err := h.agent.Start(context.Background(), by, req)
				refusal, ok := fault.AsRefusal(err)
				if !ok || refusal.Code != tt.code || !strings.Contains(refusal.Message, tt.says) {
					h.t.Fatalf("got %v", err)
				}
				entries, err := h.store.AuditEntries(context.Background(), audit.Filter{Events: []audit.Event{audit.RunRefused}}, audit.Page{Limit: 10})
				h.ok(err)
				if len(entries) != 1 || entries[0].Actor != by.ID || entries[0].Skill != h.skill("tour").ID {
					h.t.Errorf("U1 audited as %v", entries)
				}
				runs, err := h.agent.Runs(context.Background(), h.admin, agent.Filter{}, agent.Page{Limit: 10})
				h.ok(err)
				if len(runs) != 0 {
					h.t.Errorf("a refused start left %d runs", len(runs))
				}
			})
		})
	}
}

func TestStartErrors(t *testing.T) {
	each(t, func(h *house) {
		reader := h.person("reader")
		_, err := h.access.RevokePermission(context.Background(), h.admin, reader.ID, actor.RunStart)
		h.ok(err)
		reader, err = h.access.Actor(context.Background(), reader.ID)
		h.ok(err)
		forced := h.plain()
		forced.Forced = []uuid.UUID{h.skill("style").ID}
		missing := h.plain()
		missing.ConfigurationID = uuid.UUID{7}
		tests := []struct {
			name string
			by   actor.Actor
			req  agent.StartRequest
			kind fault.Kind
		}{
			{"nobody", actor.Actor{}, h.plain(), fault.Unauthenticated},
			{"without run:start", reader, h.plain(), fault.Forbidden},
			{"T1 forcing is an administrator's act", h.person("editor"), forced, fault.Forbidden},
			{"an unknown configuration", h.admin, missing, fault.NotFound},
			{"no message", h.admin, agent.StartRequest{ConfigurationID: h.config.ID}, fault.BadInput},
			{"an empty prompt", h.admin, agent.StartRequest{ConfigurationID: h.config.ID, Messages: []prompt.Message{{Role: prompt.User, Text: " \n"}}}, fault.BadInput},
			{"too long", h.admin, agent.StartRequest{ConfigurationID: h.config.ID, Messages: []prompt.Message{{Role: prompt.User, Text: strings.Repeat("x", 300_000)}}}, fault.BadInput},
		}
		for _, tt := range tests {
			h.t.Run(tt.name, func(t *testing.T) {
				if _, err := h.agent.Start(context.Background(), tt.by, tt.req); fault.KindOf(err) != tt.kind {
					t.Errorf("got %v", err)
				}
			})
		}
	})
}

func TestComposition(t *testing.T) {
	each(t, func(h *house) {
		t := h.t
		h.approve("style")
		h.offer("style", library.Always)
		h.offer("reference", library.Always)
		ready(h)
		r := h.start(h.admin, h.plain())
		first := h.model.asked(0).Messages

		t.Run("L2 L9 an approved always skill is a labelled section of the system message", func(t *testing.T) {
			if first[0].Role != prompt.System || first[0].Text != "You help editors.\n\n# Instruction: Style\n\nWrite short sentences.\n" {
				t.Errorf("%q", first[0].Text)
			}
		})
		t.Run("L2 L8 what nobody approved is fenced, in the user message", func(t *testing.T) {
			if !strings.Contains(first[1].Text, "BEGIN UNTRUSTED SKILL DATA") || !strings.Contains(first[1].Text, "FENCED-REFERENCE-TEXT") {
				t.Errorf("%q", first[1].Text)
			}
		})
		t.Run("L1 L2 an on-demand skill is not composed at start", func(t *testing.T) {
			if strings.Contains(first[0].Text+first[1].Text, "point by point") {
				t.Error("the tour was composed")
			}
		})
		t.Run("P1 P13 sections are pinned, fenced skills never", func(t *testing.T) {
			if len(r.Pins) != 1 || r.Pins[0].Skill != h.skill("style").ID || r.Pins[0].Way != run.WayAlways {
				t.Errorf("%v", r.Pins)
			}
		})
		t.Run("T1 an attached on-demand skill's declaration counts from the start", func(t *testing.T) {
			want := []string{"ask_choice", "get_page", "report_progress", "update_element"}
			if !slices.Equal(r.SkillAllowList, want) {
				t.Errorf("%v", r.SkillAllowList)
			}
			for _, d := range h.model.asked(0).Tools {
				if !slices.Contains(want, d.Name) {
					t.Errorf("%s was offered", d.Name)
				}
			}
		})
		t.Run("T6 every denial of a resolution is audited, with its gate", func(t *testing.T) {
			entries, err := h.store.AuditEntries(context.Background(), audit.Filter{Run: r.ID, Events: []audit.Event{audit.ToolDenied}}, audit.Page{Limit: 10})
			h.ok(err)
			if len(entries) != 1 || !strings.Contains(string(entries[0].Canonical()), `search_records`) || !strings.Contains(string(entries[0].Canonical()), string(tool.GateSkillList)) {
				t.Errorf("%v", entries)
			}
		})
		t.Run("R16 the request is dropped when the run settles", func(t *testing.T) {
			if _, err := h.store.Request(context.Background(), r.ID); !fault.Is(err, fault.NotFound) {
				t.Errorf("got %v", err)
			}
		})
	})
}

func TestProcessSkipped(t *testing.T) {
	each(t, func(h *house) {
		h.approve("tour")
		s := h.skill("tour")
		_, err := h.library.SetSkillEnabled(context.Background(), h.admin, s.ID, true)
		h.ok(err)
		req := h.plain()
		req.Forced = []uuid.UUID{s.ID}
		r := h.start(h.admin, req)
		h.t.Run("X2 a forced process is skipped with a notice naming it", func(t *testing.T) {
			if len(r.Pins) != 0 || len(r.Notices) != 1 || r.Notices[0].Code != run.NoticeProcessSkipped || r.Notices[0].Args[0] != "Tour" {
				t.Errorf("%v %v", r.Pins, r.Notices)
			}
		})
		h.t.Run("T9 a skipped process counts with its declaration", func(t *testing.T) {
			if len(r.SkillAllowList) != 4 {
				t.Errorf("%v", r.SkillAllowList)
			}
		})
	})
}

func TestIntegrity(t *testing.T) {
	each(t, func(h *house) {
		t := h.t
		h.approve("style")
		h.offer("style", library.Always)
		s := h.skill("style")
		body := change.Text[string]("skills", "body")
		_, err := h.store.Apply(context.Background(), change.Change{Updates: []change.Update{{
			Table: "skills", ID: s.ID, Set: []change.Value{body.To("Tampered with.")},
		}}})
		h.ok(err)
		first := h.start(h.admin, h.plain())
		second := h.start(h.admin, h.plain())

		t.Run("D6 a changed stored text is skipped with a notice that names it", func(t *testing.T) {
			for _, r := range []agent.Run{first, second} {
				if len(r.Notices) != 1 || r.Notices[0].Code != run.NoticeIntegritySkipped || r.Notices[0].Args[0] != "Style" {
					t.Errorf("%v", r.Notices)
				}
			}
			for i := range h.model.count() {
				for _, m := range h.model.asked(i).Messages {
					if strings.Contains(m.Text, "Tampered") {
						t.Errorf("the model read %q", m.Text)
					}
				}
			}
		})
		t.Run("D6 it is audited once per pair of digests", func(t *testing.T) {
			entries, err := h.store.AuditEntries(context.Background(), audit.Filter{Events: []audit.Event{audit.IntegrityFailed}}, audit.Page{Limit: 10})
			h.ok(err)
			if len(entries) != 1 || entries[0].Skill != s.ID {
				t.Errorf("%v", entries)
			}
		})
		t.Run("T9 it counts as a declared empty list", func(t *testing.T) {
			if first.SkillAllowList == nil || len(first.SkillAllowList) != 0 {
				t.Errorf("%#v", first.SkillAllowList)
			}
		})
	})
}

// fourEyes switches requireSecondApprover on.
func (h *house) fourEyes() {
	h.t.Helper()
	h.reconfigure(func(u *library.ConfigurationUpdate) { yes := true; u.RequireSecondApprover = &yes })
}

func (h *house) users(ids ...uuid.UUID) {
	h.t.Helper()
	h.reconfigure(func(u *library.ConfigurationUpdate) { u.AllowedUserIDs = &ids })
}

func (h *house) reconfigure(edit func(*library.ConfigurationUpdate)) {
	h.t.Helper()
	u := library.ConfigurationUpdate{ID: h.config.ID}
	edit(&u)
	_, err := h.library.UpdateConfiguration(context.Background(), h.admin, u)
	h.ok(err)
}

func (h *house) readers(page string, ids ...uuid.UUID) {
	h.t.Helper()
	names := make([]any, len(ids))
	for i, id := range ids {
		names[i] = id.String()
	}
	_, err := h.content.Update(context.Background(), h.admin, content.Edit{
		Table: content.PageTable, ID: page, Fields: map[string]any{content.ReaderIDs: names},
	})
	h.ok(err)
}

// demote lowers the source's trust level.
func (h *house) demote() {
	h.t.Helper()
	_, err := h.library.SetSourceTrustLevel(context.Background(), h.admin, h.source.ID, skill.Community)
	h.ok(err)
}
