package library_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/world"
)

// configuration makes a configuration on a scripted provider.
func (f *fixture) configuration(users ...uuid.UUID) library.Configuration {
	f.t.Helper()
	p, err := f.CreateProvider(f.ctx, f.admin, library.NewProvider{Name: "Script", Kind: library.Scripted, Script: "steps: []"})
	f.ok(err)
	c, err := f.CreateConfiguration(f.ctx, f.admin, library.NewConfiguration{Name: "Site", ProviderID: p.ID, AllowedUserIDs: users})
	f.ok(err)
	return c
}

func (f *fixture) attached(d library.Dossier, c library.Configuration, mode library.LoadMode) library.Offered {
	f.t.Helper()
	o, err := f.Attach(f.ctx, f.admin, library.AttachInput{SkillID: d.Skill.ID, ConfigurationID: c.ID, LoadMode: mode})
	f.ok(err)
	return o
}

func (f *fixture) order(c library.Configuration) string {
	f.t.Helper()
	offered, err := f.Offered(f.ctx, c.ID)
	f.ok(err)
	names := ""
	for _, o := range offered {
		names += o.Skill.Version.Name
	}
	return names
}

func TestAttach(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		t.Run("L1 a skill is offered on_demand unless said otherwise, after those that are there, audited", func(t *testing.T) {
			f := setUp(t)
			f.synced(file("a", "", "A.\n"), file("b", "", "B.\n"))
			c := f.configuration()
			first := f.attached(f.skill("s1"), c, "")
			second := f.attached(f.skill("s2"), c, library.Always)
			if first.Attachment.LoadMode != library.OnDemand || second.Attachment.Position <= first.Attachment.Position || f.order(c) != "ab" {
				t.Fatalf("%+v %+v", first.Attachment, second.Attachment)
			}
			entries := f.audited(audit.SkillAttached)
			if len(entries) != 2 || entries[0].Skill != first.Skill.ID || entries[1].Detail["mode"] != "always" || entries[1].Detail["configuration"] != c.ID.String() {
				t.Fatalf("%+v", entries)
			}
			f.ok(f.Detach(f.ctx, f.admin, first.Attachment.ID))
			f.once(audit.SkillDetached)
			if f.order(c) != "b" {
				t.Fatal("still attached")
			}
			f.failed(f.Detach(f.ctx, f.admin, first.Attachment.ID), fault.NotFound)
		})
		t.Run("L1 attaching twice is refused with the attachment, also for two at once", func(t *testing.T) {
			f := setUp(t)
			d, c := f.synced(file("a", "", "A.\n")), f.configuration()
			var first library.Offered
			f.between.before(func() { first = f.attached(d, c, library.Always) })
			_, err := f.Attach(f.ctx, f.admin, library.AttachInput{SkillID: d.Skill.ID, ConfigurationID: c.ID})
			if got := f.refused(err, fault.AlreadyAttached).Detail.(library.Attachment); got.ID != first.Attachment.ID {
				t.Fatalf("%+v", got)
			}
		})
		t.Run("L1 of two that are attached at once each gets a place of its own, on a configuration and on a task", func(t *testing.T) {
			f := setUp(t)
			f.synced(file("a", "", "A.\n"), file("b", "", "B.\n"))
			c := f.configuration()
			task, err := f.CreateTask(f.ctx, f.admin, library.NewTask{Name: "T", ConfigurationID: c.ID, Prompt: "Go."})
			f.ok(err)
			for name, to := range map[string]library.AttachInput{"configuration": {ConfigurationID: c.ID}, "task": {TaskID: task.ID}} {
				first, second := to, to
				first.SkillID, second.SkillID = f.skill("s1").Skill.ID, f.skill("s2").Skill.ID
				var one library.Offered
				f.between.before(func() {
					one, err = f.Attach(f.ctx, f.admin, first)
					f.ok(err)
				})
				two, err := f.Attach(f.ctx, f.admin, second)
				f.ok(err)
				if one.Attachment.Position != 1 || two.Attachment.Position != 2 {
					t.Fatalf("%s: places %d and %d", name, one.Attachment.Position, two.Attachment.Position)
				}
			}
		})
		t.Run("L1 what is attached while the order changes comes last", func(t *testing.T) {
			f := setUp(t)
			f.synced(file("a", "", "A.\n"), file("b", "", "B.\n"), file("c", "", "C.\n"))
			c := f.configuration()
			f.attached(f.skill("s1"), c, "")
			second := f.attached(f.skill("s2"), c, "")
			f.between.before(func() { f.attached(f.skill("s3"), c, "") })
			_, err := f.UpdateAttachment(f.ctx, f.admin, library.AttachmentUpdate{ID: second.Attachment.ID, Place: ptr(1)})
			f.ok(err)
			offered, err := f.Offered(f.ctx, c.ID)
			f.ok(err)
			for i, o := range offered {
				if o.Attachment.Position != i+1 {
					t.Fatalf("place %d holds position %d", i+1, o.Attachment.Position)
				}
			}
			if f.order(c) != "bac" {
				t.Fatalf("the order is %s", f.order(c))
			}
		})
		t.Run("L1 many attached at once are all attached, one after the other", func(t *testing.T) {
			f := setUp(t)
			var files []string
			for _, name := range strings.Split("abcdefghijklmnop", "") {
				files = append(files, file(name, "", name+".\n"))
			}
			f.synced(files...)
			c := f.configuration()
			at := world.Real()
			busy := library.Library{Store: f.memory, World: at, Accounts: f.rules}
			var all sync.WaitGroup
			skills, err := f.memory.SkillsOf(f.ctx, f.source.ID)
			f.ok(err)
			for _, s := range skills {
				all.Go(func() {
					if _, err := busy.Attach(f.ctx, f.admin, library.AttachInput{SkillID: s.ID, ConfigurationID: c.ID}); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			offered, err := f.Offered(f.ctx, c.ID)
			f.ok(err)
			if len(offered) != len(files) {
				t.Fatalf("%d of %d", len(offered), len(files))
			}
			for i, o := range offered {
				if o.Attachment.Position != i+1 {
					t.Fatalf("place %d holds position %d", i+1, o.Attachment.Position)
				}
			}
		})
		t.Run("X1 S14 a process, or what may be one, is not attached always", func(t *testing.T) {
			f := setUp(t)
			f.synced(file("a", "process: true\n", "A.\n"), file("b", "process: perhaps\n", "B.\n"))
			c := f.configuration()
			for _, id := range []string{"s1", "s2"} {
				d := f.skill(id)
				_, err := f.Attach(f.ctx, f.admin, library.AttachInput{SkillID: d.Skill.ID, ConfigurationID: c.ID, LoadMode: library.Always})
				f.refused(err, fault.ProcessNotAlways)
				o := f.attached(d, c, library.OnDemand)
				_, err = f.UpdateAttachment(f.ctx, f.admin, library.AttachmentUpdate{ID: o.Attachment.ID, LoadMode: ptr(library.Always)})
				f.refused(err, fault.ProcessNotAlways)
			}
		})
		t.Run("X1 a skill that becomes a process while it is attached always is refused", func(t *testing.T) {
			f := setUp(t)
			d, c := f.synced(file("a", "", "A.\n")), f.configuration()
			f.between.before(func() { f.synced(file("a", "process: true\n", "A.\n")) })
			_, err := f.Attach(f.ctx, f.admin, library.AttachInput{SkillID: d.Skill.ID, ConfigurationID: c.ID, LoadMode: library.Always})
			f.refused(err, fault.ProcessNotAlways)
		})
		t.Run("L1 mode and place are changed, audited when they are", func(t *testing.T) {
			f := setUp(t)
			f.synced(file("a", "", "A.\n"), file("b", "", "B.\n"), file("c", "", "C.\n"))
			c := f.configuration()
			var last library.Offered
			for _, id := range []string{"s1", "s2", "s3"} {
				last = f.attached(f.skill(id), c, "")
			}
			move := func(place int, want string) {
				t.Helper()
				_, err := f.UpdateAttachment(f.ctx, f.admin, library.AttachmentUpdate{ID: last.Attachment.ID, Place: &place})
				f.ok(err)
				if got := f.order(c); got != want {
					t.Fatalf("order %s, want %s", got, want)
				}
			}
			move(1, "cab")
			move(2, "acb")
			move(99, "abc")
			move(3, "abc")
			if n := len(f.audited(audit.AttachmentUpdated)); n != 3 {
				t.Fatalf("%d entries for three moves", n)
			}
			got, err := f.UpdateAttachment(f.ctx, f.admin, library.AttachmentUpdate{ID: last.Attachment.ID, LoadMode: ptr(library.Always)})
			f.ok(err)
			kept, err := f.FindAttachment(f.ctx, f.reader, last.Attachment.ID)
			f.ok(err)
			if got.Attachment.LoadMode != library.Always || kept.Attachment != got.Attachment || kept.Skill.ID != got.Skill.ID {
				t.Fatalf("%+v, kept %+v", got.Attachment, kept)
			}
		})
		t.Run("L1 only administrators attach, detach and arrange", func(t *testing.T) {
			f := setUp(t)
			d, c := f.synced(file("a", "", "A.\n")), f.configuration()
			o := f.attached(d, c, "")
			_, err := f.Attach(f.ctx, f.approver, library.AttachInput{SkillID: d.Skill.ID, ConfigurationID: c.ID})
			f.failed(err, fault.Forbidden)
			f.failed(f.Detach(f.ctx, f.author, o.Attachment.ID), fault.Forbidden)
			_, err = f.UpdateAttachment(f.ctx, f.author, library.AttachmentUpdate{ID: o.Attachment.ID})
			f.failed(err, fault.Forbidden)
		})
		t.Run("wrong input", func(t *testing.T) {
			f := setUp(t)
			d, c := f.synced(file("a", "", "A.\n")), f.configuration()
			_, err := f.Attach(f.ctx, f.admin, library.AttachInput{SkillID: d.Skill.ID, ConfigurationID: uuid.Max})
			f.failed(err, fault.NotFound)
			_, err = f.Attach(f.ctx, f.admin, library.AttachInput{SkillID: uuid.Max, ConfigurationID: c.ID})
			f.failed(err, fault.NotFound)
			_, err = f.Attach(f.ctx, f.admin, library.AttachInput{SkillID: d.Skill.ID, ConfigurationID: c.ID, LoadMode: "sometimes"})
			f.failed(err, fault.BadInput)
			_, err = f.UpdateAttachment(f.ctx, f.admin, library.AttachmentUpdate{ID: uuid.Max})
			f.failed(err, fault.NotFound)
			_, err = f.UpdateAttachment(f.ctx, f.admin, library.AttachmentUpdate{ID: uuid.Max, Place: ptr(0)})
			f.failed(err, fault.BadInput)
		})
	})
}

func TestCatalogue(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		names := func(entries []library.Entry) string {
			all := ""
			for _, e := range entries {
				all += e.Skill.Version.Name
			}
			return all
		}
		t.Run("I1 A11 shows what is attached and effective, and says what instructs", func(t *testing.T) {
			f := setUp(t)
			f.synced(file("a", "", "A.\n"), file("b", "", "B.\n"), file("c", "", "C.\n"), file("d", "", "D.\n"))
			c := f.configuration()
			for _, id := range []string{"s1", "s2", "s3"} {
				f.attached(f.skill(id), c, "")
			}
			f.enabled(f.skill("s1").Skill.ID)
			f.enabled(f.skill("s3").Skill.ID)
			f.approved(f.skill("s3"))
			entries, err := f.Catalogue(f.ctx, f.reader, c.ID, false)
			f.ok(err)
			if names(entries) != "ac" || entries[0].Standing.Instructs || !entries[1].Standing.Instructs {
				t.Fatalf("%+v", entries)
			}
		})
		t.Run("X3 S14 a process is offered to people who may approve their own changes, an unreadable one to nobody", func(t *testing.T) {
			f := setUp(t)
			f.synced(file("a", "process: true\n", "A.\n"), file("b", "process: perhaps\n", "B.\n"), file("c", "", "C.\n"))
			c := f.configuration()
			for _, id := range []string{"s1", "s2", "s3"} {
				f.attached(f.skill(id), c, "")
				f.enabled(f.skill(id).Skill.ID)
			}
			editor, machine := f.reader, f.admin
			editor.Granted = append(slices.Clone(editor.Granted), actor.RunApproveOwn)
			machine.Kind = actor.ServiceAccount
			for _, want := range []struct {
				by            actor.Actor
				processesOnly bool
				names         string
			}{{f.reader, false, "c"}, {editor, false, "ac"}, {editor, true, "a"}, {machine, false, "c"}} {
				entries, err := f.Catalogue(f.ctx, want.by, c.ID, want.processesOnly)
				f.ok(err)
				if names(entries) != want.names {
					t.Fatalf("%s sees %q, want %q", want.by.Name, names(entries), want.names)
				}
			}
		})
		t.Run("I6 a configuration that one may not use does not exist for one", func(t *testing.T) {
			f := setUp(t)
			c := f.configuration(f.author.ID)
			_, err := f.Catalogue(f.ctx, f.reader, c.ID, false)
			f.failed(err, fault.NotFound)
			for _, by := range []actor.Actor{f.author, f.admin} {
				_, err = f.Catalogue(f.ctx, by, c.ID, false)
				f.ok(err)
			}
			_, err = f.UpdateConfiguration(f.ctx, f.admin, library.ConfigurationUpdate{ID: c.ID, AllowedUserIDs: &[]uuid.UUID{f.reader.ID}})
			f.ok(err)
			_, err = f.Catalogue(f.ctx, f.author, c.ID, false)
			f.failed(err, fault.NotFound)
		})
	})
}

