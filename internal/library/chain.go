package library

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/fault"
)

// Choice is one model that may answer the turns of a configuration's runs, with what is
// known of it.
type Choice struct {
	ProviderID      uuid.UUID `json:"provider"`
	Model           string    `json:"model"`
	ContextWindow   int       `json:"contextWindow,omitempty"`   // tokens; 0 is unknown
	MaxOutputTokens int       `json:"maxOutputTokens,omitempty"` // of one answer; 0 leaves it to the runtime
	Price           *Price    `json:"price,omitempty"`           // nil is unknown
}

// Price is what a million tokens cost, in millionths of the currency that the
// installation reckons in.
type Price struct {
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
}

const (
	// maxPrice keeps the cost of any answer within 64 bits: ten thousand a million tokens.
	maxPrice = 10_000_000_000
	// maxTokens is beyond what any model reads or writes in one go.
	maxTokens = 100_000_000
	million   = 1_000_000
)

// Cost is what an answer costs, in millionths, rounded up.
func (p Price) Cost(input, output int) int64 {
	bounded := func(tokens int) int64 { return int64(min(max(tokens, 0), maxTokens)) }
	return (bounded(input)*p.Input + bounded(output)*p.Output + million - 1) / million
}

// Chain lists who is asked, in order: the configuration's own model, then its fallbacks.
func (c Configuration) Chain() []Choice {
	own := Choice{
		ProviderID: c.ProviderID, Model: c.Model, ContextWindow: c.ContextWindow, MaxOutputTokens: c.MaxOutputTokens, Price: c.Price,
	}
	return append([]Choice{own}, c.Fallbacks...)
}

// maxFallbacks bounds how often a turn is asked anew of somebody else.
const maxFallbacks = 5

// checkChain refuses models that nobody could ask, and one that is asked twice.
func (l *Library) checkChain(ctx context.Context, c *Configuration) error {
	if len(c.Fallbacks) > maxFallbacks {
		return fault.New(fault.BadInput, "fallbacks holds %d models; at most %d are accepted.", len(c.Fallbacks), maxFallbacks)
	}
	c.Fallbacks = slices.Clone(c.Fallbacks)
	for i := range c.Fallbacks {
		if err := l.checkModel(ctx, &c.Fallbacks[i]); err != nil {
			return err
		}
	}
	chain := c.Chain()
	for i, choice := range chain {
		if err := choice.checkNumbers(); err != nil {
			return err
		}
		if slices.ContainsFunc(chain[:i], func(o Choice) bool { return o.ProviderID == choice.ProviderID && o.Model == choice.Model }) {
			return fault.New(fault.BadInput, "fallbacks names a model twice; asking it again is what its provider's retries are for.")
		}
	}
	return nil
}

func (l *Library) checkModel(ctx context.Context, c *Choice) error {
	provider, err := l.Store.Provider(ctx, c.ProviderID)
	if err != nil {
		return err
	}
	if c.Model != "" || provider.Kind != Scripted {
		c.Model, err = label("model", c.Model)
	}
	return err
}

func (c Choice) checkNumbers() error {
	for _, n := range []struct {
		name  string
		value int
	}{{"contextWindow", c.ContextWindow}, {"maxOutputTokens", c.MaxOutputTokens}} {
		if n.value < 0 || n.value > maxTokens {
			return fault.New(fault.BadInput, "%s must be a number of tokens up to %d, or 0 when it is not known.", n.name, maxTokens)
		}
	}
	if c.ContextWindow > 0 && c.MaxOutputTokens >= c.ContextWindow {
		return fault.New(fault.BadInput, "maxOutputTokens must leave room in contextWindow for what is asked.")
	}
	if p := c.Price; p != nil && (min(p.Input, p.Output) < 0 || max(p.Input, p.Output) > maxPrice) {
		return fault.New(fault.BadInput, "price must be given in millionths a million tokens, from 0 to %d.", int64(maxPrice))
	}
	return nil
}
