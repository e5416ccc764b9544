package agent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/guard"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// Edit changes the proposed texts of writes that wait.
type Edit struct {
	Run        uuid.UUID
	TurnDigest string // of the card that is changed (RULES R19)
	Texts      []EditedText
	// Conversation is the conversation that the card was changed in; zero elsewhere.
	Conversation uuid.UUID
}

// EditedText is another text for one place of a pending call.
type EditedText struct {
	Call int // the call's position on the card, from 0
	tool.Text
}

// editChecks are asked of whoever changes a proposal, in this order: what a person must
// be to approve it, but for four eyes, which is about who approves (RULES C8).
var editChecks = []func(context.Context, *Agent, *verdict) error{
	processInitiator,
	inItsConversation,
	mayAct,
	configurationUsable,
	editingAllowed,
	stateReadable,
	answerOffered,
	targetsReadable,
	deciderPolicy,
}

// editingAllowed: a configuration says whether its proposals may be changed.
func editingAllowed(_ context.Context, _ *Agent, v *verdict) error {
	if !v.configuration.AllowProposalEdits {
		return fault.Refuse(fault.NotEditable, "the configuration %q does not allow proposals to be changed; ask for another one instead", v.configuration.Name)
	}
	return nil
}

// EditProposal changes proposed texts and nothing else of the calls that wait. The run
// goes on waiting, with another card: the changed calls are previewed like the model's
// own, under the initiator's rights, and a decision binds to what this card shows (RULES
// R12, C8). What the model proposed is kept beside it. A change that cannot be previewed is
// refused and consumes nothing.
//
// Refusals: NOT_EDITABLE, NOT_WAITING, STALE_TURN, CLAIM_LOST, and what an approval by the
// same person would be refused for.
func (a *Agent) EditProposal(ctx context.Context, by actor.Actor, e Edit) (Run, error) {
	r, err := a.View(ctx, by, e.Run)
	if err != nil {
		return Run{}, err
	}
	v := &verdict{Decision: Decision{Run: e.Run, TurnDigest: e.TurnDigest, Approve: true, Conversation: e.Conversation}, by: by, run: r}
	pending, places, err := a.edited(ctx, v, e.Texts)
	if err == nil {
		err = a.storeEdit(ctx, v, pending, places)
	}
	if err != nil {
		return Run{}, a.auditEditRefusal(ctx, v, err)
	}
	return a.Store.Run(ctx, e.Run)
}

// edited is the pending calls with other texts, each that changed with a card of its own,
// and the places that changed, as tool and pointer: never what they say.
func (a *Agent) edited(ctx context.Context, v *verdict, texts []EditedText) (pending []Pending, places []string, err error) {
	if v.run.Status != run.WaitingForApproval {
		return nil, nil, fault.Refuse(fault.NotWaiting, "the run does not wait for an approval; it is %s", v.run.Status)
	}
	if err := a.inTime(v.run); err != nil {
		return nil, nil, err
	}
	for _, check := range editChecks {
		if err := check(ctx, a, v); err != nil {
			return nil, nil, err
		}
	}
	look, err := a.looking(ctx, v.run)
	if err != nil {
		return nil, nil, err
	}
	pending = slices.Clone(v.state.Pending)
	byCall := make([][]tool.Text, len(pending))
	for _, t := range texts {
		if t.Call < 0 || t.Call >= len(pending) {
			return nil, nil, fault.New(fault.BadInput, "the card has no call %d; it has %d, counted from 0", t.Call, len(pending))
		}
		byCall[t.Call] = append(byCall[t.Call], t.Text)
	}
	for i, texts := range byCall {
		if len(texts) == 0 {
			continue
		}
		was := pending[i].Call
		if pending[i], err = look.reword(ctx, pending[i], texts, v.by.ID); err != nil {
			return nil, nil, err
		}
		for _, t := range look.spec(was).Changed(was.Arguments, pending[i].Call.Arguments) {
			places = append(places, was.Tool+" "+t.Pointer)
		}
	}
	if len(places) == 0 {
		return nil, nil, fault.New(fault.BadInput, "nothing would change: name texts of the card by their pointers, and what they should say")
	}
	return pending, places, nil
}

