package agent

import (
	"context"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/tool"
)

// Explain says for every tool whether somebody would have it on a configuration, and which gate keeps it away (RULES T6). It explains without a run:
// the list is that of the skills attached now, and an invocation or a caller may make a run's own list another one (RULES T2). Of is the actor
// when nil; to ask about somebody else is an administrator's act.
func (a *Agent) Explain(ctx context.Context, by actor.Actor, configurationID uuid.UUID, of *uuid.UUID) ([]tool.Explained, error) {
	who := by
	switch {
	case by.IsNobody():
		return nil, fault.New(fault.Unauthenticated, "sign in to see which tools there are")
	case of == nil || *of == by.ID:
	case !by.Administrator:
		return nil, fault.New(fault.Forbidden, "only an administrator may ask which tools somebody else has")
	default:
		var err error
		if who, err = a.People.Actor(ctx, *of); err != nil {
			return nil, err
		}
	}
	configuration, err := a.Skills.Configuration(ctx, configurationID)
	if err != nil {
		return nil, err
	}
	if !configuration.MayUse(by) {
		return nil, fault.New(fault.NotFound, "there is no such configuration, or none you may use")
	}
	set, err := a.lineup(ctx, origin{configuration: configuration.ID})
	if err != nil {
		return nil, err
	}
	situation, err := a.situation(ctx, who, configuration, set.allowList(nil), nil)
	if err != nil {
		return nil, err
	}
	values, err := a.Settings.Values(ctx)
	if err != nil {
		return nil, err
	}
	catalogue, _ := a.catalogue(set, nil, values.CatalogueMaxBytes)
	situation.Loads = catalogue.offers()
	tools, err := a.Tools.Now(ctx)
	if err != nil {
		return nil, err
	}
	return tools.Explain(situation), nil
}
