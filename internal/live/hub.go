// Package live wakes whoever waits for something to happen and turns tables into
// streams. A wake-up says only "look again": the table is the truth, so that a
// wake-up may be folded with the next, lost or given for nothing, and nobody
// misses anything. Every wait therefore looks again by itself from time to time.
//
// Everything here is safe for concurrent use. Ringing never blocks and never waits
// for a listener; a listener that is slow gets one wake-up for everything it
// slept through. A listener costs one channel and one map entry.
package live

import (
	"sync"

	"github.com/countersign/countersign/internal/change"
)

// Hub hands wake-ups to the listeners of this process. The zero value is ready.
type Hub struct {
	mu        sync.RWMutex
	listeners map[change.Topic]map[*listener]struct{}
}

// listener is whoever waits; its channel holds at most one wake-up.
type listener struct{ wake chan struct{} }

func (l *listener) ring() {
	select {
	case l.wake <- struct{}{}:
	default: // one is waiting already
	}
}

// Ring wakes the listeners of topics.
func (h *Hub) Ring(topics ...change.Topic) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, topic := range topics {
		for l := range h.listeners[topic] {
			l.ring()
		}
	}
}

// RingAll wakes every listener: anything may have changed.
func (h *Hub) RingAll() {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, all := range h.listeners {
		for l := range all {
			l.ring()
		}
	}
}

// Listen returns a channel that gets a wake-up whenever one of the topics rings,
// and what ends that. Listen first and read afterwards: what happens in between is
// then in the channel. The channel is never closed.
func (h *Hub) Listen(topics ...change.Topic) (wake <-chan struct{}, cancel func()) {
	l := &listener{wake: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners == nil {
		h.listeners = map[change.Topic]map[*listener]struct{}{}
	}
	for _, topic := range topics {
		if h.listeners[topic] == nil {
			h.listeners[topic] = map[*listener]struct{}{}
		}
		h.listeners[topic][l] = struct{}{}
	}
	return l.wake, func() { h.forget(l, topics) }
}

func (h *Hub) forget(l *listener, topics []change.Topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, topic := range topics {
		delete(h.listeners[topic], l)
		if len(h.listeners[topic]) == 0 {
			delete(h.listeners, topic)
		}
	}
}

// Waiting reports whether anybody listens at all.
func (h *Hub) Waiting() bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return len(h.listeners) > 0
}
