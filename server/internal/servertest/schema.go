// Package servertest is what tests of the server and its transports run against: a
// small GraphQL schema executed by hand, and an Authenticator in memory. It stands in for
// the product's schema, so that a transport is tested apart from what it carries. Only
// tests import it. Everything in it is safe for concurrent use.
package servertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/introspection"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
)

var schema = gqlparser.MustLoadSchema(&ast.Source{Input: `
"What can be asked."
type Query {
  "A greeting."
  greeting(name: String = "world"): String
  "Who asks."
  viewer: Viewer
  "A text of so many bytes."
  big(bytes: Int!): String
  "Answers when the request is given up."
  slow: String
  "Panics."
  boom: String
  "Fails with a secret cause."
  fail: String
}
"Somebody."
type Viewer {
  "Their name."
  name: String!
  "People they know."
  friends(first: Int = 10): [Viewer!]
}
"What can be changed."
type Mutation {
  "Counts how often it was called."
  count: Int
}
"What can be followed."
type Subscription {
  "Counts to a number and completes."
  ticks(to: Int = 3): Int
  "Counts until it is stopped."
  forever: Int
  "Sends texts of so many bytes until it is stopped."
  flood(bytes: Int!): String
  "Sends nothing."
  silence: Int
  "Panics after its first event."
  boom: Int
}
`})

// Schema is a graphql.ExecutableSchema.
type Schema struct {
	Counted atomic.Int64 // calls of the mutation count
	Running atomic.Int64 // subscriptions under way
	Pulled  atomic.Int64 // events that subscriptions were asked for
}

var _ graphql.ExecutableSchema = (*Schema)(nil)

// Schema is the schema's definition.
func (s *Schema) Schema() *ast.Schema { return schema }

// Complexity makes a list cost as many times its elements as are asked for.
func (s *Schema) Complexity(_ context.Context, _, field string, child int, args map[string]any) (int, bool) {
	if field != "friends" {
		return 0, false
	}
	var first int
	if _, err := fmt.Sscan(fmt.Sprint(args["first"]), &first); err != nil {
		return 0, false
	}
	return 1 + first*child, true
}

// Exec executes the operation in ctx.
func (s *Schema) Exec(ctx context.Context) graphql.ResponseHandler {
	op := graphql.GetOperationContext(ctx)
	if op.Operation.Operation == ast.Subscription {
		return s.subscribe(ctx, op)
	}
	answered := false
	return func(ctx context.Context) *graphql.Response {
		if answered {
			return nil
		}
		answered = true
		return s.execute(ctx, op)
	}
}

func (s *Schema) execute(ctx context.Context, op *graphql.OperationContext) *graphql.Response {
	root := map[ast.Operation]string{ast.Query: "Query", ast.Mutation: "Mutation"}[op.Operation.Operation]
	data := newObject()
	for _, field := range graphql.CollectFields(op, op.Operation.SelectionSet, []string{root}) {
		data.set(field.Alias, s.field(ctx, op, root, field))
	}
	return respond(data)
}

// field resolves one root field. As in generated code, a panic or an error becomes an
// error of the response and the field null.
func (s *Schema) field(ctx context.Context, op *graphql.OperationContext, root string, field graphql.CollectedField) (value any) {
	defer func() {
		if p := recover(); p != nil {
			graphql.AddError(ctx, op.Recover(ctx, p))
			value = nil
		}
	}()
	value, err := s.resolve(ctx, op, root, field)
	if err != nil {
		graphql.AddError(ctx, err)
		return nil
	}
	return value
}

func (s *Schema) resolve(ctx context.Context, op *graphql.OperationContext, root string, field graphql.CollectedField) (any, error) {
	args := field.ArgumentMap(op.Variables)
	switch field.Name {
	case "__typename":
		return root, nil
	case "__schema", "__type":
		if op.DisableIntrospection {
			return nil, gqlerror.Errorf("introspection disabled")
		}
		if field.Name == "__schema" {
			return reflected(op, introspection.WrapSchema(schema), field.Selections), nil
		}
		return reflected(op, introspection.WrapTypeFromDef(schema, schema.Types[args["name"].(string)]), field.Selections), nil
	case "greeting":
		return fmt.Sprintf("Hello, %s!", args["name"]), nil
	case "viewer":
		return viewer(op, actor.ActorFrom(ctx).Name, field.Selections), nil
	case "big":
		return text(args), nil
	case "slow":
		<-ctx.Done()
		return "too late", nil
	case "boom":
		panic("boom")
	case "fail":
		return nil, fault.Wrap(fault.Internal, errors.New("password=hunter2"), "secret message")
	case "count":
		return s.Counted.Add(1), nil
	}
	return nil, fmt.Errorf("no resolver for %s", field.Name)
}

func viewer(op *graphql.OperationContext, name string, selections ast.SelectionSet) any {
	out := newObject()
	for _, field := range graphql.CollectFields(op, selections, []string{"Viewer"}) {
		switch field.Name {
		case "__typename":
			out.set(field.Alias, "Viewer")
		case "name":
			out.set(field.Alias, name)
		case "friends":
			out.set(field.Alias, []any{})
		}
	}
	return out
}

func text(args map[string]any) string {
	var n int
	_, _ = fmt.Sscan(fmt.Sprint(args["bytes"]), &n) // validated as an Int
	return strings.Repeat("x", n)
}

func (s *Schema) subscribe(ctx context.Context, op *graphql.OperationContext) graphql.ResponseHandler {
	field := graphql.CollectFields(op, op.Operation.SelectionSet, []string{"Subscription"})[0]
	args := field.ArgumentMap(op.Variables)
	s.Running.Add(1)
	context.AfterFunc(ctx, func() { s.Running.Add(-1) })
	n, to := 0, -1
	if field.Name == "ticks" {
		_, _ = fmt.Sscan(fmt.Sprint(args["to"]), &to) // validated as an Int
	}
	var shared bytes.Buffer // as in generated code, the next response writes over the last
	return func(ctx context.Context) *graphql.Response {
		s.Pulled.Add(1)
		if n == to || field.Name == "silence" && wait(ctx) {
			return nil
		}
		if field.Name == "boom" && n == 1 {
			panic("boom")
		}
		if field.Name == "forever" && n > 0 {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(2 * time.Millisecond):
			}
		}
		n++
		data := newObject()
		if field.Name == "flood" {
			data.set(field.Alias, text(args))
		} else {
			data.set(field.Alias, n)
		}
		shared.Reset()
		shared.Write(respond(data).Data)
		return &graphql.Response{Data: shared.Bytes()}
	}
}

func wait(ctx context.Context) bool {
	<-ctx.Done()
	return true
}

func respond(data *object) *graphql.Response {
	encoded, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	return &graphql.Response{Data: encoded}
}
