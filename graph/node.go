package graph

import (
	"context"
	"strings"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/google/uuid"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/fault"
)

// finder finds the node with an id of its kind.
type finder struct {
	kind kind
	find func(ctx context.Context, row uuid.UUID) (model.Node, error)
}

// finders are the kinds that node finds.
func (r *Resolver) finders() []finder {
	return append(r.libraryFinders(), []finder{
		{userKind, func(ctx context.Context, row uuid.UUID) (model.Node, error) {
			return found(r.user(ctx, caller(ctx), row))
		}},
		{tokenKind, func(ctx context.Context, row uuid.UUID) (model.Node, error) {
			t, err := r.Access.FindToken(ctx, caller(ctx), row)
			return found(toToken(t), err)
		}},
		{runKind, func(ctx context.Context, row uuid.UUID) (model.Node, error) {
			v, err := r.Agent.View(ctx, caller(ctx), row)
			return found(toRun(v), err)
		}},
		{budgetKind, r.budget},
		{endpointKind, func(ctx context.Context, row uuid.UUID) (model.Node, error) {
			e, err := r.Notify.Find(ctx, caller(ctx), row)
			return found(toEndpoint(e), err)
		}},
		{deliveryKind, func(ctx context.Context, row uuid.UUID) (model.Node, error) {
			d, err := r.Notify.FindDelivery(ctx, caller(ctx), row)
			return found(toDelivery(d), err)
		}},
		{conversationKind, func(ctx context.Context, row uuid.UUID) (model.Node, error) {
			c, err := r.Chat.View(ctx, caller(ctx), row)
			return found(toConversation(c), err)
		}},
		{entryKind, func(ctx context.Context, row uuid.UUID) (model.Node, error) {
			if err := needAudit(caller(ctx)); err != nil {
				return nil, err
			}
			e, err := r.Audit.AuditEntry(ctx, row)
			return found(toEntry(e), err)
		}},
	}...)
}

func (r *Resolver) libraryFinders() []finder {
	return []finder{
		{sourceKind, func(ctx context.Context, row uuid.UUID) (model.Node, error) {
			s, err := r.Library.FindSource(ctx, caller(ctx), row)
			return found(toSource(s), err)
		}},
		{skillKind, func(ctx context.Context, row uuid.UUID) (model.Node, error) {
			d, err := r.Library.FindSkill(ctx, caller(ctx), row)
			return found(toSkill(d), err)
		}},
		{approvalKind, func(ctx context.Context, row uuid.UUID) (model.Node, error) {
			a, err := r.Library.FindApproval(ctx, caller(ctx), row)
			return found(toApproval(a), err)
		}},
		{revocationKind, func(ctx context.Context, row uuid.UUID) (model.Node, error) {
			v, err := r.Library.FindRevocation(ctx, caller(ctx), row)
			return found(toRevocation(v), err)
		}},
		{attachmentKind, func(ctx context.Context, row uuid.UUID) (model.Node, error) {
			a, err := r.Library.FindAttachment(ctx, caller(ctx), row)
			return found(toAttachment(a), err)
		}},
		{configurationKind, func(ctx context.Context, row uuid.UUID) (model.Node, error) {
			c, err := r.Library.FindConfiguration(ctx, caller(ctx), row)
			return found(toConfiguration(c), err)
		}},
		{providerKind, func(ctx context.Context, row uuid.UUID) (model.Node, error) {
			p, err := r.Library.FindProvider(ctx, caller(ctx), row)
			return found(toProvider(p), err)
		}},
		{mcpServerKind, func(ctx context.Context, row uuid.UUID) (model.Node, error) {
			s, err := r.Remote.Find(ctx, caller(ctx), row)
			return found(toMcpServer(s), err)
		}},
		{snippetKind, func(ctx context.Context, row uuid.UUID) (model.Node, error) {
			s, err := r.Library.FindSnippet(ctx, caller(ctx), row)
			return found(toSnippet(s), err)
		}},
		{taskKind, func(ctx context.Context, row uuid.UUID) (model.Node, error) {
			t, err := r.Library.FindTask(ctx, caller(ctx), row)
			return found(toTask(t), err)
		}},
	}
}

// found is the node of an object that was read without an error: a typed nil is no node.
func found[N model.Node](n N, err error) (model.Node, error) {
	if err != nil {
		return nil, err
	}
	return n, nil
}

func (r *Resolver) node(ctx context.Context, id string) (model.Node, error) {
	var nouns []string
	for _, f := range r.finders() {
		if !strings.HasPrefix(id, f.kind.prefix+"_") {
			nouns = append(nouns, f.kind.noun)
			continue
		}
		row, err := f.kind.row(id)
		if err != nil {
			return nil, err
		}
		return f.find(ctx, row)
	}
	return nil, fault.New(fault.BadInput, "%q is not the id of a node, which is one of: %s.", clip(id), strings.Join(nouns, ", "))
}

// nodes finds several nodes at once. One that is not found is null and an error of its own.
func (r *Resolver) nodes(ctx context.Context, ids []string) ([]model.Node, error) {
	out, errs := make([]model.Node, len(ids)), make([]error, len(ids))
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					errs[i] = panicked(p)
				}
			}()
			out[i], errs[i] = r.node(ctx, id)
		})
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			graphql.AddError(graphql.WithPathContext(ctx, graphql.NewPathWithIndex(i)), err)
		}
	}
	return out, nil
}
