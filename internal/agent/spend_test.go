package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/budget"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/world"
)

// limit sets a budget.
func (h *house) limit(b budget.Budget) budget.Budget {
	h.t.Helper()
	set, err := h.budgets.Set(context.Background(), h.admin, b)
	h.ok(err)
	return set
}

// spends lets the model answer with these tokens.
func (h *house) spends(input, output int) {
	h.model.does(func(context.Context) (agent.Turn, error) {
		return agent.Turn{Text: "Done.", Usage: agent.Usage{InputTokens: input, OutputTokens: output}}, nil
	})
}

// broke asserts that a start is refused because of a budget, and that nothing was asked.
func (h *house) broke(by actor.Actor) budget.Exhausted {
	h.t.Helper()
	asked := h.model.count()
	_, err := h.agent.Start(context.Background(), by, h.plain())
	refusal, refused := fault.AsRefusal(err)
	if !refused || refusal.Code != fault.BudgetExhausted || h.model.count() != asked {
		h.t.Fatalf("got %v after %d requests", err, h.model.count()-asked)
	}
	return refusal.Detail.(budget.Exhausted)
}

func (h *house) used(subject uuid.UUID, scope budget.Scope) budget.Spent {
	h.t.Helper()
	spent, err := h.budgets.Used(context.Background(), budget.Budget{Scope: scope, Subject: subject, Period: budget.Day})
	h.ok(err)
	return spent
}

func TestBudgets(t *testing.T) {
	t.Run("M1 at its limit a user's budget refuses the next start, and nobody else's", func(t *testing.T) {
		each(t, func(h *house) {
			ada, bob := h.person("Ada"), h.person("Bob")
			h.limit(budget.Budget{Scope: budget.OfUser, Subject: ada.ID, Period: budget.Day, Tokens: 1000})
			h.spends(600, 399)
			h.start(ada, h.plain())
			h.spends(1, 0)
			if r := h.start(ada, h.plain()); r.Status != run.Completed { // one below the limit
				h.t.Fatalf("%s %s", r.Status, r.Message)
			}
			e := h.broke(ada)
			if e.Budget.Subject != ada.ID || e.Spent != (budget.Spent{Requests: 2, InputTokens: 601, OutputTokens: 399}) || !e.Resets.After(time.Now()) {
				h.t.Errorf("%+v", e)
			}
			trail, err := h.store.AuditEntries(context.Background(), audit.Filter{Events: []audit.Event{audit.RunRefused}}, audit.Page{Limit: 10})
			h.ok(err)
			if len(trail) != 1 || trail[0].Actor != ada.ID {
				h.t.Errorf("%+v", trail)
			}
			h.start(bob, h.plain())
		})
	})
	t.Run("M1 a configuration's budget is of all its runs, and is gone when it is deleted", func(t *testing.T) {
		each(t, func(h *house) {
			ada, bob := h.person("Ada"), h.person("Bob")
			b := h.limit(budget.Budget{Scope: budget.OfConfiguration, Subject: h.config.ID, Period: budget.Month, Requests: 2})
			h.start(ada, h.plain())
			h.start(bob, h.plain())
			if e := h.broke(ada); e.Budget.ID != b.ID || e.Resets.Day() != 1 {
				h.t.Errorf("%+v", e)
			}
			h.ok(h.budgets.Delete(context.Background(), h.admin, b.ID))
			h.start(ada, h.plain())
		})
	})
	t.Run("M1 what every user has is each one's own, and gives way to a budget of theirs", func(t *testing.T) {
		each(t, func(h *house) {
			ada, bob := h.person("Ada"), h.person("Bob")
			h.limit(budget.Budget{Scope: budget.OfEveryUser, Period: budget.Day, Requests: 1})
			h.start(ada, h.plain())
			h.start(bob, h.plain())
			h.broke(ada)
			h.limit(budget.Budget{Scope: budget.OfUser, Subject: ada.ID, Period: budget.Day, Requests: 2})
			h.start(ada, h.plain())
			h.broke(ada)
			h.broke(bob)
		})
	})
	t.Run("M1 cost counts by the price of who answered", func(t *testing.T) {
		each(t, func(h *house) {
			price := &library.Price{Input: 2_000_000, Output: 10_000_000}
			h.configure(library.ConfigurationUpdate{Price: &price})
			h.limit(budget.Budget{Scope: budget.OfUser, Subject: h.admin.ID, Period: budget.Day, Cost: 700})
			h.spends(100, 50)
			h.start(h.admin, h.plain())
			if e := h.broke(h.admin); e.Spent.Cost != 700 {
				h.t.Errorf("%+v", e)
			}
		})
	})
	t.Run("M1 the next day has a budget of its own, and a month goes on", func(t *testing.T) {
		each(t, func(h *house) {
			h.limit(budget.Budget{Scope: budget.OfUser, Subject: h.admin.ID, Period: budget.Day, Requests: 1})
			h.start(h.admin, h.plain())
			h.broke(h.admin)
			at := time.Date(2027, 3, 31, 23, 59, 0, 0, time.UTC)
			room := *h.budgets
			room.World = world.New(func() time.Time { return at }, nil)
			h.ok(room.Check(context.Background(), h.admin.ID, h.config.ID))
			for _, c := range budget.Book(at, h.admin.ID, h.config.ID, budget.Spent{Requests: 1}) {
				_, err := change.One(context.Background(), h.store, change.Change{Inserts: []change.Insert{c}})
				h.ok(err)
			}
			if err := room.Check(context.Background(), h.admin.ID, h.config.ID); err == nil {
				h.t.Error("one more was allowed on the same day")
			}
			h.limit(budget.Budget{Scope: budget.OfConfiguration, Subject: h.config.ID, Period: budget.Month, Requests: 1})
			for now, exhausted := range map[time.Time]bool{
				time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC):  false, // the 31st is still to come
				time.Date(2027, 3, 31, 0, 0, 0, 0, time.UTC): true,
				time.Date(2027, 4, 1, 0, 0, 0, 0, time.UTC):  false,
			} {
				at = now
				if err := room.Check(context.Background(), uuid.New(), h.config.ID); (err != nil) != exhausted {
					h.t.Errorf("%s: %v", now, err)
				}
			}
		})
	})
}

