// Package wire is the JSON that every transport speaks: the parameters of a
// GraphQL request as they come in, and a GraphQL response as it goes out. It
// knows neither HTTP nor WebSocket. Its functions hold no state and may be called
// from any goroutine; what they return belongs to the caller.
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/99designs/gqlgen/graphql"
)

// ErrNotObject says that a request is valid JSON but no JSON object.
var ErrNotObject = errors.New("a GraphQL request is one JSON object; batches are not supported")

// ParseParams reads the parameters of a GraphQL request. Unknown members are
// ignored, as GraphQL over HTTP asks; names are compared by case, which
// encoding/json by itself does not do. The error is written for the client.
func ParseParams(data []byte) (*graphql.RawParams, error) {
	members, err := object(data)
	if err != nil {
		return nil, err
	}
	query, given, err := text(members, "query")
	if err != nil {
		return nil, err
	}
	if !given {
		return nil, errors.New("the parameter query is missing")
	}
	params := &graphql.RawParams{Query: query}
	if params.OperationName, _, err = text(members, "operationName"); err != nil {
		return nil, err
	}
	if params.Variables, err = mapping(members, "variables"); err != nil {
		return nil, err
	}
	if params.Extensions, err = mapping(members, "extensions"); err != nil {
		return nil, err
	}
	return params, nil
}

// ParseMap reads one JSON object. Numbers stay as they were written, so that a
// Long does not pass through a float.
func ParseMap(data []byte) (map[string]any, error) {
	var m map[string]any
	if err := decode(data, &m); err != nil {
		return nil, err
	}
	return m, nil
}

func object(data []byte) (map[string]json.RawMessage, error) {
	trimmed := bytes.TrimLeft(data, " \t\r\n")
	if len(trimmed) == 0 {
		return nil, errors.New("the request body is empty")
	}
	if !json.Valid(trimmed) {
		var any json.RawMessage
		return nil, fmt.Errorf("the request is not valid JSON: %w", json.Unmarshal(trimmed, &any))
	}
	if trimmed[0] != '{' {
		return nil, ErrNotObject
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(trimmed, &members); err != nil {
		return nil, fmt.Errorf("the request is not valid JSON: %w", err)
	}
	return members, nil
}

func text(members map[string]json.RawMessage, name string) (value string, given bool, err error) {
	raw, ok := members[name]
	if !ok || isNull(raw) {
		return "", false, nil
	}
	if raw[0] != '"' {
		return "", false, fmt.Errorf("the parameter %s must be a string", name)
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		return "", false, fmt.Errorf("read the parameter %s: %w", name, err)
	}
	return value, true, nil
}

func mapping(members map[string]json.RawMessage, name string) (map[string]any, error) {
	raw, ok := members[name]
	if !ok || isNull(raw) {
		return nil, nil
	}
	if raw[0] != '{' {
		return nil, fmt.Errorf("the parameter %s must be an object", name)
	}
	m, err := ParseMap(raw)
	if err != nil {
		return nil, fmt.Errorf("read the parameter %s: %w", name, err)
	}
	return m, nil
}

func isNull(raw json.RawMessage) bool { return bytes.Equal(raw, []byte("null")) }

func decode(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after the JSON value")
	}
	return nil
}
