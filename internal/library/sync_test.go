package library_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/skill"
)

// sync syncs the fixture's source with what the fetcher holds.
func (f *fixture) sync() library.Report {
	f.t.Helper()
	r, err := f.Sync(f.ctx, f.admin, f.source.ID)
	f.ok(err)
	if r.Found != r.Loaded+r.Repaired+r.Rejected+r.Skipped+r.Unchanged || len(r.Items) != r.Found+r.Orphaned {
		f.t.Fatalf("the report does not add up: %+v", r)
	}
	return r
}

func (f *fixture) reload() library.Source {
	f.t.Helper()
	s, err := f.FindSource(f.ctx, f.admin, f.source.ID)
	f.ok(err)
	return s
}

func statuses(r library.Report) string {
	var all []string
	for _, i := range r.Items {
		all = append(all, i.Path+"="+string(i.Status))
	}
	return strings.Join(all, " ")
}

const repairable = "---\nname: odd\ndescription: This: is not YAML\nallowed-tools: Read\n---\nBody.\n"

func TestSync(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		t.Run("S4 S9 loads, repairs, rejects and skips, and reports every path; new skills start disabled", func(t *testing.T) {
			f := setUp(t)
			f.fetcher.set(t, file("one", "", "One.\n"), repairable)
			f.fetcher.fetched.Items = append(f.fetcher.fetched.Items,
				library.Item{Path: "bad/SKILL.md", Scope: "acme/skills", Status: library.ItemRejected, Code: "not_yaml", Reason: "no", Line: 3, Offset: 17},
				library.Item{Path: "vendor/x/SKILL.md", Scope: "acme/skills", Status: library.ItemSkipped, Code: "skipped", Reason: "vendored", Offset: -1})
			r := f.sync()
			if r.Found != 4 || r.Loaded != 1 || r.Repaired != 1 || r.Rejected != 1 || r.Skipped != 1 {
				t.Fatalf("%+v", r)
			}
			if got := statuses(r); got != "bad/SKILL.md=rejected s1/SKILL.md=loaded s2/SKILL.md=repaired vendor/x/SKILL.md=skipped" {
				t.Fatal(got)
			}
			if bad := r.Items[0]; bad.Code != "not_yaml" || bad.Line != 3 || bad.Offset != 17 || bad.Reason != "no" {
				t.Fatalf("%+v", bad)
			}
			if d := f.skill("s1"); d.Skill.Enabled || d.Skill.TrustLevel != skill.Verified || d.Skill.StoredDigest != d.Skill.Version.Digest() {
				t.Fatalf("%+v", d.Skill)
			}
			if d := f.skill("s1"); d.Skill.BodyChecksum != skill.BodyChecksum("One.\n") {
				t.Fatalf("D4 the body's checksum is %s", d.Skill.BodyChecksum)
			}
			if d := f.skill("s2"); d.Skill.ParseStatus != skill.ParseRepaired || d.Skill.Version.Tools.State != skill.ToolsUnreadable {
				t.Fatalf("%+v", d.Skill)
			}
			if len(f.audited(audit.IngestCreated)) != 2 {
				t.Fatal("each new skill is audited")
			}
			s := f.reload()
			if s.SyncStatus != library.SyncPartial || s.SyncError != "1 files were rejected" || s.HeadCommit != "c1" || s.LastSyncedAt == nil || s.LeaseUntil != nil {
				t.Fatalf("%+v", s)
			}
			f.says(f.once(audit.SourceSynced), "found", 4)
			f.says(f.once(audit.SourceSynced), "status", "partial")
		})
		t.Run("unchanged files are unchanged, repaired ones too, and nothing is written for them", func(t *testing.T) {
			f := setUp(t)
			f.fetcher.set(t, file("one", "", "One.\n"), repairable)
			f.sync()
			before := len(f.trail())
			f.between.applied = nil
			if r := f.sync(); r.Unchanged != 2 || r.Loaded+r.Repaired != 0 {
				t.Fatalf("%+v", r)
			}
			if len(f.trail()) != before+1 || slices.ContainsFunc(f.between.applied, func(c change.Change) bool { return library.Touches(c, library.Skills) }) {
				t.Fatal("something was written for an unchanged skill")
			}
			if s := f.reload(); s.SyncStatus != library.SyncOK || s.SyncError != "" {
				t.Fatalf("%+v", s)
			}
		})
		t.Run("S7 a changed digest disables an enabled skill and is audited", func(t *testing.T) {
			f := setUp(t)
			d := f.enabled(f.synced(file("one", "", "One.\n")).Skill.ID)
			now := f.synced(file("one", "", "Two.\n"))
			if now.Skill.Enabled || now.Skill.ID != d.Skill.ID || now.Skill.Version.Body != "Two.\n" {
				t.Fatalf("%+v", now.Skill)
			}
			if e := f.once(audit.IngestDisabledOnChange); e.Digest != string(now.Digest()) || e.Detail["before"] != string(d.Digest()) {
				t.Fatalf("entry %+v", e)
			}
			f.once(audit.IngestUpdated)
		})
		t.Run("S7 D1 frontmatter alone counts, and only what the digest covers", func(t *testing.T) {
			f := setUp(t)
			d := f.enabled(f.synced(file("one", "allowed-tools: Read\n", "One.\n")).Skill.ID)
			same := f.synced(file("one", "allowed-tools: Read\ncolour: red\n", "One.\n"))
			if !same.Skill.Enabled || same.Skill.RawDigest == d.Skill.RawDigest || len(f.audited(audit.IngestUpdated)) != 0 {
				t.Fatalf("a key nothing reads counted: %+v", same.Skill)
			}
			if wider := f.synced(file("one", "allowed-tools: Read, Bash\n", "One.\n")); wider.Skill.Enabled {
				t.Fatal("wider tools alone kept the skill enabled")
			}
			f.once(audit.IngestDisabledOnChange)
		})
		t.Run("S7 a disabled skill that changes is audited as updated only", func(t *testing.T) {
			f := setUp(t)
			f.synced(file("one", "", "One.\n"))
			f.synced(file("one", "", "Two.\n"))
			f.once(audit.IngestUpdated)
			if len(f.audited(audit.IngestDisabledOnChange)) != 0 {
				t.Fatal("a disabled skill was disabled")
			}
		})
		t.Run("S8 what is gone is orphaned and disabled, never deleted, and stays disabled when it returns", func(t *testing.T) {
			f := setUp(t)
			content := file("one", "", "One.\n")
			d := f.enabled(f.synced(content).Skill.ID)
			f.approved(d)
			f.fetcher.set(t)
			if r := f.sync(); r.Orphaned != 1 || r.Found != 0 || r.Items[0].Status != library.ItemOrphaned || r.Items[0].SkillID != d.Skill.ID {
				t.Fatalf("%+v", r)
			}
			if got := f.reread(d.Skill.ID).Skill; got.Enabled || !got.Orphaned || got.Version.Body != "One.\n" {
				t.Fatalf("%+v", got)
			}
			if e := f.once(audit.Orphaned); e.Skill != d.Skill.ID || e.Detail["wasEnabled"] != true {
				t.Fatalf("entry %+v", e)
			}
			f.sync()
			f.once(audit.Orphaned)
			f.fetcher.set(t, content)
			if r := f.sync(); r.Loaded != 1 {
				t.Fatalf("%+v", r)
			}
			if got := f.reread(d.Skill.ID).Skill; got.Enabled || got.Orphaned {
				t.Fatalf("%+v", got)
			}
			f.instructs(d.Skill.ID, true)
		})
		t.Run("S8 a marketplace's repository that was not reached keeps its skills; one no longer listed does not", func(t *testing.T) {
			f := setUp(t)
			f.source = f.newSource(library.Marketplace, "https://github.com/acme/market", skill.Verified)
			of := func(scope string) library.Item {
				i := item(t, scope+"/s", file("s", "", "Of "+scope+".\n"))
				i.Scope = scope
				return i
			}
			f.fetcher.fetched = library.Fetched{
				Commit: "c1", Reached: []string{"a/one", "a/one-more", "b/two"},
				Items: []library.Item{of("a/one"), of("a/one-more"), of("b/two")},
			}
			f.sync()
			f.fetcher.fetched = library.Fetched{
				Commit: "c2", Reached: []string{"acme/market"},
				Items: []library.Item{{Path: "a/one", Scope: "a/one", Status: library.ItemSkipped, Code: "unreachable", Reason: "503", Offset: -1}},
			}
			r := f.sync()
			if got := statuses(r); got != "a/one=skipped a/one-more/s=orphaned b/two/s=orphaned" {
				t.Fatal(got)
			}
			if s := f.reload(); s.SyncStatus != library.SyncPartial || s.HeadCommit != "c1" || s.SyncError != "not read to the end: a/one" {
				t.Fatalf("an incomplete read stands for its commit: %+v", s)
			}
		})
		t.Run("S4 a file that can no longer be read keeps the skill it was", func(t *testing.T) {
			f := setUp(t)
			d := f.enabled(f.synced(file("one", "", "One.\n")).Skill.ID)
			f.fetcher.fetched.Items = []library.Item{{Path: "s1/SKILL.md", Scope: "acme/skills", Status: library.ItemRejected, Code: "not_yaml", Offset: -1}}
			r := f.sync()
			if r.Orphaned != 0 || r.Rejected != 1 || r.Items[0].SkillID != d.Skill.ID {
				t.Fatalf("%+v", r)
			}
			if got := f.reread(d.Skill.ID).Skill; !got.Enabled || got.Orphaned {
				t.Fatalf("%+v", got)
			}
		})
		t.Run("S6 the same identifier in two sources is two skills; twice in one is reported", func(t *testing.T) {
			f := setUp(t)
			first := f.synced(file("one", "", "One.\n"))
			f.fetcher.fetched.Items = append(f.fetcher.fetched.Items, f.fetcher.fetched.Items[0])
			f.fetcher.fetched.Items[1].Path = "s1/skill.md"
			if r := f.sync(); r.Skipped != 1 || r.Unchanged != 1 || r.Items[1].Code != "duplicate" {
				t.Fatalf("%+v", r)
			}
			f.source = f.newSource(library.Repo, "https://github.com/acme/copy", skill.Verified)
			if second := f.synced(file("one", "", "One.\n")); second.Skill.ID == first.Skill.ID || second.Skill.Identifier != first.Skill.Identifier {
				t.Fatal("two sources share a skill")
			}
		})
		t.Run("S9 the one file of a single_file source starts enabled, unless a finding is high", func(t *testing.T) {
			f := setUp(t)
			f.source = f.newSource(library.SingleFile, "https://github.com/acme/skills/blob/main/s1/SKILL.md", skill.Verified)
			if d := f.synced(file("one", "", "One.\n")); !d.Skill.Enabled {
				t.Fatal("not enabled")
			}
			f.source = f.newSource(library.SingleFile, "https://github.com/acme/skills/blob/main/s2/SKILL.md", skill.Verified)
			f.fetcher.set(t, file("two", "", "Two.\n"))
			f.fetcher.fetched.Items[0].File.Findings = []skill.Finding{{Rule: "injection", Severity: skill.SeverityHigh}}
			f.sync()
			if f.skill("s1").Skill.Enabled {
				t.Fatal("enabled despite a high finding")
			}
			f.once(audit.InjectionBlocked)
		})
		t.Run("D8 the first sync of a legacy row compares with the digest of its stored fields", func(t *testing.T) {
			f := setUp(t)
			content := file("one", "", "One.\n")
			d := f.enabled(f.synced(content).Skill.ID)
			f.apply(library.Legacy(d.Skill.ID, "One.\n"))
			if r := f.sync(); r.Unchanged != 1 {
				t.Fatalf("%+v", r)
			}
			if got := f.reread(d.Skill.ID).Skill; !got.Enabled || got.StoredDigest != d.Digest() {
				t.Fatalf("an unchanged legacy skill: %+v", got)
			}
			f.apply(library.Legacy(d.Skill.ID, "One.\n"))
			if got := f.synced(file("one", "allowed-tools: Bash\n", "One.\n")); got.Skill.Enabled {
				t.Fatal("a frontmatter-only change kept a legacy skill enabled")
			}
		})
		t.Run("D6 a tampered skill is audited and brought back to its source's text", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("one", "", "One.\n"))
			f.approved(d)
			f.apply(library.Tampered(d.Skill.ID, "Do as I say.\n"))
			if r := f.sync(); r.Loaded != 1 {
				t.Fatalf("%+v", r)
			}
			f.once(audit.IntegrityFailed)
			if e := f.once(audit.IngestUpdated); e.Detail["restored"] != true {
				t.Fatalf("entry %+v", e)
			}
			f.instructs(d.Skill.ID, true)
		})
		t.Run("S14 an unreadable process marker is its own value", func(t *testing.T) {
			f := setUp(t)
			unreadable := f.synced(file("one", "process: maybe\n", "One.\n"))
			no := f.synced(file("one", "process: false\n", "One.\n"))
			if unreadable.Skill.Version.Process != skill.ProcessUnreadable || unreadable.Digest() == no.Digest() {
				t.Fatalf("%+v", unreadable.Skill.Version)
			}
		})
		t.Run("S1 a sync reads what the source says, with its token and limits", func(t *testing.T) {
			f := setUp(t)
			s, err := f.CreateSource(f.ctx, f.admin, library.NewSource{
				Title: "T", Type: library.Repo, URL: "https://github.com/acme/private", Ref: "v1", PinnedCommit: strings.Repeat("a", 40), Token: "secret",
			})
			f.ok(err)
			if s.AccessToken != "" {
				t.Fatal("the token came back")
			}
			f.source, f.rules.values.SyncMaxFiles = s, 7
			f.fetcher.set(t)
			f.sync()
			want := library.Origin{Type: library.Repo, URL: s.URL, Ref: "v1", PinnedCommit: s.PinnedCommit, Token: "secret"}
			if f.fetcher.calls[0] != want || f.fetcher.limits.Files != 7 {
				t.Fatalf("%+v %+v", f.fetcher.calls[0], f.fetcher.limits)
			}
		})
		t.Run("S11 the source tells how far its sync is, and keeps it when the sync has ended", func(t *testing.T) {
			f := setUp(t)
			f.SyncPulse = time.Millisecond
			f.fetcher.set(t, file("one", "", "One.\n"), file("two", "", "Two.\n"))
			f.fetcher.between = func() {
				for f.reload().Progress != (library.Progress{Seen: 2, Done: 1}) { // any replica reads the same row
					time.Sleep(time.Millisecond)
				}
			}
			f.sync()
			if got := f.reload().Progress; got != (library.Progress{Seen: 2, Done: 2}) {
				t.Fatalf("%+v", got)
			}
			f.fetcher.between = nil
			again, err := f.BeginSync(f.ctx, f.admin, f.source.ID)
			f.ok(err)
			if got := f.reload().Progress; got != (library.Progress{}) {
				t.Fatalf("a new sync begins with the counts of the last one: %+v", got)
			}
			_, err = again.Run(f.ctx)
			f.ok(err)
		})
		t.Run("S10 what does not have the expected fingerprint is not stored", func(t *testing.T) {
			f := setUp(t)
			f.synced(file("one", "", "One.\n"))
			_, err := f.UpdateSource(f.ctx, f.admin, library.SourceUpdate{ID: f.source.ID, ExpectedFingerprint: ptr(strings.Repeat("0", 64))})
			f.ok(err)
			for _, contents := range [][]string{{file("one", "", "Two.\n")}, {}} {
				f.fetcher.set(t, contents...)
				_, err = f.Sync(f.ctx, f.admin, f.source.ID)
				f.refused(err, fault.SyncFailed)
			}
			if got := f.skill("s1").Skill; got.Version.Body != "One.\n" || got.Orphaned || len(f.audited(audit.FingerprintRejected)) != 2 {
				t.Fatalf("%+v", got)
			}
			f.fetcher.set(t, file("one", "", "Two.\n"))
			line := "s1:" + skill.BodyChecksum("Two.\n") + "\n"
			_, err = f.UpdateSource(f.ctx, f.admin, library.SourceUpdate{ID: f.source.ID, ExpectedFingerprint: ptr(skill.BodyChecksum(line))})
			f.ok(err)
			if r := f.sync(); r.Loaded != 1 {
				t.Fatalf("%+v", r)
			}
		})
	})
}

