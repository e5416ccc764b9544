package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// Input is a person's answer to a question of the run.
type Input struct {
	Run        uuid.UUID
	TurnDigest string
	Values     json.RawMessage // an object that fits the pending schema
	// Conversation is the conversation that the answer was given in; zero elsewhere.
	Conversation uuid.UUID
}

// inputChecks are the decision checks that an answer passes too.
var inputChecks = []func(context.Context, *Agent, *verdict) error{
	processInitiator,
	inItsConversation,
	processState,
	processFourEyes,
	mayAnswer,
	configurationUsable,
	stateReadable,
}

// SubmitInput answers the question a run waits with and lets it go on. Values that do
// not fit the schema are refused before the claim and consume nothing (RULES R13).
func (a *Agent) SubmitInput(ctx context.Context, by actor.Actor, in Input) (Run, error) {
	r, err := a.View(ctx, by, in.Run)
	if err != nil {
		return Run{}, err
	}
	v := &verdict{Decision: Decision{Run: in.Run, TurnDigest: in.TurnDigest, Approve: true, Conversation: in.Conversation}, by: by, run: r}
	if same, err := a.submitted(ctx, by, in); err != nil {
		return Run{}, err
	} else if same {
		return a.Store.Run(ctx, in.Run)
	}
	if r.Status != run.WaitingForInput {
		return Run{}, a.auditDecisionRefusal(ctx, v, fault.Refuse(fault.NotWaiting, "the run does not wait for input; it is %s", r.Status))
	}
	if err := a.inTime(r); err != nil {
		return Run{}, a.auditDecisionRefusal(ctx, v, err)
	}
	for _, check := range inputChecks {
		err := check(ctx, a, v)
		if overtaken, reread := a.overtaken(ctx, v, err); overtaken || reread != nil {
			if same, unread := a.submitted(ctx, by, in); same && unread == nil {
				return a.Store.Run(ctx, in.Run)
			}
			return a.afterwards(ctx, v, reread)
		}
		if err != nil {
			return Run{}, a.auditDecisionRefusal(ctx, v, err)
		}
	}
	if in.TurnDigest != run.TurnDigest(v.state.Suspension, v.state.Calls()) {
		return Run{}, a.auditDecisionRefusal(ctx, v, fault.Refuse(fault.StaleTurn, "the run waits with another question now; look at it again"))
	}
	if err := fits(v.state.Schema, in.Values); err != nil {
		return Run{}, err
	}
	if err := a.claimInput(ctx, v, in.Values); err != nil {
		same, unread := a.submitted(ctx, by, in)
		if unread != nil {
			return Run{}, unread
		}
		if !same {
			return Run{}, a.auditDecisionRefusal(ctx, v, err)
		}
	}
	return a.Store.Run(ctx, in.Run)
}

// submitted reports whether this very answer was taken before: who sends it twice gets
// the first result, as with a decision. Only the newest answer of a run is known.
func (a *Agent) submitted(ctx context.Context, by actor.Actor, in Input) (bool, error) {
	last, err := a.Store.LastInput(ctx, in.Run)
	if _, unreadable := fault.AsRefusal(err); unreadable || fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil && last == submission(by, in), err
}

func submission(by actor.Actor, in Input) Submitted {
	sum := sha256.Sum256(run.CanonicalJSON(in.Values))
	return Submitted{TurnDigest: in.TurnDigest, By: by.ID, Values: hex.EncodeToString(sum[:])}
}

// mayAnswer: a question is its initiator's; somebody else answers it with the grant
// that decides other people's runs.
func mayAnswer(_ context.Context, _ *Agent, v *verdict) error {
	if !v.own() && !v.by.May(actor.RunApprove) {
		return fault.New(fault.Forbidden, "answering other people's runs needs the permission %s", actor.RunApprove)
	}
	return nil
}

func (a *Agent) claimInput(ctx context.Context, v *verdict, values json.RawMessage) error {
	owner := a.newOwner()
	event := run.Event{Kind: run.EventInput, At: a.World.Now(), Data: run.EventData{
		TurnDigest: v.TurnDigest, DecidedBy: v.by.ID.String(), Bytes: len(values),
	}}
	event = withWords(event, run.Content{Values: values})
	entry := audit.Record(a.World, v.by, audit.RunDecided).InRun(v.run.ID).With("input", true).With("turnDigest", v.TurnDigest)
	sent, err := encode(submission(v.by, Input{TurnDigest: v.TurnDigest, Values: values}))
	if err != nil {
		return err
	}
	guards := []change.Value{runSuspension.Is(v.state.Suspension), runTurnDigest.Is(v.TurnDigest)}
	v.state.Given = &Given{Approve: true, By: v.by.ID, Values: run.CanonicalJSON(values)}
	won, err := a.claimAnswer(ctx, run.Answer, v, owner, guards, []change.Value{runLastInput.To(sent)},
		change.Change{Events: []run.Event{event}, Audit: []audit.Entry{entry}})
	if err != nil {
		return err
	}
	if !won {
		return fault.Refuse(fault.ClaimLost, "the run changed while your answer arrived; look at it again")
	}
	a.launch(v.run.ID, owner, func(s *segment, ctx context.Context) error { return s.resume(ctx, v.state) })
	return nil
}

// fits validates values against the schema of a question. Only keys that the schema
// declares are taken (RULES R13).
func fits(question, values json.RawMessage) error {
	schema, err := tool.CompileSchema(question)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "reading the question's schema")
	}
	if wrong := schema.Check(values); wrong != "" {
		return fault.Refuse(fault.InputInvalid, "the values do not fit the question: %s", wrong)
	}
	var declared struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var given map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(question, &declared), json.Unmarshal(values, &given)); err != nil {
		return fault.Wrap(fault.Internal, err, "reading the question's schema")
	}
	for key := range given {
		if _, asked := declared.Properties[key]; !asked {
			return fault.Refuse(fault.InputInvalid, "the question does not ask for %q", key)
		}
	}
	return nil
}
