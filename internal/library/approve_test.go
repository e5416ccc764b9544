package library_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/skill"
	"github.com/countersign/countersign/internal/world"
)

func TestApprove(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		t.Run("A5 D3 an approval is a snapshot of everything at that time, which its digest verifies", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("style", "allowed-tools: Read\nlicense: MIT\n", "Write plainly.\n"))
			a := f.approved(d).Approval
			kept := f.reread(d.Skill.ID).Approvals[0]
			if kept.Version.Digest() != d.Digest() || kept.SourceID != f.source.ID || kept.TrustLevel != skill.Verified ||
				kept.RawDigest != d.Skill.RawDigest || kept.BundleDigest != d.Skill.BundleDigest || len(kept.Bundle) != 1 ||
				kept.ApproverID != f.approver.ID || !kept.At.Equal(a.At) || kept.Counter != 1 {
				t.Fatalf("kept %+v", kept)
			}
		})
		t.Run("A2 an approved version of its source instructs, and not before", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("style", "", "Write plainly.\n"))
			f.instructs(d.Skill.ID, false, skill.ReasonNoApproval)
			if got := f.approved(d); !got.Standing.Instructs {
				t.Fatalf("standing %+v", got.Standing)
			}
			f.instructs(d.Skill.ID, true)
		})
		t.Run("A2 S12 an approval of another source does not count", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("style", "", "Write plainly.\n"))
			f.approved(d)
			other := f.newSource(library.Repo, "https://github.com/acme/other", skill.FirstParty)
			f.apply(library.Moved(d.Skill.ID, other.ID))
			f.instructs(d.Skill.ID, false, skill.ReasonNoApproval)
		})
		t.Run("A6 a stale digest is refused with the current version, digest and diff, and audited", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("style", "", "Write plainly.\n"))
			f.approved(d)
			now := f.synced(file("style", "", "Write ornately.\n"))
			_, err := f.Approve(f.ctx, f.approver, library.ApproveInput{SkillID: d.Skill.ID, Digest: string(d.Digest())})
			detail := f.refused(err, fault.StaleDigest).Detail.(library.StaleVersion)
			if detail.Posted != d.Digest() || detail.Current.Digest != now.Digest() ||
				!slices.Contains(detail.Current.Diff, skill.DiffLine{Kind: skill.DiffAdded, Text: "Write ornately."}) {
				t.Fatalf("detail %+v", detail)
			}
			e := f.once(audit.VersionApprovalRefused)
			if e.Detail["posted"] != string(d.Digest()) || e.Detail["current"] != string(now.Digest()) || e.Detail["code"] != "STALE_DIGEST" {
				t.Fatalf("entry %+v", e)
			}
			if len(f.reread(d.Skill.ID).Approvals) != 1 {
				t.Fatal("a refused approval was kept")
			}
		})
		t.Run("A8 approving needs its own permission; the attempt is audited with both digests", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("style", "", "Write plainly.\n"))
			for _, by := range []actor.Actor{f.author, f.reader} {
				_, err := f.Approve(f.ctx, by, library.ApproveInput{SkillID: d.Skill.ID, Digest: "not a digest"})
				f.failed(err, fault.Forbidden)
			}
			refused := f.audited(audit.VersionApprovalRefused)
			if len(refused) != 2 || refused[0].Actor != f.author.ID || refused[0].Detail["posted"] != "not a digest" ||
				refused[0].Detail["current"] != string(d.Digest()) || refused[0].Skill != d.Skill.ID {
				t.Fatalf("entries %+v", refused)
			}
			_, err := f.Revoke(f.ctx, f.author, library.RevokeInput{SkillID: d.Skill.ID, Digest: string(d.Digest())})
			f.failed(err, fault.Forbidden)
		})
		t.Run("A8 an approval and a revocation are audited with the digest", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("style", "", "Write plainly.\n"))
			f.approved(d)
			_, err := f.Revoke(f.ctx, f.approver, library.RevokeInput{SkillID: d.Skill.ID, Digest: string(d.Digest()), Reason: "wrong"})
			f.ok(err)
			for _, event := range []audit.Event{audit.VersionApproved, audit.VersionRevoked} {
				if e := f.once(event); e.Digest != string(d.Digest()) || e.Actor != f.approver.ID || e.Source != f.source.ID || e.Skill != d.Skill.ID {
					t.Fatalf("entry %+v", e)
				}
			}
		})
		t.Run("A8 what cannot be audited does not happen", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("style", "", "Write plainly.\n"))
			f.between.before(func() { f.between.broken = fault.New(fault.Unavailable, "The database is gone.") })
			_, err := f.Approve(f.ctx, f.author, library.ApproveInput{SkillID: d.Skill.ID, Digest: string(d.Digest())})
			f.failed(err, fault.Unavailable)
		})
		t.Run("A9 approving below the threshold is allowed and does not instruct yet", func(t *testing.T) {
			f := setUp(t)
			f.source = f.newSource(library.Repo, "https://github.com/acme/low", skill.Community)
			d := f.synced(file("style", "", "Write plainly.\n"))
			got := f.approved(d)
			if got.Standing.Instructs || !slices.Equal(got.Standing.Reasons, []skill.Reason{skill.ReasonBelowThreshold}) || got.Approval.TrustLevel != skill.Community {
				t.Fatalf("%+v", got)
			}
		})
		t.Run("D2 a digest of another form is wrong input that names the field", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("style", "", "Write plainly.\n"))
			_, err := f.Approve(f.ctx, f.approver, library.ApproveInput{SkillID: d.Skill.ID, Digest: "1:abc"})
			f.failed(err, fault.BadInput)
			if !strings.Contains(err.Error(), "digest must be") {
				t.Fatal(err)
			}
			_, err = f.Approve(f.ctx, f.approver, library.ApproveInput{SkillID: uuid.Max, Digest: string(d.Digest())})
			f.failed(err, fault.NotFound)
			_, err = f.Approve(f.ctx, actor.Actor{}, library.ApproveInput{SkillID: d.Skill.ID, Digest: string(d.Digest())})
			f.failed(err, fault.Unauthenticated)
		})
	})
}

