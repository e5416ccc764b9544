package library_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/skill"
	"github.com/countersign/countersign/internal/tool"
)

func TestSources(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		t.Run("S1 a source is created never synced, untrusted unless said otherwise, and audited", func(t *testing.T) {
			f := setUp(t)
			s, err := f.CreateSource(f.ctx, f.admin, library.NewSource{Title: " Acme ", Type: library.Repo, URL: "https://github.com/acme/skills.git"})
			f.ok(err)
			if s.Title != "Acme" || s.TrustLevel != skill.Untrusted || s.SyncStatus != library.NeverSynced || !s.Enabled || s.LastSyncedAt != nil {
				t.Fatalf("%+v", s)
			}
			entries := f.audited(audit.SourceCreated)
			if e := entries[len(entries)-1]; e.Source != s.ID || e.Actor != f.admin.ID || e.Detail["level"] != "untrusted" {
				t.Fatalf("%+v", e)
			}
		})
		t.Run("S1 S2 a URL that its type cannot read is refused, saying what is accepted", func(t *testing.T) {
			f := setUp(t)
			commit := strings.Repeat("a", 40)
			good := []library.NewSource{
				{Type: library.Repo, URL: "https://github.com/acme/skills"},
				{Type: library.Marketplace, URL: "https://GitHub.com/acme/skills/", Ref: "feature/x", PinnedCommit: commit},
				{Type: library.SingleFile, URL: "https://github.com/acme/skills/blob/main/a/SKILL.md"},
				{Type: library.SingleFile, URL: "https://raw.githubusercontent.com/acme/skills/main/SKILL.md"},
				{Type: library.Authored},
			}
			for _, in := range good {
				in.Title = "T"
				if _, err := f.CreateSource(f.ctx, f.admin, in); err != nil {
					t.Errorf("%+v: %v", in, err)
				}
			}
			bad := []struct {
				in    library.NewSource
				field string
			}{
				{library.NewSource{Type: library.Repo, URL: "http://github.com/acme/skills"}, "url"},
				{library.NewSource{Type: library.Repo, URL: "https://evil.example/acme/skills"}, "url"},
				{library.NewSource{Type: library.Repo, URL: "https://github.com.evil.example/acme/skills"}, "url"},
				{library.NewSource{Type: library.Repo, URL: "https://token@github.com/acme/skills"}, "url"},
				{library.NewSource{Type: library.Repo, URL: "https://github.com:8443/acme/skills"}, "url"},
				{library.NewSource{Type: library.Repo, URL: "https://github.com/acme"}, "url"},
				{library.NewSource{Type: library.Repo, URL: "https://github.com/acme/skills/tree/main"}, "url"},
				{library.NewSource{Type: library.Repo, URL: ""}, "url"},
				{library.NewSource{Type: library.Repo, URL: "file:///etc/passwd"}, "url"},
				{library.NewSource{Type: library.Repo, URL: "https://github.com/%zz"}, "url"},
				{library.NewSource{Type: library.SingleFile, URL: "https://github.com/acme/skills"}, "url"},
				{library.NewSource{Type: library.Authored, URL: "https://github.com/acme/skills"}, "url"},
				{library.NewSource{Type: "svn", URL: "https://github.com/acme/skills"}, "type"},
				{library.NewSource{Type: library.Repo, URL: "https://github.com/acme/skills", Ref: "--upload-pack=x"}, "ref"},
				{library.NewSource{Type: library.Repo, URL: "https://github.com/acme/skills", PinnedCommit: "abc"}, "pinnedCommit"},
				{library.NewSource{Type: library.Repo, URL: "https://github.com/acme/skills", ExpectedFingerprint: "abc"}, "expectedFingerprint"},
				{library.NewSource{Type: library.Repo, URL: "https://github.com/acme/skills", Token: "a b"}, "token"},
				{library.NewSource{Type: library.Repo, URL: "https://github.com/acme/skills", TrustLevel: "best"}, "trustLevel"},
			}
			for _, b := range bad {
				b.in.Title = "T"
				_, err := f.CreateSource(f.ctx, f.admin, b.in)
				f.failed(err, fault.BadInput)
				if !strings.HasPrefix(err.Error(), b.field) {
					t.Errorf("%+v: %q does not begin with %s", b.in, err, b.field)
				}
			}
			_, err := f.CreateSource(f.ctx, f.admin, library.NewSource{Title: "\n", Type: library.Authored})
			f.failed(err, fault.BadInput)
		})
		t.Run("S2 an enterprise host that was added is accepted as github.com is", func(t *testing.T) {
			f := setUp(t)
			urls := map[library.SourceType]string{
				library.Repo: "https://Git.example.com/acme/skills", library.Marketplace: "https://git.example.com/acme/skills",
				library.SingleFile: "https://git.example.com/acme/skills/blob/main/SKILL.md",
			}
			for kind, url := range urls {
				_, err := f.CreateSource(f.ctx, f.admin, library.NewSource{Title: "T", Type: kind, URL: url})
				f.failed(err, fault.BadInput)
			}
			_, err := f.UpdateSource(f.ctx, f.admin, library.SourceUpdate{ID: f.source.ID, URL: ptr(urls[library.Repo])})
			f.failed(err, fault.BadInput)
			f.EnterpriseHosts = []string{"git.example.com"}
			for kind, url := range urls {
				_, err := f.CreateSource(f.ctx, f.admin, library.NewSource{Title: "T", Type: kind, URL: url})
				f.ok(err)
			}
			_, err = f.UpdateSource(f.ctx, f.admin, library.SourceUpdate{ID: f.source.ID, URL: ptr(urls[library.Repo])})
			f.ok(err)
			_, err = f.CreateSource(f.ctx, f.admin, library.NewSource{Title: "T", Type: library.Repo, URL: "https://git.example.com.evil.example/acme/skills"})
			f.failed(err, fault.BadInput)
		})
		t.Run("W4 a source's fields and level are an administrator's, whatever mutation carries them", func(t *testing.T) {
			f := setUp(t)
			for _, by := range []actor.Actor{f.author, f.approver, f.reader} {
				_, err := f.CreateSource(f.ctx, by, library.NewSource{})
				f.failed(err, fault.Forbidden)
				_, err = f.UpdateSource(f.ctx, by, library.SourceUpdate{ID: f.source.ID, Enabled: ptr(true)})
				f.failed(err, fault.Forbidden)
				_, err = f.SetSourceTrustLevel(f.ctx, by, f.source.ID, skill.FirstParty)
				f.failed(err, fault.Forbidden)
				_, err = f.SetSourceToken(f.ctx, by, f.source.ID, "x")
				f.failed(err, fault.Forbidden)
				f.failed(f.DeleteSource(f.ctx, by, f.source.ID), fault.Forbidden)
			}
		})
		t.Run("U1 every change of a source is audited, and only changes", func(t *testing.T) {
			f := setUp(t)
			for range 2 {
				_, err := f.UpdateSource(f.ctx, f.admin, library.SourceUpdate{ID: f.source.ID, Ref: ptr("v1"), Title: ptr("New")})
				f.ok(err)
				_, err = f.SetSourceTrustLevel(f.ctx, f.admin, f.source.ID, skill.Community)
				f.ok(err)
			}
			f.says(f.once(audit.SourceUpdated), "changed", []string{"title", "ref"})
			if e := f.once(audit.SourceTrustChanged); e.Detail["from"] != "verified" || e.Detail["to"] != "community" {
				t.Fatalf("%+v", e)
			}
			if s := f.reload(); s.Ref != "v1" || s.Title != "New" || s.TrustLevel != skill.Community {
				t.Fatalf("%+v", s)
			}
		})
		t.Run("two updates of different fields at once both hold", func(t *testing.T) {
			f := setUp(t)
			f.between.before(func() {
				_, err := f.UpdateSource(f.ctx, f.admin, library.SourceUpdate{ID: f.source.ID, Title: ptr("New")})
				f.ok(err)
			})
			s, err := f.UpdateSource(f.ctx, f.admin, library.SourceUpdate{ID: f.source.ID, Ref: ptr("v1")})
			f.ok(err)
			if s.Title != "New" || s.Ref != "v1" {
				t.Fatalf("%+v", s)
			}
		})
		t.Run("wrong updates", func(t *testing.T) {
			f := setUp(t)
			_, err := f.UpdateSource(f.ctx, f.admin, library.SourceUpdate{ID: uuid.Max})
			f.failed(err, fault.NotFound)
			_, err = f.UpdateSource(f.ctx, f.admin, library.SourceUpdate{ID: f.source.ID, URL: ptr("ftp://x")})
			f.failed(err, fault.BadInput)
			_, err = f.SetSourceTrustLevel(f.ctx, f.admin, f.source.ID, "best")
			f.failed(err, fault.BadInput)
			_, err = f.SetSourceTrustLevel(f.ctx, f.admin, uuid.Max, skill.Verified)
			f.failed(err, fault.NotFound)
			_, err = f.SetSourceToken(f.ctx, f.admin, uuid.Max, "x")
			f.failed(err, fault.NotFound)
			_, err = f.SetSourceToken(f.ctx, f.admin, f.newSource(library.Authored, "", skill.Verified).ID, "x")
			f.failed(err, fault.BadInput)
		})
		t.Run("S15 a source that an approval, revocation or attachment names is not deleted; the refusal lists them", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("a", "", "A.\n"))
			f.approved(d)
			f.revoked(d.Skill.ID, d.Digest())
			f.attached(d, f.configuration(), "")
			uses := f.refused(f.DeleteSource(f.ctx, f.admin, f.source.ID), fault.InUse).Detail.([]library.Use)
			kinds := []library.UseKind{}
			for _, u := range uses {
				kinds = append(kinds, u.Kind)
				if u.SkillID != d.Skill.ID {
					t.Errorf("%+v", u)
				}
			}
			if !slices.Equal(kinds, []library.UseKind{library.UsedByApproval, library.UsedByAttachment, library.UsedByRevocation}) {
				t.Fatalf("%v", kinds)
			}
		})
		t.Run("S15 an unused source goes with its skills", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("a", "", "A.\n"))
			f.ok(f.DeleteSource(f.ctx, f.admin, f.source.ID))
			_, err := f.FindSkill(f.ctx, f.admin, d.Skill.ID)
			f.failed(err, fault.NotFound)
			f.once(audit.SourceDeleted)
			f.failed(f.DeleteSource(f.ctx, f.admin, f.source.ID), fault.NotFound)
		})
		t.Run("S15 a skill approved while its source is deleted keeps both", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("a", "", "A.\n"))
			f.between.before(func() { f.approved(d) })
			f.refused(f.DeleteSource(f.ctx, f.admin, f.source.ID), fault.InUse)
			f.instructs(d.Skill.ID, true)
		})
	})
}

