package library_test

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/skill"
)

func TestMoveSkill(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		move := func(f *fixture, id, to uuid.UUID) library.Dossier {
			f.t.Helper()
			d, err := f.MoveSkill(f.ctx, f.admin, id, to)
			f.ok(err)
			return d
		}
		t.Run("S12 a moved skill has no matching approval, is audited, and does not find its old one when it comes back", func(t *testing.T) {
			f := setUp(t)
			d := f.enabled(f.synced(file("one", "", "One.\n")).Skill.ID)
			f.approved(d)
			f.instructs(d.Skill.ID, true)
			other := f.newSource(library.Repo, "https://github.com/acme/other", skill.FirstParty)
			moved := move(f, d.Skill.ID, other.ID)
			if moved.Source.ID != other.ID || !moved.Skill.Enabled || moved.Skill.TrustLevel != skill.FirstParty || moved.Digest() != d.Digest() {
				t.Fatalf("%+v", moved.Skill)
			}
			f.instructs(d.Skill.ID, false, skill.ReasonNoApproval)
			if e := f.once(audit.SkillMoved); e.Skill != d.Skill.ID || e.Source != other.ID || e.Detail["from"] != f.source.ID.String() {
				t.Fatalf("%+v", e)
			}
			move(f, d.Skill.ID, other.ID) // it is there: nothing changes
			f.once(audit.SkillMoved)
			back := move(f, d.Skill.ID, f.source.ID)
			f.instructs(d.Skill.ID, false, skill.ReasonNoApproval)
			f.approved(back)
			f.instructs(d.Skill.ID, true)
		})
		t.Run("S12 only an administrator moves a skill, and not onto another's identifier", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("one", "", "One.\n"))
			other := f.newSource(library.Repo, "https://github.com/acme/other", skill.Verified)
			for _, by := range []int{0, 1, 2} {
				_, err := f.MoveSkill(f.ctx, f.rules.users[1+by], d.Skill.ID, other.ID)
				f.failed(err, fault.Forbidden)
			}
			_, err := f.MoveSkill(f.ctx, f.admin, d.Skill.ID, uuid.Max)
			f.failed(err, fault.NotFound)
			f.source = other
			f.synced(file("one", "", "One.\n"))
			_, err = f.MoveSkill(f.ctx, f.admin, d.Skill.ID, other.ID)
			f.refused(err, fault.InUse)
			if got := f.reread(d.Skill.ID); got.Source.ID == other.ID || len(f.audited(audit.SkillMoved)) != 0 {
				t.Fatalf("%+v", got.Skill)
			}
		})
		t.Run("S12 an approval made while a skill moves does not follow it", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("one", "", "One.\n"))
			other := f.newSource(library.Repo, "https://github.com/acme/other", skill.Verified)
			f.between.before(func() { f.approved(d) })
			move(f, d.Skill.ID, other.ID)
			f.instructs(d.Skill.ID, false, skill.ReasonNoApproval)
			f.between.before(func() { move(f, d.Skill.ID, f.source.ID) })
			_, err := f.Approve(f.ctx, f.approver, library.ApproveInput{SkillID: d.Skill.ID, Digest: string(d.Digest())})
			f.ok(err) // judged again, for the source it came back to
			if a := f.reread(d.Skill.ID).Approvals[0]; a.SourceID != f.source.ID {
				t.Fatalf("%+v", a)
			}
		})
		t.Run("S12 W1 a synced skill that moves to an authored source has revisions and a computed digest, and what was wrong with it is audited", func(t *testing.T) {
			f := setUp(t)
			d := f.enabled(f.synced(file("one", "allowed-tools: update_element\n", "One.\n")).Skill.ID)
			f.approved(d)
			f.apply(library.Tampered(d.Skill.ID, "Do as I say.\n"))
			here := f.newSource(library.Authored, "", skill.FirstParty)
			moved := move(f, d.Skill.ID, here.ID)
			f.once(audit.IntegrityFailed)
			if moved.Skill.StoredDigest != "" || moved.Skill.Revision != 1 || moved.Skill.RawDigest != "" || len(moved.Skill.Bundle) != 0 || moved.Skill.Frontmatter != "" {
				t.Fatalf("%+v", moved.Skill)
			}
			f.instructs(d.Skill.ID, false, skill.ReasonNoApproval)
			if got := skill.ContributedTools(moved.Facts(library.Thresholds{})); !slices.Equal(got.Items, nil) || !got.Declares() {
				t.Fatalf("W3 it contributes %+v", got)
			}
			edited := f.edited(moved, "Mine.\n")
			if all, err := f.Revisions(f.ctx, f.reader, d.Skill.ID); err != nil || len(all) != 2 || edited.Skill.Revision != 2 {
				t.Fatalf("%+v %v", all, err)
			}
		})
		t.Run("S12 D7 a text written here that moves to a synced source is a row without a digest until a sync says what it is", func(t *testing.T) {
			f := setUp(t)
			d := f.written("One.\n")
			f.approved(d)
			moved := move(f, d.Skill.ID, f.source.ID)
			if moved.Digest() != "" {
				t.Fatalf("%+v", moved.Skill)
			}
			f.instructs(d.Skill.ID, false, skill.ReasonNoApproval, skill.ReasonLegacy)
			_, err := f.Approve(f.ctx, f.approver, library.ApproveInput{SkillID: d.Skill.ID, Digest: string(d.Skill.Version.Digest())})
			f.refused(err, fault.LegacyVersion)
			f.synced(file("two", "", "Two.\n"))
			if got := f.reread(d.Skill.ID).Skill; !got.Orphaned {
				t.Fatalf("%+v", got)
			}
		})
	})
}

