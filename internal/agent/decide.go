package agent

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/run"
)

// Decision is a person's answer to a proposal.
type Decision struct {
	Run        uuid.UUID
	TurnDigest string // of the card that was answered (RULES R19)
	Approve    bool
	Reason     Answer // Variant or Skip with a denial of writes, else empty (RULES R14)
	// Conversation is the conversation that the answer was given in; zero elsewhere.
	Conversation uuid.UUID
}

// Decided is the detail of an ALREADY_DECIDED refusal: who was first, with what.
type Decided struct {
	By       uuid.UUID
	Approved bool
	Reason   string
	At       time.Time
}

// verdict carries one decision through its checks.
type verdict struct {
	Decision
	by            actor.Actor
	run           Run
	state         State
	configuration library.Configuration
}

// Decide takes a decision on a waiting run and lets it go on (RULES R11). Every
// refusal leaves the run as it was, and the claim, the decision's event and its audit
// entry are one transaction: there is no claimed run without a decision, and none of
// two deciders can be told that both won.
func (a *Agent) Decide(ctx context.Context, by actor.Actor, d Decision) (Run, error) {
	if d.Reason != "" && d.Approve {
		return Run{}, fault.New(fault.BadInput, "a reason goes with a denial, not with an approval")
	}
	if d.Reason != "" && d.Reason != Variant && d.Reason != Skip {
		return Run{}, fault.New(fault.BadInput, "reason must be VARIANT or SKIP")
	}
	r, err := a.View(ctx, by, d.Run)
	if err != nil {
		return Run{}, err
	}
	v := &verdict{Decision: d, by: by, run: r}
	if done, err := a.repeated(ctx, v); done || err != nil {
		return r, a.auditDecisionRefusal(ctx, v, err)
	}
	if err := a.inTime(v.run); err != nil {
		return Run{}, a.auditDecisionRefusal(ctx, v, err)
	}
	for _, check := range decisionChecks {
		err := check(ctx, a, v)
		if overtaken, reread := a.overtaken(ctx, v, err); overtaken || reread != nil {
			return a.afterwards(ctx, v, reread)
		}
		if err != nil {
			return Run{}, a.auditDecisionRefusal(ctx, v, err)
		}
	}
	if err := a.claimDecision(ctx, v); err != nil {
		return Run{}, a.auditDecisionRefusal(ctx, v, err)
	}
	return a.Store.Run(ctx, d.Run)
}

// overtaken reports whether a check found nothing because somebody else decided while
// this decision was being checked, and their run has ended by now.
func (a *Agent) overtaken(ctx context.Context, v *verdict, found error) (bool, error) {
	if !fault.Is(found, fault.NotFound) {
		return false, nil
	}
	now, err := a.Store.Run(ctx, v.run.ID)
	if err != nil {
		return false, err
	}
	return now.Status != v.run.Status || now.Suspension != v.run.Suspension, nil
}

// afterwards answers a decision that came after another one.
func (a *Agent) afterwards(ctx context.Context, v *verdict, failed error) (Run, error) {
	if failed == nil {
		failed = a.lostClaim(ctx, v)
	}
	if failed != nil {
		return Run{}, a.auditDecisionRefusal(ctx, v, failed)
	}
	return a.Store.Run(ctx, v.run.ID)
}

// repeated answers for a run that does not wait for this decision: the same decider
// repeating the same decision gets the first result, anybody else learns who decided.
func (a *Agent) repeated(ctx context.Context, v *verdict) (same bool, err error) {
	if v.run.Status == run.WaitingForApproval && v.TurnDigest == v.run.TurnDigest {
		return false, nil
	}
	last, found, err := a.Store.LastDecision(ctx, v.run.ID)
	if err != nil {
		return false, err
	}
	if found && last.Data.TurnDigest == v.TurnDigest {
		return v.was(last), v.unless(last, "this proposal was decided already")
	}
	if v.run.Status == run.WaitingForApproval {
		return false, fault.Refuse(fault.StaleTurn, "the run waits with another proposal now; look at its card again")
	}
	return false, fault.Refuse(fault.NotWaiting, "the run does not wait for an approval; it is %s", v.run.Status)
}

