package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// refusals is what the model reads for a call that does not run, by disposition.
var refusals = map[run.Disposition]string{
	run.NotOffered:      "This tool is not available in this run.",
	run.OneApproval:     "Only one call of a turn can wait for a decision in a process run. Propose this one in a later turn.",
	run.InputRefused:    "A question cannot be asked beside a proposal. Ask it in a later turn.",
	run.NotExecuted:     "This call was not executed because a proposal of the same turn waits for a decision.",
	run.OneQuestion:     "Only one question can be asked in a turn.",
	run.RemoteLimit:     "The calls to other servers that this run may make without a pause are used up. Go on without another.",
	run.MarkerWritten:   "The arguments hold a [redacted:…] marker. It stands for a secret that you were not shown, and would take its place. Write only what surrounds it, or nothing.",
	run.CompletionWaits: "Report completion after the decision: something of this turn waits for the person.",
}

// refuseCall answers a call that may not run.
func (s *segment) refuseCall(ctx context.Context, at int, c prompt.Call, why run.Disposition) error {
	result := tool.Fail(string(why), refusals[why])
	var rest change.Change
	switch why {
	case run.InvalidArguments:
		result, _ = s.tools.Check(c.Tool, c.Arguments)
	case run.NotOffered:
		denial, _ := s.tools.Decide(c.Tool, s.offer.situation)
		rest.Audit = []audit.Entry{audit.Record(s.agent.World, s.initiator, audit.ToolDenied).InRun(s.id).
			With("denied", []tool.Denial{denial}).With("called", true)}
	}
	return s.record(ctx, at, c, result, 0, nil, rest)
}

// execute runs one call that needs nobody's approval any more and stores its step.
// Approved says that somebody approved it.
func (s *segment) execute(ctx context.Context, at int, c prompt.Call, approved bool) error {
	if c.Tool == tool.LoadSkill {
		return s.loadSkill(ctx, at, c)
	}
	spec := s.spec(c)
	if spec.Remote && !s.countRemote() {
		return s.refuseCall(ctx, at, c, run.RemoteLimit)
	}
	if tool.EffectOf(spec).Writes() {
		return s.executeWrite(ctx, at, c, approved)
	}
	result, took := s.callTool(ctx, c)
	return s.record(ctx, at, c, result, took, nil, change.Change{})
}

// executeWrite runs a write inside its fence: the pending effect is stored and the
// lease renewed in one statement before the tool runs, and cleared with the step that
// records the result (RULES R7). A segment that lost its lease stops here (RULES R6).
// What nobody approved is in the trail before it is made (RULES C6).
func (s *segment) executeWrite(ctx context.Context, at int, c prompt.Call, approved bool) error {
	fence, before := &Fence{Tool: c.Tool, Key: s.key(c), At: s.agent.World.Now()}, change.Change{}
	if !approved {
		before.Audit = []audit.Entry{audit.Record(s.agent.World, s.initiator, audit.UnapprovedWrite).InRun(s.id).With("tool", c.Tool)}
	}
	if err := s.write(ctx, []change.Value{runFence.To(fence)}, before); err != nil {
		return err
	}
	result, took := s.callTool(ctx, c)
	clear(s.shown) // the other previews of the turn were made from what this write may have changed
	rest := change.Change{Events: s.noticed(c, result)}
	if result.Write != nil {
		wrote := audit.Record(s.agent.World, s.initiator, audit.WriteExecuted).InRun(s.id).
			With("tool", c.Tool).With("table", result.Write.Target.Table).With("id", result.Write.Target.ID).
			With("kind", result.Write.Kind).With("completeness", result.Write.Completeness).
			With("hookFailedAfterWrite", result.HookFailedAfterWrite)
		if s.changed(c) != nil {
			wrote = wrote.With("edited", true)
		}
		rest.Audit = []audit.Entry{wrote}
	}
	return s.record(ctx, at, c, result, took, []change.Value{runFence.To(nil)}, rest)
}

// callTool executes one call as the initiator. What the model may not read of a failure
// goes to the log (RULES G4).
func (s *segment) callTool(ctx context.Context, c prompt.Call) (result tool.Result, tookMS int) {
	w := s.agent.World
	began := w.Now()
	answer := s.tools.Execute(ctx, c.Tool, s.toolCall(c))
	if answer.Failure != nil && ctx.Err() == nil {
		s.agent.Log.Warn("a tool failed",
			slog.String("run", s.id.String()), slog.String("tool", c.Tool), slog.Any("error", answer.Failure))
	}
	return answer.Result, int(w.Now().Sub(began).Milliseconds())
}

