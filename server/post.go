package server

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/server/internal/wire"
)

// post answers GraphQL over HTTP POST, as one JSON response or as an event stream.
//
// Which of the two is decided by the operation before the Accept header: a
// subscription needs a stream, and a query is only streamed to a client that takes
// nothing else. Clients such as urql list event streams with every request.
type post struct{ s *Server }

var _ graphql.Transport = post{}

// Supports reports whether the request is a POST.
func (post) Supports(r *http.Request) bool { return r.Method == http.MethodPost }

// Do answers the request.
func (p post) Do(w http.ResponseWriter, r *http.Request, _ graphql.GraphExecutor) {
	form := accept(r)
	if form.json == "" && !form.stream {
		p.s.badRequest(w, r, http.StatusNotAcceptable, "answers come as %s, %s or, for subscriptions, %s", typeResponse, typeJSON, typeStream)
		return
	}
	if !isJSON(r) {
		p.s.badRequest(w, r, http.StatusUnsupportedMediaType, "the Content-Type of a request must be %s, in UTF-8", typeJSON)
		return
	}
	start := graphql.Now()
	body, ok := p.s.readBody(w, r)
	if !ok {
		return
	}
	params, err := wire.ParseParams(body)
	if err != nil {
		p.s.badRequest(w, r, http.StatusBadRequest, "%s", err)
		return
	}
	params.ReadTime.Start = start
	op, refused := p.s.prepare(r.Context(), r, params)
	switch {
	case refused != nil && form.json == "":
		p.s.stream(w, r, graphql.OneShot(refused), false)
	case refused != nil:
		p.s.answerFailure(w, r, refused)
	case op.Operation.Operation == ast.Subscription && !form.stream:
		p.s.answerFailure(w, r, wire.Failure(wire.Error(fault.BadInput,
			"a subscription needs a stream: send it with Accept: %s, or over a WebSocket with graphql-transport-ws", typeStream)))
	case op.Operation.Operation == ast.Subscription:
		p.s.streamOperation(w, r, op)
	case form.json == "":
		p.s.streamOperation(w, r, op)
	default:
		p.s.run(w, r, r.Context(), op)
	}
}

// readBody reads a request's body within its limits, or answers what is wrong.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(s.options.BodyTimeout)) // a test's recorder has none
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.options.MaxBodyBytes))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		s.badRequest(w, r, http.StatusRequestEntityTooLarge, "a request may have %d bytes", s.options.MaxBodyBytes)
		return nil, false
	case err != nil:
		w.Header().Set("Connection", "close")
		s.badRequest(w, r, http.StatusRequestTimeout, "the request's body did not arrive")
		return nil, false
	}
	// net/http now watches the connection for its end; with the deadline still set it
	// would take a long answer for a client that has gone.
	_ = control.SetReadDeadline(time.Time{})
	return body, true
}

// writeWithin gives the answer that follows its time.
func (s *Server) writeWithin(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.options.WriteTimeout))
}
