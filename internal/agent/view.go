package agent

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// maySee: a run is its initiator's, and that of whoever watches or decides runs.
func maySee(by actor.Actor, r Run) bool {
	return by.ID == r.InitiatorID || by.May(actor.RunRead) || by.May(actor.RunApprove)
}

// View returns a run the actor may see; any other does not exist for them.
func (a *Agent) View(ctx context.Context, by actor.Actor, id uuid.UUID) (Run, error) {
	if by.IsNobody() {
		return Run{}, fault.New(fault.Unauthenticated, "sign in to see runs")
	}
	r, err := a.Store.Run(ctx, id)
	if err == nil && !maySee(by, r) {
		return Run{}, fault.New(fault.NotFound, "there is no such run")
	}
	return r, err
}

// Runs pages through the runs the actor may see, newest first.
func (a *Agent) Runs(ctx context.Context, by actor.Actor, f Filter, page Page) ([]Run, error) {
	switch {
	case by.IsNobody():
		return nil, fault.New(fault.Unauthenticated, "sign in to see runs")
	case by.May(actor.RunRead), by.May(actor.RunApprove):
	case f.InitiatorID != nil && *f.InitiatorID != by.ID:
		return nil, nil
	default:
		f.InitiatorID = &by.ID
	}
	return a.Store.Runs(ctx, f, page)
}

// Inbox pages through the runs that wait for a person, as far as the actor may see
// them.
func (a *Agent) Inbox(ctx context.Context, by actor.Actor, page Page) ([]Run, error) {
	return a.Runs(ctx, by, Filter{Statuses: []run.Status{run.WaitingForApproval, run.WaitingForInput}}, page)
}

// Card is what a waiting run shows to one viewer.
type Card struct {
	// ExpiresAt is until when it may be answered; nil when there is no such time.
	ExpiresAt  *time.Time
	TurnDigest string
	IsProcess  bool
	Write      bool     // every call is a builtin's declared write (RULES C1)
	Answers    []Answer // what this viewer may answer; empty when they may only look
	Calls      []CardCall
	Input      *CardInput // of a question; then Calls is empty
}

// CardCall is one pending call. Lines is empty for a viewer who may not read the
// record it is about (RULES G7).
type CardCall struct {
	Index     int
	Tool      string
	Arguments json.RawMessage
	Lines     []string
	Failed    bool
	Stale     bool
	Target    *tool.Target
	Texts     []tool.Text     // what this viewer may change before it is decided (RULES C8)
	Edited    bool            // a person changed it since the model proposed it
	Proposed  json.RawMessage // the arguments as the model proposed them; nil when Edited is false
}

// CardInput is a question and the JSON Schema of its answer.
type CardInput struct {
	Tool   string
	Schema json.RawMessage
}

// Card returns the card of a waiting run, nil when it does not wait. One that is answered
// in its conversation offers no answers here (RULES X5).
func (a *Agent) Card(ctx context.Context, by actor.Actor, r Run) (*Card, error) {
	card, err := a.ConversationCard(ctx, by, r)
	if card != nil && card.IsProcess && r.ConversationID != uuid.Nil {
		card.Answers = nil
	}
	return card, err
}

