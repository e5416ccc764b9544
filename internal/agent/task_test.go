package agent_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/skill"
)

// task adds a task to the house's configuration, with the skills given.
func (h *house) task(skills ...uuid.UUID) library.Task {
	h.t.Helper()
	ctx := context.Background()
	task, err := h.library.CreateTask(ctx, h.admin, library.NewTask{Name: "Proofread", ConfigurationID: h.config.ID, Prompt: "Proofread this."})
	h.ok(err)
	for _, id := range skills {
		_, err = h.library.SetSkillEnabled(ctx, h.admin, id, true)
		h.ok(err)
		_, err = h.library.Attach(ctx, h.admin, library.AttachInput{SkillID: id, TaskID: task.ID})
		h.ok(err)
	}
	return task
}

// carryOut runs a task and waits until it rests.
func (h *house) carryOut(task library.Task, input string) agent.Run {
	h.t.Helper()
	r, err := h.agent.RunTask(context.Background(), h.admin, agent.TaskRequest{TaskID: task.ID, Input: input})
	h.ok(err)
	return h.settled(r.ID)
}

// authored writes a skill here that declares tools, and approves it.
func (h *house) authored(name string, tools ...string) library.Dossier {
	h.t.Helper()
	d := h.written(name, "Do "+name+".\n", tools)
	_, err := h.library.Approve(context.Background(), h.admin, library.ApproveInput{SkillID: d.Skill.ID, Digest: string(d.Digest())})
	h.ok(err)
	return d
}

func (h *house) written(name, body string, tools []string) library.Dossier {
	h.t.Helper()
	ctx := context.Background()
	source, err := h.library.CreateSource(ctx, h.admin, library.NewSource{Title: "Ours " + name, Type: library.Authored, TrustLevel: skill.Verified})
	h.ok(err)
	d, err := h.library.CreateSkill(ctx, h.admin, library.NewSkill{SourceID: source.ID, Name: name, Description: "d", Body: body, AllowedTools: &tools})
	h.ok(err)
	return d
}

// offerHere enables a skill that is written here and attaches it on demand.
func (h *house) offerHere(d library.Dossier) {
	h.t.Helper()
	_, err := h.library.SetSkillEnabled(context.Background(), h.admin, d.Skill.ID, true)
	h.ok(err)
	_, err = h.library.Attach(context.Background(), h.admin, library.AttachInput{SkillID: d.Skill.ID, ConfigurationID: h.config.ID})
	h.ok(err)
}

func TestTask(t *testing.T) {
	each(t, func(h *house) {
		h.approve("style")
		h.offer("style", library.Always)
		both, own := h.authored("Both", "read_record"), h.authored("Own", "get_page")
		h.offerHere(both)
		task := h.task(h.skill("reference").ID, own.Skill.ID, both.Skill.ID)
		r := h.carryOut(task, "Helo wrld")
		messages := h.model.asked(0).Messages

		h.t.Run("I4 an ordinary run answers the prompt with its input, once", func(t *testing.T) {
			if r.Status != run.Completed || r.Answer != "Done." || r.TaskID != task.ID || len(messages) != 2 || h.model.count() != 1 {
				t.Errorf("%+v of %d messages", r, len(messages))
			}
			if messages[1].Role != prompt.User || !strings.HasSuffix(messages[1].Text, "\n\nProofread this.\n\nHelo wrld") {
				t.Errorf("%q", messages[1].Text)
			}
			started, err := h.store.AuditEntries(context.Background(), audit.Filter{Run: r.ID, Events: []audit.Event{audit.RunStarted}}, audit.Page{Limit: 2})
			h.ok(err)
			if len(started) != 1 || started[0].Detail["task"] != task.ID.String() {
				t.Errorf("%v", started)
			}
		})
		h.t.Run("I4 L2 the task's skills are composed always, one that its configuration has on demand too", func(t *testing.T) {
			want := "You help editors.\n\n# Instruction: Style\n\nWrite short sentences.\n\n\n# Instruction: Both\n\nDo Both.\n\n\n# Instruction: Own\n\nDo Own.\n"
			if messages[0].Text != want {
				t.Errorf("got %q\nwant %q", messages[0].Text, want)
			}
			if !strings.Contains(messages[1].Text, "FENCED-REFERENCE-TEXT") {
				t.Errorf("%q", messages[1].Text)
			}
		})
		h.t.Run("T1 the allow-list is the union over the configuration's and the task's skills", func(t *testing.T) {
			if !slices.Equal(r.SkillAllowList, []string{"get_page", "read_record"}) {
				t.Errorf("%v", r.SkillAllowList)
			}
		})
		h.t.Run("I4 a run that carries out no task has none of its skills", func(t *testing.T) {
			r := h.start(h.admin, h.plain())
			if r.TaskID != uuid.Nil || len(r.Pins) != 1 || !slices.Equal(r.SkillAllowList, []string{"read_record"}) {
				t.Errorf("%v %v %v", r.TaskID, r.Pins, r.SkillAllowList)
			}
		})
		h.t.Run("I4 without input the prompt stands alone", func(t *testing.T) {
			before := h.model.count()
			h.carryOut(task, "")
			if m := h.model.asked(before).Messages; !strings.HasSuffix(m[1].Text, "\n\nProofread this.") {
				t.Errorf("%q", m[1].Text)
			}
		})
	})
}

