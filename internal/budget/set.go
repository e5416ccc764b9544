package budget

import (
	"context"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
)

// most bounds a measure, so that sums of it stay far from what a database can count.
const most = 1_000_000_000_000

// Set makes a budget, or puts other limits in the place of the one that is there for the
// same scope, subject and period; what was used up stays counted. Administrators only;
// audited.
func (r *Room) Set(ctx context.Context, by actor.Actor, b Budget) (Budget, error) {
	if err := needAdministrator(by); err != nil {
		return Budget{}, err
	}
	if err := r.possible(ctx, b); err != nil {
		return Budget{}, err
	}
	b.ID, b.UpdatedAt = budgetID(b.Scope, b.Subject, b.Period), r.World.Now()
	limits := []change.Value{requestsOf.To(b.Requests), tokensOf.To(b.Tokens), costOf.To(int(b.Cost)), updatedOf.To(b.UpdatedAt)}
	entry := b.told(audit.Record(r.World, by, audit.BudgetSet))
	for {
		_, err := r.Store.Budget(ctx, b.ID)
		c := change.Change{Audit: []audit.Entry{entry}}
		switch {
		case fault.Is(err, fault.NotFound):
			c.Inserts = []change.Insert{{Table: budgetsTable, Row: append([]change.Value{
				idOf.To(b.ID), scopeOf.To(b.Scope), subjectOf.Maybe(orNone(b.Subject)), periodOf.To(b.Period),
			}, limits...)}}
		case err != nil:
			return Budget{}, err
		default:
			c.Updates = []change.Update{{Table: budgetsTable, ID: b.ID, Set: limits}}
		}
		out, err := change.One(ctx, r.Store, c)
		if err != nil {
			return Budget{}, err
		}
		if out.Applied { // else it came or went meanwhile
			return r.Store.Budget(ctx, b.ID)
		}
	}
}

// possible holds a budget against what can be one.
func (r *Room) possible(ctx context.Context, b Budget) error {
	for name, n := range map[string]int64{"requests": int64(b.Requests), "tokens": int64(b.Tokens), "cost": b.Cost} {
		if n < 0 || n > most {
			return fault.New(fault.BadInput, "%s must be from 1 to %d; leave it out not to limit it.", name, most)
		}
	}
	if b.Requests == 0 && b.Tokens == 0 && b.Cost == 0 {
		return fault.New(fault.BadInput, "Limit at least one of requests, tokens and cost; deleteBudget takes a budget away.")
	}
	if b.Scope == OfEveryUser {
		return nil
	}
	known, err := r.Known(ctx, b.Scope, b.Subject)
	if err == nil && !known {
		err = fault.New(fault.NotFound, "There is no such %s.", b.Scope)
	}
	return err
}

// Delete takes a budget away. Administrators only; audited. What was used up stays counted.
func (r *Room) Delete(ctx context.Context, by actor.Actor, id uuid.UUID) error {
	if err := needAdministrator(by); err != nil {
		return err
	}
	b, err := r.Store.Budget(ctx, id)
	if err != nil {
		return err
	}
	out, err := change.One(ctx, r.Store, change.Change{
		Deletes: []change.Delete{{Table: budgetsTable, ID: id}}, Audit: []audit.Entry{b.told(audit.Record(r.World, by, audit.BudgetDeleted))},
	})
	if err == nil && !out.Applied {
		err = fault.New(fault.NotFound, "There is no such budget any more.")
	}
	return err
}

func (b Budget) told(e audit.Entry) audit.Entry {
	e = e.With("budget", b.ID).With("scope", b.Scope).With("period", b.Period).With("requests", b.Requests).With("tokens", b.Tokens).With("cost", b.Cost)
	switch b.Scope {
	case OfUser:
		e = e.With("user", b.Subject)
	case OfConfiguration:
		e = e.With("configuration", b.Subject)
	}
	return e
}

// List pages through the budgets. Administrators only.
func (r *Room) List(ctx context.Context, by actor.Actor, page Page) ([]Budget, error) {
	if err := needAdministrator(by); err != nil {
		return nil, err
	}
	return r.Store.Budgets(ctx, page)
}

// Find returns one. Administrators only; for anybody else there is none.
func (r *Room) Find(ctx context.Context, by actor.Actor, id uuid.UUID) (Budget, error) {
	if !by.Administrator {
		return Budget{}, fault.New(fault.NotFound, "There is no such budget.")
	}
	return r.Store.Budget(ctx, id)
}

func orNone(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}
