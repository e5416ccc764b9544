package library_test

import (
	"context"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/skill"
)

func TestSyncLease(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		t.Run("S11 a second sync is refused with who syncs and until when", func(t *testing.T) {
			f := setUp(t)
			first, err := f.BeginSync(f.ctx, f.admin, f.source.ID)
			f.ok(err)
			if s := f.reload(); s.SyncStatus != library.Syncing {
				t.Fatalf("%+v", s)
			}
			_, err = f.Sync(f.ctx, f.admin, f.source.ID)
			holder := f.refused(err, fault.SyncRunning).Detail.(library.SyncHolder)
			if holder.ActorID != f.admin.ID || !holder.Until.Equal(first.Until) {
				t.Fatalf("%+v", holder)
			}
			f.fetcher.set(t, file("one", "", "One.\n"))
			_, err = first.Run(f.ctx)
			f.ok(err)
			f.sync()
		})
		t.Run("S11 a crashed sync is taken over after its lease, and then stores nothing", func(t *testing.T) {
			f := setUp(t)
			crashed, err := f.BeginSync(f.ctx, f.admin, f.source.ID)
			f.ok(err)
			_, err = f.Sync(f.ctx, f.admin, f.source.ID)
			f.refused(err, fault.SyncRunning)
			f.clock.at = crashed.Until
			if s := f.reload(); s.SyncStatus != library.SyncError || s.SyncError != "The last sync did not finish." {
				t.Fatalf("%+v", s)
			}
			f.fetcher.set(t, file("one", "", "One.\n"))
			if r := f.sync(); r.Loaded != 1 {
				t.Fatalf("%+v", r)
			}
			f.fetcher.set(t, file("one", "", "Stale.\n"))
			_, err = crashed.Run(f.ctx)
			f.refused(err, fault.SyncFailed)
			if got := f.skill("s1").Skill.Version.Body; got != "One.\n" {
				t.Fatalf("a sync without its lease wrote %q", got)
			}
			if s := f.reload(); s.SyncStatus != library.SyncOK {
				t.Fatalf("%+v", s)
			}
		})
		t.Run("S11 of two that take a free lease at once one wins", func(t *testing.T) {
			f := setUp(t)
			f.between.before(func() {
				_, err := f.BeginSync(f.ctx, f.admin, f.source.ID)
				f.ok(err)
			})
			_, err := f.BeginSync(f.ctx, f.admin, f.source.ID)
			f.refused(err, fault.SyncRunning)
		})
		t.Run("S11 a cancelled sync stops reading and stores nothing", func(t *testing.T) {
			f := setUp(t)
			f.fetcher.set(t, file("one", "", "One.\n"))
			f.fetcher.during = func(ctx context.Context) {
				was, err := f.CancelSync(f.ctx, f.admin, f.source.ID)
				f.ok(err)
				if !was || ctx.Err() == nil {
					t.Error("it goes on reading")
				}
			}
			_, err := f.Sync(f.ctx, f.admin, f.source.ID)
			f.refused(err, fault.SyncFailed)
			if s := f.reload(); s.SyncStatus != library.SyncError || s.SyncError != "The sync was cancelled." || s.LeaseUntil != nil {
				t.Fatalf("%+v", s)
			}
			if was, err := f.CancelSync(f.ctx, f.admin, f.source.ID); was || err != nil {
				t.Fatal("nothing was running")
			}
			if len(f.audited(audit.IngestCreated)) != 0 {
				t.Fatal("something was stored")
			}
		})
	})
}

