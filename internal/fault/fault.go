// Package fault names the two ways in which a call does not do what it was
// asked: an Error (the caller or the server is at fault; the API reports it as a
// GraphQL error with a code) and a Refusal (the rules say no; the API returns it
// as data). It is the innermost room: everything may import it, it imports
// nothing of the project. All values are immutable once made.
package fault

import (
	"errors"
	"fmt"
)

// Kind is what the API puts into extensions.code.
type Kind string

// The kinds of error, with the meaning API.md gives them.
const (
	Unauthenticated Kind = "UNAUTHENTICATED" // nobody is signed in, or the token is not valid
	Forbidden       Kind = "FORBIDDEN"       // a permission is missing
	BadInput        Kind = "BAD_USER_INPUT"  // the input cannot be right, whatever the state
	NotFound        Kind = "NOT_FOUND"       // no such object, or none the actor may see
	Conflict        Kind = "CONFLICT"        // an idempotency key reused with other input
	RateLimited     Kind = "RATE_LIMITED"    // too many requests
	Unavailable     Kind = "UNAVAILABLE"     // the database is gone; retry with the same key
	Internal        Kind = "INTERNAL"        // our fault; the message is never shown
)

// Error is a failed call. Message is written for the caller and says what to
// do; Cause is for the log only.
type Error struct {
	Kind    Kind
	Message string
	Cause   error
}

func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Message + ": " + e.Cause.Error()
	}
	return e.Message
}

// Unwrap returns the cause, so that errors.Is sees through an Error.
func (e *Error) Unwrap() error { return e.Cause }

// New makes an error of a kind whose message the caller may read.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes an error of a kind around its cause. The cause reaches the log,
// never the caller.
func Wrap(kind Kind, cause error, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...), Cause: cause}
}

// KindOf says how the API reports err: the kind of the outermost Error in its
// chain, else Internal.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}

// Is reports whether err is an Error of this kind.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }
