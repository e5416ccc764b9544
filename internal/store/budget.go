package store

import (
	"context"

	"github.com/google/uuid"

	"github.com/countersign/countersign/ent"
	entbudget "github.com/countersign/countersign/ent/budget"
	"github.com/countersign/countersign/ent/spending"
	"github.com/countersign/countersign/internal/budget"
)

// Budget implements budget.Store.
func (s *Store) Budget(ctx context.Context, id uuid.UUID) (budget.Budget, error) {
	row, err := s.client.Budget.Get(ctx, id)
	if err != nil {
		return budget.Budget{}, reading(ctx, err, "budget")
	}
	return toBudget(row), nil
}

// BudgetsAmong implements budget.Store.
func (s *Store) BudgetsAmong(ctx context.Context, ids []uuid.UUID) ([]budget.Budget, error) {
	rows, err := s.client.Budget.Query().Where(entbudget.IDIn(ids...)).Order(ent.Asc(entbudget.FieldID)).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "budget")
	}
	return toBudgets(rows), nil
}

// Budgets implements budget.Store.
func (s *Store) Budgets(ctx context.Context, page budget.Page) ([]budget.Budget, error) {
	p := paged{page.Cursor, page.Limit, page.Backward, false}
	rows, err := s.client.Budget.Query().Where(p.on).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "budget")
	}
	return toBudgets(in(p, rows)), nil
}

// Spent implements budget.Store.
func (s *Store) Spent(ctx context.Context, ids []uuid.UUID) (budget.Spent, error) {
	rows, err := s.client.Spending.Query().Where(spending.IDIn(ids...)).All(ctx)
	if err != nil {
		return budget.Spent{}, reading(ctx, err, "ledger")
	}
	var out budget.Spent
	for _, row := range rows {
		out.Requests += row.Requests
		out.InputTokens += row.InputTokens
		out.OutputTokens += row.OutputTokens
		out.Cost += row.Cost
	}
	return out, nil
}

func toBudgets(rows []*ent.Budget) []budget.Budget {
	out := make([]budget.Budget, len(rows))
	for i, row := range rows {
		out[i] = toBudget(row)
	}
	return out
}

func toBudget(row *ent.Budget) budget.Budget {
	out := budget.Budget{
		ID: row.ID, Scope: budget.Scope(row.Scope), Period: budget.Period(row.Period),
		Requests: row.Requests, Tokens: row.Tokens, Cost: row.Cost, UpdatedAt: row.UpdatedAt.UTC(),
	}
	if row.SubjectID != nil {
		out.Subject = *row.SubjectID
	}
	return out
}