func (s *segment) spec(c prompt.Call) tool.Spec {
	spec, _ := s.tools.Spec(c.Tool)
	return spec
}

func (s *segment) toolCall(c prompt.Call) tool.Call {
	return tool.Call{
		Run: s.id, Key: s.key(c), Actor: s.initiator,
		Subject: s.run.Subject, Arguments: c.Arguments, Basis: s.shown[s.key(c)],
	}
}

// key names a call for ever: no other call of the run has the same suspension, attempt,
// round and call id. A pending call has the same key however often its segment is begun
// again; what the model asks for in another attempt is another call.
func (s *segment) key(c prompt.Call) string {
	attempt := s.run.Attempts
	if s.round == 0 {
		attempt = 0
	}
	return fmt.Sprintf("%d/%d/%d/%s", s.run.Suspension, attempt, s.round, c.ID)
}

// record stores the step of a call with the state it changes and appends its result to
// the transcript. A write step follows its tool step (RULES G6).
func (s *segment) record(ctx context.Context, at int, c prompt.Call, result tool.Result, tookMS int, set []change.Value, rest change.Change) error {
	result.Text = s.agent.Secrets.Redactor().Any(result.Text + s.changedNote(c))
	result, verdict := s.judgeResult(result.Bounded())
	step := s.event(run.EventToolCall, run.EventData{
		Tool: s.named(c), Call: at, IsError: result.IsError, Token: result.Token, Bytes: len(result.Text),
	})
	step.DurationMS = tookMS
	said := called(c, resultText(result))
	if edited := s.changed(c); edited != nil {
		step.Data.Edited, said.Proposed = true, []run.Proposed{{Tool: c.Tool, Arguments: object(edited.Proposed)}}
	}
	step = withWords(step, said)
	rest.Events = append(rest.Events, step)
	if w := result.Write; w != nil {
		rest.Events = append(rest.Events, s.event(run.EventWrite, run.EventData{
			Tool: c.Tool, Call: at, Table: w.Target.Table, RecordID: w.Target.ID, WriteKind: w.Kind,
			Completeness: string(w.Completeness), HookFailedAfterWrite: result.HookFailedAfterWrite,
		}))
		s.writes++
		set = append(set, runWrites.To(s.writes))
	}
	released := func() {}
	if r := result.Report; r != nil {
		event, value := s.report(*r)
		rest.Events = append(rest.Events, event)
		set = append(set, value)
		if r.Progress != nil && r.Progress.Done {
			released = s.release(&set, &rest)
		}
	}
	if err := s.write(ctx, set, rest); err != nil {
		return err
	}
	released()
	s.transcript = append(s.transcript, prompt.Message{
		Role: prompt.ToolRole, CallID: c.ID, Text: resultText(result), Failed: result.IsError,
	})
	return s.heed(ctx, verdict)
}

// named is a call's tool as its step names it: not at all where no tool has that name,
// which then is text that the model wrote (RULES Y1).
func (s *segment) named(c prompt.Call) string {
	if _, known := s.tools.Spec(c.Tool); !known {
		return ""
	}
	return c.Tool
}

// report is the event and the run column of a process builtin's statement (RULES C2).
func (s *segment) report(r tool.Report) (run.Event, change.Value) {
	if p := r.Progress; p != nil {
		return s.event(run.EventProgress, run.EventData{Position: p.Position, Total: p.Total, Done: p.Done}), runProgress.To(p)
	}
	return s.event(run.EventHighlight, run.EventData{Table: r.Highlight.Table, RecordID: r.Highlight.ID}), runHighlight.To(r.Highlight)
}

// resultText is a result as the model reads it: the text of a success, a small object
// with a fixed token for an error.
func resultText(r tool.Result) string {
	if !r.IsError {
		return r.Text
	}
	return errorText(map[string]string{"error": r.Token, "message": r.Text})
}

func errorText(fields map[string]string) string {
	b, err := json.Marshal(fields)
	if err != nil {
		return `{"error":"` + tool.TokenToolFailed + `"}` // strings always marshal
	}
	return string(b)
}
