package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/chat"
)

const (
	gatherFor = 5 * time.Second // entries join the tree together
	tidyEvery = time.Hour
)

// keep brings new entries into the trail's tree and removes what is past its time,
// until ctx ends. Nobody waits for it: whoever asks for a proof brings the tree up to
// date. Any number of processes may do it at once.
func (h *house) keep(ctx context.Context) {
	rings, stop := h.bell.Listen(change.AuditTopic)
	defer stop()
	tidy := time.NewTicker(tidyEvery)
	defer tidy.Stop()
	h.tidy(ctx)
	for h.growTrail(ctx) {
		select {
		case <-rings:
		case <-tidy.C:
			h.tidy(ctx)
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

// growTrail is false when ctx has ended.
func (h *house) growTrail(ctx context.Context) bool {
	if h.store.Ready(ctx) == nil {
		if err := h.proofs.Grow(ctx); err != nil && ctx.Err() == nil {
			h.log.Error("extending the audit tree failed", slog.Any("error", err))
		}
	}
	return ctx.Err() == nil
}

// tidy removes what the settings keep no longer (RULES Y2).
func (h *house) tidy(ctx context.Context) {
	if h.store.Ready(ctx) != nil {
		return
	}
	h.tidyTrail(ctx)
	h.tidyChat(ctx)
	if _, err := h.notify.Retain(ctx); err != nil && ctx.Err() == nil {
		h.log.Error("removing old notifications failed", slog.Any("error", err))
	}
	if _, err := h.keys.Sweep(ctx); err != nil && ctx.Err() == nil {
		h.log.Error("removing old idempotency keys failed", slog.Any("error", err))
	}
	if done, err := h.agent.Retain(ctx); err != nil && ctx.Err() == nil {
		h.log.Error("removing old runs failed", slog.Any("error", err))
	} else if done != (agent.Retained{}) {
		h.log.Info("old runs were removed", slog.Int("removed", done.Removed), slog.Int("cancelled", done.Cancelled))
	}
}

// tidyChat archives and deletes what has rested for long (RULES V8).
func (h *house) tidyChat(ctx context.Context) {
	if done, err := h.chat.Retain(ctx); err != nil && ctx.Err() == nil {
		h.log.Error("putting old conversations away failed", slog.Any("error", err))
	} else if done != (chat.Retained{}) {
		h.log.Info("old conversations were put away", slog.Int("archived", done.Archived), slog.Int("deleted", done.Deleted))
	}
}

func (h *house) tidyTrail(ctx context.Context) {
	if removed, err := h.pruneTrail(ctx); err != nil && ctx.Err() == nil {
		h.log.Error("removing old audit entries failed", slog.Any("error", err))
	} else if removed > 0 {
		h.log.Info("old audit entries were removed", slog.Int64("entries", removed))
	}
}

// pruneTrail removes the entries that the setting no longer keeps (RULES U3).
func (h *house) pruneTrail(ctx context.Context) (int64, error) {
	values, err := h.access.Values(ctx)
	if err != nil || values.AuditDays == 0 {
		return 0, err
	}
	return h.proofs.Prune(ctx, h.world.Now().AddDate(0, 0, -values.AuditDays))
}
