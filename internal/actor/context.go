package actor

import "context"

type contextKey struct{}

// WithActor returns a context that carries the actor from the server to the
// resolvers. It goes no further: a use case takes its actor as an argument
// (RULES I2).
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, contextKey{}, a)
}

// ActorFrom returns the actor that the server put into the context, else
// nobody.
func ActorFrom(ctx context.Context) Actor {
	a, _ := ctx.Value(contextKey{}).(Actor)
	return a
}
