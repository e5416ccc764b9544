package live

import (
	"context"
	"log/slog"
	"time"
)

// Glance is how often a version is looked at while anybody waits.
const Glance = 200 * time.Millisecond

// Poll rings everybody whenever a version changes, until the context ends: it is
// how processes that share an SQLite file hear of each other. It looks only while
// somebody waits.
func Poll(ctx context.Context, every time.Duration, version func(context.Context) (int64, error), hub *Hub, log *slog.Logger) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	last, failing := int64(-1), false
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !hub.Waiting() {
			continue
		}
		now, err := version(ctx)
		if err != nil {
			if !failing && ctx.Err() == nil {
				log.WarnContext(ctx, "the database cannot be watched for other processes; streams heal by looking", "error", err)
			}
			failing = true
			continue
		}
		if failing = false; now != last {
			last = now
			hub.RingAll()
		}
	}
}
