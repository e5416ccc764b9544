package graph

import (
	"context"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

func toRun(r agent.Run) *model.Run {
	out := &model.Run{
		ID: runKind.id(r.ID), Status: runStatuses.out(r.Status), Outcome: runOutcomes.maybe(r.Outcome), TerminationReason: runReasons.maybe(r.Reason),
		Truncated: r.Truncated, Message: given(r.Message), Answer: given(r.Answer), InitiatorID: userKind.id(r.InitiatorID),
		ConfigurationID: configurationKind.id(r.ConfigurationID), TaskID: taskKind.maybe(r.TaskID), PredecessorID: runKind.maybe(r.PredecessorID),
		ConversationID: conversationKind.maybe(r.ConversationID), Writes: r.Writes, Pins: make([]*model.RunPin, len(r.Pins)), Subject: toReference(r.Subject),
		SkillAllowList: r.SkillAllowList, Highlight: toReference(r.Highlight), Notices: make([]*model.RunNotice, len(r.Notices)),
		PrivacyLevel: privacyLevels.out(r.Privacy), CheckRecord: r.Fence != nil && r.Status.Terminal(), Usage: toUsage(r.Usage),
		CreatedAt: r.CreatedAt, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt, Domain: r,
	}
	for i, pin := range r.Pins {
		out.Pins[i] = toPin(pin)
	}
	for i, n := range r.Notices {
		out.Notices[i] = toNotice(n)
	}
	if pin, held := r.Pins.Process(); held {
		out.ProcessPin = toPin(pin)
	}
	if r.Invocation != nil {
		out.Invocation = &model.RunInvocation{
			SkillID: skillKind.id(r.Invocation.Skill), SkillUUID: r.Invocation.Skill, Subject: toReference(r.Invocation.Subject),
			Derived: r.Invocation.Derived, Ended: r.Invocation.Ended,
		}
	}
	if p := r.Progress; p != nil {
		out.Progress = &model.RunProgress{Position: p.Position, Total: p.Total, Done: p.Done}
	}
	return out
}

// maybeRun is a run that need not have been made: a refused start leaves none.
func maybeRun(r agent.Run) *model.Run {
	if r.ID == uuid.Nil {
		return nil
	}
	return toRun(r)
}

func toPin(p run.Pin) *model.RunPin {
	return &model.RunPin{
		SkillID: skillKind.id(p.Skill), SourceID: sourceKind.id(p.Source), Digest: string(p.Digest), Way: pinWays.out(p.Way), Process: p.Process, Derived: p.Derived, Domain: p,
	}
}

func toNotice(n run.Notice) *model.RunNotice {
	return &model.RunNotice{Code: noticeCodes.out(n.Code), Args: append([]string{}, n.Args...)}
}

func runConnection(w window, read []agent.Run) *model.RunConnection {
	key := func(r agent.Run) uuid.UUID { return r.ID }
	read = oldestFirst(read, key)
	slices.Reverse(read)
	c := &model.RunConnection{}
	c.Nodes, c.Edges, c.PageInfo = connect(w, read, rowKey(key), toRun,
		func(cursor string, n *model.Run) *model.RunEdge { return &model.RunEdge{Cursor: cursor, Node: n} })
	return c
}

// runPage is a window as the runtime reads it.
func runPage(first *int, after *string, last *int, before *string) (window, agent.Page, error) {
	w, err := page(first, after, last, before)
	if err != nil {
		return window{}, agent.Page{}, err
	}
	row, err := w.row()
	return w, agent.Page{Cursor: row, Limit: w.fetch(), Backward: w.backward}, err
}

// runFilter reads the filter of a list of runs.
func runFilter(f *model.RunFilter) (agent.Filter, error) {
	if f == nil {
		return agent.Filter{}, nil
	}
	out := agent.Filter{Statuses: runStatuses.ins(f.Status)}
	var err error
	if out.InitiatorID, err = userKind.optional(f.InitiatorID); err != nil {
		return agent.Filter{}, err
	}
	if out.ConfigurationID, err = configurationKind.optional(f.ConfigurationID); err != nil {
		return agent.Filter{}, err
	}
	out.SkillID, err = skillKind.optional(f.SkillID)
	return out, err
}

// startRequest reads what to run.
func startRequest(in model.StartRunInput) (agent.StartRequest, error) {
	configuration, err := configurationKind.row(in.ConfigurationID)
	if err != nil {
		return agent.StartRequest{}, err
	}
	if (in.Prompt == nil) == (in.Messages == nil) {
		return agent.StartRequest{}, fault.New(fault.BadInput, "Give either prompt or messages.")
	}
	out := agent.StartRequest{ConfigurationID: configuration, AllowedTools: in.AllowedTools, MaxIterations: number(in.MaxIterations)}
	before, err := runKind.optional(in.PredecessorID)
	if err != nil {
		return agent.StartRequest{}, err
	}
	if before != nil {
		out.Predecessor = *before
	}
	if in.Prompt != nil {
		out.Messages = []prompt.Message{{Role: prompt.User, Text: *in.Prompt}}
	}
	for _, m := range in.Messages {
		out.Messages = append(out.Messages, prompt.Message{Role: messageRoles.in[m.Role], Text: m.Text})
	}
	if out.Forced, err = skillKind.rows(in.ForcedSkillIds); err != nil {
		return agent.StartRequest{}, err
	}
	if in.Invocation != nil {
		invoked, err := skillKind.row(in.Invocation.SkillID)
		if err != nil {
			return agent.StartRequest{}, err
		}
		out.Invocation = &agent.Invocation{Skill: invoked}
		if s := in.Invocation.Subject; s != nil {
			out.Invocation.Subject = &tool.Record{Table: s.Table, ID: s.ID}
		}
	}
	return out, nil
}

// settled waits for a run that was started, decided or answered, unless the rules refused it.
func (r *Resolver) settled(ctx context.Context, started agent.Run, err error) (agent.Run, model.Refusal, error) {
	refusal, err := asData(err)
	if err != nil || refusal != nil {
		return started, refusal, err
	}
	started, err = r.Agent.Wait(ctx, started.ID)
	return started, nil, err
}

// card is what a waiting run shows to the viewer: nothing when it went on meanwhile, or when its state is only for the operator.
func (r *Resolver) card(ctx context.Context, waiting agent.Run) (*agent.Card, error) {
	c, err := r.Agent.Card(ctx, caller(ctx), waiting)
	if refusal, other := asData(err); refusal != nil || hidden(other) {
		return nil, nil
	}
	return c, err
}

func toPendingDecision(c *agent.Card) *model.PendingDecision {
	out := &model.PendingDecision{
		ExpiresAt:  c.ExpiresAt,
		TurnDigest: c.TurnDigest, IsProcess: c.IsProcess, Answers: cardAnswers.outs(c.Answers), Calls: make([]*model.PendingCall, len(c.Calls)),
	}
	for i, call := range c.Calls {
		out.Calls[i] = toPendingCall(call)
	}
	return out
}

func toPendingCall(c agent.CardCall) *model.PendingCall {
	out := &model.PendingCall{
		Index: c.Index, Tool: c.Tool, Arguments: c.Arguments, Edited: c.Edited, ProposedArguments: c.Proposed,
		Texts: make([]*model.ProposedText, len(c.Texts)),
	}
	for i, t := range c.Texts {
		out.Texts[i] = &model.ProposedText{Pointer: t.Pointer, Text: t.Text}
	}
	if c.Arguments != nil { // without them the viewer may not read what the call is about
		out.Preview = &model.CallPreview{Lines: append([]string{}, c.Lines...), Failed: c.Failed, Stale: c.Stale}
	}
	if t := c.Target; t != nil {
		out.Target = &model.CallTarget{Table: t.Table, ID: t.ID, Fields: append([]string{}, t.Fields...)}
	}
	return out
}

func editedTexts(in []*model.EditedTextInput) []agent.EditedText {
	out := make([]agent.EditedText, len(in))
	for i, t := range in {
		out[i] = agent.EditedText{Call: t.Call, Text: tool.Text{Pointer: t.Pointer, Text: t.Text}}
	}
	return out
}

// eventsAfter says after which sequence a page of events begins: events are numbered from 0.
func eventsAfter(w window, afterSequence *int) (int, error) {
	n, given, err := w.number()
	switch {
	case err != nil:
		return 0, err
	case given && afterSequence != nil:
		return 0, fault.New(fault.BadInput, "Give either after or afterSequence.")
	case given:
		return int(n), nil
	}
	return sequence(afterSequence)
}

// sequence reads an exclusive sequence; none is before the first event.
func sequence(after *int) (int, error) {
	switch {
	case after == nil:
		return -1, nil
	case *after < 0:
		return 0, fault.New(fault.BadInput, "A sequence is not negative; leave it out to begin with the first step.")
	}
	return *after, nil
}

func eventConnection(w window, read []run.Event) *model.RunEventConnection {
	c := &model.RunEventConnection{}
	c.Nodes, c.Edges, c.PageInfo = connect(w, read, func(e run.Event) string { return strconv.Itoa(e.Sequence) }, toEvent,
		func(cursor string, n model.RunEvent) *model.RunEventEdge {
			return &model.RunEventEdge{Cursor: cursor, Node: n}
		})
	return c
}
