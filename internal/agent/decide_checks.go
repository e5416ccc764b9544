package agent

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/run"
)

// decisionChecks are asked in this order; the first that objects is the answer
// (RULES R11). A process run first passes its initiator, its state and four eyes
// (RULES X6).
var decisionChecks = []func(context.Context, *Agent, *verdict) error{
	processInitiator,
	inItsConversation,
	processState,
	processFourEyes,
	mayAct,
	configurationUsable,
	fourEyes,
	stateReadable,
	answerOffered,
	ownWords,
	targetsReadable,
	deciderPolicy,
}

func (v *verdict) process() bool {
	_, is := v.run.Pins.Process()
	return is
}

func (v *verdict) own() bool { return v.by.ID == v.run.InitiatorID }

func (v *verdict) writes() bool {
	return len(v.state.Pending) > 0 && !slices.ContainsFunc(v.state.Pending, func(p Pending) bool { return !p.Write })
}

// processInitiator: only the initiator decides a process run, administrators and
// holders of the approve grant included (RULES X5).
func processInitiator(_ context.Context, _ *Agent, v *verdict) error {
	if v.process() && !v.own() {
		return fault.Refuse(fault.NotInitiator, "this run follows a process: only the person who started it decides its proposals, in their chat")
	}
	return nil
}

// InConversation is the detail of a DECIDED_IN_CHAT refusal: where the run is answered.
type InConversation struct{ ID uuid.UUID }

// inItsConversation: a process run that is a turn of a conversation is answered there and
// nowhere else, by its initiator too (RULES X5).
func inItsConversation(_ context.Context, _ *Agent, v *verdict) error {
	if at := v.run.ConversationID; v.process() && at != uuid.Nil && v.Conversation != at {
		return fault.Refuse(fault.DecidedInChat, "this run is a turn of a conversation; answer its proposals and questions there").
			With(InConversation{at})
	}
	return nil
}

func processState(ctx context.Context, a *Agent, v *verdict) error {
	if !v.process() {
		return nil
	}
	return stateReadable(ctx, a, v)
}

// processFourEyes stops a process run whose configuration has asked for a second
// approver since: nobody could decide it any more (RULES X6, X7).
func processFourEyes(ctx context.Context, a *Agent, v *verdict) error {
	process, is := v.run.Pins.Process()
	if !is {
		return nil
	}
	c, err := a.Skills.Configuration(ctx, v.run.ConfigurationID)
	if fault.Is(err, fault.NotFound) || (err == nil && !c.RequireSecondApprover) {
		return nil
	}
	if err != nil {
		return err
	}
	message := secondApproverMessage(c.Name)
	if err := a.stopWaiting(ctx, v.run, run.ReasonSecondApproverRequired, message, v.run.Pins.Without(process.Skill)); err != nil {
		return err
	}
	return fault.Refuse(fault.SecondApproverRequired, "%s; the run was stopped", message)
}

// mayAct: the initiator decides their own run, an approval of a write only with
// run:approve_own; somebody else's run needs run:approve (RULES I5).
func mayAct(_ context.Context, _ *Agent, v *verdict) error {
	if v.own() {
		if v.Approve && !v.by.May(actor.RunApproveOwn) {
			return fault.New(fault.Forbidden, "approving your own proposal needs the permission %s; you may deny it", actor.RunApproveOwn)
		}
		return nil
	}
	if !v.by.May(actor.RunApprove) {
		return fault.New(fault.Forbidden, "deciding other people's runs needs the permission %s", actor.RunApprove)
	}
	return nil
}

func configurationUsable(ctx context.Context, a *Agent, v *verdict) error {
	c, err := a.Skills.Configuration(ctx, v.run.ConfigurationID)
	if fault.Is(err, fault.NotFound) {
		return fault.Refuse(fault.ConfigurationGone, "the run's configuration does not exist any more")
	}
	if err != nil {
		return err
	}
	initiator, err := a.People.Actor(ctx, v.run.InitiatorID)
	if err != nil {
		return err
	}
	if initiator.IsNobody() || !c.MayUse(initiator) {
		return fault.Refuse(fault.ConfigurationNotAllowed, "the person who started the run may not use the configuration %q any more", c.Name)
	}
	v.configuration = c
	return nil
}