func TestProviders(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		t.Run("a provider is checked, created and updated, audited", func(t *testing.T) {
			f := setUp(t)
			p, err := f.CreateProvider(f.ctx, f.admin, library.NewProvider{Name: "P", Kind: library.OpenAICompatible, BaseURL: "http://localhost:8000/v1", APIKey: "k"})
			f.ok(err)
			if p.TrustZone != library.ZoneGlobalExternal {
				t.Fatalf("a zone nobody named is the farthest: %+v", p)
			}
			f.once(audit.ProviderCreated)
			for range 2 {
				p, err = f.UpdateProvider(f.ctx, f.admin, library.ProviderUpdate{ID: p.ID, TrustZone: ptr(library.ZoneLocal), APIKey: ptr("new")})
				f.ok(err)
			}
			if e := f.once(audit.ProviderUpdated); e.Detail["keyChanged"] != true || p.TrustZone != library.ZoneLocal {
				t.Fatalf("%+v", e)
			}
			kept, err := f.Provider(f.ctx, p.ID)
			f.ok(err)
			if kept.APIKey != "new" || kept.BaseURL != "http://localhost:8000/v1" {
				t.Fatalf("%+v", kept)
			}
		})
		t.Run("wrong input names the field", func(t *testing.T) {
			f := setUp(t)
			for field, in := range map[string]library.NewProvider{
				"name":       {Kind: library.Scripted, Script: "x"},
				"kind":       {Name: "P", Kind: "magic"},
				"trustZone":  {Name: "P", Kind: library.Scripted, Script: "x", TrustZone: "moon"},
				"script":     {Name: "P", Kind: library.Scripted},
				"baseUrl":    {Name: "P", Kind: library.OpenAICompatible},
				"baseUrl m":  {Name: "P", Kind: library.Anthropic, BaseURL: "https://user:pw@api.example.org"},
				"script is":  {Name: "P", Kind: library.Anthropic, Script: "x"},
				"apiKey":     {Name: "P", Kind: library.Anthropic, APIKey: "a\nb"},
				"baseUrl an": {Name: "P", Kind: library.Scripted, Script: "x", BaseURL: "https://x"},
			} {
				_, err := f.CreateProvider(f.ctx, f.admin, in)
				f.failed(err, fault.BadInput)
				if !strings.HasPrefix(err.Error(), field) {
					t.Errorf("%q does not begin with %s", err, field)
				}
			}
			_, err := f.UpdateProvider(f.ctx, f.admin, library.ProviderUpdate{ID: uuid.Max})
			f.failed(err, fault.NotFound)
			_, err = f.CreateProvider(f.ctx, f.author, library.NewProvider{})
			f.failed(err, fault.Forbidden)
			f.CheckProvider = func(library.Provider) error { return fault.New(fault.BadInput, "script does not parse.") }
			_, err = f.CreateProvider(f.ctx, f.admin, library.NewProvider{Name: "P", Kind: library.Scripted, Script: "x"})
			f.failed(err, fault.BadInput)
		})
	})
}

