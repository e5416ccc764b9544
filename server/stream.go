package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/server/internal/wire"
)

// streamOperation executes an operation and answers with an event stream.
func (s *Server) streamOperation(w http.ResponseWriter, r *http.Request, op *graphql.OperationContext) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	subscription := op.Operation.Operation == ast.Subscription
	if subscription {
		s.metrics.subscriptions.Inc()
		defer s.metrics.subscriptions.Dec()
	} else {
		ctx, cancel = context.WithTimeout(ctx, s.options.OperationTimeout)
		defer cancel()
	}
	responses, ctx := s.executor.DispatchOperation(ctx, op)
	s.stream(w, r.WithContext(ctx), responses, subscription)
}

// stream sends responses as server-sent events, one next each and a complete at the
// end, as graphql-sse does in its distinct connections mode. It ends without
// complete when the server shuts down, at which clients connect again.
//
// One goroutine pulls responses, this one writes; a response is pulled when the one before
// it is on its way. Both have ended when stream returns.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, responses graphql.ResponseHandler, recheck bool) {
	ctx, cancel := context.WithCancel(r.Context())
	events := make(chan *graphql.Response)
	go s.pull(ctx, responses, events)
	defer func() {
		cancel()
		for range events { // until the puller has ended
		}
	}()

	header := w.Header()
	header.Set("Content-Type", typeStream+"; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // nginx would keep events back
	out := eventWriter{w: w, control: http.NewResponseController(w), timeout: s.options.WriteTimeout}
	out.comment() // headers leave now, not with the first event

	keepAlive := time.NewTicker(s.options.KeepAliveInterval)
	defer keepAlive.Stop()
	rechecks := time.NewTicker(s.options.RecheckInterval)
	defer rechecks.Stop()
	for out.err == nil {
		select {
		case <-ctx.Done():
			return
		case <-s.draining:
			return
		case response, more := <-events:
			if !more {
				if ctx.Err() == nil {
					out.event("complete", nil)
				}
				return
			}
			out.response(response)
		case <-keepAlive.C:
			out.comment()
		case <-rechecks.C:
			if !recheck {
				continue
			}
			if err := s.stillAdmitted(ctx, r); err != nil {
				out.response(wire.Failure(err))
				out.event("complete", nil)
				return
			}
		}
	}
}

// pull hands on one response after the other. A panic becomes the last of them: on
// a goroutine of its own it would end the process.
func (s *Server) pull(ctx context.Context, responses graphql.ResponseHandler, events chan<- *graphql.Response) {
	defer close(events)
	send := func(response *graphql.Response) bool {
		select {
		case events <- response:
			return true
		case <-ctx.Done():
			return false
		}
	}
	defer func() {
		if p := recover(); p != nil {
			send(wire.Failure(s.recovered(ctx, p)))
		}
	}()
	for {
		response := responses(ctx)
		if response == nil {
			return
		}
		// All responses of a gqlgen subscription share one buffer, which the next call
		// writes over.
		response.Data = bytes.Clone(response.Data)
		if !send(response) {
			return
		}
	}
}

// stillAdmitted looks up again who a stream belongs to, and refuses to go on when
// the actor is gone or may do other things than before. Where no answer comes in time
// the stream ends too: a right may have been revoked.
func (s *Server) stillAdmitted(ctx context.Context, r *http.Request) *gqlerror.Error {
	before := actor.ActorFrom(ctx)
	ctx, cancel := context.WithTimeout(ctx, s.options.RecheckInterval/2)
	defer cancel()
	now, err := s.identify(ctx, r)
	switch {
	case fault.Is(err, fault.Unauthenticated):
		return wire.Error(fault.Unauthenticated, "the sign-in behind this stream has ended")
	case err != nil:
		return wire.Error(fault.Unavailable, "the sign-in behind this stream cannot be checked now; connect again")
	case !before.Same(now):
		return wire.Error(fault.Forbidden, "the rights behind this stream have changed; connect again")
	}
	return nil
}

// eventWriter writes server-sent events; after its first error it does nothing.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	err     error
}

func (e *eventWriter) response(response *graphql.Response) {
	body, err := wire.AppendResponse(nil, response)
	if err != nil {
		e.err = err
		return
	}
	e.event("next", body)
}

func (e *eventWriter) event(name string, data []byte) {
	if bytes.ContainsAny(data, "\r\n") { // a line break would end the event's data
		var compact bytes.Buffer
		if err := json.Compact(&compact, data); err != nil {
			e.err = err
			return
		}
		data = compact.Bytes()
	}
	frame := append([]byte("event: "+name+"\ndata: "), data...)
	e.write(append(frame, "\n\n"...))
}

func (e *eventWriter) comment() { e.write([]byte(":\n\n")) }

func (e *eventWriter) write(frame []byte) {
	if e.err != nil {
		return
	}
	_ = e.control.SetWriteDeadline(time.Now().Add(e.timeout))
	if _, e.err = e.w.Write(frame); e.err == nil {
		e.err = e.control.Flush()
	}
}
