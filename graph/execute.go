package graph

import (
	"bytes"
	"context"
	"sync"

	"github.com/99designs/gqlgen/graphql"
)

// schema adds to the generated one what every operation has: loaders for each response, idempotency keys around
// its mutations, and a way for a subscription to end with an error.
type schema struct {
	graphql.ExecutableSchema
	resolver *Resolver
}

// Exec runs an operation. A subscription whose source fails gets one more response, which says why, before it completes.
func (s *schema) Exec(ctx context.Context) graphql.ResponseHandler {
	failure := &failure{}
	operation := graphql.GetOperationContext(ctx)
	operation.ResolverMiddleware = s.resolver.repeatable(operation.ResolverMiddleware)
	next := s.ExecutableSchema.Exec(context.WithValue(ctx, failureKey{}, failure))
	return func(ctx context.Context) *graphql.Response {
		if response := next(s.resolver.withLoaders(ctx)); response != nil {
			// gqlgen writes every response of a subscription into the same buffer; whoever sends them may still hold the one before.
			response.Data = bytes.Clone(response.Data)
			return response
		}
		err := failure.take()
		if err == nil || ctx.Err() != nil {
			return nil
		}
		graphql.AddError(ctx, err)
		return &graphql.Response{Data: []byte("null")}
	}
}

type failureKey struct{}

// failure is why the source of a subscription ended before its time.
type failure struct {
	mu  sync.Mutex
	err error
}

func (f *failure) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *failure) take() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.err
	f.err = nil
	return err
}

// stream makes the channel of a subscription from a source that is pulled: it hands over one value at a time and ends with the source, or when the
// client goes. An error of the source is the subscription's last response.
func stream[D, N any](ctx context.Context, source func(yield func(D, error) bool), node func(D) N) <-chan N {
	out := make(chan N)
	fail := func(err error) {
		if f, ok := ctx.Value(failureKey{}).(*failure); ok {
			f.set(err)
		}
	}
	go func() {
		defer close(out)
		defer func() {
			if p := recover(); p != nil { // on a goroutine of its own it would end the process
				fail(panicked(p))
			}
		}()
		for d, err := range source {
			if err != nil {
				fail(err)
				return
			}
			select {
			case out <- node(d):
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}
