package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/server/internal/wire"
)

func TestParseParams(t *testing.T) {
	t.Run("numbers keep their digits", func(t *testing.T) {
		params, err := wire.ParseParams([]byte(`{"query":"q","variables":{"n":9007199254740993,"deep":[1.50]}}`))
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(params.Variables)
		if err != nil || string(got) != `{"deep":[1.50],"n":9007199254740993}` {
			t.Errorf("got %s, %v", got, err)
		}
	})
	t.Run("null stands for absent, but not for the query", func(t *testing.T) {
		params, err := wire.ParseParams([]byte(`{"query":"q","variables":null,"operationName":null,"extensions":null}`))
		if err != nil || params.Variables != nil || params.OperationName != "" {
			t.Errorf("got %v, %v", params, err)
		}
		if _, err := wire.ParseParams([]byte(`{"query":null}`)); err == nil {
			t.Error("a null query passed")
		}
	})
	t.Run("an error names what is wrong", func(t *testing.T) {
		for body, want := range map[string]string{
			``:                             "empty",
			`{`:                            "not valid JSON",
			`[{"query":"q"}]`:              "batches",
			`{}`:                           "query is missing",
			`{"query":1}`:                  "query must be a string",
			`{"query":"q","variables":""}`: "variables must be an object",
		} {
			if _, err := wire.ParseParams([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", body, err, want)
			}
		}
	})
}

func FuzzParseParams(f *testing.F) {
	f.Add([]byte(`{"query":"{a}","operationName":"A","variables":{"a":[1,null]},"extensions":{}}`))
	f.Add([]byte(` [] `))
	f.Fuzz(func(t *testing.T, data []byte) {
		params, err := wire.ParseParams(data)
		if (params == nil) == (err == nil) {
			t.Fatalf("got %v and %v", params, err)
		}
		if err == nil && !json.Valid(data) {
			t.Fatalf("accepted %q", data)
		}
	})
}

func TestAppendResponse(t *testing.T) {
	for want, response := range map[string]*graphql.Response{
		`{"data":{"a":1}}`: {Data: []byte(`{"a":1}`)},
		`{"errors":[{"message":"m","extensions":{"code":"NOT_FOUND"}}]}`: wire.Failure(wire.Error(fault.NotFound, "m")),
		`{"errors":[{"message":"m"}],"data":null}`:                       {Data: []byte(`null`), Errors: gqlerror.List{{Message: "m"}}},
		`{"data":{},"extensions":{"took":1}}`:                            {Data: []byte(`{}`), Extensions: map[string]any{"took": 1}},
		`{}`:                                                             {},
	} {
		got, err := wire.AppendResponse(nil, response)
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
	if _, err := wire.AppendResponse(nil, &graphql.Response{Extensions: map[string]any{"f": func() {}}}); err == nil {
		t.Error("what has no JSON form passed")
	}
}
