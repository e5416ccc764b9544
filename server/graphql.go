package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/server/internal/wire"
)

// statuses are the HTTP statuses of what the server refuses, by error code. They
// hold for both JSON types: they say that the request was not let through, which is
// HTTP's business. Whatever is not listed is a GraphQL matter.
var statuses = map[fault.Kind]int{
	fault.Unauthenticated: http.StatusUnauthorized,
	fault.Forbidden:       http.StatusForbidden,
	fault.RateLimited:     http.StatusTooManyRequests,
	fault.Unavailable:     http.StatusServiceUnavailable,
	fault.Internal:        http.StatusInternalServerError,
}

// graphql answers /graphql: it finds out who asks and hands the request to the
// first transport that speaks its language.
func (s *Server) graphql(w http.ResponseWriter, r *http.Request) {
	for _, transport := range s.transports {
		if !transport.Supports(r) {
			continue
		}
		// A WebSocket is authenticated by its first message, when the token is known.
		if transport != graphql.Transport(s.sockets) {
			who, err := s.admit(r)
			if err != nil {
				s.refuse(w, r, err)
				return
			}
			r = r.WithContext(actor.WithActor(r.Context(), who))
		}
		r = r.WithContext(graphql.StartOperationTrace(r.Context()))
		transport.Do(w, r, s.executor)
		return
	}
	w.Header().Set("Allow", "GET, POST")
	s.answer(w, r, http.StatusMethodNotAllowed, wire.Failure(wire.Error(fault.BadInput,
		"GraphQL is asked for by POST, or by GET for a query")))
}

// admit finds out who sent a request, and refuses one that may be forged.
func (s *Server) admit(r *http.Request) (actor.Actor, error) {
	if usesCookie(r) && r.Method != http.MethodGet {
		if err := s.checkForgery(r); err != nil {
			return actor.Actor{}, err
		}
	}
	return s.identify(r.Context(), r)
}

// refuse answers a request that was not let through.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	kind := fault.KindOf(err)
	message := "the server could not answer"
	var f *fault.Error
	if errors.As(err, &f) && kind != fault.Internal {
		message = f.Message
	}
	if kind == fault.Internal || kind == fault.Unavailable {
		s.options.Logger.ErrorContext(r.Context(), "find out who sent a request", "error", err)
	}
	if kind == fault.Unauthenticated {
		w.Header().Set("WWW-Authenticate", `Bearer realm="countersign", error="invalid_token"`)
	}
	status, ok := statuses[kind]
	if !ok {
		status = http.StatusBadRequest
	}
	s.answer(w, r, status, wire.Failure(wire.Error(kind, "%s", message)))
}

// answer writes a response in the JSON type that the client asked for.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, status int, response *graphql.Response) {
	body, err := wire.AppendResponse(nil, response)
	if err != nil {
		panic(err)
	}
	kind := accept(r).json
	if kind == "" {
		kind = typeJSON
	}
	s.writeWithin(w)
	w.Header().Set("Content-Type", kind+"; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone needs no answer
}

// answerFailure answers a GraphQL request that was refused before it ran. GraphQL over
// HTTP wants 200 for the older type, whose clients take any other status for a
// broken proxy, and 400 for the newer.
func (s *Server) answerFailure(w http.ResponseWriter, r *http.Request, response *graphql.Response) {
	status, ok := statuses[fault.Kind(wire.Code(response.Errors))]
	switch {
	case ok:
	case accept(r).json == typeResponse:
		status = http.StatusBadRequest
	default:
		status = http.StatusOK
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="countersign"`)
	}
	s.answer(w, r, status, response)
}

// badRequest answers a request that is no GraphQL request.
func (s *Server) badRequest(w http.ResponseWriter, r *http.Request, status int, format string, args ...any) {
	s.answer(w, r, status, wire.Failure(wire.Error(fault.BadInput, format, args...)))
}

// run executes a query or a mutation and answers with its one response.
func (s *Server) run(w http.ResponseWriter, r *http.Request, ctx context.Context, op *graphql.OperationContext) {
	ctx, cancel := context.WithTimeout(ctx, s.options.OperationTimeout)
	defer cancel()
	responses, ctx := s.executor.DispatchOperation(ctx, op)
	response := responses(ctx)
	if response == nil { // its context has ended
		s.answer(w, r, http.StatusServiceUnavailable, wire.Failure(wire.Error(fault.Unavailable,
			"the operation took too long and was given up")))
		return
	}
	s.answer(w, r, http.StatusOK, response)
}

// prepare parses, validates and admits an operation. On an error it returns the
// response that says so.
func (s *Server) prepare(ctx context.Context, r *http.Request, params *graphql.RawParams) (*graphql.OperationContext, *graphql.Response) {
	params.Headers = r.Header
	params.ReadTime.End = graphql.Now()
	op, errs := s.executor.CreateOperationContext(ctx, params)
	if len(errs) > 0 {
		return nil, s.executor.DispatchError(graphql.WithOperationContext(ctx, op), errs)
	}
	return op, nil
}

// recovered answers a panic: as INTERNAL, logged by the injected recovery.
func (s *Server) recovered(ctx context.Context, p any) *gqlerror.Error {
	err := s.executor.PresentRecoveredError(ctx, p)
	var presented *gqlerror.Error
	if errors.As(err, &presented) {
		return presented
	}
	return wire.Error(fault.Internal, "the server failed to answer")
}
