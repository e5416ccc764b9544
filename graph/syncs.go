package graph

import (
	"context"
	"sync"

	"github.com/google/uuid"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/library"
)

// SyncFeed remembers how far each sync of this process is, for whoever watches it. It is a library.SyncWatcher, never blocks, and keeps one value a
// source: a slow watcher misses steps and nothing else. Safe for concurrent use; the zero value is ready.
type SyncFeed struct {
	mu      sync.Mutex
	latest  map[uuid.UUID]library.SyncProgress
	changed chan struct{} // closed at the next progress
}

// SyncProgressed takes the newest progress of a sync. What a sync came to is on its source, so the feed forgets a sync that ended.
func (f *SyncFeed) SyncProgressed(p library.SyncProgress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.latest == nil {
		f.latest = map[uuid.UUID]library.SyncProgress{}
	}
	f.latest[p.SourceID] = p
	if p.Finished {
		delete(f.latest, p.SourceID)
	}
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// now is how far the sync of a source is, and a channel that is closed when that may have changed. A nil feed knows nothing and never changes.
func (f *SyncFeed) now(source uuid.UUID) (library.Progress, <-chan struct{}) {
	if f == nil {
		return library.Progress{}, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	return f.latest[source].Progress, f.changed
}

// progress is how a sync goes on: where it stands now, every change, and at last how it ended. The source's row says whether it runs, whichever
// replica syncs it.
func (r *Resolver) progress(ctx context.Context, by actor.Actor, id uuid.UUID) func(yield func(*model.SyncProgress, error) bool) {
	return func(yield func(*model.SyncProgress, error) bool) {
		wait, stop := r.listen(ctx, change.SourceTopic(id))
		defer stop()
		var last *model.SyncProgress
		for {
			counts, changed := r.Syncs.now(id)
			source, err := r.Library.FindSource(ctx, by, id)
			if err != nil {
				yield(nil, err)
				return
			}
			next := toProgress(source, counts, last)
			if last == nil || *next != *last {
				if !yield(next, nil) {
					return
				}
				last = next
			}
			if source.SyncStatus != library.Syncing || !wait(changed) {
				return
			}
		}
	}
}

// toProgress is where a sync stands. The counts of one that ended are the last that were heard.
func toProgress(s library.Source, counts library.Progress, last *model.SyncProgress) *model.SyncProgress {
	if counts == (library.Progress{}) && last != nil {
		counts = library.Progress{Seen: last.Seen, Done: last.Done, Errors: last.Errors}
	}
	return &model.SyncProgress{
		SourceID: sourceKind.id(s.ID), Status: syncStatuses.out(s.SyncStatus), Seen: counts.Seen, Done: counts.Done, Errors: counts.Errors,
	}
}

// sync reads a source and says what that came to, or nothing when it goes on in the background. A client that goes away ends no sync.
func (r *Resolver) sync(ctx context.Context, id uuid.UUID, background bool) (*model.SyncReport, error) {
	begun, err := r.Library.BeginSync(ctx, caller(ctx), id)
	if err != nil {
		return nil, err
	}
	var report library.Report
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				err = panicked(p)
			}
			if err != nil && background {
				r.Log.ErrorContext(ctx, "a sync in the background failed", "source", id, "error", err)
			}
		}()
		report, err = begun.Run(context.WithoutCancel(ctx))
	}()
	if background {
		return nil, nil
	}
	select {
	case <-done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return toReport(report), nil
}
