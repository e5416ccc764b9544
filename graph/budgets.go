package graph

import (
	"context"

	"github.com/google/uuid"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/budget"
	"github.com/countersign/countersign/internal/fault"
)

func toBudget(b budget.Budget) *model.Budget {
	return &model.Budget{
		ID: budgetKind.id(b.ID), Scope: budgetScopes.out(b.Scope), Period: budgetPeriods.out(b.Period), Requests: limit(int64(b.Requests)),
		Tokens: limit(int64(b.Tokens)), Cost: limit(b.Cost), UpdatedAt: b.UpdatedAt, Domain: b,
	}
}

// limit is a limit that may be zero, which says that there is none.
func limit(n int64) *int64 {
	if n <= 0 {
		return nil
	}
	return &n
}

func toUse(s budget.Spent) *model.BudgetUse {
	return &model.BudgetUse{Requests: int64(s.Requests), InputTokens: int64(s.InputTokens), OutputTokens: int64(s.OutputTokens), Cost: s.Cost}
}

func budgetConnection(w window, read []budget.Budget) *model.BudgetConnection {
	c := &model.BudgetConnection{}
	key := func(b budget.Budget) uuid.UUID { return b.ID }
	c.Nodes, c.Edges, c.PageInfo = connect(w, oldestFirst(read, key), rowKey(key), toBudget,
		func(cursor string, n *model.Budget) *model.BudgetEdge {
			return &model.BudgetEdge{Cursor: cursor, Node: n}
		})
	return c
}

// budgetInput reads a budget that is to be set.
func budgetInput(in model.SetBudgetInput) (out budget.Budget, err error) {
	out = budget.Budget{Scope: budgetScopes.in[in.Scope], Period: budgetPeriods.in[in.Period]}
	for _, id := range []struct {
		of   budget.Scope
		kind kind
		name string
		text *string
	}{{budget.OfUser, userKind, "userId", in.UserID}, {budget.OfConfiguration, configurationKind, "configurationId", in.ConfigurationID}} {
		switch {
		case out.Scope == id.of && id.text == nil:
			return out, fault.New(fault.BadInput, "A budget of the scope %s needs %s.", in.Scope, id.name)
		case out.Scope != id.of && id.text != nil:
			return out, fault.New(fault.BadInput, "A budget of the scope %s takes no %s.", in.Scope, id.name)
		case id.text != nil:
			if out.Subject, err = id.kind.row(*id.text); err != nil {
				return out, err
			}
		}
	}
	for _, n := range []struct {
		name string
		said *int64
		into func(int64)
	}{
		{"requests", in.Requests, func(n int64) { out.Requests = int(n) }},
		{"tokens", in.Tokens, func(n int64) { out.Tokens = int(n) }},
		{"cost", in.Cost, func(n int64) { out.Cost = n }},
	} {
		if n.said == nil {
			continue
		}
		if *n.said <= 0 {
			return out, fault.New(fault.BadInput, "%s must be at least 1; leave it out not to limit it.", n.name)
		}
		n.into(*n.said)
	}
	return out, nil
}

func (r *Resolver) budget(ctx context.Context, id uuid.UUID) (model.Node, error) {
	b, err := r.Spending.Find(ctx, caller(ctx), id)
	return found(toBudget(b), err)
}
