package graph

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/countersign/countersign/internal/fault"
)

// internalMessage is all that a client learns about a fault of ours.
const internalMessage = "Something went wrong here; it has been logged."

// PresentError turns every error of an operation into what a client may read: a message that was written for it and a code (API.md, Conventions). What
// was not written for a client is logged, once, and hidden.
func (a *API) PresentError(ctx context.Context, err error) *gqlerror.Error {
	shown := graphql.DefaultErrorPresenter(ctx, err)
	kind, message := judge(err)
	if (kind == fault.Internal || kind == fault.Unavailable) && !errors.Is(err, errLogged) {
		a.resolver.Log.ErrorContext(ctx, "an operation failed", "kind", string(kind), "path", shown.Path.String(), "error", err)
	}
	return &gqlerror.Error{Message: message, Path: shown.Path, Locations: shown.Locations, Extensions: map[string]any{"code": string(kind)}}
}

// judge says what an error is and what may be said about it.
func judge(err error) (fault.Kind, string) {
	var known *fault.Error
	var refused *fault.Refused
	var parsed *gqlerror.Error
	switch {
	case errors.As(err, &known):
		if known.Kind == fault.Internal {
			return fault.Internal, internalMessage
		}
		return known.Kind, known.Message
	case errors.As(err, &refused):
		// Refusals are data of a payload. A query that meets one cannot answer, and the rule's own words say why.
		return fault.BadInput, refused.Message
	case errors.Is(err, context.Canceled):
		return fault.Unavailable, "The request was given up before it was answered."
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Unavailable, "The answer took too long; try again."
	case errors.As(err, &parsed) && parsed.Err == nil && parsed.Extensions["code"] != nil:
		// Only what the GraphQL library says about the document and its variables carries a code already.
		return fault.BadInput, parsed.Message
	}
	return fault.Internal, internalMessage
}

// Recover turns a panic of a resolver into an error that says nothing to the client. It is the one place that logs it.
func (a *API) Recover(ctx context.Context, p any) error {
	a.resolver.Log.ErrorContext(ctx, "a resolver panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return fault.Wrap(fault.Internal, errLogged, "panic in a resolver")
}

// errLogged marks an error that is in the log already.
var errLogged = errors.New("logged before")

// panicked is a panic as an error, with the stack for the log.
func panicked(p any) error {
	return fault.Wrap(fault.Internal, fmt.Errorf("panic: %v\n%s", p, debug.Stack()), "panic behind a resolver")
}