func TestApprovalRefusalsInOrder(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		stale := skill.Digest("1:" + strings.Repeat("0", 64))
		process := file("tour", "process: sometimes\n", "Go\u200b on.\n")
		// Each case adds one obstacle to those after it; the first is the refusal.
		cases := []struct {
			name   string
			spoil  func(f *fixture, d library.Dossier)
			posted func(d library.Dossier) skill.Digest
			code   fault.Code
		}{
			{"orphaned before all", func(f *fixture, d library.Dossier) {
				f.fetcher.set(f.t)
				_, err := f.Sync(f.ctx, f.admin, f.source.ID)
				f.ok(err)
				f.apply(library.Tampered(d.Skill.ID, "Else.\n"))
			}, func(library.Dossier) skill.Digest { return stale }, fault.SkillOrphaned},
			{
				"then integrity", func(f *fixture, d library.Dossier) { f.apply(library.Tampered(d.Skill.ID, "Else.\n")) },
				func(library.Dossier) skill.Digest { return stale }, fault.IntegrityFailed,
			},
			{
				"then legacy", func(f *fixture, d library.Dossier) { f.apply(library.Legacy(d.Skill.ID, "Else.\n")) },
				func(library.Dossier) skill.Digest { return stale }, fault.LegacyVersion,
			},
			{"then the stale digest", func(*fixture, library.Dossier) {}, func(library.Dossier) skill.Digest { return stale }, fault.StaleDigest},
			{"S14 then an unreadable process marker", func(*fixture, library.Dossier) {}, library.Dossier.Digest, fault.ProcessUnreadable},
		}
		for _, c := range cases {
			t.Run("A6 "+c.name, func(t *testing.T) {
				f := setUp(t)
				d := f.synced(process)
				c.spoil(f, d)
				_, err := f.Approve(f.ctx, f.approver, library.ApproveInput{SkillID: d.Skill.ID, Digest: string(c.posted(d))})
				f.refused(err, c.code)
				if e := f.once(audit.VersionApprovalRefused); e.Detail["code"] != string(c.code) {
					t.Fatalf("entry %+v", e)
				}
			})
		}
		t.Run("A6 last invisible characters, with their places", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("style", "", "Write\u202e plainly.\n"))
			_, err := f.Approve(f.ctx, f.approver, library.ApproveInput{SkillID: d.Skill.ID, Digest: string(d.Digest())})
			places := f.refused(err, fault.InvisibleCharacters).Detail.([]skill.Obstacle)
			if len(places) != 1 || places[0].Field != "body" || places[0].Line != 1 || places[0].Column != 6 || places[0].CodePoint != "U+202E" {
				t.Fatalf("places %+v", places)
			}
		})
		t.Run("A6 every refusal has a code", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(process)
			r, err := f.Review(f.ctx, f.reader, d.Skill.ID)
			f.ok(err)
			if len(r.Obstacles) != 2 || r.Obstacles[0].Code != skill.ObstacleProcessUnreadable || r.Obstacles[1].Code != skill.ObstacleInvisibleCharacters {
				t.Fatalf("obstacles %+v", r.Obstacles)
			}
		})
	})
}