func TestBudgetOfARunUnderWay(t *testing.T) {
	t.Run("M1 a run ends before the call that its budget does not allow, and says so", func(t *testing.T) {
		each(t, func(h *house) {
			h.limit(budget.Budget{Scope: budget.OfUser, Subject: h.admin.ID, Period: budget.Day, Requests: 2})
			h.model.says(calls("list_pages", `{}`), calls("list_pages", `{}`), calls("list_pages", `{}`))
			r := h.start(h.admin, h.plain())
			if r.Status != run.Completed || r.Reason != run.ReasonBudgetExhausted || !r.Truncated || h.model.count() != 2 {
				h.t.Fatalf("%s %s after %d requests", r.Status, r.Reason, h.model.count())
			}
			if n := r.Notices[len(r.Notices)-1]; n.Code != run.NoticeBudgetExhausted {
				h.t.Errorf("%+v", r.Notices)
			}
		})
	})
	t.Run("M1 what waited is written when it is approved, and the model is not asked again", func(t *testing.T) {
		each(t, func(h *house) {
			r := h.ordinary(h.admin)
			h.limit(budget.Budget{Scope: budget.OfUser, Subject: h.admin.ID, Period: budget.Day, Requests: 1})
			ended := h.decide(h.admin, r, true, "")
			if ended.Status != run.Completed || ended.Reason != run.ReasonBudgetExhausted || h.text("hello") != "Hello" || h.model.count() != 1 {
				h.t.Errorf("%s %s with %q after %d requests", ended.Status, ended.Reason, h.text("hello"), h.model.count())
			}
		})
	})
	t.Run("M1 an answer that broke off is counted by what came of it", func(t *testing.T) {
		each(t, func(h *house) {
			h.model.does(func(ctx context.Context) (agent.Turn, error) {
				write(ctx, "This is the beginning of a long answer that nobody will see the end of.")
				return agent.Turn{}, &agent.ProviderError{Message: "cut"}
			})
			if r := h.start(h.admin, h.plain()); r.Status != run.Failed || r.Usage.OutputTokens < 10 {
				h.t.Errorf("%s %+v", r.Status, r.Usage)
			}
			if s := h.used(h.admin.ID, budget.OfUser); s.Requests != 1 || s.OutputTokens < 10 || s.InputTokens < 10 {
				h.t.Errorf("%+v", s)
			}
		})
	})
	t.Run("M1 a run that is cancelled while its model answers is counted", func(t *testing.T) {
		each(t, func(h *house) {
			began := make(chan struct{})
			h.model.does(func(ctx context.Context) (agent.Turn, error) {
				write(ctx, "This is the beginning of a long answer that nobody will see the end of.")
				close(began)
				<-ctx.Done()
				return agent.Turn{}, ctx.Err()
			})
			r, err := h.agent.Start(context.Background(), h.admin, h.plain())
			h.ok(err)
			<-began
			_, err = h.agent.Cancel(context.Background(), h.admin, r.ID)
			h.ok(err)
			h.drain() // waits for the segment
			if s := h.used(h.admin.ID, budget.OfUser); s.OutputTokens < 10 {
				h.t.Errorf("%+v", s)
			}
		})
	})
}

