package agent

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// resume goes on after an answer, which state holds: pins are checked before anything runs (RULES P2),
// previews are recomputed before an approved write (RULES R12), and the pending calls
// are the segment's first steps (RULES R3).
func (s *segment) resume(ctx context.Context, state State) error {
	if err := s.load(ctx); err != nil {
		return err
	}
	s.transcript, s.nonceKey, s.gauge = s.agent.clean(state.Messages), state.NonceKey, state.Gauge
	s.wary, s.catalogue = state.Wary, state.Catalogue
	s.edited = editedCalls(state.Pending)
	given := *state.Given
	void, err := s.secondLook(ctx, state)
	if err != nil {
		return err
	}
	if void != nil {
		return s.waitAgain(ctx, state, void)
	}
	held, err := s.holdPins(ctx)
	if err != nil {
		return err
	}
	s.rejoin(held, state)
	set, err := s.agent.lineup(ctx, s.run.origin())
	if err != nil {
		return err
	}
	if err := s.resolveOffer(ctx, set, held); err != nil {
		return err
	}
	if given.Approve {
		if moved := s.compare(ctx, state.Pending); moved != nil {
			return s.showAgain(ctx, state, moved)
		}
	}
	for i, p := range state.Pending {
		if err := s.carryOut(ctx, i, p.Call, given); err != nil {
			return err
		}
	}
	for i, c := range state.After {
		if err := s.afterDecision(ctx, len(state.Pending)+i, c, false); err != nil {
			return err
		}
	}
	return s.loop(ctx)
}

// The checks of who may answer that are asked again once the run is claimed: what they
// rest on may have changed since they were asked first (RULES R11).
var (
	decisionAgain = []func(context.Context, *Agent, *verdict) error{mayAct, configurationUsable, fourEyesAgain, ownWords, targetsReadable, deciderPolicy}
	inputAgain    = []func(context.Context, *Agent, *verdict) error{mayAnswer, configurationUsable}
)

// fourEyesAgain leaves a process run to its pin check, which stops it (RULES X7).
func fourEyesAgain(ctx context.Context, a *Agent, v *verdict) error {
	if v.process() {
		return nil
	}
	return fourEyes(ctx, a, v)
}

// secondLook says why an answer that was taken does not count any more; nil when it
// does.
func (s *segment) secondLook(ctx context.Context, state State) (void *fault.Refused, err error) {
	given := state.Given
	by, err := s.agent.People.Actor(ctx, given.By)
	if err != nil {
		return nil, err
	}
	v := &verdict{Decision: Decision{Run: s.id, Approve: given.Approve, Reason: given.Reason}, by: by, run: s.run, state: state}
	checks := decisionAgain
	if given.Values != nil {
		checks = inputAgain
	}
	for _, check := range checks {
		err := check(ctx, s.agent, v)
		if err == nil {
			continue
		}
		if refusal, ok := fault.AsRefusal(err); ok {
			return refusal, nil
		}
		if fault.Is(err, fault.Forbidden) {
			return &fault.Refused{Code: fault.ClaimLost, Message: "the person who answered may not do so any more"}, nil
		}
		return nil, err
	}
	return nil, nil
}

// waitAgain puts a run back to waiting whose answer does not count any more: the same
// calls, as another suspension.
func (s *segment) waitAgain(ctx context.Context, state State, void *fault.Refused) error {
	by, t := state.Given.By, run.SuspendForApproval
	if len(state.Schema) > 0 {
		t = run.SuspendForInput
	}
	told := notice(run.NoticeAnswerVoid, void.Message)
	s.notices = append(s.notices, told)
	entry := audit.Record(s.agent.World, actor.Actor{ID: by}, audit.RunDecisionRefused).InRun(s.id).With("code", void.Code).With("afterClaim", true)
	if err := s.write(ctx, nil, change.Change{Events: noticeEvents(s.agent.World.Now(), []run.Notice{told}), Audit: []audit.Entry{entry}}); err != nil {
		return err
	}
	state.Suspension, state.Given = state.Suspension+1, nil
	return s.park(ctx, t, state)
}