func TestLists(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		f := setUp(t)
		f.synced(file("a", "", "A.\n"), file("b", "", "B.\n"), file("c", "", "C.\n"), file("d", "", "D.\n"))
		f.approved(f.skill("s2"))
		f.approved(f.skill("s4"))
		list := func(q library.SkillQuery, page library.Page) string {
			t.Helper()
			ds, err := f.ListSkills(f.ctx, f.reader, q, page)
			f.ok(err)
			all := ""
			for _, d := range ds {
				all += d.Skill.Version.Name
			}
			return all
		}
		t.Run("skills are filtered by whether they instruct, across pages", func(t *testing.T) {
			for _, want := range []struct {
				q     library.SkillQuery
				page  library.Page
				names string
			}{
				{library.SkillQuery{}, library.Page{Limit: 3}, "abc"},
				{library.SkillQuery{}, library.Page{Limit: 3, Cursor: f.skill("s2").Skill.ID}, "cd"},
				{library.SkillQuery{Instructs: ptr(true)}, library.Page{Limit: 2}, "bd"},
				{library.SkillQuery{Instructs: ptr(true)}, library.Page{Limit: 1}, "b"},
				{library.SkillQuery{Instructs: ptr(false)}, library.Page{Limit: 20}, "ac"},
				{library.SkillQuery{Instructs: ptr(true)}, library.Page{Limit: 1, Backward: true}, "d"},
				{library.SkillQuery{SkillFilter: library.SkillFilter{Orphaned: ptr(true)}}, library.Page{Limit: 20}, ""},
			} {
				if got := list(want.q, want.page); got != want.names {
					t.Errorf("%+v %+v: %q, want %q", want.q, want.page, got, want.names)
				}
			}
		})
		t.Run("I6 configurations are those one may use", func(t *testing.T) {
			open, closed := f.configuration(), f.configuration(f.author.ID)
			for by, want := range map[string]int{"reader": 1, "author": 2, "admin": 2} {
				a := map[string]actor.Actor{"reader": f.reader, "author": f.author, "admin": f.admin}[by]
				got, err := f.ListConfigurations(f.ctx, a, library.Page{Limit: 2})
				f.ok(err)
				if len(got) != want || got[0].ID != open.ID || want == 2 && got[1].ID != closed.ID {
					t.Errorf("%s sees %+v", by, got)
				}
			}
		})
		t.Run("secrets are not among what people read", func(t *testing.T) {
			_, err := f.SetSourceToken(f.ctx, f.admin, f.source.ID, "hunter2")
			f.ok(err)
			sources, err := f.ListSources(f.ctx, f.reader, library.Page{Limit: 9})
			f.ok(err)
			if len(sources) == 0 || sources[0].AccessToken != "" || f.reload().AccessToken != "" || f.skill("s1").Source.AccessToken != "" {
				t.Fatal("a token came back")
			}
			p, err := f.CreateProvider(f.ctx, f.admin, library.NewProvider{Name: "P", Kind: library.Anthropic, APIKey: "hunter3"})
			f.ok(err)
			found, err := f.FindProvider(f.ctx, f.admin, p.ID)
			f.ok(err)
			all, err := f.ListProviders(f.ctx, f.admin, library.Page{Limit: 99})
			f.ok(err)
			if p.APIKey != "" || found.APIKey != "" || slices.ContainsFunc(all, func(p library.Provider) bool { return p.APIKey != "" }) {
				t.Fatal("a key came back")
			}
			kept, err := f.Provider(f.ctx, p.ID)
			f.ok(err)
			if kept.APIKey != "hunter3" {
				t.Fatal("the runtime has no key")
			}
			for _, e := range f.trail() {
				for _, v := range e.Detail {
					if v == "hunter2" || v == "hunter3" {
						t.Fatalf("a secret is in the trail: %+v", e)
					}
				}
			}
		})
		t.Run("reading needs skill:read, providers an administrator", func(t *testing.T) {
			nobody := actor.Actor{ID: uuid.Max, Kind: actor.Person}
			_, err := f.ListSkills(f.ctx, nobody, library.SkillQuery{}, library.Page{Limit: 1})
			f.failed(err, fault.Forbidden)
			_, err = f.FindSkill(f.ctx, nobody, f.skill("s1").Skill.ID)
			f.failed(err, fault.Forbidden)
			_, err = f.ListSources(f.ctx, nobody, library.Page{Limit: 1})
			f.failed(err, fault.Forbidden)
			_, err = f.ListProviders(f.ctx, f.author, library.Page{Limit: 1})
			f.failed(err, fault.Forbidden)
			_, err = f.FindProvider(f.ctx, f.author, uuid.Max)
			f.failed(err, fault.Forbidden)
			_, err = f.ListConfigurations(f.ctx, actor.Actor{}, library.Page{Limit: 1})
			f.failed(err, fault.Unauthenticated)
		})
	})
}
