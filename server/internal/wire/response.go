package wire

import (
	"encoding/json"
	"fmt"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/countersign/countersign/internal/fault"
)

// AppendResponse appends the JSON of a response to buf. A response that never
// was executed has no data member, as the GraphQL specification demands. Data is
// copied as it stands: gqlgen wrote it compact, and compacting it again was 14 %
// of a page (SPEED 3).
func AppendResponse(buf []byte, r *graphql.Response) ([]byte, error) {
	buf = append(buf, '{')
	comma := false
	member := func(name string, value []byte) {
		if comma {
			buf = append(buf, ',')
		}
		comma = true
		buf = append(buf, '"')
		buf = append(buf, name...)
		buf = append(buf, '"', ':')
		buf = append(buf, value...)
	}
	if len(r.Errors) > 0 {
		errs, err := json.Marshal(r.Errors)
		if err != nil {
			return nil, fmt.Errorf("encode the errors of a response: %w", err)
		}
		member("errors", errs)
	}
	if len(r.Data) > 0 {
		member("data", r.Data)
	}
	if len(r.Extensions) > 0 {
		extensions, err := json.Marshal(r.Extensions)
		if err != nil {
			return nil, fmt.Errorf("encode the extensions of a response: %w", err)
		}
		member("extensions", extensions)
	}
	return append(buf, '}'), nil
}

// Error makes a GraphQL error that the server itself answers with, before or
// beside any resolver. An error presenter finds the fault behind it.
func Error(kind fault.Kind, format string, args ...any) *gqlerror.Error {
	f := fault.New(kind, format, args...)
	return &gqlerror.Error{Err: f, Message: f.Message, Extensions: map[string]any{"code": string(kind)}}
}

// Failure is the response made of one such error.
func Failure(err *gqlerror.Error) *graphql.Response {
	return &graphql.Response{Errors: gqlerror.List{err}}
}

// Code is the code that the first error of a response carries, or "".
func Code(errs gqlerror.List) string {
	if len(errs) == 0 {
		return ""
	}
	code, _ := errs[0].Extensions["code"].(string)
	return code
}
