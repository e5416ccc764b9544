package agent

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/run"
)

// stopRefusals is how a start says that its run was stored as stopped: an instruction
// does not hold, a process may not go on, a section does not fit.
var stopRefusals = map[run.Reason]fault.Code{
	run.ReasonInstructionWithdrawn:   fault.InstructionWithdrawn,
	run.ReasonSecondApproverRequired: fault.SecondApproverRequired,
	run.ReasonPolicyDenied:           fault.SectionTooLarge,
}

// queue stores the run with everything that is fixed at start (RULES T1, T2, P1). One
// whose pins do not hold, or whose sections do not fit, is stored as it ends, without
// them, and refused (RULES P3, X7, B4).
// Nothing is stored when the run before has other pins by now than those it was derived
// from.
func (a *Agent) queue(ctx context.Context, by actor.Actor, c library.Configuration, req asked, work commission, taken inheritance) (Run, bool, error) {
	composed := work.set.compose(taken.pins)
	for _, broken := range composed.broken {
		if err := a.Skills.NoteIntegrityFailure(ctx, broken); err != nil {
			return Run{}, false, err
		}
	}
	held, err := a.hold(ctx, composed.pins, c)
	var stop stopped
	if err != nil && !errors.As(err, &stop) {
		return Run{}, false, err
	}
	list := work.set.allowList(held)
	if stop.reason == "" {
		tools, err := a.Tools.Now(ctx)
		if err != nil {
			return Run{}, false, err
		}
		budget, err := a.budget(ctx, c)
		if err != nil {
			return Run{}, false, err
		}
		o, err := a.open(ctx, opening{
			initiator: by, configuration: c, messages: req.Messages,
			tools: tools, set: work.set, sorted: composed, held: held, known: taken.pins, continues: taken.from != nil,
			list: list, callerList: req.AllowedTools, budget: budget, nonceKey: make([]byte, 32), // only its length counts
		})
		if err != nil {
			return Run{}, false, err
		}
		if stop, _ = o.tooLarge(); stop.reason == "" {
			composed.pins = pinsOf(o.held)
		}
	}
	values, err := a.Settings.Values(ctx)
	if err != nil {
		return Run{}, false, err
	}
	now := a.World.Now()
	r := Run{
		ID: a.World.NewID(), Privacy: values.Privacy, Status: run.Queued, InitiatorID: by.ID, ConfigurationID: req.ConfigurationID, TaskID: req.task,
		ConversationID: req.Conversation,
		PredecessorID:  req.Predecessor, Invocation: work.invoked, Subject: work.subject, Forced: orEmpty(req.Forced),
		SkillAllowList: list, CallerTools: req.AllowedTools, Pins: composed.pins,
		Notices: append(orEmpty(taken.notices), composed.notices...), MaxIterations: max(req.MaxIterations, 0), CreatedAt: now,
	}
	made, err := a.born(by, &r, req, work.set, stop)
	if err != nil {
		return Run{}, false, err
	}
	if req.Along != nil {
		made = join(made, req.Along(r))
	}
	if taken.from != nil {
		made.Updates = append(made.Updates, taken.unchanged())
	}
	out, err := a.apply(ctx, r.Privacy, made)
	switch {
	case err != nil:
		return Run{}, false, err
	case !out.Applied && out.Lost != runsTable:
		return Run{}, false, ErrAlongLost
	case !out.Applied:
		return Run{}, false, nil
	}
	if r, err = a.Store.Run(ctx, r.ID); err == nil && stop.reason != "" {
		err = fault.Refuse(stopRefusals[stop.reason], "%s", stop.message)
	}
	return r, true, err
}

