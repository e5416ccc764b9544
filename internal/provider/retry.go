package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/countersign/countersign/internal/agent"
)

// failure is an attempt that failed. Its message is a predicate ("answered 503: …");
// caller puts the provider's name before it.
type failure struct {
	agent.ProviderError
	// unanswered says that nothing of an answer had arrived, so that asking again
	// hides nothing and repeats nothing a person has read.
	unanswered bool
	after      time.Duration // what Retry-After asked for
}

func failed(retryable bool, format string, args ...any) *failure {
	return &failure{ProviderError: agent.ProviderError{Message: fmt.Sprintf(format, args...), Retryable: retryable}}
}

func (f *failure) because(cause error) *failure {
	f.Cause = cause
	return f
}

// retryableStatus says whether the same request may succeed later.
func retryableStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return status >= 500
}

// newBreaker leaves a provider alone after failures in a row. A refusal such as 400
// proves that the provider is alive; its rate limit and a caller that went away
// say nothing about it.
func newBreaker(name string, limits Limits) *breaker {
	return gobreaker.NewCircuitBreaker[agent.Turn](gobreaker.Settings{
		Name:        name,
		Timeout:     limits.Rest,
		ReadyToTrip: func(counts gobreaker.Counts) bool { return counts.ConsecutiveFailures >= limits.Trip },
		IsSuccessful: func(err error) bool {
			var f *failure
			return err == nil || errors.As(err, &f) && !f.Retryable
		},
		IsExcluded: func(err error) bool {
			var f *failure
			return err != nil && (!errors.As(err, &f) || f.Status == http.StatusTooManyRequests)
		},
	})
}

// caller asks a provider until it answers, fails for good, or was asked often
// enough. A nil breaker lets every attempt through.
type caller struct {
	name    string
	key     string // what no message may hold
	breaker *breaker
	limits  Limits
	wait    func(context.Context, time.Duration) error
	random  func() float64
}

// turn runs attempts, numbered from 1. The error it returns is ctx's or an
// *agent.ProviderError.
func (c caller) turn(ctx context.Context, attempt func(number int) (agent.Turn, error)) (agent.Turn, error) {
	var last *failure
	for number := 1; ; number++ {
		turn, err := c.guarded(func() (agent.Turn, error) { return attempt(number) })
		if err == nil {
			return turn, nil
		}
		if ctx.Err() != nil {
			return agent.Turn{}, ctx.Err()
		}
		var f *failure
		switch {
		case errors.Is(err, gobreaker.ErrOpenState), errors.Is(err, gobreaker.ErrTooManyRequests):
			if last != nil { // our own attempts opened it: what they met says more
				return agent.Turn{}, c.told(last)
			}
			f := failed(true, "failed repeatedly and is left alone for up to %s", c.limits.Rest).because(err)
			f.LeftAlone = true
			return agent.Turn{}, c.told(f)
		case !errors.As(err, &f):
			return agent.Turn{}, c.told(failed(false, "could not be asked").because(err))
		}
		last = f
		if !f.unanswered || !f.Retryable || number >= c.limits.Attempts || f.after > c.limits.LongestWait {
			return agent.Turn{}, c.told(f)
		}
		if err := c.wait(ctx, c.pause(number, f.after)); err != nil {
			return agent.Turn{}, err
		}
	}
}

func (c caller) guarded(attempt func() (agent.Turn, error)) (agent.Turn, error) {
	if c.breaker == nil {
		return attempt()
	}
	return c.breaker.Execute(attempt)
}

// pause doubles with every attempt and takes between half and all of that, so that
// clients that failed together do not return together; never less than what the
// provider asked for.
func (c caller) pause(number int, after time.Duration) time.Duration {
	full := min(c.limits.Backoff<<min(number-1, 16), c.limits.LongestWait)
	return max(full/2+time.Duration(c.random()*float64(full/2)), after)
}

// told makes of a failure what may be shown: with the provider's name, without the
// key, which some providers write into their errors, and not too long. The key goes
// before the cut, which could leave half of it.
func (c caller) told(f *failure) *agent.ProviderError {
	const longest = 400
	err := f.ProviderError
	err.Message = fmt.Sprintf("provider %q %s", c.name, err.Message)
	if c.key != "" {
		err.Message = strings.NewReplacer("Bearer "+c.key, "[key]", c.key, "[key]").Replace(err.Message)
	}
	if runes := []rune(err.Message); len(runes) > longest {
		err.Message = string(runes[:longest]) + "…"
	}
	return &err
}