func fourEyes(_ context.Context, _ *Agent, v *verdict) error {
	if v.Approve && v.configuration.RequireSecondApprover && v.own() {
		return fault.Refuse(fault.SecondApproverRequired,
			"the configuration %q has requireSecondApprover set: somebody else has to approve this", v.configuration.Name)
	}
	return nil
}

func stateReadable(ctx context.Context, a *Agent, v *verdict) error {
	if len(v.state.Pending) > 0 {
		return nil
	}
	state, err := a.Store.State(ctx, v.run.ID)
	v.state = state
	return err
}

// answerOffered: a reason is an answer of a card whose every pending call is a write
// (RULES C4).
func answerOffered(_ context.Context, _ *Agent, v *verdict) error {
	if v.TurnDigest != run.TurnDigest(v.state.Suspension, v.state.Calls()) {
		return fault.Refuse(fault.StaleTurn, "the run waits with another proposal now; look at its card again")
	}
	if v.Reason != "" && !v.writes() {
		return fault.Refuse(fault.AnswerNotOffered, "the card offers approve and deny; a reason goes with the denial of a write")
	}
	return nil
}

// targetsReadable: nobody approves what they may not look at. The card shows no preview
// to whoever may not read its record (RULES G7), so they may deny it and no more.
func targetsReadable(ctx context.Context, a *Agent, v *verdict) error {
	if v.Approve && !a.mayReadTargets(ctx, v) {
		return fault.Refuse(fault.SubjectUnreadable, "you may not read the record that the proposal would change, so you cannot approve it")
	}
	return nil
}

// deciderPolicy: whoever approves a call must be one whom the live gates would let
// make it.
func deciderPolicy(ctx context.Context, a *Agent, v *verdict) error {
	if !v.Approve {
		return nil
	}
	situation, err := a.situation(ctx, v.by, v.configuration, v.run.SkillAllowList, v.run.CallerTools)
	if err != nil {
		return err
	}
	tools, err := a.Tools.Now(ctx)
	if err != nil {
		return err
	}
	for _, p := range v.state.Pending {
		if denial, denied := tools.Decide(p.Call.Tool, situation); denied {
			return fault.Refuse(fault.ToolNotAllowed, "%s", denial.Message).With(denial)
		}
	}
	return nil
}

// stopWaiting ends a run that waits, unless somebody else did something with it first.
func (a *Agent) stopWaiting(ctx context.Context, r Run, reason run.Reason, message string, pins run.Pins) error {
	ending, now := run.Endings[reason], a.World.Now()
	stopNotice := notice(run.NoticeSecondApprover)
	settled, entry := a.ended(actor.Actor{}, r.ID, reason)
	out, err := a.apply(ctx, r.Privacy, change.Change{
		Deletes: []change.Delete{textGone(r.ID)},
		Updates: []change.Update{{
			Table: runsTable, ID: r.ID,
			If: []change.Value{runStatus.In(run.Stop.From...), runSuspension.Is(r.Suspension)},
			Set: []change.Value{
				runStatus.To(ending.Status), runOutcome.To(ending.Outcome), runReason.To(reason), runMessage.To(message),
				runPins.To(pins), runInvocation.To(r.Invocation.without(r.Pins, pins)), runNotices.To(append(orEmpty(r.Notices), stopNotice)), runTurnDigest.To(""),
				runRequest.Null(), runState.Null(), runFinishedAt.To(now),
			},
		}},
		Run:    r.ID,
		Events: append(noticeEvents(now, []run.Notice{stopNotice}), settled),
		Audit:  []audit.Entry{entry},
	})
	if err == nil && !out.Applied {
		return fault.Refuse(fault.ClaimLost, "the run changed while your decision arrived; look at it again")
	}
	return err
}
