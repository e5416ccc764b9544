package agent

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/guard"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
)

// secretsFresh is how long the installation's secrets are taken to be as they were read.
const secretsFresh = 10 * time.Second

// learnSecrets tells the redactor which secrets there are, unless it was told just now.
func (a *Agent) learnSecrets(ctx context.Context) error {
	now := a.World.Now().UnixNano()
	last := a.told.Load()
	if last != 0 && now-last < secretsFresh.Nanoseconds() {
		return nil
	}
	secrets, err := a.Store.Secrets(ctx)
	if err != nil {
		return err
	}
	a.Secrets.Tell(secrets)
	a.told.Store(now)
	return nil
}

// clean is messages without secrets. What enters a transcript is cleaned when it does, so
// that no model, no suspended run and no event has more (RULES M2).
func (a *Agent) clean(messages []prompt.Message) []prompt.Message {
	r := a.Secrets.Redactor()
	out := slices.Clone(messages)
	for i, m := range out {
		out[i].Text, out[i].Calls = r.Any(m.Text), cleanCalls(r, m.Calls)
	}
	return out
}

// cleanCalls is calls without secrets in their arguments: what is shown for approval is
// then what is written. Arguments that are no JSON become a text, which no tool takes and
// which can be stored.
func cleanCalls(r *guard.Redactor, calls []prompt.Call) []prompt.Call {
	out := slices.Clone(calls)
	for i, c := range out {
		out[i].Arguments = r.JSON(object(c.Arguments))
	}
	return out
}

// heard is the model's turn without secrets, which is all that anybody gets of it. Its
// text is held back while it is written as long as it may be the beginning of a secret.
// came is what there was of an answer that broke off, in estimated tokens.
func (s *segment) heard(ctx context.Context, model Model, request TurnRequest) (turn Turn, came int, err error) {
	r := s.agent.Secrets.Redactor()
	text := r.Stream()
	s.written.begin(s.round) // what another model began to write is not the answer
	show := func(shown string) { s.written.add(shown) }
	if s.rules.On(guard.Output) {
		show = func(string) {} // it is shown once it has passed
	}
	var heard strings.Builder
	turn, err = model.Turn(ctx, request, func(delta string) {
		heard.WriteString(delta)
		show(text.Write(delta))
	})
	if err != nil {
		return Turn{}, s.gauge.Text(heard.String()), err
	}
	show(text.Close())
	s.echoes = map[string]bool{}
	for _, c := range turn.Calls {
		if guard.Marked(string(c.Arguments)) {
			s.echoes[c.ID] = true
		}
	}
	turn.Text, turn.Calls = r.Text(turn.Text), cleanCalls(r, turn.Calls)
	return turn, 0, nil
}

// withoutSecrets is what was said in a step, as any level of privacy may keep it.
func withoutSecrets(r *guard.Redactor, c *run.Content) *run.Content {
	if c == nil {
		return nil
	}
	out := *c
	out.Text, out.Result = r.Text(c.Text), r.Any(c.Result)
	out.Arguments, out.Values = r.JSON(c.Arguments), r.JSON(c.Values)
	out.Messages, out.Proposed = nil, nil
	for _, m := range c.Messages {
		m.Text = r.Any(m.Text)
		out.Messages = append(out.Messages, m)
	}
	for _, p := range c.Proposed {
		p.Arguments = r.JSON(p.Arguments)
		p.Preview = slices.Clone(p.Preview)
		for i, line := range p.Preview {
			p.Preview[i] = r.Text(line)
		}
		out.Proposed = append(out.Proposed, p)
	}
	return &out
}
