package agent

import (
	"context"
	"log/slog"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/budget"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/run"
)

// affords ends the run before a model call that a budget does not allow (RULES M1). What a
// person approved was written by then: it was their decision, and cost no call.
func (s *segment) affords(ctx context.Context) error {
	err := s.agent.affordable(ctx, s.run.InitiatorID, s.run.ConfigurationID)
	refusal, refused := fault.AsRefusal(err)
	if !refused {
		return err
	}
	return stopped{
		reason: run.ReasonBudgetExhausted, message: refusal.Message,
		notices: []run.Notice{notice(run.NoticeBudgetExhausted, refusal.Message)},
	}
}

func (a *Agent) affordable(ctx context.Context, user, configuration uuid.UUID) error {
	if a.Budgets == nil {
		return nil
	}
	err := a.Budgets.Check(ctx, user, configuration)
	if _, refused := fault.AsRefusal(err); refused && a.Meter != nil {
		a.Meter.OutOfBudget()
	}
	return err
}

// metered tells the meter what a turn used beside what was used before it.
func (s *segment) metered(before Consumption, passed int, failed bool) {
	if s.agent.Meter == nil {
		return
	}
	used := s.usage
	used.Requests -= before.Requests
	used.InputTokens -= before.InputTokens
	used.OutputTokens -= before.OutputTokens
	used.Cost -= before.Cost
	s.agent.Meter.Asked(used, passed, failed)
}

// consume counts an answer and whoever was asked before it.
func (s *segment) consume(a answered) {
	s.usage.Requests += a.requests
	s.use(a.by, a.Usage)
}

// use counts tokens of a model.
func (s *segment) use(of candidate, u Usage) {
	s.usage.InputTokens += u.InputTokens
	s.usage.OutputTokens += u.OutputTokens
	if of.Price == nil {
		s.usage.Unpriced++
		return
	}
	s.usage.Cost += of.Price.Cost(u.InputTokens, u.OutputTokens)
}

// broke counts an answer that broke off after it had begun: what was sent and what came
// are paid for, and are estimated where nobody reported them.
func (s *segment) broke(of candidate, sent, came int) {
	if came > 0 {
		s.use(of, Usage{InputTokens: sent, OutputTokens: came})
	}
}

// writeCall stores a model call with what it used.
func (s *segment) writeCall(ctx context.Context, called run.Event) error {
	err := s.write(ctx, []change.Value{runUsage.To(s.usage)}, change.Change{Inserts: s.unbooked(), Events: []run.Event{called}})
	if err == nil {
		s.booked = s.usage
	}
	return err
}

// bookRest books what the segment used and could not store with its run, because the run
// was cancelled or taken over meanwhile: the model was asked all the same.
func (s *segment) bookRest(ctx context.Context) {
	rest := s.unbooked()
	if len(rest) == 0 {
		return
	}
	if _, err := change.One(ctx, s.agent.Store, change.Change{Inserts: rest}); err != nil {
		s.agent.Log.Warn("what a run used could not be booked", slog.String("run", s.id.String()), slog.Any("error", err))
	}
}

// unbooked is what the segment used since the ledger of budgets was last written. It goes
// with the change that stores the run's usage, so that neither is there without the other.
func (s *segment) unbooked() []change.Insert {
	return budget.Book(s.agent.World.Now(), s.run.InitiatorID, s.run.ConfigurationID, budget.Spent{
		Requests:     s.usage.Requests - s.booked.Requests,
		InputTokens:  s.usage.InputTokens - s.booked.InputTokens,
		OutputTokens: s.usage.OutputTokens - s.booked.OutputTokens,
		Cost:         s.usage.Cost - s.booked.Cost,
	})
}