// looking is a segment that only looks: it holds no lease, so it can store nothing.
func (a *Agent) looking(ctx context.Context, r Run) (*segment, error) {
	initiator, err := a.People.Actor(ctx, r.InitiatorID)
	if err != nil {
		return nil, err
	}
	tools, err := a.Tools.Now(ctx)
	if err != nil {
		return nil, err
	}
	return &segment{agent: a, id: r.ID, run: r, initiator: initiator, tools: tools, shown: map[string]tool.Basis{}}, nil
}

// reword is a pending call with other texts.
func (s *segment) reword(ctx context.Context, p Pending, texts []tool.Text, by uuid.UUID) (Pending, error) {
	spec := s.spec(p.Call)
	for _, t := range texts {
		if guard.Marked(t.Text) {
			return p, fault.New(fault.BadInput, "a text holds a [redacted:…] marker, which would take the place of a secret; write what surrounds it")
		}
	}
	arguments, err := spec.Reworded(p.Call.Arguments, texts)
	if err != nil {
		return p, fault.Refuse(fault.NotEditable, "%s; its card lists the texts that can be changed", err)
	}
	if len(spec.Changed(p.Call.Arguments, arguments)) == 0 {
		return p, nil
	}
	call := p.Call
	call.Arguments = arguments
	if refused, ok := s.tools.Check(call.Tool, arguments); !ok {
		return p, fault.New(fault.BadInput, "%s", refused.Text)
	}
	if _, err := s.preview(ctx, call); err != nil {
		return p, unpreviewed(err)
	}
	out := s.card(ctx, call)
	out.Edited = &EditedCall{Proposed: p.Call.Arguments, By: []uuid.UUID{by}}
	if was := p.Edited; was != nil {
		out.Edited.Proposed = was.Proposed
		out.Edited.By = append(slices.Clone(was.By), by)
	}
	return out, nil
}

// unpreviewed is why a changed call is refused whose preview cannot be made: what the
// content room says of it is for people; anything else stays in the log.
func unpreviewed(err error) error {
	message := ""
	var failed *fault.Error
	if refusal, refused := fault.AsRefusal(err); refused {
		message = refusal.Message
	} else if errors.As(err, &failed) && slices.Contains([]fault.Kind{fault.BadInput, fault.NotFound, fault.Forbidden}, failed.Kind) {
		message = failed.Message
	} else {
		return err
	}
	return fault.Refuse(fault.NotEditable, "the changed proposal cannot be previewed, so it was not taken: %s", message)
}

// storeEdit puts the changed calls in the place of those that wait, unless the run waits
// with something else by now.
func (a *Agent) storeEdit(ctx context.Context, v *verdict, pending []Pending, places []string) error {
	before, now := v.state, a.World.Now()
	state := before
	state.Pending, state.Suspension = pending, before.Suspension+1
	stored, err := encode(state)
	if err != nil {
		return err
	}
	digest := run.TurnDigest(state.Suspension, state.Calls())
	edit := run.Event{Kind: run.EventEdited, At: now, Data: run.EventData{
		TurnDigest: v.TurnDigest, DecidedBy: v.by.ID.String(), Args: places,
	}}
	pause := run.Event{Kind: run.EventSuspended, At: now, Data: run.EventData{
		TurnDigest: digest, Calls: len(pending), Status: string(run.WaitingForApproval),
	}}
	entry := audit.Record(a.World, v.by, audit.ProposalEdited).InRun(v.run.ID).
		With("turnDigest", v.TurnDigest).With("newTurnDigest", digest).With("texts", places)
	out, err := a.apply(ctx, v.run.Privacy, change.Change{
		Updates: []change.Update{{
			Table: runsTable, ID: v.run.ID,
			If:  []change.Value{runStatus.In(run.Edit.From...), runSuspension.Is(before.Suspension), runTurnDigest.Is(v.TurnDigest)},
			Set: []change.Value{runSuspension.To(state.Suspension), runTurnDigest.To(digest), runState.To(stored)},
		}},
		Run:    v.run.ID,
		Events: []run.Event{edit, withWords(pause, proposed(pending))},
		Audit:  []audit.Entry{entry},
	})
	if err == nil && !out.Applied {
		return fault.Refuse(fault.ClaimLost, "the run changed while your text arrived; look at its card again")
	}
	return err
}