func TestConfigurations(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		t.Run("a stale revision is refused with what is there, and every update is audited", func(t *testing.T) {
			f := setUp(t)
			c := f.configuration()
			groups := []tool.Group{tool.GroupContentRead}
			now, err := f.UpdateConfiguration(f.ctx, f.admin, library.ConfigurationUpdate{ID: c.ID, Revision: ptr(1), AllowedToolGroups: &groups, RequireSecondApprover: ptr(true)})
			f.ok(err)
			if now.Revision != 2 || !now.RequireSecondApprover || !slices.Equal(now.AllowedToolGroups, groups) || now.Name != c.Name {
				t.Fatalf("%+v", now)
			}
			_, err = f.UpdateConfiguration(f.ctx, f.admin, library.ConfigurationUpdate{ID: c.ID, Revision: ptr(1), Name: ptr("Else")})
			if d := f.refused(err, fault.StaleRevision).Detail.(library.StaleConfiguration); d.Current.Revision != 2 {
				t.Fatalf("%+v", d)
			}
			var none []tool.Group
			now, err = f.UpdateConfiguration(f.ctx, f.admin, library.ConfigurationUpdate{ID: c.ID, AllowedToolGroups: &none})
			f.ok(err)
			if now.AllowedToolGroups != nil {
				t.Fatal("nil groups do not allow all")
			}
			if len(f.audited(audit.ConfigurationUpdated)) != 2 {
				t.Fatal("every update is audited")
			}
		})
		t.Run("wrong input names the field", func(t *testing.T) {
			f := setUp(t)
			good := f.configuration()
			p, err := f.CreateProvider(f.ctx, f.admin, library.NewProvider{Name: "P", Kind: library.Anthropic})
			f.ok(err)
			for field, in := range map[string]library.NewConfiguration{
				"name":              {ProviderID: good.ProviderID},
				"contextWindow":     {Name: "C", ProviderID: good.ProviderID, ContextWindow: -1},
				"allowedToolGroups": {Name: "C", ProviderID: good.ProviderID, AllowedToolGroups: []tool.Group{"all"}},
				"model":             {Name: "C", ProviderID: p.ID},
				"systemPrompt":      {Name: "C", ProviderID: good.ProviderID, SystemPrompt: "\xff"},
			} {
				_, err := f.CreateConfiguration(f.ctx, f.admin, in)
				f.failed(err, fault.BadInput)
				if !strings.HasPrefix(err.Error(), field) {
					t.Errorf("%q does not begin with %s", err, field)
				}
			}
			_, err = f.CreateConfiguration(f.ctx, f.admin, library.NewConfiguration{Name: "C", ProviderID: uuid.Max})
			f.failed(err, fault.NotFound)
			_, err = f.CreateConfiguration(f.ctx, f.admin, library.NewConfiguration{Name: "C", ProviderID: good.ProviderID, AllowedUserIDs: []uuid.UUID{uuid.Max}})
			f.failed(err, fault.NotFound)
			_, err = f.UpdateConfiguration(f.ctx, f.author, library.ConfigurationUpdate{ID: good.ID})
			f.failed(err, fault.Forbidden)
		})
	})
}