func TestApprovalRaces(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		t.Run("A6 a sync between reading and approving: the new text is judged, not the old one approved", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("style", "", "Write plainly.\n"))
			f.between.before(func() { f.synced(file("style", "", "Write ornately.\n")) })
			_, err := f.Approve(f.ctx, f.approver, library.ApproveInput{SkillID: d.Skill.ID, Digest: string(d.Digest())})
			f.refused(err, fault.StaleDigest)
			if got := f.reread(d.Skill.ID); len(got.Approvals) != 0 || got.Skill.Counter != 0 {
				t.Fatalf("%+v", got)
			}
		})
		t.Run("W1 an edit between reading and approving is judged again", func(t *testing.T) {
			f := setUp(t)
			d := f.written("Write plainly.\n")
			f.between.before(func() { f.edited(d, "Write ornately.\n") })
			_, err := f.Approve(f.ctx, f.approver, library.ApproveInput{SkillID: d.Skill.ID, Digest: string(d.Digest())})
			f.refused(err, fault.StaleDigest)
			f.instructs(d.Skill.ID, false, skill.ReasonNoApproval)
		})
		t.Run("A2 two approvals at once are both kept, one after the other", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("style", "", "Write plainly.\n"))
			f.between.before(func() { f.approved(d) })
			if got := f.approved(d); got.Approval.Counter != 2 {
				t.Fatalf("counter %d", got.Approval.Counter)
			}
			got := f.reread(d.Skill.ID)
			if len(got.Approvals) != 2 || got.Skill.Counter != 2 || got.Approvals[0].Counter == got.Approvals[1].Counter {
				t.Fatalf("%+v", got.Approvals)
			}
			if len(f.audited(audit.VersionApproved)) != 2 {
				t.Fatal("each approval is audited once")
			}
		})
		t.Run("A7 a revocation between reading and approving comes first: the approval is explicit and later", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("style", "", "Write plainly.\n"))
			f.between.before(func() { f.revoked(d.Skill.ID, d.Digest()) })
			if got := f.approved(d); got.Approval.Counter != 2 || !got.Standing.Instructs {
				t.Fatalf("%+v", got)
			}
		})
		t.Run("A5 a source downgraded meanwhile: the snapshot names the level it really had", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("style", "", "Write plainly.\n"))
			f.between.before(func() {
				_, err := f.SetSourceTrustLevel(f.ctx, f.admin, f.source.ID, skill.Community)
				f.ok(err)
			})
			got := f.approved(d)
			if got.Approval.TrustLevel != skill.Community || got.Standing.Instructs {
				t.Fatalf("%+v", got)
			}
		})
		t.Run("A5 bundled files that change meanwhile are in the snapshot as they are then", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("style", "", "Write plainly.\n"))
			f.between.before(func() {
				f.fetcher.fetched.Items[0].Bundle = append(f.fetcher.fetched.Items[0].Bundle, skill.BundleFile{Path: "a.sh", Mode: "100755", SHA256: "00"})
				_, err := f.Sync(f.ctx, f.admin, f.source.ID)
				f.ok(err)
			})
			if got := f.approved(d); len(got.Approval.Bundle) != 2 {
				t.Fatalf("bundle %+v", got.Approval.Bundle)
			}
		})
		t.Run("A2 approvals of four people at once are all kept, each with its own counter", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("style", "", "Write plainly.\n"))
			f.World = world.Real() // the fixture's is for one goroutine
			var all sync.WaitGroup
			failures := make([]error, 4)
			for i := range failures {
				all.Go(func() {
					_, failures[i] = f.Approve(f.ctx, f.approver, library.ApproveInput{SkillID: d.Skill.ID, Digest: string(d.Digest())})
				})
			}
			all.Wait()
			f.ok(errors.Join(failures...))
			kept := f.reread(d.Skill.ID)
			for i, a := range kept.Approvals {
				if a.Counter != len(kept.Approvals)-i {
					t.Fatalf("counters %+v", kept.Approvals)
				}
			}
			if len(kept.Approvals) != 4 || kept.Skill.Counter != 4 || len(f.audited(audit.VersionApproved)) != 4 {
				t.Fatalf("%d approvals, counter %d", len(kept.Approvals), kept.Skill.Counter)
			}
		})
		t.Run("a skill that never holds still is not approved", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("style", "", "Write plainly.\n"))
			for range library.Attempts {
				f.between.before(func() {
					f.apply(library.Raised(f.reread(d.Skill.ID).Skill))
				})
			}
			_, err := f.Approve(f.ctx, f.approver, library.ApproveInput{SkillID: d.Skill.ID, Digest: string(d.Digest())})
			f.failed(err, fault.Unavailable)
		})
	})
}