func TestSyncFailures(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		t.Run("S8 an error instead of a fetch orphans nothing and says why on the source", func(t *testing.T) {
			for _, kind := range []fault.Kind{fault.NotFound, fault.Unavailable, fault.BadInput, fault.RateLimited} {
				f := setUp(t)
				d := f.enabled(f.synced(file("one", "", "One.\n")).Skill.ID)
				f.fetcher.fetched, f.fetcher.err = library.Fetched{}, fault.New(kind, "There is no branch v9.")
				_, err := f.Sync(f.ctx, f.admin, f.source.ID)
				if r := f.refused(err, fault.SyncFailed); r.Message != "There is no branch v9." {
					t.Fatal(r)
				}
				if got := f.reread(d.Skill.ID).Skill; !got.Enabled || got.Orphaned {
					t.Fatalf("%+v", got)
				}
				s := f.reload()
				if s.SyncStatus != library.SyncError || s.SyncError != "There is no branch v9." || s.LeaseUntil != nil || s.HeadCommit != "c1" {
					t.Fatalf("%+v", s)
				}
			}
		})
		t.Run("an error of our own is not shown", func(t *testing.T) {
			f := setUp(t)
			f.fetcher.err = errors.New("nil pointer in /usr/src")
			_, err := f.Sync(f.ctx, f.admin, f.source.ID)
			f.failed(err, fault.Internal)
			if s := f.reload(); s.SyncStatus != library.SyncError || strings.Contains(s.SyncError, "/usr") {
				t.Fatalf("%+v", s)
			}
		})
		t.Run("a caller that goes away leaves no lease behind", func(t *testing.T) {
			f := setUp(t)
			ctx, gone := context.WithCancel(f.ctx)
			f.fetcher.during = func(context.Context) { gone() }
			_, err := f.Sync(ctx, f.admin, f.source.ID)
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if s := f.reload(); s.LeaseUntil != nil || s.SyncError != "The sync was cancelled." {
				t.Fatalf("%+v", s)
			}
		})
		t.Run("S11 a sync that takes too long says which setting bounds it", func(t *testing.T) {
			f := setUp(t)
			f.rules.values.SyncMax = time.Nanosecond
			f.fetcher.during = func(ctx context.Context) { <-ctx.Done() }
			_, err := f.Sync(f.ctx, f.admin, f.source.ID)
			if r := f.refused(err, fault.SyncFailed); !strings.Contains(r.Message, "sync.maxSeconds") {
				t.Fatal(r)
			}
		})
		t.Run("an authored or switched-off source is not synced, and others may not sync", func(t *testing.T) {
			f := setUp(t)
			_, err := f.Sync(f.ctx, f.approver, f.source.ID)
			f.failed(err, fault.Forbidden)
			_, err = f.Sync(f.ctx, f.admin, uuid.Max)
			f.failed(err, fault.NotFound)
			_, err = f.Sync(f.ctx, f.admin, f.newSource(library.Authored, "", skill.Verified).ID)
			f.failed(err, fault.BadInput)
			_, err = f.UpdateSource(f.ctx, f.admin, library.SourceUpdate{ID: f.source.ID, Enabled: ptr(false)})
			f.ok(err)
			_, err = f.Sync(f.ctx, f.admin, f.source.ID)
			f.refused(err, fault.SyncFailed)
		})
	})
}
