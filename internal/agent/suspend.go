package agent

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// suspend stores everything the run needs to go on and gives up the lease, in one
// transaction. Nobody is promised a pause that could not be stored: it ends the run as
// suspend_failed (RULES R4). A cancel that came first wins.
func (s *segment) suspend(ctx context.Context, t run.Transition, pending, after []prompt.Call) error {
	state := State{
		Messages: s.transcript, After: after,
		Suspension: s.run.Suspension + 1, NonceKey: s.nonceKey, Gauge: s.gauge, Wary: s.wary,
		Catalogue: s.catalogue, Loaded: loadedSkills(s.pins),
	}
	for _, c := range pending {
		state.Pending = append(state.Pending, s.card(ctx, c))
	}
	if t.To == run.WaitingForInput {
		schema, err := s.tools.InputSchema(ctx, pending[0].Tool, s.toolCall(pending[0]))
		if err != nil {
			return err
		}
		state.Schema = schema
	}
	return s.park(ctx, t, state)
}

// park stores a suspension.
func (s *segment) park(ctx context.Context, t run.Transition, state State) error {
	stored, err := encode(state)
	if err != nil {
		return err
	}
	digest := run.TurnDigest(state.Suspension, state.Calls())
	outcome := run.OutcomeAwaitingApproval
	if t.To == run.WaitingForInput {
		outcome = run.OutcomeAwaitingInput
	}
	expires, err := s.expiry(ctx)
	if err != nil {
		return err
	}
	set := []change.Value{
		runExpiresAt.Maybe(expires), runStatus.To(t.To), runOutcome.To(outcome), runSuspension.To(state.Suspension), runTurnDigest.To(digest),
		runState.To(stored), runNotices.To(orEmpty(s.notices)), runUsage.To(s.usage),
		runLeaseOwner.To(""), runLeaseUntil.Null(),
	}
	s.written.settle() // it stays while the run waits, for whoever comes to look at the card
	event := s.event(run.EventSuspended, run.EventData{TurnDigest: digest, Calls: len(state.Pending), Status: string(t.To)})
	event = withWords(event, proposed(state.Pending))
	err = s.guarded(ctx, set, change.Change{Inserts: s.unbooked(), Events: []run.Event{event}})
	if err == nil {
		s.booked = s.usage
	}
	if err == nil || errors.Is(err, errLeaseLost) {
		return err
	}
	return stopped{reason: run.ReasonSuspendFailed, message: "the pause could not be stored, so nothing waits for a decision", cause: err}
}

// card is a pending call as a person sees it: the preview under the initiator's
// rights, and the record it is about (RULES G7).
func (s *segment) card(ctx context.Context, c prompt.Call) Pending {
	p := Pending{Call: c, Write: tool.DeclaredWrite(s.spec(c))}
	var err error
	if p.Lines, err = s.preview(ctx, c); err != nil {
		p.Failed = true
		s.agent.Log.Warn("a preview failed", slog.String("run", s.id.String()), slog.String("tool", c.Tool), slog.Any("error", err))
	}
	target, has, err := s.tools.PendingTarget(ctx, c.Tool, s.toolCall(c))
	if err == nil && has {
		p.Target = &target
	}
	return p
}

// preview is what a call would change now. A call of a tool without previews shows its
// arguments, which its decision is about.
func (s *segment) preview(ctx context.Context, c prompt.Call) ([]string, error) {
	if tool.DeclaredWrite(s.spec(c)) {
		call := s.toolCall(c)
		call.Basis = tool.Basis{}
		lines, err := s.tools.Preview(ctx, c.Tool, call)
		if err == nil {
			s.shown[s.key(c)] = call.Basis
		}
		return lines, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(c.Arguments, &fields); err != nil {
		return nil, err
	}
	lines := make([]string, 0, len(fields))
	for name, value := range fields {
		lines = append(lines, name+": "+string(run.CanonicalJSON(value)))
	}
	slices.Sort(lines)
	return tool.BoundPreview(lines), nil
}