func (a *Agent) auditEditRefusal(ctx context.Context, v *verdict, refused error) error {
	refusal, ok := fault.AsRefusal(refused)
	if !ok {
		return refused
	}
	entry := audit.Record(a.World, v.by, audit.RunDecisionRefused).InRun(v.run.ID).
		With("code", refusal.Code).With("waitsFor", v.run.Status).With("edit", true)
	if _, err := change.One(ctx, a.Store, change.Change{Audit: []audit.Entry{entry}, Refused: refusal}); err != nil {
		return err
	}
	return refused
}

// ownWords: where a second person has to approve, nobody approves words of their own
// (RULES C8).
func ownWords(_ context.Context, _ *Agent, v *verdict) error {
	if !v.Approve || !v.configuration.RequireSecondApprover {
		return nil
	}
	if slices.ContainsFunc(v.state.Pending, func(p Pending) bool { return p.Edited != nil && slices.Contains(p.Edited.By, v.by.ID) }) {
		return fault.Refuse(fault.SecondApproverRequired,
			"the configuration %q has requireSecondApprover set, and you changed this proposal: somebody else has to approve it", v.configuration.Name)
	}
	return nil
}

// editable is the texts of the pending calls that this viewer may change, by call.
func (a *Agent) editable(ctx context.Context, v *verdict) ([][]tool.Text, error) {
	out := make([][]tool.Text, len(v.state.Pending))
	if !v.mayEdit() {
		return out, nil
	}
	configuration, err := a.Skills.Configuration(ctx, v.run.ConfigurationID)
	if fault.Is(err, fault.NotFound) || err == nil && !configuration.AllowProposalEdits {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	tools, err := a.Tools.Now(ctx)
	if err != nil {
		return nil, err
	}
	for i, p := range v.state.Pending {
		spec, _ := tools.Spec(p.Call.Tool) // one that is gone has no places
		out[i] = spec.Texts(p.Call.Arguments)
	}
	return out, nil
}

// mayEdit: whoever may approve, whether or not four eyes want somebody else to do it.
func (v *verdict) mayEdit() bool {
	if v.own() {
		return v.by.May(actor.RunApproveOwn)
	}
	return !v.process() && v.by.May(actor.RunApprove)
}

func editedCalls(pending []Pending) map[string]*EditedCall {
	out := map[string]*EditedCall{}
	for _, p := range pending {
		if p.Edited != nil {
			out[p.Call.ID] = p.Edited
		}
	}
	return out
}

// changed is how a pending call came to be other than its model made it; nil for any other
// call.
func (s *segment) changed(c prompt.Call) *EditedCall {
	if s.round != 0 {
		return nil
	}
	return s.edited[c.ID]
}

// changedNote is what a model reads behind the result of a call that a person changed. The
// server says what was applied, so that no model goes on with words that are not there.
func (s *segment) changedNote(c prompt.Call) string {
	edited := s.changed(c)
	if edited == nil {
		return ""
	}
	now := map[string]string{}
	for _, t := range s.spec(c).Changed(edited.Proposed, c.Arguments) {
		now[t.Pointer] = t.Text
	}
	note, err := json.Marshal(map[string]any{"changed_by": s.decider(edited.By[len(edited.By)-1]), "texts_now": now})
	if err != nil {
		return "" // strings always marshal
	}
	return "\n" + string(note)
}
