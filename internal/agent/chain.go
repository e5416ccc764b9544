package agent

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// candidate is one model of the configuration's chain as a segment may ask it.
type candidate struct {
	library.Choice
	provider library.Provider
	model    Model // nil when its provider cannot be used
}

// chain opens the models that may answer (RULES M1). The configuration's own has to
// open; a fallback that cannot be used is passed over when its turn comes.
func (a *Agent) chain(ctx context.Context, c library.Configuration) ([]candidate, error) {
	var chain []candidate
	for i, choice := range c.Chain() {
		provider, err := a.Skills.Provider(ctx, choice.ProviderID)
		switch {
		case err != nil && i == 0:
			return nil, goneOr(err, "the configuration's provider does not exist any more")
		case fault.Is(err, fault.NotFound):
			chain = append(chain, candidate{Choice: choice})
			continue
		case err != nil:
			return nil, err
		}
		model, err := a.Models.Open(provider)
		if err != nil && i == 0 {
			return nil, stopped{reason: run.ReasonProviderFailed, message: err.Error()}
		}
		if err != nil {
			model = nil
		}
		chain = append(chain, candidate{choice, provider, model})
	}
	return chain, nil
}

// answerTokens is how long an answer may be, as it is sent; 0 sends no length and leaves
// Budget its own idea of one (RULES B1).
func (c candidate) answerTokens() int {
	if capped, is := c.model.(Capped); is && c.MaxOutputTokens == 0 {
		return prompt.Cap(c.ContextWindow, capped.UsualTokens())
	}
	return c.MaxOutputTokens
}

// budget is what may be sent, in tokens. A script has no window but the one that its
// configuration names: its step is found from the whole transcript.
func (c candidate) budget() int {
	if c.provider.Kind == library.Scripted && c.ContextWindow == 0 {
		return math.MaxInt
	}
	return prompt.Budget(c.ContextWindow, c.answerTokens())
}

// mayRead reports whether the candidate's provider may read all that this run's tools
// return: those that are offered now, and those whose results the transcript holds. A
// fallback is never farther away than what was offered allows (RULES T8, M1).
func (s *segment) mayRead(c candidate) bool {
	zone := tool.Zone(c.provider.TrustZone)
	reads := func(name string) bool {
		spec, known := s.tools.Spec(name)
		return known && zone.MayRead(spec.DataClass)
	}
	for _, d := range s.offer.definitions {
		if !reads(d.Name) {
			return false
		}
	}
	named := map[string]string{}
	for _, m := range s.transcript {
		for _, call := range m.Calls {
			named[call.ID] = call.Tool
		}
		if m.Role == prompt.ToolRole && !m.Failed && !reads(named[m.CallID]) {
			return false
		}
	}
	return true
}

// answered is a turn with who gave it, and whom else was asked.
type answered struct {
	Turn
	by       candidate
	estimate int // of what was sent, in tokens
	requests int
	passed   []run.Attempt // who was to answer before, in order
}

// askChain asks the models of the chain in order until one answers (RULES M1). The next one
// is asked only where the same request might have been answered: a request that is
// wrong, a key that is refused or an answer that is withheld is the same everywhere.
func (s *segment) askChain(ctx context.Context, notes []prompt.Message) (answered, error) {
	var out answered
	var faults []string
	for i, c := range s.chain {
		pass := func(code run.AttemptCode, status int) {
			out.passed = append(out.passed, run.Attempt{Provider: c.ProviderID.String(), Model: c.Model, Code: code, Status: status})
		}
		if i > 0 && c.model == nil {
			pass(run.AttemptUnusable, 0)
			continue
		}
		if i > 0 && !s.mayRead(c) {
			pass(run.AttemptTrustZone, 0)
			continue
		}
		fitted, fits := prompt.Fit(append(slices.Clip(s.transcript), notes...), s.offer.definitions, c.budget(), s.gauge)
		if !fits && i == 0 {
			return out, tooLong(fitted.Tokens)
		}
		if !fits {
			pass(run.AttemptTooLong, 0)
			continue
		}
		turn, came, err := s.askOne(ctx, c, fitted.Messages)
		out.requests++
		if err == nil {
			out.Turn, out.by, out.estimate = turn, c, fitted.Tokens
			return out, nil
		}
		s.broke(c, fitted.Tokens, came)
		var failed *ProviderError
		if ctx.Err() != nil || !errors.As(err, &failed) {
			return out, cmp.Or(context.Cause(ctx), err)
		}
		faults = append(faults, failed.Message)
		if !failed.Retryable {
			break
		}
		pass(failed.attempt(), failed.Status)
	}
	return out, &ProviderError{Message: strings.Join(faults, "; ")}
}

// askOne also says how many tokens came, as estimated, of an answer that broke off.
func (s *segment) askOne(ctx context.Context, c candidate, messages []prompt.Message) (turn Turn, came int, err error) {
	request := TurnRequest{Model: c.Model, Messages: messages, Tools: s.offer.definitions, MaxTokens: c.answerTokens()}
	if subject := s.run.Subject; subject != nil {
		request.SubjectID = subject.ID
	}
	return s.heard(ctx, c.model, request)
}

func (e *ProviderError) attempt() run.AttemptCode {
	if e.LeftAlone {
		return run.AttemptLeftAlone
	}
	return run.AttemptFailed
}

func tooLong(tokens int) error {
	return stopped{
		reason: run.ReasonContextTruncated,
		message: "what has to be sent is estimated at " + strconv.Itoa(tokens) +
			" tokens, more than the model's context window leaves room for",
	}
}
