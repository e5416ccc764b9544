package library

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
)

// SyncHolder is the detail of a SYNC_RUNNING: who syncs, and until when at the
// latest.
type SyncHolder struct {
	ActorID uuid.UUID
	Until   time.Time
}

// leaseMargin is how long a sync may take beyond its limit to store what it read.
const leaseMargin = 60 * time.Second

// Sync reads a source and stores what it found, and returns when that is done.
// Administrators only; audited.
//
// Refusals: SYNC_RUNNING with a SyncHolder; SYNC_FAILED with the reason, after which
// the source's status is error and nothing else has changed.
func (l *Library) Sync(ctx context.Context, by actor.Actor, sourceID uuid.UUID) (Report, error) {
	s, err := l.BeginSync(ctx, by, sourceID)
	if err != nil {
		return Report{}, err
	}
	return s.Run(ctx)
}

// SyncRun is a sync that holds its source's lease and waits to be run, once. One
// that is never run is taken over when its lease ends.
type SyncRun struct {
	SourceID uuid.UUID
	Until    time.Time // the lease

	source  Source // as it was when the lease was taken
	library *Library
	by      actor.Actor
	owner   string
	max     time.Duration
	files   int

	progress atomic.Pointer[Progress] // the newest; nil until the first file
}

// BeginSync takes a source's lease, across replicas (RULES S11). A lease that ended
// without its sync is taken over.
func (l *Library) BeginSync(ctx context.Context, by actor.Actor, sourceID uuid.UUID) (*SyncRun, error) {
	if err := needAdministrator(by); err != nil {
		return nil, err
	}
	v, err := l.values(ctx)
	if err != nil {
		return nil, err
	}
	s := &SyncRun{library: l, by: by, owner: by.ID.String() + "/" + l.World.NewID().String(), max: v.SyncMax, files: v.SyncMaxFiles}
	err = l.retried(ctx, "the source", func() (change.Change, error) {
		source, err := l.Store.Source(ctx, sourceID)
		if err != nil {
			return change.Change{}, err
		}
		now := l.World.Now()
		if err := syncable(source, now); err != nil {
			return change.Change{}, err
		}
		s.SourceID, s.source, s.Until = source.ID, source, now.Add(v.SyncMax+leaseMargin)
		return change.Change{
			Updates: []change.Update{{
				Table: sourcesTable, ID: sourceID, If: []change.Value{sourceLeaseOwner.Is(source.LeaseOwner), sourceLeaseUntil.Maybe(source.LeaseUntil)},
				Set: append(s.counts(), sourceLeaseOwner.To(s.owner), sourceLeaseUntil.To(s.Until), sourceSyncStatus.To(Syncing)),
			}},
			Ring: []change.Topic{change.SourceTopic(sourceID)},
		}, nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// syncable refuses a source that cannot be synced now.
func syncable(s Source, now time.Time) error {
	switch {
	case s.Type == Authored:
		return fault.New(fault.BadInput, "sourceId names an authored source: its skills are written here and there is nothing to sync.")
	case !s.Enabled:
		return fault.Refuse(fault.SyncFailed, "The source %q is switched off.", s.Title)
	case s.LeaseUntil != nil && now.Before(*s.LeaseUntil):
		holder := SyncHolder{Until: *s.LeaseUntil}
		who, _, _ := strings.Cut(s.LeaseOwner, "/")
		if id, err := uuid.Parse(who); err == nil {
			holder.ActorID = id
		}
		return fault.Refuse(fault.SyncRunning, "A sync of %q is running; it ends by %s at the latest.", s.Title, s.LeaseUntil.Format(time.RFC3339)).With(holder)
	}
	return nil
}

// Run fetches the source and stores what was found, all of it in one transaction or
// nothing (RULES S4, S7, S8). The lease is released either way, also when ctx is
// cancelled.
func (s *SyncRun) Run(ctx context.Context) (Report, error) {
	l := s.library
	ctx, cancel := context.WithTimeout(ctx, s.max)
	defer cancel()
	defer l.register(s.SourceID, cancel)()
	pulse := s.pulse(ctx, cancel)
	fetched, err := l.Fetcher.Fetch(ctx, Origin{
		Type: s.source.Type, URL: s.source.URL, Ref: s.source.Ref, PinnedCommit: s.source.PinnedCommit, Token: s.source.AccessToken,
	}, FetchLimits{Files: s.files}, func(p Progress) { s.progress.Store(&p) })
	pulse()
	var report Report
	if err == nil {
		// What was read completely is stored, even if the caller has gone.
		report, err = s.store(context.WithoutCancel(ctx), fetched)
	} else if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fault.Wrap(fault.Unavailable, err, "It took longer than %s (setting sync.maxSeconds).", s.max)
	}
	if err != nil {
		return Report{}, s.fail(context.WithoutCancel(ctx), err)
	}
	return report, nil
}

// pulse stores how far the sync is, for whoever watches it on whatever replica, and
// stops the reading soon after the lease was lost, which is how another replica
// cancels it. The returned function ends it.
func (s *SyncRun) pulse(ctx context.Context, cancel context.CancelFunc) (done func()) {
	tick := time.NewTicker(cmp.Or(s.library.SyncPulse, 500*time.Millisecond))
	ended, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			// A database that is away is noticed when there is something to store.
			out, err := change.One(change.Aside(ctx), s.library.Store, change.Change{
				Updates: []change.Update{{
					Table: sourcesTable, ID: s.SourceID, If: []change.Value{sourceLeaseOwner.Is(s.owner)}, Set: s.counts(),
				}},
				Ring: []change.Topic{change.SourceTopic(s.SourceID)},
			})
			if err == nil && !out.Applied {
				cancel()
				return
			}
		}
	}()
	return func() {
		close(ended)
		<-stopped
	}
}