func TestToolSwitches(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		t.Run("T7 an administrator switches tools for the whole installation, audited when it changes", func(t *testing.T) {
			f := setUp(t)
			f.KnownTool = func(_ context.Context, name string) (bool, error) { return name == "update_element", nil }
			for _, enabled := range []bool{true, true, false, true} {
				f.ok(f.SetToolEnabled(f.ctx, f.admin, "update_element", enabled))
				switches, err := f.ToolSwitches(f.ctx)
				f.ok(err)
				if switches["update_element"] != enabled {
					t.Fatalf("%v", switches)
				}
			}
			if n := len(f.audited(audit.ToolSwitched)); n != 3 {
				t.Fatalf("%d entries for three changes", n)
			}
			f.failed(f.SetToolEnabled(f.ctx, f.admin, "rm_rf", true), fault.NotFound)
			f.failed(f.SetToolEnabled(f.ctx, f.author, "update_element", true), fault.Forbidden)
		})
		t.Run("two who set a new switch at once both find it set", func(t *testing.T) {
			f := setUp(t)
			f.between.before(func() { f.ok(f.SetToolEnabled(f.ctx, f.admin, "update_element", true)) })
			f.ok(f.SetToolEnabled(f.ctx, f.admin, "update_element", true))
			f.once(audit.ToolSwitched)
		})
	})
}
