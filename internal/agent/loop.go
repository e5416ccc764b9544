package agent

import (
	"context"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// loop asks the model and does what it asks for, round by round, until it answers,
// the run waits for a person, or the rounds are used up.
func (s *segment) loop(ctx context.Context) error {
	rounds, err := s.rounds(ctx)
	if err != nil {
		return err
	}
	for s.round = 1; s.round <= rounds; s.round++ {
		turn, called, err := s.guardedAsk(ctx)
		if err != nil {
			return err
		}
		if len(turn.Calls) == 0 {
			return s.settle(ctx, stopped{reason: run.ReasonCompleted, answer: turn.Text, events: []run.Event{called}, notices: s.unchanged()})
		}
		s.written.flush()
		if err := s.writeCall(ctx, called); err != nil {
			return err
		}
		waits, err := s.take(ctx, turn)
		if err != nil || waits {
			return err
		}
	}
	s.round = rounds
	return s.settle(ctx, stopped{
		reason:  run.ReasonMaxIterations,
		message: "the run used its " + strconv.Itoa(rounds) + " model rounds without an answer",
	})
}

// unchanged is the notice that a turn of a conversation ends with that could write and
// wrote nothing, whatever its answer says (RULES V6).
func (s *segment) unchanged() []run.Notice {
	writes := func(d prompt.Definition) bool { return tool.DeclaredWrite(s.spec(prompt.Call{Tool: d.Name})) }
	if s.run.ConversationID == uuid.Nil || s.writes > 0 || !slices.ContainsFunc(s.offer.definitions, writes) {
		return nil
	}
	return []run.Notice{notice(run.NoticeNoChangeMade)}
}

// rounds is the cap of the segment (RULES R9): the lowest of the caller's, the
// configuration's and the ceiling, and the default when neither of the first two says
// anything. All of it is read as it is now.
func (s *segment) rounds(ctx context.Context) (int, error) {
	values, err := s.agent.Settings.Values(ctx)
	if err != nil {
		return 0, err
	}
	rounds, said := values.MaxIterations, false
	for _, most := range []int{s.run.MaxIterations, s.configuration.MaxIterations} {
		if most > 0 {
			rounds, said = min(rounds, most), true
		}
	}
	if !said {
		rounds = values.DefaultMaxIterations
	}
	return rounds, nil
}

// ask has the turn answered, with as much of the transcript as the window of whoever is
// asked takes (RULES B3), and notes at its end. The event it returns is not stored yet.
func (s *segment) ask(ctx context.Context, notes []prompt.Message) (Turn, run.Event, error) {
	if err := s.affords(ctx); err != nil {
		return Turn{}, run.Event{}, err
	}
	began, before := s.agent.World.Now(), s.usage
	a, err := s.askChain(ctx, notes)
	if err != nil {
		s.usage.Requests += a.requests
		s.metered(before, len(a.passed), true)
		return Turn{}, run.Event{}, err
	}
	if len(a.passed) == 0 { // others count otherwise
		s.gauge = s.gauge.Learn(a.estimate, a.Usage.InputTokens)
	}
	s.consume(a)
	s.metered(before, len(a.passed), false)
	event := s.event(run.EventModelCall, run.EventData{
		Calls: len(a.Calls), Bytes: len(a.Text), InputTokens: a.Usage.InputTokens, OutputTokens: a.Usage.OutputTokens,
		Provider: a.by.ProviderID.String(), Model: a.by.Model, Attempts: a.passed,
	})
	event = withWords(event, run.Content{Text: a.Text})
	event.DurationMS = int(event.At.Sub(began).Milliseconds())
	return a.Turn, event, nil
}

// take does what one turn asks for: refuses what may not run, runs what may, and
// suspends if something waits for a person. The pending calls come last in the stored
// turn, after the results of the others (RULES C1).
func (s *segment) take(ctx context.Context, turn Turn) (waits bool, err error) {
	plan := s.plan(turn.Calls)
	var now, pending, after []int
	for i, d := range plan.Calls {
		switch d {
		case run.Pend:
			pending = append(pending, i)
		case run.AfterDecision:
			after = append(after, i)
		default:
			now = append(now, i)
		}
	}
	message := prompt.Message{Role: prompt.Assistant, Text: turn.Text}
	for _, i := range append(append(now[:len(now):len(now)], after...), pending...) {
		message.Calls = append(message.Calls, turn.Calls[i])
	}
	s.transcript = append(s.transcript, message)
	for _, i := range now {
		if plan.Calls[i] != run.Execute {
			err = s.refuseCall(ctx, i, turn.Calls[i], plan.Calls[i])
		} else {
			err = s.execute(ctx, i, turn.Calls[i], false)
		}
		if err != nil {
			return false, err
		}
	}
	if len(pending) == 0 {
		return false, nil
	}
	return true, s.suspend(ctx, plan.Suspend, pick(turn.Calls, pending), pick(turn.Calls, after))
}

func pick(calls []prompt.Call, at []int) []prompt.Call {
	out := make([]prompt.Call, len(at))
	for i, n := range at {
		out[i] = calls[n]
	}
	return out
}