// counts are the columns that say how far the sync is.
func (s *SyncRun) counts() []change.Value {
	var p Progress
	if newest := s.progress.Load(); newest != nil {
		p = *newest
	}
	return []change.Value{sourceFilesSeen.To(p.Seen), sourceFilesDone.To(p.Done), sourceFilesFailed.To(p.Errors)}
}

// store writes what was fetched. It judges again when anything it rested on moved.
func (s *SyncRun) store(ctx context.Context, fetched Fetched) (Report, error) {
	l := s.library
	var report Report
	err := l.retried(ctx, "the source's skills", func() (change.Change, error) {
		source, err := l.Store.Source(ctx, s.SourceID)
		if err != nil {
			return change.Change{}, err
		}
		if err := s.stillOurs(source); err != nil {
			return change.Change{}, err
		}
		existing, err := l.Store.SkillsOf(ctx, source.ID)
		if err != nil {
			return change.Change{}, err
		}
		if err := l.noteTampered(ctx, source, existing); err != nil {
			return change.Change{}, err
		}
		if err := checkFingerprint(source, fetched); err != nil {
			return change.Change{}, err
		}
		plan := &ingestion{world: l.World, by: s.by, source: source, fetched: fetched}
		c, planned := plan.against(existing)
		report = planned
		return s.closing(c, source, fetched, report), nil
	})
	return report, err
}

// stillOurs refuses to store what was read from somewhere else than the source
// names now, or under a lease that is lost.
func (s *SyncRun) stillOurs(now Source) error {
	read := s.source
	switch {
	case now.LeaseOwner != s.owner:
		return errTakenOver
	case now.Type != read.Type || now.URL != read.URL || now.Ref != read.Ref || now.PinnedCommit != read.PinnedCommit:
		return fault.Refuse(fault.SyncFailed, "The source was changed while it was read; sync it again.")
	}
	return nil
}

// noteTampered audits skills whose fields are not what was synced, before the sync
// writes over them (RULES D6).
func (l *Library) noteTampered(ctx context.Context, source Source, skills []Skill) error {
	for _, k := range skills {
		if k.StoredDigest == "" || k.StoredDigest == k.Version.Digest() {
			continue
		}
		if err := l.NoteIntegrityFailure(ctx, Dossier{Skill: k, Source: source}); err != nil {
			return err
		}
	}
	return nil
}

// errTakenOver says that the lease was lost: nothing may be written any more.
var errTakenOver = fault.Refuse(fault.SyncFailed, "The sync was cancelled, or took so long that another one took over.")

// closing adds to a change what ends the sync: status, commit and lease, only while
// the lease is held and the source is still read and trusted as it was.
func (s *SyncRun) closing(c change.Change, source Source, fetched Fetched, report Report) change.Change {
	now := s.library.World.Now()
	status, lacks := SyncOK, report.lacks()
	if lacks != "" {
		status = SyncPartial
	}
	set := append(s.counts(),
		sourceSyncStatus.To(status), sourceSyncError.To(lacks), sourceLastSyncedAt.To(now), sourceLeaseOwner.To(""), sourceLeaseUntil.Null())
	if len(report.Unreached) == 0 {
		// Only a complete read may stand for the commit (SKILL-FILES, Discovery).
		set = append(set, sourceHeadCommit.To(fetched.Commit))
	}
	c.Updates = append(c.Updates, change.Update{
		Table: sourcesTable, ID: source.ID,
		If: []change.Value{
			sourceLeaseOwner.Is(s.owner), sourceTrust.Is(source.TrustLevel), sourceFingerprint.Is(source.ExpectedFingerprint),
			sourceType.Is(source.Type), sourceURL.Is(source.URL), sourceRef.Is(source.Ref), sourcePinned.Is(source.PinnedCommit),
		},
		Set: set,
	})
	c.Audit = append(c.Audit, report.entry(audit.Record(s.library.World, s.by, audit.SourceSynced).About(source.ID, uuid.Nil, "")).
		With("commit", fetched.Commit).With("status", string(status)))
	c.Ring = append(c.Ring, change.SourceTopic(source.ID))
	return c
}

