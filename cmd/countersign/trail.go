package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/countersign/countersign/internal/change"
)

const (
	gatherFor  = 5 * time.Second // entries join the tree together
	pruneEvery = time.Hour
)

// keepTrail brings new entries into the trail's tree and removes those past their
// time, until ctx ends. Nobody waits for it: whoever asks for a proof brings the tree
// up to date. Any number of processes may do it at once.
func (h *house) keepTrail(ctx context.Context) {
	rings, stop := h.bell.Listen(change.AuditTopic)
	defer stop()
	prune := time.NewTicker(pruneEvery)
	defer prune.Stop()
	for h.tendTrail(ctx) {
		select {
		case <-rings:
		case <-prune.C:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(gatherFor):
		case <-ctx.Done():
			return
		}
	}
}

// tendTrail does what there is to do now. It is false when ctx has ended.
func (h *house) tendTrail(ctx context.Context) bool {
	if h.store.Ready(ctx) == nil {
		if err := h.proofs.Grow(ctx); err != nil && ctx.Err() == nil {
			h.log.Error("extending the audit tree failed", slog.Any("error", err))
		}
		if removed, err := h.pruneTrail(ctx); err != nil && ctx.Err() == nil {
			h.log.Error("removing old audit entries failed", slog.Any("error", err))
		} else if removed > 0 {
			h.log.Info("old audit entries were removed", slog.Int64("entries", removed))
		}
	}
	return ctx.Err() == nil
}

// pruneTrail removes the entries that the setting no longer keeps (RULES U3).
func (h *house) pruneTrail(ctx context.Context) (int64, error) {
	values, err := h.access.Values(ctx)
	if err != nil || values.AuditDays == 0 {
		return 0, err
	}
	return h.proofs.Prune(ctx, h.world.Now().AddDate(0, 0, -values.AuditDays))
}