// was reports whether a decision that was taken is this one, taken by the same person.
func (v *verdict) was(e run.Event) bool {
	first := decidedBy(e)
	return first.By == v.by.ID && first.Approved == v.Approve && first.Reason == string(v.Reason)
}

// unless refuses this decision for one that was taken, unless it was this one.
func (v *verdict) unless(e run.Event, message string) error {
	if v.was(e) {
		return nil
	}
	return fault.Refuse(fault.AlreadyDecided, "%s", message).With(decidedBy(e))
}

func decidedBy(e run.Event) Decided {
	by, _ := uuid.Parse(e.Data.DecidedBy) // written by us; the zero id if not
	return Decided{
		By:       by,
		Approved: e.Data.Approved != nil && *e.Data.Approved,
		Reason:   e.Data.DenialReason,
		At:       e.At,
	}
}

// claimDecision is the one moment in which a decision becomes true.
func (a *Agent) claimDecision(ctx context.Context, v *verdict) error {
	owner, approve := a.newOwner(), v.Approve
	event := run.Event{Kind: run.EventDecision, At: a.World.Now(), Data: run.EventData{
		TurnDigest: v.TurnDigest, Approved: &approve, DecidedBy: v.by.ID.String(), DenialReason: string(v.Reason),
	}}
	entry := audit.Record(a.World, v.by, audit.RunDecided).InRun(v.run.ID).
		With("approved", v.Approve).With("reason", v.Reason).With("turnDigest", v.TurnDigest)
	guards := []change.Value{runSuspension.Is(v.state.Suspension), runTurnDigest.Is(v.TurnDigest)}
	v.state.Given = &Given{Approve: v.Approve, Reason: v.Reason, By: v.by.ID}
	won, err := a.claimAnswer(ctx, run.Decide, v, owner, guards, nil,
		change.Change{Events: []run.Event{event}, Audit: []audit.Entry{entry}})
	if err != nil {
		return err
	}
	if !won {
		return a.lostClaim(ctx, v)
	}
	a.launch(v.run.ID, owner, func(s *segment, ctx context.Context) error { return s.resume(ctx, v.state) })
	return nil
}

// claimAnswer claims a waiting run for the segment that goes on with an answer. The
// answer is stored with what it answers: a segment that dies with its worker begins
// again from there (RULES R8).
func (a *Agent) claimAnswer(ctx context.Context, t run.Transition, v *verdict, owner string, guards, set []change.Value, rest change.Change) (bool, error) {
	state, err := encode(v.state)
	if err != nil {
		return false, err
	}
	if rest.Events, err = a.kept(ctx, v.run.Privacy, rest.Events); err != nil {
		return false, err
	}
	return a.claim(ctx, v.run.ID, t, owner, guards, append(set, runState.To(state), runAttempts.To(0)), rest)
}

// lostClaim says who was faster. Whoever sent the same decision twice at once was
// faster than themselves and gets the first result.
func (a *Agent) lostClaim(ctx context.Context, v *verdict) error {
	last, found, err := a.Store.LastDecision(ctx, v.run.ID)
	if err != nil {
		return err
	}
	if found && last.Data.TurnDigest == v.TurnDigest {
		return v.unless(last, "this proposal was decided while you looked at it")
	}
	return fault.Refuse(fault.ClaimLost, "the run changed while your decision arrived; look at it again")
}

func (a *Agent) auditDecisionRefusal(ctx context.Context, v *verdict, refused error) error {
	refusal, ok := fault.AsRefusal(refused)
	if !ok {
		return refused
	}
	entry := audit.Record(a.World, v.by, audit.RunDecisionRefused).InRun(v.run.ID).
		With("code", refusal.Code).With("waitsFor", v.run.Status)
	if v.run.Status != run.WaitingForInput {
		entry = entry.With("approve", v.Approve)
	}
	if _, err := change.One(ctx, a.Store, change.Change{Audit: []audit.Entry{entry}, Refused: refusal}); err != nil {
		return err
	}
	return refused
}
