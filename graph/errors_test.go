package graph

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/countersign/countersign/internal/fault"
)

func typeName(v any) string { return fmt.Sprintf("%T", v) }

func TestWhatAClientReadsOfAnError(t *testing.T) {
	cause := errors.New("pq: password authentication failed")
	for _, c := range []struct {
		name, code, message string
		err                 error
		logged              bool
	}{
		{"not signed in", "UNAUTHENTICATED", "Sign in.", fault.New(fault.Unauthenticated, "Sign in."), false},
		{"a missing permission", "FORBIDDEN", "No.", fault.New(fault.Forbidden, "No."), false},
		{"bad input hides its cause", "BAD_USER_INPUT", "Wrong.", fault.Wrap(fault.BadInput, cause, "Wrong."), false},
		{"not found", "NOT_FOUND", "Gone.", fault.New(fault.NotFound, "Gone."), false},
		{"a conflict", "CONFLICT", "Used.", fault.New(fault.Conflict, "Used."), false},
		{"too many", "RATE_LIMITED", "Slow.", fault.New(fault.RateLimited, "Slow."), false},
		{"the database is gone", "UNAVAILABLE", "Retry.", fault.Wrap(fault.Unavailable, cause, "Retry."), true},
		{"a fault of ours", "INTERNAL", internalMessage, fault.Wrap(fault.Internal, cause, "reading a row"), true},
		{"an error nobody thought of", "INTERNAL", internalMessage, cause, true},
		{"wrapped", "FORBIDDEN", "No.", fmt.Errorf("approving: %w", fault.New(fault.Forbidden, "No.")), false},
		{"joined with a second failure", "FORBIDDEN", "No.", errors.Join(fault.New(fault.Forbidden, "No."), cause), false},
		{"with a path", "NOT_FOUND", "Gone.", gqlerror.WrapPath(nil, fault.New(fault.NotFound, "Gone.")), false},
		{"a plain GraphQL error of a resolver", "INTERNAL", internalMessage, gqlerror.Errorf("json: cannot unmarshal"), true},
		{"the client went away", "UNAVAILABLE", "The request was given up before it was answered.", context.Canceled, true},
		{"too slow", "UNAVAILABLE", "The answer took too long; try again.", fmt.Errorf("waiting: %w", context.DeadlineExceeded), true},
		{"a refusal outside a payload", "BAD_USER_INPUT", "It waits.", fault.Refuse(fault.Busy, "It waits."), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			api := New(Rooms{Log: slog.New(slog.NewTextHandler(&log, nil))})
			got := api.PresentError(t.Context(), c.err)
			if got.Message != c.message || got.Extensions["code"] != c.code {
				t.Errorf("got %q, %v", got.Message, got.Extensions)
			}
			if strings.Contains(got.Error(), "pq:") || got.Err != nil {
				t.Errorf("the cause leaks: %v", got)
			}
			if logged := strings.Count(log.String(), "\n"); logged > 1 || (logged == 1) != c.logged {
				t.Errorf("logged %d lines:\n%s", logged, log.String())
			}
		})
	}

	t.Run("a panic is logged once and hidden", func(t *testing.T) {
		var log bytes.Buffer
		api := New(Rooms{Log: slog.New(slog.NewTextHandler(&log, nil))})
		got := api.PresentError(t.Context(), api.Recover(t.Context(), "nil map"))
		if got.Message != internalMessage || got.Extensions["code"] != "INTERNAL" {
			t.Errorf("got %v", got)
		}
		if n := strings.Count(log.String(), "nil map"); n != 1 {
			t.Errorf("the panic is logged %d times:\n%s", n, log.String())
		}
	})
}
