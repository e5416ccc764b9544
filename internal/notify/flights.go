package notify

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
)

// perEndpoint is how many posts to one endpoint one process has under way. An endpoint that
// does not answer holds up what it is told itself, and nobody else.
const perEndpoint = 4

// flights are the posts that a process has under way.
type flights struct {
	posts context.Context // of the posts; it outlives who began them, until cut
	cut   context.CancelFunc
	busy  sync.WaitGroup
	room  chan struct{} // gets a value when there is room again at an endpoint that was full

	mu sync.Mutex
	at map[uuid.UUID]int // by endpoint
}

func newFlights(ctx context.Context) *flights {
	f := &flights{room: make(chan struct{}, 1), at: map[uuid.UUID]int{}}
	f.posts, f.cut = context.WithCancel(context.WithoutCancel(ctx))
	return f
}

// enter takes a place for a post, if there is one.
func (f *flights) enter(endpoint uuid.UUID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at[endpoint] >= perEndpoint {
		return false
	}
	f.at[endpoint]++
	return true
}

// leave gives the place back.
func (f *flights) leave(endpoint uuid.UUID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at[endpoint] == perEndpoint {
		select {
		case f.room <- struct{}{}:
		default:
		}
	}
	if f.at[endpoint]--; f.at[endpoint] == 0 {
		delete(f.at, endpoint)
	}
}

// full lists the endpoints that have no place left.
func (f *flights) full() (out []uuid.UUID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for endpoint, n := range f.at {
		if n >= perEndpoint {
			out = append(out, endpoint)
		}
	}
	return out
}

// landWithin reports whether all posts have ended, at the latest after a while.
func (f *flights) landWithin(d time.Duration) bool {
	done := make(chan struct{})
	go func() { defer close(done); f.busy.Wait() }()
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}