func TestRevoke(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		t.Run("A7 a revocation wins and only a new approval lifts it", func(t *testing.T) {
			f := setUp(t)
			plain, ornate := file("style", "", "Write plainly.\n"), file("style", "", "Write ornately.\n")
			d := f.synced(plain)
			f.approved(d)
			got := f.revoked(d.Skill.ID, d.Digest())
			if got.Withdrawn != 1 || !got.Standing.Has(skill.ReasonRevoked) {
				t.Fatalf("%+v", got)
			}
			f.instructs(d.Skill.ID, false, skill.ReasonRevoked)
			f.synced(ornate)
			f.synced(plain) // the bytes are back; nobody approved them again
			f.instructs(d.Skill.ID, false, skill.ReasonRevoked)
			f.approved(f.reread(d.Skill.ID))
			f.instructs(d.Skill.ID, true)
		})
		t.Run("A7 an approved, never revoked digest instructs again when the text returns to it", func(t *testing.T) {
			f := setUp(t)
			plain := file("style", "", "Write plainly.\n")
			d := f.synced(plain)
			f.approved(d)
			ornate := f.synced(file("style", "", "Write ornately.\n"))
			f.instructs(d.Skill.ID, false, skill.ReasonNoApproval)
			f.revoked(d.Skill.ID, ornate.Digest())
			f.synced(plain)
			f.instructs(d.Skill.ID, true)
		})
		t.Run("A7 a digest can be revoked before anybody approved it", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("style", "", "Write plainly.\n"))
			if got := f.revoked(d.Skill.ID, d.Digest()); got.Withdrawn != 0 {
				t.Fatalf("withdrew %d", got.Withdrawn)
			}
			f.instructs(d.Skill.ID, false, skill.ReasonNoApproval, skill.ReasonRevoked)
		})
		t.Run("A2 an approval races a revocation: the counter decides, whatever the clock says", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("style", "", "Write plainly.\n"))
			f.approved(d)
			f.between.before(func() { f.approved(d) })
			if got := f.revoked(d.Skill.ID, d.Digest()); got.Withdrawn != 2 || got.Revocation.Counter != 3 {
				t.Fatalf("%+v", got)
			}
			f.instructs(d.Skill.ID, false, skill.ReasonRevoked)
		})
		t.Run("wrong input names the field", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("style", "", "Write plainly.\n"))
			_, err := f.Revoke(f.ctx, f.approver, library.RevokeInput{SkillID: d.Skill.ID, Digest: "2:00"})
			f.failed(err, fault.BadInput)
			_, err = f.Revoke(f.ctx, f.approver, library.RevokeInput{SkillID: uuid.Max, Digest: string(d.Digest())})
			f.failed(err, fault.NotFound)
		})
	})
}

func (f *fixture) revoked(id uuid.UUID, digest skill.Digest) library.Revoked {
	f.t.Helper()
	r, err := f.Revoke(f.ctx, f.approver, library.RevokeInput{SkillID: id, Digest: string(digest), Reason: "test"})
	f.ok(err)
	return r
}