// carryOut does with one pending call what was decided about it.
func (s *segment) carryOut(ctx context.Context, at int, c prompt.Call, given Given) error {
	switch {
	case given.Values != nil:
		return s.record(ctx, at, c, tool.OK(string(given.Values)), 0, nil, change.Change{})
	case !given.Approve:
		return s.deny(ctx, at, c, given)
	default:
		return s.afterDecision(ctx, at, c, true)
	}
}

// afterDecision runs a call of a turn that waited, if the gates still let it through:
// the live list may have lost the tool meanwhile (RULES T3), or a remote tool may need
// an approval by now that the decision did not give (RULES G2).
func (s *segment) afterDecision(ctx context.Context, at int, c prompt.Call, approved bool) error {
	facts := s.facts(c)
	switch {
	case facts.Refused != "":
		return s.refuseCall(ctx, at, c, facts.Refused)
	case facts.ApprovalBound && !approved:
		return s.refuseCall(ctx, at, c, run.NotExecuted)
	}
	return s.execute(ctx, at, c, approved)
}

// deny gives the model the fixed result of a denial: who declined, and for a write the
// closed reason (RULES R14).
func (s *segment) deny(ctx context.Context, at int, c prompt.Call, given Given) error {
	fields := map[string]string{"error": tokenDenied, "decided_by": s.decider(given.By)}
	if given.Reason != "" {
		fields["reason"] = string(given.Reason)
	}
	step := s.event(run.EventToolCall, run.EventData{Tool: c.Tool, Call: at, IsError: true, Token: tokenDenied})
	step = withWords(step, called(c, errorText(fields)))
	if err := s.write(ctx, nil, change.Change{Events: []run.Event{step}}); err != nil {
		return err
	}
	s.transcript = append(s.transcript, prompt.Message{
		Role: prompt.ToolRole, CallID: c.ID, Text: errorText(fields), Failed: true,
	})
	return nil
}

// tokenDenied is the token of a declined call.
const tokenDenied = "approval_denied"

// decider is what the model is told about who decided: a role, never a name.
func (s *segment) decider(by uuid.UUID) string {
	switch by {
	case uuid.Nil:
		return "unknown"
	case s.run.InitiatorID:
		return "run_owner"
	default:
		return "other_user"
	}
}

// compare recomputes every pending preview and returns the fresh cards if any that
// binds differs (RULES R12). One that failed at suspension does not bind; one that fails
// now refuses, so its card comes again with the lines that still bind.
func (s *segment) compare(ctx context.Context, pending []Pending) []Pending {
	fresh, differs := make([]Pending, len(pending)), false
	for i, old := range pending {
		fresh[i] = s.card(ctx, old.Call)
		switch {
		case old.Failed:
		case fresh[i].Failed:
			fresh[i] = old
			fresh[i].Moved, differs = true, true
		case !slices.Equal(old.Lines, fresh[i].Lines):
			fresh[i].Moved, differs = true, true
		}
		fresh[i].Edited = old.Edited
	}
	if !differs {
		return nil
	}
	return fresh
}

// showAgain suspends with fresh cards: what was approved is not what would happen.
func (s *segment) showAgain(ctx context.Context, state State, fresh []Pending) error {
	state.Pending, state.Suspension, state.Given = fresh, state.Suspension+1, nil
	for _, p := range fresh {
		if p.Moved {
			s.notices = append(s.notices, notice(run.NoticePreviewMoved, p.Call.Tool))
		}
	}
	if err := s.write(ctx, nil, change.Change{Events: noticeEvents(s.agent.World.Now(), s.notices[len(s.run.Notices):])}); err != nil {
		return err
	}
	return s.park(ctx, run.SuspendForApproval, state)
}
