package server

import (
	"fmt"
	"net/http"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/countersign/countersign/server/internal/wire"
)

// get answers queries over HTTP GET. It changes nothing, whatever a link or an image tag
// asks for: mutations are refused.
type get struct{ s *Server }

var _ graphql.Transport = get{}

// Supports reports whether the request is a GET.
func (get) Supports(r *http.Request) bool { return r.Method == http.MethodGet }

// Do answers the request.
func (g get) Do(w http.ResponseWriter, r *http.Request, _ graphql.GraphExecutor) {
	form := accept(r)
	if form.json == "" {
		g.s.badRequest(w, r, http.StatusNotAcceptable, "answers to GET come as %s or %s; subscribe by POST", typeResponse, typeJSON)
		return
	}
	params, err := parseQueryString(r)
	if err != nil {
		g.s.badRequest(w, r, http.StatusBadRequest, "%s", err)
		return
	}
	params.ReadTime.Start = graphql.Now()
	op, refused := g.s.prepare(r.Context(), r, params)
	switch {
	case refused != nil:
		g.s.answerFailure(w, r, refused)
	case op.Operation.Operation != ast.Query:
		w.Header().Set("Allow", http.MethodPost)
		g.s.badRequest(w, r, http.StatusMethodNotAllowed, "a %s is sent by POST: GET answers queries only", op.Operation.Operation)
	default:
		g.s.run(w, r, r.Context(), op)
	}
}

func parseQueryString(r *http.Request) (*graphql.RawParams, error) {
	values := r.URL.Query()
	if !values.Has("query") {
		return nil, fmt.Errorf("the parameter query is missing")
	}
	params := &graphql.RawParams{Query: values.Get("query"), OperationName: values.Get("operationName")}
	for name, into := range map[string]*map[string]any{"variables": &params.Variables, "extensions": &params.Extensions} {
		text := values.Get(name)
		if text == "" {
			continue
		}
		m, err := wire.ParseMap([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("the parameter %s must be a JSON object", name)
		}
		*into = m
	}
	return params, nil
}
