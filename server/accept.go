package server

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// Media types of GraphQL over HTTP.
const (
	typeJSON     = "application/json"
	typeResponse = "application/graphql-response+json"
	typeStream   = "text/event-stream"
)

// accepted says which forms of an answer a client takes.
type accepted struct {
	json   string // typeResponse, typeJSON, or "" where it takes neither
	stream bool   // event streams
}

// accept reads the Accept header. Where it is missing, or leaves a choice, a client
// that does not name the newer type gets application/json, as GraphQL over HTTP asks.
// Of the two JSON types the one with the greater weight wins, and among equals the newer. An
// event stream is never in their way: many clients name it with every request.
func accept(r *http.Request) accepted {
	header := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(header) == "" {
		return accepted{json: typeJSON}
	}
	var a accepted
	weights := map[string]float64{}
	for part := range strings.SplitSeq(header, ",") {
		kind, weight := mediaRange(part)
		weights[kind] = max(weights[kind], weight)
	}
	plain, named := weights[typeJSON]
	if !named {
		plain = max(weights["application/*"], weights["*/*"])
	}
	switch newer := weights[typeResponse]; {
	case newer > 0 && newer >= plain:
		a.json = typeResponse
	case plain > 0:
		a.json = typeJSON
	}
	a.stream = weights[typeStream] > 0
	return a
}

// mediaRange reads one part of an Accept header; what it cannot read has no weight.
func mediaRange(part string) (kind string, weight float64) {
	kind, parameters, err := mime.ParseMediaType(strings.TrimSpace(part))
	if err != nil {
		return "", 0
	}
	if charset, ok := parameters["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return kind, 0
	}
	q, ok := parameters["q"]
	if !ok {
		return kind, 1
	}
	weight, err = strconv.ParseFloat(q, 64)
	if err != nil || weight < 0 || weight > 1 {
		return kind, 0
	}
	return kind, weight
}

// isJSON reports whether a request's body is JSON in UTF-8.
func isJSON(r *http.Request) bool {
	kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != typeJSON {
		return false
	}
	charset, ok := parameters["charset"]
	return !ok || strings.EqualFold(charset, "utf-8")
}
