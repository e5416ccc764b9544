package graph

import (
	"github.com/google/uuid"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/run"
)

func toPrice(p *library.Price) *model.ModelPrice {
	if p == nil {
		return nil
	}
	return &model.ModelPrice{Input: p.Input, Output: p.Output}
}

func fromPrice(p *model.ModelPriceInput) *library.Price {
	if p == nil {
		return nil
	}
	return &library.Price{Input: p.Input, Output: p.Output}
}

func toFallbacks(chain []library.Choice) []*model.FallbackModel {
	out := make([]*model.FallbackModel, len(chain))
	for i, c := range chain {
		out[i] = &model.FallbackModel{
			ProviderID: providerKind.id(c.ProviderID), Model: c.Model, ContextWindow: positive(c.ContextWindow),
			MaxOutputTokens: positive(c.MaxOutputTokens), Price: toPrice(c.Price),
		}
	}
	return out
}

func fromFallbacks(in []*model.FallbackModelInput) ([]library.Choice, error) {
	out := make([]library.Choice, len(in))
	for i, f := range in {
		provider, err := providerKind.row(f.ProviderID)
		if err != nil {
			return nil, err
		}
		out[i] = library.Choice{
			ProviderID: provider, Model: f.Model, ContextWindow: number(f.ContextWindow),
			MaxOutputTokens: number(f.MaxOutputTokens), Price: fromPrice(f.Price),
		}
	}
	return out, nil
}

// toUsage leaves the cost out where it would be too low.
func toUsage(u agent.Consumption) *model.RunUsage {
	out := &model.RunUsage{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, Requests: u.Requests}
	if u.Unpriced == 0 && u.Requests > 0 {
		out.Cost = &u.Cost
	}
	return out
}

func toAttempts(attempts []run.Attempt) []*model.ModelAttempt {
	out := make([]*model.ModelAttempt, len(attempts))
	for i, a := range attempts {
		out[i] = &model.ModelAttempt{ProviderID: text(providerText(a.Provider)), Model: a.Model, Code: string(a.Code), Status: positive(a.Status)}
	}
	return out
}

// providerText reads the id of a provider out of an event; nil when there is none.
func providerText(text string) *string {
	id, err := uuid.Parse(text)
	if err != nil {
		return nil
	}
	out := providerKind.id(id)
	return &out
}