// A task's run that waits is resumed with the task's skills (RULES T3).
func TestTaskResumed(t *testing.T) {
	each(t, func(h *house) {
		own := h.authored("Own", "update_element")
		task := h.task(own.Skill.ID)
		h.model.says(calls("update_element", fix))
		r := h.carryOut(task, "")
		h.t.Run("T3 I4 a task's write waits, and its tools are there when it is decided", func(t *testing.T) {
			if r.Status != run.WaitingForApproval {
				t.Fatalf("%s: %s", r.Status, r.Message)
			}
			if r = h.decide(h.admin, r, true, ""); r.Status != run.Completed || h.text("hello") != "Hello" {
				t.Errorf("%s %q", r.Status, h.text("hello"))
			}
		})
	})
}

func TestTaskProcess(t *testing.T) {
	each(t, func(h *house) {
		d := h.authored("Own", "get_page")
		task := h.task(d.Skill.ID)
		yes := true
		d, err := h.library.UpdateSkill(context.Background(), h.admin, library.SkillUpdate{SkillID: d.Skill.ID, Revision: 1, Process: &yes})
		h.ok(err)
		_, err = h.library.Approve(context.Background(), h.admin, library.ApproveInput{SkillID: d.Skill.ID, Digest: string(d.Digest())})
		h.ok(err)
		r := h.carryOut(task, "")
		h.t.Run("I4 X2 a skill of a task that became a process is skipped with a notice that names it", func(t *testing.T) {
			if r.Status != run.Completed || len(r.Pins) != 0 || len(r.Notices) != 1 || r.Notices[0].Code != run.NoticeProcessSkipped || r.Notices[0].Args[0] != "Own" {
				t.Errorf("%s %v %v", r.Status, r.Pins, r.Notices)
			}
			for _, m := range h.model.asked(0).Messages {
				if strings.Contains(m.Text, "Do Own.") {
					t.Errorf("the model read %q", m.Text)
				}
			}
		})
		h.t.Run("T9 it counts with its declaration", func(t *testing.T) {
			if !slices.Equal(r.SkillAllowList, []string{"get_page"}) {
				t.Errorf("%v", r.SkillAllowList)
			}
		})
	})
}

func TestTaskFence(t *testing.T) {
	each(t, func(h *house) {
		long := h.written("Long", strings.Repeat("Nobody approved this. ", 100), nil)
		h.offerHere(long) // first, and composed only for the task
		h.offer("reference", library.Always)
		task := h.task(long.Skill.ID)
		roomy := h.carryOut(task, "")
		block, _, _ := strings.Cut(h.model.asked(0).Messages[1].Text, "\n\nProofread this.")
		limit := strconv.Itoa(len(block) - 1)
		if _, err := h.access.UpdateSetting(context.Background(), h.admin, "skills.maxBytes", &limit); err != nil {
			h.t.Fatal(err)
		}
		tight := h.carryOut(task, "")
		h.t.Run("L7 a task's fenced skill is dropped before the configuration's that follows it, with a notice", func(t *testing.T) {
			if len(roomy.Notices) != 0 {
				t.Fatalf("%v", roomy.Notices)
			}
			if len(tight.Notices) != 1 || tight.Notices[0].Code != run.NoticeDroppedForSize || tight.Notices[0].Args[0] != "Long" {
				t.Errorf("%v", tight.Notices)
			}
			if text := h.model.asked(1).Messages[1].Text; !strings.Contains(text, "FENCED-REFERENCE-TEXT") || strings.Contains(text, "Nobody approved this. Nobody") {
				t.Errorf("%q", text)
			}
		})
	})
}

func TestTaskRefusals(t *testing.T) {
	each(t, func(h *house) {
		task := h.task()
		other := h.person("other")
		h.users(h.admin.ID)
		for name, tt := range map[string]struct {
			by   actor.Actor
			task uuid.UUID
			kind fault.Kind
		}{
			"nobody":              {actor.Actor{}, task.ID, fault.Unauthenticated},
			"no such task":        {h.admin, uuid.Max, fault.NotFound},
			"without run:start":   {actor.Actor{ID: uuid.Max, Kind: actor.Person}, task.ID, fault.Forbidden},
			"I6 not for everyone": {other, task.ID, ""},
		} {
			h.t.Run(name, func(t *testing.T) {
				_, err := h.agent.RunTask(context.Background(), tt.by, agent.TaskRequest{TaskID: tt.task})
				if tt.kind == "" {
					if refused, ok := fault.AsRefusal(err); !ok || refused.Code != fault.ConfigurationNotAllowed {
						t.Errorf("got %v", err)
					}
				} else if !fault.Is(err, tt.kind) {
					t.Errorf("got %v", err)
				}
			})
		}
		entries, err := h.store.AuditEntries(context.Background(), audit.Filter{Events: []audit.Event{audit.RunRefused}}, audit.Page{Limit: 5})
		h.ok(err)
		if len(entries) != 1 || entries[0].Detail["task"] != task.ID.String() || entries[0].Actor != other.ID {
			h.t.Errorf("%v", entries)
		}
	})
}
