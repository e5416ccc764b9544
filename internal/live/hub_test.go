package live_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/live"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rung reports whether a wake-up is waiting, and takes it.
func rung(wake <-chan struct{}) bool {
	select {
	case <-wake:
		return true
	default:
		return false
	}
}

func TestHub(t *testing.T) {
	const here, there change.Topic = "here", "there"
	t.Run("a topic wakes its listeners and nobody else", func(t *testing.T) {
		var hub live.Hub
		both, cancelBoth := hub.Listen(here, there)
		other, cancelOther := hub.Listen(there)
		defer cancelBoth()
		defer cancelOther()
		hub.Ring(here)
		if !rung(both) || rung(other) {
			t.Fatal("the wrong listener was woken")
		}
	})
	t.Run("ringing never blocks and is folded for a slow listener", func(t *testing.T) {
		var hub live.Hub
		wake, cancel := hub.Listen(here)
		defer cancel()
		for range 1000 {
			hub.Ring(here, there)
		}
		if !rung(wake) || rung(wake) {
			t.Fatal("a thousand rings are one wake-up")
		}
	})
	t.Run("a ring between listening and reading is kept", func(t *testing.T) {
		var hub live.Hub
		wake, cancel := hub.Listen(here)
		defer cancel()
		hub.Ring(here)
		if !rung(wake) {
			t.Fatal("the wake-up was lost")
		}
	})
	t.Run("everybody can be woken", func(t *testing.T) {
		var hub live.Hub
		wake, cancel := hub.Listen(here)
		defer cancel()
		hub.RingAll()
		if !rung(wake) {
			t.Fatal("a listener slept on")
		}
	})
	t.Run("whoever left is not woken and leaves nothing behind", func(t *testing.T) {
		var hub live.Hub
		wake, cancel := hub.Listen(here, there)
		cancel()
		cancel()
		hub.Ring(here)
		if rung(wake) || hub.Waiting() {
			t.Fatal("the listener is still known")
		}
	})
	t.Run("listeners come and go while it rings", func(t *testing.T) {
		var hub live.Hub
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 200 {
					wake, cancel := hub.Listen(here)
					hub.Ring(here)
					<-wake
					cancel()
				}
			})
		}
		all.Wait()
		if hub.Waiting() {
			t.Fatal("a listener was left behind")
		}
	})
}

// table is a growing list of numbers that is read in batches of three.
type table struct {
	mu   sync.Mutex
	rows []int
}

func (t *table) add(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for range n {
		t.rows = append(t.rows, len(t.rows))
	}
}

func (t *table) after(cursor int) ([]int, int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	batch := t.rows[cursor:min(cursor+3, len(t.rows))]
	return batch, cursor + len(batch)
}

func TestFollowInTime(t *testing.T) {
	t.Run("a lost wake-up is healed by looking", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var rows table
			start := time.Now()
			go func() {
				time.Sleep(12 * time.Second)
				rows.add(1) // and nobody rings
			}()
			for batch, err := range live.Follow(t.Context(), 0, nil, live.Heal, rows.read, nil) {
				if err != nil || len(batch) != 1 {
					t.Fatalf("got %v, %v", batch, err)
				}
				break
			}
			if waited := time.Since(start); waited != 15*time.Second {
				t.Fatalf("it looked after %v", waited)
			}
		})
	})
}