func TestSyncOnTwoReplicas(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		// other is a second replica: the same database, another process.
		other := func(f *fixture) *library.Library {
			return &library.Library{Store: f.memory, World: f.World, Accounts: f.rules, Fetcher: f.fetcher}
		}
		t.Run("S11 a sync that another replica cancels stops reading and stores nothing", func(t *testing.T) {
			f := setUp(t)
			f.SyncPulse = time.Millisecond
			f.fetcher.set(t, file("one", "", "One.\n"))
			f.fetcher.during = func(ctx context.Context) {
				was, err := other(f).CancelSync(f.ctx, f.admin, f.source.ID)
				f.ok(err)
				if !was {
					t.Error("nothing was running")
				}
				<-ctx.Done() // and it stops
			}
			_, err := f.Sync(f.ctx, f.admin, f.source.ID)
			f.refused(err, fault.SyncFailed)
			if s := f.reload(); s.SyncError != "The sync was cancelled." || len(f.audited(audit.IngestCreated)) != 0 {
				t.Fatalf("%+v", s)
			}
		})
		t.Run("S11 a sync that is cancelled elsewhere just before it stores writes nothing", func(t *testing.T) {
			f := setUp(t)
			f.SyncPulse = time.Hour
			f.fetcher.set(t, file("one", "", "One.\n"))
			s, err := f.BeginSync(f.ctx, f.admin, f.source.ID)
			f.ok(err)
			f.between.before(func() {
				_, err := other(f).CancelSync(f.ctx, f.admin, f.source.ID)
				f.ok(err)
			})
			_, err = s.Run(f.ctx)
			f.refused(err, fault.SyncFailed)
			if len(f.audited(audit.IngestCreated)) != 0 {
				t.Fatal("something was stored")
			}
		})
		t.Run("S11 a source that another replica syncs is refused there, and taken over once its lease is over", func(t *testing.T) {
			f := setUp(t)
			f.fetcher.set(t, file("one", "", "One.\n"))
			crashed, err := other(f).BeginSync(f.ctx, f.admin, f.source.ID)
			f.ok(err)
			_, err = f.Sync(f.ctx, f.admin, f.source.ID)
			f.refused(err, fault.SyncRunning)
			f.clock.at = crashed.Until
			if r := f.sync(); r.Loaded != 1 {
				t.Fatalf("%+v", r)
			}
			_, err = crashed.Run(f.ctx)
			f.refused(err, fault.SyncFailed)
		})
		t.Run("S11 the limits are settings: a lease lasts as long as a sync may", func(t *testing.T) {
			f := setUp(t)
			for _, seconds := range []time.Duration{time.Minute, time.Hour} {
				f.rules.values.SyncMax = seconds
				before := f.World.Now()
				s, err := f.BeginSync(f.ctx, f.admin, f.source.ID)
				f.ok(err)
				if lasts := s.Until.Sub(before); lasts < seconds || lasts > seconds+2*time.Minute {
					t.Fatalf("%s for a sync of %s", lasts, seconds)
				}
				_, err = f.CancelSync(f.ctx, f.admin, f.source.ID)
				f.ok(err)
			}
		})
	})
}

func TestSyncRaces(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		t.Run("S7 a skill enabled while its text changes is disabled all the same, and audited", func(t *testing.T) {
			f := setUp(t)
			d := f.synced(file("one", "", "One.\n"))
			f.fetcher.set(t, file("one", "", "Two.\n"))
			s, err := f.BeginSync(f.ctx, f.admin, f.source.ID)
			f.ok(err)
			f.between.before(func() { f.enabled(d.Skill.ID) })
			_, err = s.Run(f.ctx)
			f.ok(err)
			if f.reread(d.Skill.ID).Skill.Enabled {
				t.Fatal("a text nobody saw is enabled")
			}
			f.once(audit.IngestDisabledOnChange)
		})
		t.Run("A3 a level that changes while a sync stores is the level that is copied", func(t *testing.T) {
			f := setUp(t)
			f.fetcher.set(t, file("one", "", "One.\n"))
			s, err := f.BeginSync(f.ctx, f.admin, f.source.ID)
			f.ok(err)
			f.between.before(func() {
				_, err := f.SetSourceTrustLevel(f.ctx, f.admin, f.source.ID, skill.Untrusted)
				f.ok(err)
			})
			_, err = s.Run(f.ctx)
			f.ok(err)
			if got := f.skill("s1").Skill.TrustLevel; got != skill.Untrusted {
				t.Fatalf("copied %s", got)
			}
		})
		t.Run("S12 a source pointed elsewhere while it is read stores nothing", func(t *testing.T) {
			f := setUp(t)
			f.fetcher.set(t, file("one", "", "One.\n"))
			s, err := f.BeginSync(f.ctx, f.admin, f.source.ID)
			f.ok(err)
			f.between.before(func() {
				_, err := f.UpdateSource(f.ctx, f.admin, library.SourceUpdate{ID: f.source.ID, URL: ptr("https://github.com/acme/other")})
				f.ok(err)
			})
			_, err = s.Run(f.ctx)
			f.refused(err, fault.SyncFailed)
			if len(f.audited(audit.IngestCreated)) != 0 || f.reload().SyncStatus != library.SyncError {
				t.Fatal("something was stored")
			}
		})
		t.Run("everything of a sync is stored or nothing", func(t *testing.T) {
			f := setUp(t)
			f.fetcher.set(t, file("one", "", "One.\n"), file("two", "", "Two.\n"))
			s, err := f.BeginSync(f.ctx, f.admin, f.source.ID)
			f.ok(err)
			f.between.before(func() { f.between.broken = fault.New(fault.Unavailable, "The database is gone.") })
			_, err = s.Run(f.ctx)
			f.failed(err, fault.Unavailable)
			f.between.broken = nil
			if skills, _ := f.memory.SkillsOf(f.ctx, f.source.ID); len(skills) != 0 || len(f.audited(audit.IngestCreated)) != 0 {
				t.Fatal("half a sync was stored")
			}
		})
	})
}
