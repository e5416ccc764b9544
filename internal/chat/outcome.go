package chat

import (
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// Outcome is what became of a card, as the server saw it happen (RULES C5).
type Outcome string

// The outcomes. The first three are of an approval.
const (
	Applied      Outcome = "APPLIED"
	CheckRecord  Outcome = "CHECK_RECORD" // approved, and what was written is not known for sure
	NotApplied   Outcome = "NOT_APPLIED"  // approved, and not or only partly written
	AskedVariant Outcome = "VARIANT"
	Skipped      Outcome = "SKIPPED"
	Denied       Outcome = "DENIED"
	Discarded    Outcome = "PROPOSAL_DISCARDED" // nothing was decided that took effect
)

// Outcomes lists every outcome.
var Outcomes = []Outcome{Applied, CheckRecord, NotApplied, AskedVariant, Skipped, Denied, Discarded}

// denials are the outcomes of a denial that took effect, by its reason.
var denials = map[agent.Answer]Outcome{agent.Variant: AskedVariant, agent.Skip: Skipped, "": Denied}

// outcome reads what became of a card from its decision's segment alone: the decision
// event and what the run stored after it, up to its next rest (RULES C5). fenced says that
// a write was begun whose step is missing. It is empty while the segment does not tell
// yet, and for a segment that came back with a fresh card: that is no state.
func outcome(segment []run.Event, fenced bool) (o Outcome, told bool) {
	decision := segment[0].Data
	approved := decision.Approved != nil && *decision.Approved
	for i, e := range segment[1:] {
		rest := segment[i+2:]
		switch {
		case e.Kind == run.EventToolCall && !approved:
			return denials[agent.Answer(decision.DenialReason)], true
		case e.Kind == run.EventToolCall && e.Data.IsError:
			return NotApplied, true
		case e.Kind == run.EventToolCall:
			return written(e, rest)
		case e.Kind == run.EventSuspended:
			return "", true
		case e.Kind == run.EventSettled && fenced:
			return CheckRecord, true
		case e.Kind == run.EventSettled:
			return Discarded, true
		}
	}
	return "", false
}

// written is the outcome of an approved call that went well, by its write step or by how
// the segment ended without one.
func written(step run.Event, rest []run.Event) (Outcome, bool) {
	if len(rest) > 0 && rest[0].Kind == run.EventWrite && rest[0].Data.Call == step.Data.Call {
		switch w := rest[0].Data; {
		case w.HookFailedAfterWrite, w.Completeness == string(tool.NotStated):
			return CheckRecord, true
		case w.Completeness == string(tool.Complete):
			return Applied, true
		default:
			return NotApplied, true
		}
	}
	for _, e := range rest {
		switch {
		case e.Kind == run.EventSuspended:
			return NotApplied, true
		case e.Kind == run.EventSettled && aborted(run.Outcome(e.Data.Outcome)):
			return CheckRecord, true
		case e.Kind == run.EventSettled:
			return NotApplied, true
		}
	}
	return "", false
}

// aborted reports whether a run ended in a way that may have cut the step of a write off.
func aborted(o run.Outcome) bool {
	return o == run.OutcomeCancelled || o == run.OutcomeLeaseLost || o == run.OutcomeFailed
}
