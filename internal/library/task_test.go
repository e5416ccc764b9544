package library_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
)

func (f *fixture) task(c library.Configuration) library.Task {
	f.t.Helper()
	task, err := f.CreateTask(f.ctx, f.admin, library.NewTask{Name: "Proofread", ConfigurationID: c.ID, Prompt: "Read it.\n"})
	f.ok(err)
	return task
}

func TestTasks(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		t.Run("I4 a task is one prompt on a configuration, an administrator's and audited", func(t *testing.T) {
			f := setUp(t)
			c := f.configuration()
			task := f.task(c)
			if task.Name != "Proofread" || task.Prompt != "Read it." || task.ConfigurationID != c.ID {
				t.Fatalf("%+v", task)
			}
			if e := f.once(audit.ConfigurationUpdated); e.Detail["addedTask"] != task.ID.String() || e.Detail["configuration"] != c.ID.String() {
				t.Fatalf("%+v", e)
			}
			for _, by := range []actor.Actor{f.author, f.approver, f.reader} {
				_, err := f.CreateTask(f.ctx, by, library.NewTask{Name: "a", ConfigurationID: c.ID, Prompt: "b"})
				f.failed(err, fault.Forbidden)
			}
			for kind, in := range map[fault.Kind][]library.NewTask{
				fault.BadInput: {
					{ConfigurationID: c.ID, Prompt: "b"},
					{Name: "a", ConfigurationID: c.ID, Prompt: " \n"},
					{Name: "a", ConfigurationID: c.ID, Prompt: strings.Repeat("x", 128<<10+1)},
				},
				fault.NotFound: {{Name: "a", ConfigurationID: uuid.Max, Prompt: "b"}},
			} {
				for _, in := range in {
					_, err := f.CreateTask(f.ctx, f.admin, in)
					f.failed(err, kind)
				}
			}
		})
		t.Run("I6 a task exists for those who may use its configuration", func(t *testing.T) {
			f := setUp(t)
			open, closed := f.configuration(), f.configuration()
			_, err := f.UpdateConfiguration(f.ctx, f.admin, library.ConfigurationUpdate{ID: closed.ID, AllowedUserIDs: &[]uuid.UUID{f.author.ID}})
			f.ok(err)
			hidden, shown := f.task(closed), f.task(open)
			for _, v := range []struct {
				by    actor.Actor
				tasks int
			}{{f.reader, 1}, {f.author, 2}, {f.admin, 2}} {
				all, err := f.ListTasks(f.ctx, v.by, library.Page{Limit: 5})
				if err != nil || len(all) != v.tasks || all[v.tasks-1] != shown {
					t.Fatalf("%s: %+v %v", v.by.Name, all, err)
				}
				_, err = f.FindTask(f.ctx, v.by, hidden.ID)
				if v.tasks == 2 {
					f.ok(err)
				} else {
					f.failed(err, fault.NotFound)
				}
			}
			_, err = f.ListTasks(f.ctx, actor.Actor{}, library.Page{Limit: 5})
			f.failed(err, fault.Unauthenticated)
		})
	})
}

func TestAttachToTask(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		attach := func(f *fixture, d library.Dossier, task library.Task, mode library.LoadMode) (library.Offered, error) {
			return f.Attach(f.ctx, f.admin, library.AttachInput{SkillID: d.Skill.ID, TaskID: task.ID, LoadMode: mode})
		}
		t.Run("I4 L1 a skill is attached always, in an order of the task's own, audited with the task", func(t *testing.T) {
			f := setUp(t)
			f.synced(file("a", "", "A.\n"), file("b", "", "B.\n"))
			c := f.configuration()
			task := f.task(c)
			f.attached(f.skill("s1"), c, library.OnDemand)
			for i, id := range []string{"s1", "s2"} {
				o, err := attach(f, f.skill(id), task, "")
				f.ok(err)
				if a := o.Attachment; a.LoadMode != library.Always || a.Position != i+1 || a.TaskID != task.ID || a.ConfigurationID != uuid.Nil {
					t.Fatalf("%+v", a)
				}
			}
			entries := f.audited(audit.SkillAttached)
			if last := entries[2]; last.Detail["task"] != task.ID.String() || last.Detail["configuration"] != nil {
				t.Fatalf("%+v", last)
			}
			offered, err := f.OfferedByTask(f.ctx, task.ID)
			f.ok(err)
			_, err = f.UpdateAttachment(f.ctx, f.admin, library.AttachmentUpdate{ID: offered[1].Attachment.ID, Place: ptr(1)})
			f.ok(err)
			_, err = attach(f, f.skill("s1"), task, library.Always)
			f.refused(err, fault.AlreadyAttached)
			f.ok(f.Detach(f.ctx, f.admin, offered[0].Attachment.ID))
			now, err := f.OfferedByTask(f.ctx, task.ID)
			if err != nil || len(now) != 1 || now[0].Skill.ID != offered[1].Skill.ID || f.order(c) != "a" {
				t.Fatalf("%+v %v", now, err)
			}
		})
		t.Run("I4 on_demand on a task is refused, at first and later", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("a", "", "A.\n"))
			task := f.task(f.configuration())
			_, err := attach(f, d, task, library.OnDemand)
			f.refused(err, fault.TaskAlwaysOnly)
			o, err := attach(f, d, task, library.Always)
			f.ok(err)
			_, err = f.UpdateAttachment(f.ctx, f.admin, library.AttachmentUpdate{ID: o.Attachment.ID, LoadMode: ptr(library.OnDemand)})
			f.refused(err, fault.TaskAlwaysOnly)
		})
		t.Run("I4 S14 a process, or what may be one, is not attached to a task in any mode", func(t *testing.T) {
			f := setUp(t)
			f.synced(file("a", "process: true\n", "A.\n"), file("b", "process: perhaps\n", "B.\n"))
			task := f.task(f.configuration())
			for _, id := range []string{"s1", "s2"} {
				for _, mode := range []library.LoadMode{"", library.Always, library.OnDemand} {
					_, err := attach(f, f.skill(id), task, mode)
					f.refused(err, fault.ProcessNotAlways)
				}
			}
		})
		t.Run("I4 a skill that becomes a process while it is attached is refused", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("a", "", "A.\n"))
			task := f.task(f.configuration())
			f.between.before(func() { f.synced(file("a", "process: true\n", "A.\n")) })
			_, err := attach(f, d, task, "")
			f.refused(err, fault.ProcessNotAlways)
		})
		t.Run("wrong input", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("a", "", "A.\n"))
			c := f.configuration()
			task := f.task(c)
			for kind, in := range map[fault.Kind][]library.AttachInput{
				fault.BadInput: {
					{SkillID: d.Skill.ID},
					{SkillID: d.Skill.ID, ConfigurationID: c.ID, TaskID: task.ID},
					{SkillID: d.Skill.ID, TaskID: task.ID, LoadMode: "sometimes"},
				},
				fault.NotFound: {{SkillID: d.Skill.ID, TaskID: uuid.Max}, {SkillID: uuid.Max, TaskID: task.ID}},
			} {
				for _, in := range in {
					_, err := f.Attach(f.ctx, f.admin, in)
					f.failed(err, kind)
				}
			}
		})
	})
}