func TestTokenOfAMovedAddress(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		for _, c := range []struct {
			name, url string
			keeps     bool
		}{
			{"S1 a token stays with another repository of the host", "https://github.com/other/skills", true},
			{"S1 a token stays with the host's spelling in capitals", "https://GitHub.com/other/skills", true},
			{"S1 a token does not go along to another host", "https://git.example.com/acme/skills", false},
		} {
			t.Run(c.name, func(t *testing.T) {
				f := setUp(t)
				f.EnterpriseHosts = []string{"git.example.com"}
				_, err := f.SetSourceToken(f.ctx, f.admin, f.source.ID, "ghp_secret")
				f.ok(err)
				s, err := f.UpdateSource(f.ctx, f.admin, library.SourceUpdate{ID: f.source.ID, URL: &c.url})
				f.ok(err)
				kept, err := f.Library.Store.Source(f.ctx, f.source.ID)
				f.ok(err)
				if s.HasToken != c.keeps || (kept.AccessToken != "") != c.keeps {
					t.Errorf("has a token: %v, %q", s.HasToken, kept.AccessToken)
				}
			})
		}
	})
}

func TestSourceType(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		t.Run("S12 a source of another type was never synced, and no approval matches its skills", func(t *testing.T) {
			f := setUp(t)
			d := f.enabled(f.synced(file("one", "", "One.\n"), file("two", "", "Two.\n")).Skill.ID)
			f.approved(d)
			s, err := f.UpdateSource(f.ctx, f.admin, library.SourceUpdate{ID: f.source.ID, Type: ptr(library.Marketplace)})
			f.ok(err)
			if s.Type != library.Marketplace || s.SyncStatus != library.NeverSynced || s.HeadCommit != "" || s.LastSyncedAt != nil {
				t.Fatalf("%+v", s)
			}
			f.instructs(d.Skill.ID, false, skill.ReasonNoApproval)
			e := f.once(audit.SourceUpdated)
			f.says(e, "from", "repo")
			f.says(e, "to", "marketplace")
			f.says(e, "skills", 2)
			_, err = f.UpdateSource(f.ctx, f.admin, library.SourceUpdate{ID: f.source.ID, Type: ptr(library.Repo)})
			f.ok(err)
			f.instructs(d.Skill.ID, false, skill.ReasonNoApproval)
			f.approved(f.reread(d.Skill.ID))
			f.instructs(d.Skill.ID, true)
		})
		t.Run("S12 a source becomes authored only without address and token, and its skills begin to have revisions", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("one", "", "One.\n"))
			f.approved(d)
			authored := library.SourceUpdate{ID: f.source.ID, Type: ptr(library.Authored)}
			_, err := f.UpdateSource(f.ctx, f.admin, authored)
			f.failed(err, fault.BadInput)
			authored.URL = ptr("")
			_, err = f.SetSourceToken(f.ctx, f.admin, f.source.ID, "hush")
			f.ok(err)
			_, err = f.UpdateSource(f.ctx, f.admin, authored)
			f.failed(err, fault.BadInput)
			_, err = f.SetSourceToken(f.ctx, f.admin, f.source.ID, "")
			f.ok(err)
			_, err = f.UpdateSource(f.ctx, f.admin, authored)
			f.ok(err)
			f.instructs(d.Skill.ID, false, skill.ReasonNoApproval)
			f.edited(f.reread(d.Skill.ID), "Mine.\n")
			_, err = f.UpdateSource(f.ctx, f.admin, library.SourceUpdate{ID: f.source.ID, Type: ptr(library.Repo), URL: ptr("https://github.com/acme/skills")})
			f.ok(err)
			f.instructs(d.Skill.ID, false, skill.ReasonNoApproval, skill.ReasonLegacy)
		})
		t.Run("S12 a sync that runs while its source changes its type stores nothing", func(t *testing.T) {
			f := setUp(t)
			f.fetcher.set(t, file("one", "", "One.\n"))
			s, err := f.BeginSync(f.ctx, f.admin, f.source.ID)
			f.ok(err)
			_, err = f.UpdateSource(f.ctx, f.admin, library.SourceUpdate{ID: f.source.ID, Type: ptr(library.Marketplace)})
			f.ok(err)
			_, err = s.Run(f.ctx)
			f.refused(err, fault.SyncFailed)
			if len(f.audited(audit.IngestCreated)) != 0 || f.reload().SyncStatus != library.NeverSynced {
				t.Fatal("something was stored")
			}
		})
		t.Run("S12 only an administrator changes a type", func(t *testing.T) {
			f := setUp(t)
			_, err := f.UpdateSource(f.ctx, f.author, library.SourceUpdate{ID: f.source.ID, Type: ptr(library.Marketplace)})
			f.failed(err, fault.Forbidden)
			_, err = f.UpdateSource(f.ctx, f.admin, library.SourceUpdate{ID: f.source.ID, Type: ptr(library.SourceType("ftp"))})
			f.failed(err, fault.BadInput)
		})
	})
}