// born is the change that a run begins with: in the queue, or stopped before anything
// of it was executed.
func (a *Agent) born(by actor.Actor, r *Run, req asked, set lineup, stop stopped) (change.Change, error) {
	now := r.CreatedAt
	c := change.Change{Run: r.ID}
	if stop.reason != "" {
		ending := run.Endings[stop.reason]
		r.Status, r.Outcome, r.Reason, r.Message, r.FinishedAt = ending.Status, ending.Outcome, stop.reason, stop.message, &now
		r.Notices = append(r.Notices, stop.notices...)
		r.Invocation, r.Pins = r.Invocation.without(r.Pins, *stop.pins), *stop.pins
		settled, ended := a.ended(by, r.ID, stop.reason)
		refused := req.audited(audit.Record(a.World, by, audit.RunRefused).InRun(r.ID).With("code", stopRefusals[stop.reason]), set)
		c.Events, c.Audit = append(noticeEvents(now, r.Notices), settled), []audit.Entry{refused, ended}
		c.Inserts = []change.Insert{{Table: runsTable, Row: r.row(runRequest.Null())}}
		return c, nil
	}
	request, err := json.Marshal(Request{Messages: req.Messages})
	if err != nil {
		return change.Change{}, fault.Wrap(fault.Internal, err, "storing the request")
	}
	started := withWords(run.Event{Kind: run.EventStarted, At: now}, run.Content{Messages: req.Messages})
	c.Events = append([]run.Event{started}, noticeEvents(now, r.Notices)...)
	c.Audit = []audit.Entry{req.audited(audit.Record(a.World, by, audit.RunStarted).InRun(r.ID), set)}
	c.Inserts = []change.Insert{{Table: runsTable, Row: r.row(runRequest.To(string(request)))}}
	c.Ring = []change.Topic{change.QueueTopic}
	return c, nil
}

// join is both changes as one.
func join(c, along change.Change) change.Change {
	c.Updates = append(c.Updates, along.Updates...)
	c.Deletes = append(c.Deletes, along.Deletes...)
	c.Inserts = append(c.Inserts, along.Inserts...)
	c.Audit = append(c.Audit, along.Audit...)
	c.Ring = append(c.Ring, along.Ring...)
	return c
}

// row is a new run's row.
func (r *Run) row(request change.Value) []change.Value {
	var invoked *uuid.UUID
	if r.Invocation != nil {
		invoked = &r.Invocation.Skill
	}
	return []change.Value{
		runID.To(r.ID), runStatus.To(r.Status), runOutcome.To(r.Outcome), runReason.To(r.Reason), runTruncated.To(false),
		runMessage.To(r.Message), runAnswer.To(""), runInitiator.To(r.InitiatorID), runConfiguration.To(r.ConfigurationID),
		runInvocation.To(r.Invocation), runInvokedSkill.Maybe(invoked), runSubject.To(r.Subject),
		runPredecessor.Maybe(orNone(r.PredecessorID)), runTask.Maybe(orNone(r.TaskID)), runConversation.Maybe(orNone(r.ConversationID)), runForced.To(r.Forced),
		runAllowList.To(r.SkillAllowList), runCallerTools.To(r.CallerTools), runPins.To(r.Pins), runNotices.To(orEmpty(r.Notices)),
		runProgress.To(nil), runHighlight.To(nil), runMaxIterations.To(r.MaxIterations),
		runSuspension.To(0), runTurnDigest.To(""), request, runState.Null(),
		runLeaseOwner.To(""), runLeaseUntil.Null(), runAttempts.To(0), runNotBefore.Null(), runFence.To(nil), runUsage.To(Consumption{}), runPrivacy.To(r.Privacy), runWrites.To(0),
		runCreatedAt.To(r.CreatedAt), runStartedAt.Null(), runFinishedAt.Maybe(r.FinishedAt),
	}
}

// unchanged guards that the run before still has the pins that were taken over: it may
// have been purged meanwhile, or its process ended.
func (t inheritance) unchanged() change.Update {
	guard := change.Update{Table: runsTable, ID: t.from.ID}
	if len(t.from.Pins) > 0 {
		guard.If = []change.Value{runPins.Is(t.from.Pins)}
	}
	return guard
}

// orNone is nil for the zero id, which says that there is none.
func orNone(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}
