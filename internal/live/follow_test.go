package live_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/live"
)

func (t *table) read(_ context.Context, after int) ([]int, int, error) {
	batch, next := t.after(after)
	return batch, next, nil
}

func TestFollow(t *testing.T) {
	const topic change.Topic = "topic"
	t.Run("R5 everything comes once and in order, whenever it was stored", func(t *testing.T) {
		var hub live.Hub
		var rows table
		rows.add(7)
		wake, cancel := hub.Listen(topic)
		defer cancel()
		go func() {
			for range 50 {
				rows.add(2)
				hub.Ring(topic)
			}
		}()
		var got []int
		for batch, err := range live.Follow(t.Context(), 0, wake, time.Hour, rows.read, func(batch []int) bool { return slices.Contains(batch, 106) }) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, batch...)
		}
		for i, n := range got {
			if i != n {
				t.Fatalf("place %d holds %d", i, n)
			}
		}
		if len(got) != 107 {
			t.Fatalf("%d rows of 107 came", len(got))
		}
	})
	t.Run("it goes on from a cursor", func(t *testing.T) {
		var rows table
		rows.add(5)
		for batch, err := range live.Follow(t.Context(), 3, nil, time.Hour, rows.read, nil) {
			if err != nil || !slices.Equal(batch, []int{3, 4}) {
				t.Fatalf("got %v, %v", batch, err)
			}
			break
		}
	})
	t.Run("it ends with the context and says nothing more", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var rows table
		rows.add(1)
		for _, err := range live.Follow(ctx, 0, nil, time.Hour, rows.read, nil) {
			if err != nil {
				t.Fatal(err)
			}
			cancel()
		}
	})
	t.Run("an error of the table ends it with that error", func(t *testing.T) {
		broken := errors.New("the table is gone")
		var got error
		for _, err := range live.Follow(t.Context(), 0, nil, time.Hour, func(context.Context, int) ([]int, int, error) {
			return nil, 0, broken
		}, nil) {
			got = err
		}
		if !errors.Is(got, broken) {
			t.Fatalf("got %v", got)
		}
	})
}