// ConversationCard is Card as the conversation shows it whose turn the run is.
func (a *Agent) ConversationCard(ctx context.Context, by actor.Actor, r Run) (*Card, error) {
	if !r.Status.Waiting() {
		return nil, nil
	}
	state, err := a.Store.State(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	_, process := r.Pins.Process()
	v := &verdict{by: by, run: r, state: state}
	card := &Card{TurnDigest: r.TurnDigest, IsProcess: process, ExpiresAt: r.ExpiresAt}
	if r.Status == run.WaitingForInput {
		card.Input = &CardInput{Tool: state.Pending[0].Call.Tool, Schema: state.Schema}
		return card, nil
	}
	card.Answers, card.Write = v.answers(a.mayReadTargets(ctx, v)), v.writes()
	texts, err := a.editable(ctx, v)
	if err != nil {
		return nil, err
	}
	for i, p := range state.Pending {
		call := CardCall{Index: i, Tool: p.Call.Tool, Failed: p.Failed, Stale: p.Moved, Target: p.Target, Edited: p.Edited != nil}
		if a.mayReadTarget(ctx, by, r, p) {
			call.Arguments, call.Lines, call.Texts = p.Call.Arguments, p.Lines, texts[i]
			if call.Edited {
				call.Proposed = p.Edited.Proposed
			}
		}
		card.Calls = append(card.Calls, call)
	}
	return card, nil
}

// answers are the ways this viewer may answer the card: a process run's are its
// initiator's alone (RULES C4, X5).
func (v *verdict) answers(readable bool) []Answer {
	switch {
	case v.process() && !v.own(), !v.own() && !v.by.May(actor.RunApprove):
		return nil
	case v.process() && v.writes():
		return v.permitted(readable, Apply, Variant, Skip)
	default:
		return v.permitted(readable, Approve, Deny)
	}
}

// permitted drops the approving answer for an initiator who may only deny (RULES I5),
// and for whoever may not read what would change.
func (v *verdict) permitted(readable bool, approving Answer, others ...Answer) []Answer {
	if !readable || (v.own() && !v.by.May(actor.RunApproveOwn)) {
		return others
	}
	return append([]Answer{approving}, others...)
}

func (a *Agent) mayReadTargets(ctx context.Context, v *verdict) bool {
	return !slices.ContainsFunc(v.state.Pending, func(p Pending) bool { return !a.mayReadTarget(ctx, v.by, v.run, p) })
}

// mayReadTarget: the initiator made the proposal and sees it; anybody else must be
// able to read the record.
func (a *Agent) mayReadTarget(ctx context.Context, by actor.Actor, r Run, p Pending) bool {
	if by.ID == r.InitiatorID || by.Administrator {
		return true
	}
	if p.Target == nil {
		return by.May(actor.ContentRead)
	}
	_, err := a.Content.Read(ctx, by, p.Target.Table, p.Target.ID)
	return err == nil
}

// Events lists stored events of a run the actor may see.
func (a *Agent) Events(ctx context.Context, by actor.Actor, id uuid.UUID, after, limit int) ([]run.Event, error) {
	r, err := a.View(ctx, by, id)
	if err != nil {
		return nil, err
	}
	events, err := a.Store.Events(ctx, id, after, limit)
	return shown(by, r, events), err
}

// followBatch is how many events one read of a follower takes.
const followBatch = 200

// Follow streams a run's events after a sequence: what is stored, then what comes, each
// once and in order, until the run is terminal (RULES R5). It reads the table from its
// cursor whenever it is rung, so a slow reader costs nothing and a lost ring only time.
func (a *Agent) Follow(ctx context.Context, by actor.Actor, id uuid.UUID, after int) iter.Seq2[run.Event, error] {
	return func(yield func(run.Event, error) bool) {
		rings, stop := a.Bell.Listen(change.RunTopic(id))
		defer stop()
		heal := time.NewTicker(healEvery)
		defer heal.Stop()
		for {
			r, err := a.View(ctx, by, id) // before the events: a terminal run gets no more
			if err != nil {
				yield(run.Event{}, err)
				return
			}
			events, err := a.Store.Events(ctx, id, after, followBatch)
			if err != nil {
				yield(run.Event{}, err)
				return
			}
			for _, e := range shown(by, r, events) {
				if !yield(e, nil) {
					return
				}
				after = e.Sequence
			}
			switch {
			case len(events) == followBatch:
				continue
			case r.Status.Terminal():
				return
			}
			select {
			case <-rings:
			case <-heal.C:
			case <-ctx.Done():
				return
			}
		}
	}
}
