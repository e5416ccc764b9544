package graph

import (
	"context"

	"github.com/google/uuid"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/library"
)

// progress is how a sync goes on: where it stands now, every change, and at last how it ended. The source's row says so, whichever replica syncs it.
func (r *Resolver) progress(ctx context.Context, by actor.Actor, id uuid.UUID) func(yield func(*model.SyncProgress, error) bool) {
	return func(yield func(*model.SyncProgress, error) bool) {
		wait, stop := r.listen(ctx, change.SourceTopic(id))
		defer stop()
		var last model.SyncProgress
		for {
			source, err := r.Library.FindSource(ctx, by, id)
			if err != nil {
				yield(nil, err)
				return
			}
			next := toProgress(source)
			if next != last {
				if !yield(&next, nil) {
					return
				}
				last = next
			}
			if source.SyncStatus != library.Syncing || !wait() {
				return
			}
		}
	}
}

func toProgress(s library.Source) model.SyncProgress {
	return model.SyncProgress{
		SourceID: sourceKind.id(s.ID), Status: syncStatuses.out(s.SyncStatus), Seen: s.Progress.Seen, Done: s.Progress.Done, Errors: s.Progress.Errors,
	}
}

// sync reads a source and says what that came to, or nothing when it goes on in the background. A client that goes away ends no sync.
func (r *Resolver) sync(ctx context.Context, id uuid.UUID, background bool) (*model.SyncReport, error) {
	// With an idempotency key the effect of a sync is what it stored, and of one in the background that it began.
	begin, run := change.Aside(ctx), context.WithoutCancel(ctx)
	if background {
		begin, run = ctx, change.Aside(run)
	}
	begun, err := r.Library.BeginSync(begin, caller(ctx), id)
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
		report, err = begun.Run(run)
	}()
	if background {
		return nil, nil
	}
	if change.KeyOf(ctx) != nil {
		<-done // the key is held until there is an answer to keep with it
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