func TestLedger(t *testing.T) {
	t.Run("M1 what many runs on two replicas use at once is all in the ledger", func(t *testing.T) {
		twice(t, func(h *house, replicas [2]*agent.Agent) {
			const runs = 24
			var all sync.WaitGroup
			for i := range runs {
				all.Go(func() {
					r, err := replicas[i%2].Start(context.Background(), h.admin, h.plain())
					if err == nil {
						_, err = replicas[i%2].Wait(context.Background(), r.ID)
					}
					if err != nil {
						h.t.Error(err)
					}
				})
			}
			for range runs {
				h.spends(7, 3)
			}
			all.Wait()
			want := h.sum()
			if got := h.used(h.config.ID, budget.OfConfiguration); got != want || got.Requests != runs {
				h.t.Errorf("the ledger has %+v, the runs %+v", got, want)
			}
			if got := h.used(h.admin.ID, budget.OfUser); got != want {
				h.t.Errorf("the ledger has %+v, the runs %+v", got, want)
			}
		})
	})
	t.Run("M1 the ledger and the run's usage are stored together or not at all", func(t *testing.T) {
		var m *meddler
		meddled(t, func(s *store.Store) agent.Store { m = &meddler{Store: s}; return m }, func(h *house) {
			h.model.says(calls("list_pages", `{}`))
			h.spends(5, 5)
			once := false
			m.meddle(func(c change.Change) error {
				if !once && slices.ContainsFunc(c.Inserts, func(i change.Insert) bool { return i.Table == "spendings" }) {
					once = true
					return errors.New("gone")
				}
				return nil
			})
			r := h.start(h.admin, h.plain())
			if got, want := h.used(h.admin.ID, budget.OfUser), h.sum(); got != want {
				h.t.Errorf("the ledger has %+v, the runs %+v; the run is %s", got, want, r.Status)
			}
		})
	})
}

// sum is what the house's runs used, by their own rows.
func (h *house) sum() (out budget.Spent) {
	h.t.Helper()
	runs, err := h.store.Runs(context.Background(), agent.Filter{}, agent.Page{Limit: 1000})
	h.ok(err)
	for _, r := range runs {
		out.Requests += r.Usage.Requests
		out.InputTokens += r.Usage.InputTokens
		out.OutputTokens += r.Usage.OutputTokens
		out.Cost += r.Usage.Cost
	}
	return out
}

func TestSettingBudgets(t *testing.T) {
	each(t, func(h *house) {
		ada := h.person("Ada")
		for name, b := range map[string]budget.Budget{
			"nothing": {Scope: budget.OfEveryUser, Period: budget.Day}, "less than nothing": {Scope: budget.OfEveryUser, Period: budget.Day, Tokens: -1},
			"too much": {Scope: budget.OfEveryUser, Period: budget.Day, Cost: 1 << 50},
		} {
			if _, err := h.budgets.Set(context.Background(), h.admin, b); !fault.Is(err, fault.BadInput) {
				h.t.Errorf("M1 %s: %v", name, err)
			}
		}
		good := budget.Budget{Scope: budget.OfUser, Subject: ada.ID, Period: budget.Day, Requests: 3}
		for want, by := range map[fault.Kind]actor.Actor{fault.Forbidden: ada, fault.Unauthenticated: {}} {
			_, set := h.budgets.Set(context.Background(), by, good)
			_, list := h.budgets.List(context.Background(), by, budget.Page{Limit: 1})
			if remove := h.budgets.Delete(context.Background(), by, uuid.New()); !fault.Is(set, want) || !fault.Is(list, want) || !fault.Is(remove, want) {
				h.t.Errorf("M1 %s: %v, %v, %v", want, set, list, remove)
			}
		}
		first := h.limit(good)
		good.Requests = 5
		if second := h.limit(good); second.ID != first.ID || second.Requests != 5 {
			h.t.Errorf("M1 %+v", second)
		}
		trail, err := h.store.AuditEntries(context.Background(), audit.Filter{Events: []audit.Event{audit.BudgetSet}}, audit.Page{Limit: 10})
		h.ok(err)
		if len(trail) != 2 || fmt.Sprint(trail[0].Detail["requests"]) != "5" {
			h.t.Errorf("U1 %+v", trail)
		}
		if err := h.budgets.Delete(context.Background(), h.admin, uuid.New()); !fault.Is(err, fault.NotFound) {
			h.t.Errorf("M1 %v", err)
		}
	})
}
