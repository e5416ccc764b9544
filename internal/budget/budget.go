// Package budget limits what models may use up: requests, tokens and cost, in a day or a
// month, by the runs of a user or of a configuration (RULES M1). It keeps a ledger with a
// row for each of them and day, to which the runtime adds what a model call used, in the
// transaction that stores the call.
//
// A budget is asked before a model is. What is under way when it runs out is answered and
// counted, so it can be overdrawn by the calls that run at that moment, and by no more.
package budget

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/world"
)

// Scope says whose runs a budget limits.
type Scope string

// The scopes.
const (
	OfUser          Scope = "user"
	OfEveryUser     Scope = "every_user" // each user by themselves, who has no budget of their own for the period
	OfConfiguration Scope = "configuration"
)

// Period is how long a budget lasts. Periods begin at midnight UTC.
type Period string

// The periods.
const (
	Day   Period = "day"
	Month Period = "month"
)

// Budget is a limit. Zero of a measure does not limit it.
type Budget struct {
	ID        uuid.UUID
	Scope     Scope
	Subject   uuid.UUID // the user or the configuration; zero for every user
	Period    Period
	Requests  int
	Tokens    int   // input and output together
	Cost      int64 // millionths of the installation's currency
	UpdatedAt time.Time
}

// Spent is what was used up.
type Spent struct {
	Requests     int
	InputTokens  int
	OutputTokens int
	Cost         int64 // millionths
}

// Exhausts reports whether a budget allows no further model call.
func (b Budget) Exhausts(s Spent) bool {
	return b.Requests > 0 && s.Requests >= b.Requests || b.Tokens > 0 && s.InputTokens+s.OutputTokens >= b.Tokens || b.Cost > 0 && s.Cost >= b.Cost
}

// Exhausted is the detail of a BUDGET_EXHAUSTED refusal.
type Exhausted struct {
	Budget Budget
	Spent  Spent
	Resets time.Time // when its next period begins
}

// Store keeps budgets and the ledger.
type Store interface {
	change.Applier

	// Budget returns fault.NotFound for an id that is not there.
	Budget(ctx context.Context, id uuid.UUID) (Budget, error)
	// BudgetsAmong returns those of the budgets with these ids that there are.
	BudgetsAmong(ctx context.Context, ids []uuid.UUID) ([]Budget, error)
	// Budgets pages through all of them in the order of their ids.
	Budgets(ctx context.Context, page Page) ([]Budget, error)
	// Spent sums the rows of the ledger with these ids.
	Spent(ctx context.Context, ids []uuid.UUID) (Spent, error)
}

// Page is as library.Page.
type Page struct {
	Cursor   uuid.UUID
	Limit    int
	Backward bool
}

// Known says whether what a budget is for is there.
type Known func(ctx context.Context, scope Scope, subject uuid.UUID) (bool, error)

// Room is the use cases. Its methods are safe for concurrent use.
type Room struct {
	Store Store
	Known Known
	World world.World
}

// rows makes ids of what is there once: a budget, a day of the ledger.
var rows = uuid.MustParse("6e0f6a52-6f0d-4d6f-9d0e-1a0a7d6f3b11")

func named(parts ...string) uuid.UUID {
	var all []byte
	for _, p := range parts {
		all = append(append(all, p...), 0)
	}
	return uuid.NewSHA1(rows, all)
}

func budgetID(scope Scope, subject uuid.UUID, period Period) uuid.UUID {
	return named("budget", string(scope), subject.String(), string(period))
}

func dayID(subject uuid.UUID, day string) uuid.UUID { return named("day", subject.String(), day) }

func dayOf(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// Book is what a change adds to the ledger for something that a user's run with a
// configuration used up at a time; nothing for nothing.
func Book(at time.Time, user, configuration uuid.UUID, s Spent) []change.Insert {
	if s == (Spent{}) {
		return nil
	}
	day := dayOf(at)
	var out []change.Insert
	for _, subject := range []uuid.UUID{user, configuration} {
		out = append(out, change.Insert{
			Table: spendingsTable,
			Row: []change.Value{
				spendingID.To(dayID(subject, day)), spendingSubject.To(subject), spendingDay.To(day), spendingRequests.To(s.Requests),
				spendingInput.To(s.InputTokens), spendingOutput.To(s.OutputTokens), spendingCost.To(int(s.Cost)),
			},
			Adds: []string{spendingRequests.Name(), spendingInput.Name(), spendingOutput.Name(), spendingCost.Name()},
		})
	}
	// In one order, so that two of them never wait for each other.
	slices.SortFunc(out, func(a, b change.Insert) int {
		x, y := a.Row[0].Arg.(uuid.UUID), b.Row[0].Arg.(uuid.UUID)
		return bytes.Compare(x[:], y[:])
	})
	return out
}

// Check refuses with BUDGET_EXHAUSTED, and an Exhausted as its detail, when a budget that
// limits a user's runs with a configuration allows no further model call.
func (r *Room) Check(ctx context.Context, user, configuration uuid.UUID) error {
	var ids []uuid.UUID
	for _, period := range []Period{Day, Month} {
		ids = append(ids, budgetID(OfUser, user, period), budgetID(OfEveryUser, uuid.Nil, period), budgetID(OfConfiguration, configuration, period))
	}
	found, err := r.Store.BudgetsAmong(ctx, ids)
	if err != nil || len(found) == 0 {
		return err
	}
	for _, b := range found {
		subject := b.Subject
		if b.Scope == OfEveryUser {
			if slices.ContainsFunc(found, func(own Budget) bool { return own.Scope == OfUser && own.Period == b.Period }) {
				continue
			}
			subject = user
		}
		spent, err := r.spent(ctx, subject, b.Period)
		if err != nil {
			return err
		}
		if b.Exhausts(spent) {
			resets := r.resets(b.Period)
			return fault.Refuse(fault.BudgetExhausted, "the %s of the %s is used up; the next one begins at %s",
				names[b.Period], whose[b.Scope], resets.Format(time.RFC3339)).With(Exhausted{b, spent, resets})
		}
	}
	return nil
}

var (
	names = map[Period]string{Day: "daily budget", Month: "monthly budget"}
	whose = map[Scope]string{OfUser: "person who started the run", OfEveryUser: "person who started the run", OfConfiguration: "configuration"}
)

// Used is what counts against a budget in its present period. Of a budget of every user it
// is nothing: each has their own.
func (r *Room) Used(ctx context.Context, b Budget) (Spent, error) {
	if b.Scope == OfEveryUser {
		return Spent{}, nil
	}
	return r.spent(ctx, b.Subject, b.Period)
}

func (r *Room) spent(ctx context.Context, subject uuid.UUID, period Period) (Spent, error) {
	now := r.World.Now().UTC()
	days := []uuid.UUID{dayID(subject, dayOf(now))}
	if period == Month {
		for at := now.AddDate(0, 0, -1); at.Month() == now.Month(); at = at.AddDate(0, 0, -1) {
			days = append(days, dayID(subject, dayOf(at)))
		}
	}
	return r.Store.Spent(ctx, days)
}

// Resets is when the present period of a budget ends.
func (r *Room) Resets(b Budget) time.Time { return r.resets(b.Period) }

func (r *Room) resets(p Period) time.Time {
	now := r.World.Now().UTC()
	if p == Month {
		return time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
	}
	return time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, time.UTC)
}

func needAdministrator(by actor.Actor) error {
	switch {
	case by.IsNobody():
		return fault.New(fault.Unauthenticated, "Sign in to see budgets.")
	case !by.Administrator:
		return fault.New(fault.Forbidden, "Budgets are an administrator's.")
	}
	return nil
}
