package library_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/skill"
)

// written writes a skill in an authored source.
func (f *fixture) written(body string) library.Dossier {
	f.t.Helper()
	s := f.newSource(library.Authored, "", skill.FirstParty)
	d, err := f.CreateSkill(f.ctx, f.author, library.NewSkill{SourceID: s.ID, Name: "House style", Description: "How we write.", Body: body})
	f.ok(err)
	return d
}

func (f *fixture) edited(d library.Dossier, body string) library.Dossier {
	f.t.Helper()
	d, err := f.UpdateSkill(f.ctx, f.author, library.SkillUpdate{SkillID: d.Skill.ID, Revision: d.Skill.Revision, Body: &body})
	f.ok(err)
	return d
}

func (f *fixture) enabled(id uuid.UUID) library.Dossier {
	f.t.Helper()
	d, err := f.SetSkillEnabled(f.ctx, f.admin, id, true)
	f.ok(err)
	return d
}

func ptr[T any](v T) *T { return &v }

func TestAuthoredSkills(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		t.Run("S9 W2 a written skill starts disabled, at revision 1, and instructs only once approved", func(t *testing.T) {
			f := setUp(t)
			d := f.written("Write plainly.\r\n")
			if d.Skill.Enabled || d.Skill.Revision != 1 || d.Skill.Identifier != "house-style" || d.Skill.Version.Body != "Write plainly.\n" ||
				d.Skill.Version.Support != skill.SupportFull || d.Skill.Version.Tools.State != skill.ToolsUndeclared {
				t.Fatalf("%+v", d.Skill)
			}
			f.instructs(d.Skill.ID, false, skill.ReasonNoApproval)
			f.approved(d)
			f.instructs(d.Skill.ID, true)
			if e := f.once(audit.IngestCreated); e.Actor != f.author.ID || e.Digest != string(d.Digest()) {
				t.Fatalf("entry %+v", e)
			}
		})
		t.Run("W1 the digest follows the current fields: an edit takes the instruction away, going back returns it", func(t *testing.T) {
			f := setUp(t)
			d := f.written("Write plainly.\n")
			f.approved(d)
			now := f.edited(d, "Write ornately.\n")
			if now.Digest() == d.Digest() || now.Digest() != now.Skill.Version.Digest() {
				t.Fatal("the digest does not follow the text")
			}
			f.instructs(d.Skill.ID, false, skill.ReasonNoApproval)
			f.edited(now, "Write plainly.\n")
			f.instructs(d.Skill.ID, true)
		})
		t.Run("W3 an authored skill contributes the tools of its newest unrevoked approved snapshot, else an empty declaration", func(t *testing.T) {
			f := setUp(t)
			d := f.written("Write plainly.\n")
			contributes := func(want skill.Tools) {
				t.Helper()
				got := skill.ContributedTools(f.reread(d.Skill.ID).Facts(library.Thresholds{}))
				if got.State != want.State || !slices.Equal(got.Items, want.Items) {
					t.Fatalf("contributes %+v, want %+v", got, want)
				}
			}
			contributes(skill.DeclareTools())
			tools := func(d library.Dossier, names ...string) library.Dossier {
				t.Helper()
				d, err := f.UpdateSkill(f.ctx, f.admin, library.SkillUpdate{
					SkillID: d.Skill.ID, Revision: d.Skill.Revision, Name: ptr("House style"), AllowedTools: &names,
				})
				f.ok(err)
				return d
			}
			first := tools(d, "get_page")
			if len(first.Skill.Version.Tools.Items) != 1 {
				t.Fatalf("%+v", first.Skill.Version.Tools)
			}
			f.approved(first)
			contributes(skill.DeclareTools("get_page"))
			second := tools(first, "get_page", "update_element")
			contributes(skill.DeclareTools("get_page")) // an edit widens nothing
			f.approved(second)
			contributes(skill.DeclareTools("get_page", "update_element"))
			f.revoked(d.Skill.ID, second.Digest())
			contributes(skill.DeclareTools("get_page"))
			f.revoked(d.Skill.ID, first.Digest())
			contributes(skill.DeclareTools())
		})
		t.Run("W4 an author writes the text and the process marker; tools need an administrator", func(t *testing.T) {
			f := setUp(t)
			d := f.written("Write plainly.\n")
			d, err := f.UpdateSkill(f.ctx, f.author, library.SkillUpdate{SkillID: d.Skill.ID, Revision: 1, Process: ptr(true)})
			f.ok(err)
			if d.Skill.Version.Process != skill.ProcessYes {
				t.Fatal("the marker was not set")
			}
			_, err = f.UpdateSkill(f.ctx, f.author, library.SkillUpdate{SkillID: d.Skill.ID, Revision: 2, AllowedTools: &[]string{"x"}})
			f.failed(err, fault.Forbidden)
			_, err = f.CreateSkill(f.ctx, f.author, library.NewSkill{SourceID: d.Source.ID, Name: "n", Description: "d", Body: "b", AllowedTools: &[]string{}})
			f.failed(err, fault.Forbidden)
			_, err = f.SetSkillEnabled(f.ctx, f.author, d.Skill.ID, true)
			f.failed(err, fault.Forbidden)
			_, err = f.UpdateSkill(f.ctx, f.reader, library.SkillUpdate{SkillID: d.Skill.ID, Revision: 2, Body: ptr("x")})
			f.failed(err, fault.Forbidden)
		})
		t.Run("W4 an authored body is never parsed for frontmatter", func(t *testing.T) {
			f := setUp(t)
			body := "---\nname: other\nallowed-tools: Bash\nprocess: true\n---\nText.\n"
			d := f.written(body)
			if v := d.Skill.Version; v.Body != body || v.Name != "House style" || v.Process != skill.ProcessNo || v.Tools.Declares() {
				t.Fatalf("%+v", v)
			}
		})
		t.Run("W2 every edit is a revision, and any can be restored as a new one", func(t *testing.T) {
			f := setUp(t)
			d := f.written("One.\n")
			d = f.edited(d, "Two.\n")
			d, err := f.RestoreRevision(f.ctx, f.author, library.RestoreInput{SkillID: d.Skill.ID, Revision: 2, Number: 1})
			f.ok(err)
			all, err := f.Revisions(f.ctx, f.reader, d.Skill.ID)
			f.ok(err)
			if d.Skill.Revision != 3 || d.Skill.Version.Body != "One.\n" || len(all) != 3 || all[0].Number != 3 ||
				all[1].Version.Body != "Two.\n" || all[2].AuthorID != f.author.ID {
				t.Fatalf("%+v", all)
			}
			_, err = f.RestoreRevision(f.ctx, f.author, library.RestoreInput{SkillID: d.Skill.ID, Revision: 3, Number: 9})
			f.failed(err, fault.NotFound)
		})
		t.Run("W4 restoring a revision brings its tools back for an administrator only", func(t *testing.T) {
			f := setUp(t)
			d := f.written("One.\n")
			d, err := f.UpdateSkill(f.ctx, f.admin, library.SkillUpdate{SkillID: d.Skill.ID, Revision: 1, AllowedTools: &[]string{"update_element"}})
			f.ok(err)
			d, err = f.UpdateSkill(f.ctx, f.admin, library.SkillUpdate{SkillID: d.Skill.ID, Revision: 2, AllowedTools: &[]string{}, Body: ptr("Two.\n")})
			f.ok(err)
			d, err = f.RestoreRevision(f.ctx, f.author, library.RestoreInput{SkillID: d.Skill.ID, Revision: 3, Number: 2})
			f.ok(err)
			if d.Skill.Version.Body != "One.\n" || len(d.Skill.Version.Tools.Items) != 0 {
				t.Fatalf("%+v", d.Skill.Version)
			}
		})
		t.Run("W5 an edit from a stale revision is refused with the current text", func(t *testing.T) {
			f := setUp(t)
			d := f.written("One.\n")
			f.edited(d, "Two.\n")
			_, err := f.UpdateSkill(f.ctx, f.author, library.SkillUpdate{SkillID: d.Skill.ID, Revision: 1, Body: ptr("Three.\n")})
			detail := f.refused(err, fault.StaleRevision).Detail.(library.StaleRevision)
			if detail.Posted != 1 || detail.Current.Skill.Revision != 2 || detail.Current.Skill.Version.Body != "Two.\n" {
				t.Fatalf("%+v", detail)
			}
		})
		t.Run("W5 of two edits at once one wins", func(t *testing.T) {
			f := setUp(t)
			d := f.written("One.\n")
			f.between.before(func() { f.edited(d, "Two.\n") })
			_, err := f.UpdateSkill(f.ctx, f.author, library.SkillUpdate{SkillID: d.Skill.ID, Revision: 1, Body: ptr("Three.\n")})
			f.refused(err, fault.StaleRevision)
			if got := f.reread(d.Skill.ID); got.Skill.Version.Body != "Two.\n" || got.Skill.Revision != 2 {
				t.Fatalf("%+v", got.Skill)
			}
		})
		t.Run("W2 an edit that changes nothing is no revision", func(t *testing.T) {
			f := setUp(t)
			d := f.written("One.\n")
			if got := f.edited(d, "One.\n"); got.Skill.Revision != 1 {
				t.Fatalf("revision %d", got.Skill.Revision)
			}
		})
		t.Run("S12 nobody edits a synced skill, administrators included", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("style", "", "Write plainly.\n"))
			for _, u := range []library.SkillUpdate{{Body: ptr("x")}, {Name: ptr("x")}, {Description: ptr("x")}, {Process: ptr(true)}, {AllowedTools: &[]string{}}} {
				u.SkillID, u.Revision = d.Skill.ID, d.Skill.Revision
				_, err := f.UpdateSkill(f.ctx, f.admin, u)
				f.failed(err, fault.BadInput)
			}
			if got := f.reread(d.Skill.ID); got.Skill.Version.Digest() != d.Digest() {
				t.Fatal("the text changed")
			}
			_, err := f.CreateSkill(f.ctx, f.admin, library.NewSkill{SourceID: f.source.ID, Name: "n", Description: "d", Body: "b"})
			f.failed(err, fault.BadInput)
		})
		t.Run("S6 an identifier names one skill of its source", func(t *testing.T) {
			f := setUp(t)
			d := f.written("One.\n")
			again := library.NewSkill{SourceID: d.Source.ID, Name: "House style", Description: "d", Body: "b"}
			_, err := f.CreateSkill(f.ctx, f.author, again)
			f.refused(err, fault.InUse)
			again.SourceID = f.newSource(library.Authored, "", skill.Verified).ID
			_, err = f.CreateSkill(f.ctx, f.author, again)
			f.ok(err)
		})
		t.Run("wrong text names the field", func(t *testing.T) {
			f := setUp(t)
			s := f.newSource(library.Authored, "", skill.Verified)
			good := library.NewSkill{SourceID: s.ID, Name: "n", Description: "d", Body: "b"}
			for field, in := range map[string]library.NewSkill{
				"name":         {Name: " ", Description: "d", Body: "b"},
				"description":  {Name: "n", Description: "\n", Body: "b"},
				"body":         {Name: "n", Description: "d", Body: strings.Repeat("x", 512<<10+1)},
				"identifier":   {Name: "n", Description: "d", Body: "b", Identifier: "a\nb"},
				"allowedTools": {Name: "n", Description: "d", Body: "b", AllowedTools: &[]string{"a b"}},
				"body must":    {Name: "n", Description: "d", Body: "a\x00b"},
			} {
				in.SourceID = s.ID
				_, err := f.CreateSkill(f.ctx, f.admin, in)
				f.failed(err, fault.BadInput)
				if !strings.HasPrefix(err.Error(), field) {
					t.Errorf("%q does not begin with %s", err, field)
				}
			}
			good.SourceID = uuid.Max
			_, err := f.CreateSkill(f.ctx, f.admin, good)
			f.failed(err, fault.NotFound)
		})
	})
}

