package live

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/lib/pq"

	"github.com/countersign/countersign/internal/change"
)

// How a lost connection is made again, and how often a silent one is tried.
const (
	reconnectFirst = 100 * time.Millisecond
	reconnectLast  = 10 * time.Second
	silence        = 30 * time.Second
)

// ListenPostgres rings the hub for every notification on a channel until the
// context ends. A payload lists topics, one a line; an empty one rings everybody,
// and so does a connection that was lost and made again, because notifications are
// not kept meanwhile. It returns an error only when it cannot begin to listen.
func ListenPostgres(ctx context.Context, url, channel string, hub *Hub, log *slog.Logger) error {
	listener := pq.NewListener(url, reconnectFirst, reconnectLast, func(event pq.ListenerEventType, err error) {
		if err != nil {
			log.WarnContext(ctx, "the connection for wake-ups was lost; streams heal by looking", "error", err)
		}
	})
	// Listen blocks while there is no connection; closing the listener ends that.
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer func() {
		if stop() {
			listener.Close()
		}
	}()
	if err := listener.Listen(channel); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("listen for wake-ups: %w", err)
	}
	hub.RingAll() // what happened before nobody was told of
	ping := time.NewTicker(silence)
	defer ping.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case note, open := <-listener.NotificationChannel():
			if !open {
				return nil
			}
			announce(hub, note)
		case <-ping.C:
			listener.Ping() // a connection that is found dead is made again
		}
	}
}

// announce rings for one notification; nil follows a reconnection.
func announce(hub *Hub, note *pq.Notification) {
	if note == nil || note.Extra == "" {
		hub.RingAll()
		return
	}
	for topic := range strings.SplitSeq(note.Extra, "\n") {
		hub.Ring(change.Topic(topic))
	}
}