// fail releases the lease and says on the source why nothing was stored. The
// refusal it returns carries the reason; an error of our own stays an error.
func (s *SyncRun) fail(ctx context.Context, cause error) error {
	l := s.library
	reason := reasonOf(cause)
	c := change.Change{
		Updates: []change.Update{{
			Table: sourcesTable, ID: s.SourceID, If: []change.Value{sourceLeaseOwner.Is(s.owner)},
			Set: append(s.counts(),
				sourceSyncStatus.To(SyncError), sourceSyncError.To(clip(reason, 1000)), sourceLeaseOwner.To(""), sourceLeaseUntil.Null()),
		}},
		Audit: []audit.Entry{audit.Record(l.World, s.by, audit.SourceSynced).About(s.SourceID, uuid.Nil, "").
			With("status", string(SyncError)).With("kind", string(cmp.Or(codeOf(cause), string(fault.KindOf(cause)))))},
		Ring: []change.Topic{change.SourceTopic(s.SourceID)},
	}
	var mismatch *fingerprintMismatch
	if errors.As(cause, &mismatch) {
		c.Audit = append(c.Audit, audit.Record(l.World, s.by, audit.FingerprintRejected).About(s.SourceID, uuid.Nil, "").
			With("expected", mismatch.expected).With("computed", mismatch.computed))
	}
	out, err := change.One(ctx, l.Store, c)
	switch {
	case err != nil:
		return err
	case !out.Applied:
		return errTakenOver
	case isRefusal(cause) || fault.KindOf(cause) == fault.Internal:
		return cause
	}
	return fault.Refuse(fault.SyncFailed, "%s", reason)
}

func isRefusal(err error) bool {
	_, yes := fault.AsRefusal(err)
	return yes
}

func codeOf(err error) string {
	if r, ok := fault.AsRefusal(err); ok {
		return string(r.Code)
	}
	return ""
}

// reasonOf is what a person may read of a failed sync.
func reasonOf(err error) string {
	if r, ok := fault.AsRefusal(err); ok {
		return r.Message
	}
	var e *fault.Error
	if errors.As(err, &e) && e.Kind != fault.Internal {
		return e.Message
	}
	if errors.Is(err, context.Canceled) {
		return "The sync was cancelled."
	}
	return "The sync failed; the server's log says why."
}

// CancelSync ends a running sync of a source, on whatever replica: its lease is
// taken away, so that it stores nothing, and a sync of this process stops reading at
// once. It reports whether one was running. Administrators only; audited.
func (l *Library) CancelSync(ctx context.Context, by actor.Actor, sourceID uuid.UUID) (bool, error) {
	if err := needAdministrator(by); err != nil {
		return false, err
	}
	source, err := l.Store.Source(ctx, sourceID)
	if err != nil || source.LeaseUntil == nil {
		return false, err
	}
	out, err := change.One(ctx, l.Store, change.Change{
		Updates: []change.Update{{
			Table: sourcesTable, ID: sourceID, If: []change.Value{sourceLeaseOwner.Is(source.LeaseOwner), sourceLeaseUntil.Maybe(source.LeaseUntil)},
			Set: []change.Value{
				sourceSyncStatus.To(SyncError), sourceSyncError.To("The sync was cancelled."), sourceLeaseOwner.To(""), sourceLeaseUntil.Null(),
			},
		}},
		Audit: []audit.Entry{audit.Record(l.World, by, audit.SourceSynced).About(sourceID, uuid.Nil, "").
			With("status", string(SyncError)).With("cancelled", true)},
		Ring: []change.Topic{change.SourceTopic(sourceID)},
	})
	if err != nil || !out.Applied {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if cancel, here := l.running[sourceID]; here {
		cancel()
	}
	return true, nil
}

// register makes a running sync cancellable until the returned function is called.
func (l *Library) register(sourceID uuid.UUID, cancel context.CancelFunc) (done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil {
		l.running = map[uuid.UUID]context.CancelFunc{}
	}
	l.running[sourceID] = cancel
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.running, sourceID)
	}
}