func TestEnable(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		t.Run("L1 an administrator switches a skill, audited when it changes", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("style", "", "Write plainly.\n"))
			for range 2 {
				if got := f.enabled(d.Skill.ID); !got.Skill.Enabled {
					t.Fatal("not enabled")
				}
			}
			f.once(audit.SkillEnabled)
			_, err := f.SetSkillEnabled(f.ctx, f.admin, d.Skill.ID, false)
			f.ok(err)
			f.once(audit.SkillDisabled)
			f.instructs(d.Skill.ID, false, skill.ReasonNoApproval)
		})
		t.Run("S8 a skill that is gone from its source is not switched on", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("style", "", "Write plainly.\n"))
			f.fetcher.set(t)
			_, err := f.Sync(f.ctx, f.admin, f.source.ID)
			f.ok(err)
			_, err = f.SetSkillEnabled(f.ctx, f.admin, d.Skill.ID, true)
			f.refused(err, fault.SkillOrphaned)
		})
		t.Run("S8 one that goes while it is switched on is refused too", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("style", "", "Write plainly.\n"))
			f.between.before(func() {
				f.fetcher.set(t)
				_, err := f.Sync(f.ctx, f.admin, f.source.ID)
				f.ok(err)
			})
			_, err := f.SetSkillEnabled(f.ctx, f.admin, d.Skill.ID, true)
			f.refused(err, fault.SkillOrphaned)
		})
		t.Run("unknown skills are not found", func(t *testing.T) {
			f := setUp(t)
			_, err := f.SetSkillEnabled(f.ctx, f.admin, uuid.Max, true)
			f.failed(err, fault.NotFound)
		})
	})
}
