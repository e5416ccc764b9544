package server

import (
	"context"
	"strings"

	"github.com/99designs/gqlgen/complexity"
	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/server/internal/wire"
)

// policy is what every operation must pass once it is parsed and valid, whatever
// transport it came by.
type policy struct {
	schema        graphql.ExecutableSchema
	hideSchema    bool
	maxComplexity int
}

var _ graphql.OperationContextMutator = policy{}

// ExtensionName names the extension to gqlgen.
func (policy) ExtensionName() string { return "Policy" }

// Validate has nothing to check.
func (policy) Validate(graphql.ExecutableSchema) error { return nil }

// MutateOperationContext refuses an operation or lets it pass.
func (p policy) MutateOperationContext(ctx context.Context, op *graphql.OperationContext) *gqlerror.Error {
	op.DisableIntrospection = p.hideSchema
	if size := expandedSize(op.Operation.SelectionSet, map[string]int{}); size > maxExpandedFields {
		return wire.Error(fault.BadInput, "with its fragments written out this operation has more than %d fields", maxExpandedFields)
	}
	if actor.ActorFrom(ctx).IsNobody() && !onlyAboutSchema(op.Operation.SelectionSet) {
		return wire.Error(fault.Unauthenticated, "sign in first: send a token as Authorization: Bearer …, or open a sign-in link")
	}
	if defers(op.Doc) {
		return wire.Error(fault.BadInput, "@defer is not offered here: ask for the fields without it")
	}
	cost := complexity.Calculate(ctx, p.schema, op.Operation, op.Variables)
	if cost > p.maxComplexity {
		return wire.Error(fault.BadInput, "this operation has a complexity of %d, and %d is the limit: ask for less at a time", cost, p.maxComplexity)
	}
	return nil
}

// maxExpandedFields bounds an operation with its fragments written out. Whoever walks
// through fragments pays for that size, gqlgen's complexity among them, and twenty
// fragments that each spread the next one twice have a million fields.
const maxExpandedFields = 10_000

// expandedSize counts the selections of a set with all fragments written out. Each
// fragment is counted once, so the count itself is cheap.
func expandedSize(selections ast.SelectionSet, known map[string]int) int {
	size := 0
	for _, selection := range selections {
		switch s := selection.(type) {
		case *ast.Field:
			size += 1 + expandedSize(s.SelectionSet, known)
		case *ast.InlineFragment:
			size += expandedSize(s.SelectionSet, known)
		case *ast.FragmentSpread:
			inner, ok := known[s.Name]
			if !ok {
				inner = expandedSize(s.Definition.SelectionSet, known)
				known[s.Name] = inner
			}
			size += inner
		}
		size = min(size, maxExpandedFields+1)
	}
	return size
}

// onlyAboutSchema reports whether a root selection reads nothing but the schema
// (__schema, __type, __typename). That needs no sign-in: the schema is the
// product's documentation, and HideSchema hides it from everybody.
func onlyAboutSchema(selections ast.SelectionSet) bool {
	for _, selection := range selections {
		var inner ast.SelectionSet
		switch s := selection.(type) {
		case *ast.Field:
			if !strings.HasPrefix(s.Name, "__") {
				return false
			}
			continue
		case *ast.InlineFragment:
			inner = s.SelectionSet
		case *ast.FragmentSpread:
			inner = s.Definition.SelectionSet
		}
		if !onlyAboutSchema(inner) {
			return false
		}
	}
	return true
}

// defers reports whether a document uses @defer, which gqlgen would answer in
// parts that no transport here sends.
func defers(document *ast.QueryDocument) bool {
	for _, op := range document.Operations {
		if selectionDefers(op.SelectionSet) {
			return true
		}
	}
	for _, fragment := range document.Fragments {
		if selectionDefers(fragment.SelectionSet) {
			return true
		}
	}
	return false
}

func selectionDefers(selections ast.SelectionSet) bool {
	for _, selection := range selections {
		var directives ast.DirectiveList
		var inner ast.SelectionSet
		switch s := selection.(type) {
		case *ast.Field:
			inner = s.SelectionSet
		case *ast.InlineFragment:
			directives, inner = s.Directives, s.SelectionSet
		case *ast.FragmentSpread:
			directives = s.Directives
		}
		if directives.ForName("defer") != nil || selectionDefers(inner) {
			return true
		}
	}
	return false
}
