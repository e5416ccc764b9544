package agent

import (
	"context"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/guard"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// Of the guardrails an operator wrote (RULES M2): what goes to the model is judged when it
// enters the transcript, what comes from it before anything of the turn counts. All of it
// goes by the rules that there were when the segment began.

// mostRetries is how often a model is asked again in one round.
const mostRetries = 2

// retryNote is what a model reads that is asked again. It is sent and not kept.
const retryNote = "Your last answer was withheld, because a rule of this installation does not let it pass. Answer again in another way."

// loadRules reads what holds for this segment: the rules, and which reads need an approval.
func (s *segment) loadRules(ctx context.Context) error {
	values, err := s.agent.Settings.Values(ctx)
	if err != nil {
		return err
	}
	if s.approvals, err = tool.ParseApprovals(values.ApprovalTools); err != nil {
		return err
	}
	s.rules, err = guard.ParseRules(values.Guardrails)
	return err
}

// judgeInput holds what was composed against the rules.
func (s *segment) judgeInput(ctx context.Context) error {
	var all guard.Verdict
	for i, m := range s.transcript {
		text, v := s.rules.Text(guard.Input, m.Text)
		s.transcript[i].Text, all = text, all.Stronger(v)
	}
	return s.heed(ctx, all)
}

// judgeResult holds a result that the model is about to read against the rules. Its step
// is stored whatever they say: it has happened.
func (s *segment) judgeResult(result tool.Result) (tool.Result, guard.Verdict) {
	text, v := s.rules.Text(guard.Input, result.Text)
	result.Text = text
	return result, v
}

// heed does what a verdict on an input asks for: a denial ends the run, an approval is asked
// for from here on.
func (s *segment) heed(ctx context.Context, v guard.Verdict) error {
	switch {
	case v.Action == guard.Deny:
		return blocked(v, guard.Input)
	case v.Action == guard.RequireApproval && !s.wary:
		s.wary = true
		return s.tell(ctx, notice(run.NoticeGuardrailApproval, v.Rule, string(guard.Input)))
	}
	return nil
}

// tell stores a notice.
func (s *segment) tell(ctx context.Context, n run.Notice) error {
	s.notices = append(s.notices, n)
	return s.write(ctx, []change.Value{runNotices.To(s.notices)}, change.Change{Events: noticeEvents(s.agent.World.Now(), []run.Notice{n})})
}

func blocked(v guard.Verdict, side guard.Side) stopped {
	return stopped{
		reason:  run.ReasonGuardrailBlocked,
		message: "the guardrail " + v.Rule + " does not let the run's " + string(side) + " pass",
		notices: []run.Notice{notice(run.NoticeGuardrailBlocked, v.Rule, string(side))},
	}
}

// guardedAsk asks the model, again where a rule says so, and returns the turn that passes.
// A model call whose turn is withheld is a step like any other.
func (s *segment) guardedAsk(ctx context.Context) (Turn, run.Event, error) {
	s.bound = false
	var notes []prompt.Message
	for {
		turn, called, err := s.ask(ctx, notes)
		if err != nil {
			return Turn{}, run.Event{}, err
		}
		turn, v := s.judgeTurn(turn)
		passed := called
		passed.Content = nil
		passed = withWords(passed, run.Content{Text: turn.Text})
		called.Content = nil // what is withheld is kept nowhere
		switch {
		case v.Action == guard.Retry && len(notes) < mostRetries:
			if err := s.writeCall(ctx, called); err != nil {
				return Turn{}, run.Event{}, err
			}
			notes = append(notes, prompt.Message{Role: prompt.User, Text: retryNote})
			continue
		case v.Action == guard.Retry, v.Action == guard.Deny:
			end := blocked(v, guard.Output)
			end.events = []run.Event{called}
			return Turn{}, run.Event{}, end
		case v.Action == guard.RequireApproval && len(turn.Calls) == 0:
			return Turn{}, run.Event{}, stopped{
				reason:  run.ReasonGuardrailApproval,
				message: "the guardrail " + v.Rule + " asks for an approval of the answer, and only calls can be approved",
				notices: []run.Notice{notice(run.NoticeGuardrailApproval, v.Rule, string(guard.Output))},
				events:  []run.Event{called},
			}
		case v.Action == guard.RequireApproval:
			s.bound = true
			if err := s.tell(ctx, notice(run.NoticeGuardrailApproval, v.Rule, string(guard.Output))); err != nil {
				return Turn{}, run.Event{}, err
			}
		}
		if s.rules.On(guard.Output) {
			s.written.add(turn.Text)
		}
		return turn, passed, nil
	}
}

// judgeTurn holds a model's text and the arguments of its calls against the rules.
func (s *segment) judgeTurn(turn Turn) (Turn, guard.Verdict) {
	text, all := s.rules.Text(guard.Output, turn.Text)
	turn.Text = text
	for i, c := range turn.Calls {
		arguments, v := s.rules.JSON(guard.Output, c.Arguments)
		turn.Calls[i].Arguments, all = arguments, all.Stronger(v)
	}
	return turn, all
}

// boundByRules says whether a rule makes a call wait for a person: any call of a turn that
// matched, and after a suspicious input any that is more than a builtin's read. A question
// is one to a person already.
func (s *segment) boundByRules(spec tool.Spec) bool {
	if spec.RequiresInput {
		return false
	}
	return s.bound || s.wary && (spec.Remote || tool.EffectOf(spec).Writes())
}
