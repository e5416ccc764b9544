package live

import (
	"context"
	"iter"
	"time"
)

// Heal is how often a stream looks by itself, in case a wake-up was lost.
const Heal = 5 * time.Second

// Follow streams what comes after a cursor: it reads batch after batch until there
// is nothing more, and then again at every wake-up and at least every heal. read
// returns what comes after a cursor, in order, and the cursor of the last of it; it
// bounds its batches itself, and it is not called while the last batch is being
// worked on, so that a slow reader costs nothing.
//
// The stream ends without an error when the context does, when the consumer stops,
// or when done says so of a batch that was handed out (nil never does). An error of
// read ends it with that error. Follow starts no goroutine.
func Follow[T, C any](
	ctx context.Context, from C, wake <-chan struct{}, heal time.Duration,
	read func(ctx context.Context, after C) (batch []T, next C, err error), done func(batch []T) bool,
) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		ticker := time.NewTicker(heal)
		defer ticker.Stop()
		for after := from; ; {
			batch, next, err := read(ctx, after)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if len(batch) > 0 {
				if !yield(batch, nil) || done != nil && done(batch) {
					return
				}
				after = next
				continue
			}
			select {
			case <-ctx.Done():
				return
			case <-wake:
			case <-ticker.C:
			}
		}
	}
}
