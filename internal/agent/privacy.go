package agent

import (
	"context"
	"encoding/json"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/notify"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
)

// kept is as much of a run's events as is stored: by the level that the run began with,
// or the one that is set now if that is stricter (RULES Y1).
func (a *Agent) kept(ctx context.Context, began run.Privacy, events []run.Event) ([]run.Event, error) {
	values, err := a.Settings.Values(ctx)
	if err != nil {
		return nil, err
	}
	return a.keptAt(run.Stricter(began, values.Privacy), events), nil
}

func (a *Agent) keptAt(level run.Privacy, events []run.Event) []run.Event {
	r := a.Secrets.Redactor()
	kept := level.Keep(events, r.Any)
	for i := range kept {
		kept[i].Content = withoutSecrets(r, kept[i].Content)
	}
	return kept
}

// apply makes one change of a run with what is kept of its events.
func (a *Agent) apply(ctx context.Context, began run.Privacy, c change.Change) (out change.Outcome, err error) {
	if c.Events, err = a.kept(ctx, began, c.Events); err != nil {
		return out, err
	}
	return change.One(ctx, a.Store, notify.Announce(c, a.World.NewID))
}

// withWords is an event with what was said in it, if anything was.
func withWords(e run.Event, c run.Content) run.Event {
	if len(c.Messages) > 0 || c.Text != "" || c.Arguments != nil || c.Result != "" || c.Proposed != nil || c.Values != nil {
		e.Content = &c
	}
	return e
}

// called is what was said in the step of a call.
func called(c prompt.Call, result string) run.Content {
	return run.Content{Arguments: object(c.Arguments), Result: result}
}

// proposed is what was said in a pause.
func proposed(pending []Pending) run.Content {
	var out run.Content
	for _, p := range pending {
		out.Proposed = append(out.Proposed, run.Proposed{Tool: p.Call.Tool, Arguments: object(p.Call.Arguments), Preview: p.Lines})
	}
	return out
}

// object is a model's arguments as JSON: what is none is a text.
func object(arguments json.RawMessage) json.RawMessage {
	if len(arguments) == 0 || json.Valid(arguments) {
		return arguments
	}
	text, err := json.Marshal(string(arguments))
	if err != nil {
		return nil // strings always marshal
	}
	return text
}

// mayRead: what was said in a run is its initiator's; an administrator sees all of it.
// Whoever only watches or decides it sees the steps: they need not be able to read the
// records that the words are about (RULES G7).
func mayRead(by actor.Actor, r Run) bool { return by.ID == r.InitiatorID || by.Administrator }

// shown is events as an actor sees them.
func shown(by actor.Actor, r Run, events []run.Event) []run.Event {
	if mayRead(by, r) {
		return events
	}
	for i := range events {
		events[i].Content, events[i].Unreadable = nil, false
	}
	return events
}
