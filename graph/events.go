package graph

import (
	"encoding/json"

	"github.com/google/uuid"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// toEvent gives a step the type of its kind. A kind that has no type of its own, which only a newer replica could write, keeps what all steps have.
func toEvent(e run.Event) model.RunEvent {
	make, known := eventTypes[e.Kind]
	if !known {
		make = startedEvent
	}
	return make(e)
}

// eventTypes is the type of every kind; a test holds it against the kinds there are.
var eventTypes = map[run.EventKind]func(run.Event) model.RunEvent{
	run.EventStarted:   startedEvent,
	run.EventModelCall: modelCallEvent,
	run.EventToolCall:  toolCallEvent,
	run.EventWrite:     writeEvent,
	run.EventSuspended: suspendedEvent,
	run.EventEdited:    editedEvent,
	run.EventDecision:  decisionEvent,
	run.EventInput:     inputEvent,
	run.EventProgress:  progressEvent,
	run.EventHighlight: highlightEvent,
	run.EventNotice:    noticeEvent,
	run.EventSettled:   settledEvent,
}

func startedEvent(e run.Event) model.RunEvent {
	return &model.StartedEvent{
		Sequence: e.Sequence, Kind: eventKinds.out(e.Kind), Round: e.Round, DurationMs: e.DurationMS, At: e.At, ContentUnreadable: e.Unreadable,
		Messages: toEventMessages(words(e).Messages),
	}
}

func modelCallEvent(e run.Event) model.RunEvent {
	return &model.ModelCallEvent{
		Sequence: e.Sequence, Kind: eventKinds.out(e.Kind), Round: e.Round, DurationMs: e.DurationMS, At: e.At, ContentUnreadable: e.Unreadable,
		Calls: e.Data.Calls, Bytes: e.Data.Bytes, InputTokens: e.Data.InputTokens, OutputTokens: e.Data.OutputTokens,
		ProviderID: providerText(e.Data.Provider), Model: given(e.Data.Model), Attempts: toAttempts(e.Data.Attempts),
		Text: given(words(e).Text),
	}
}

func toolCallEvent(e run.Event) model.RunEvent {
	return &model.ToolCallEvent{
		Sequence: e.Sequence, Kind: eventKinds.out(e.Kind), Round: e.Round, DurationMs: e.DurationMS, At: e.At, ContentUnreadable: e.Unreadable,
		Tool: e.Data.Tool, Call: e.Data.Call, IsError: e.Data.IsError, Token: given(e.Data.Token), Bytes: e.Data.Bytes,
		Arguments: words(e).Arguments, Result: given(words(e).Result), Edited: e.Data.Edited, ProposedArguments: firstProposed(e),
	}
}

// firstProposed is what a model proposed that a person changed.
func firstProposed(e run.Event) json.RawMessage {
	if proposed := words(e).Proposed; len(proposed) > 0 {
		return proposed[0].Arguments
	}
	return nil
}

func writeEvent(e run.Event) model.RunEvent {
	return &model.WriteEvent{
		Sequence: e.Sequence, Kind: eventKinds.out(e.Kind), Round: e.Round, DurationMs: e.DurationMS, At: e.At, ContentUnreadable: e.Unreadable,
		Tool: e.Data.Tool, Call: e.Data.Call, Target: &model.RecordReference{Table: e.Data.Table, ID: e.Data.RecordID},
		WriteKind: e.Data.WriteKind, Completeness: completeness.maybe(tool.Completeness(e.Data.Completeness)),
		HookFailedAfterWrite: e.Data.HookFailedAfterWrite,
	}
}

func suspendedEvent(e run.Event) model.RunEvent {
	return &model.SuspendedEvent{
		Sequence: e.Sequence, Kind: eventKinds.out(e.Kind), Round: e.Round, DurationMs: e.DurationMS, At: e.At, ContentUnreadable: e.Unreadable,
		Status: runStatuses.out(run.Status(e.Data.Status)), Calls: e.Data.Calls, TurnDigest: given(e.Data.TurnDigest),
		Proposed: toEventProposals(words(e).Proposed),
	}
}

func editedEvent(e run.Event) model.RunEvent {
	return &model.EditedEvent{
		Sequence: e.Sequence, Kind: eventKinds.out(e.Kind), Round: e.Round, DurationMs: e.DurationMS, At: e.At, ContentUnreadable: e.Unreadable,
		EditedBy: decider(e), TurnDigest: given(e.Data.TurnDigest), Places: append([]string{}, e.Data.Args...),
	}
}

func decisionEvent(e run.Event) model.RunEvent {
	return &model.DecisionEvent{
		Sequence: e.Sequence, Kind: eventKinds.out(e.Kind), Round: e.Round, DurationMs: e.DurationMS, At: e.At, ContentUnreadable: e.Unreadable,
		Approved: e.Data.Approved != nil && *e.Data.Approved, DecidedBy: decider(e), TurnDigest: given(e.Data.TurnDigest),
		DenialReason: denialReasons.maybe(agent.Answer(e.Data.DenialReason)),
	}
}

func inputEvent(e run.Event) model.RunEvent {
	return &model.InputEvent{
		Sequence: e.Sequence, Kind: eventKinds.out(e.Kind), Round: e.Round, DurationMs: e.DurationMS, At: e.At, ContentUnreadable: e.Unreadable,
		DecidedBy: decider(e), TurnDigest: given(e.Data.TurnDigest), Values: words(e).Values,
	}
}

func progressEvent(e run.Event) model.RunEvent {
	return &model.ProgressEvent{
		Sequence: e.Sequence, Kind: eventKinds.out(e.Kind), Round: e.Round, DurationMs: e.DurationMS, At: e.At, ContentUnreadable: e.Unreadable,
		Position: e.Data.Position, Total: e.Data.Total, Done: e.Data.Done,
	}
}

func highlightEvent(e run.Event) model.RunEvent {
	return &model.HighlightEvent{
		Sequence: e.Sequence, Kind: eventKinds.out(e.Kind), Round: e.Round, DurationMs: e.DurationMS, At: e.At, ContentUnreadable: e.Unreadable,
		Target: &model.RecordReference{Table: e.Data.Table, ID: e.Data.RecordID},
	}
}

func noticeEvent(e run.Event) model.RunEvent {
	return &model.NoticeEvent{
		Sequence: e.Sequence, Kind: eventKinds.out(e.Kind), Round: e.Round, DurationMs: e.DurationMS, At: e.At, ContentUnreadable: e.Unreadable,
		Notice: toNotice(run.Notice{Code: run.NoticeCode(e.Data.Code), Args: e.Data.Args}),
	}
}

func settledEvent(e run.Event) model.RunEvent {
	return &model.SettledEvent{
		Sequence: e.Sequence, Kind: eventKinds.out(e.Kind), Round: e.Round, DurationMs: e.DurationMS, At: e.At, ContentUnreadable: e.Unreadable,
		Status: runStatuses.out(run.Status(e.Data.Status)), Outcome: runOutcomes.maybe(run.Outcome(e.Data.Outcome)),
		TerminationReason: runReasons.maybe(run.Reason(e.Data.Reason)), Answer: given(words(e).Text),
	}
}

func toTextDelta(d agent.TextDelta) *model.TextDelta {
	return &model.TextDelta{Round: d.Round, Offset: d.Offset, Text: d.Text}
}

// decider is the API id of who decided.
func decider(e run.Event) *string {
	row, err := uuid.Parse(e.Data.DecidedBy)
	if err != nil {
		return nil
	}
	return userKind.maybe(row)
}

// words is what was said in a step, if that is kept and the viewer may read it.
func words(e run.Event) run.Content {
	if e.Content == nil {
		return run.Content{}
	}
	return *e.Content
}

func toEventMessages(said []prompt.Message) []*model.EventMessage {
	var out []*model.EventMessage
	for _, m := range said {
		out = append(out, &model.EventMessage{Role: messageRoles.out(m.Role), Text: m.Text})
	}
	return out
}

func toEventProposals(proposed []run.Proposed) []*model.EventProposal {
	var out []*model.EventProposal
	for _, p := range proposed {
		out = append(out, &model.EventProposal{Tool: p.Tool, Arguments: p.Arguments, Preview: append([]string{}, p.Preview...)})
	}
	return out
}
