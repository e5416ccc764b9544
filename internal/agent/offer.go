package agent

import (
	"context"
	"slices"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// offer is which tools a segment may call, as resolved when it began.
type offer struct {
	situation   tool.Situation
	definitions []prompt.Definition
	denied      []tool.Denial
}

func (o offer) has(name string) bool {
	return slices.ContainsFunc(o.definitions, func(d prompt.Definition) bool { return d.Name == name })
}

// situation is what the gates decide by (RULES T6): the skill list is an argument,
// everything else is read live.
func (a *Agent) situation(ctx context.Context, who actor.Actor, c library.Configuration, skillList, callerList []string) (tool.Situation, error) {
	switches, err := a.Skills.ToolSwitches(ctx)
	if err != nil {
		return tool.Situation{}, err
	}
	groups, err := a.Skills.GroupSwitches(ctx)
	if err != nil {
		return tool.Situation{}, err
	}
	provider, err := a.Skills.Provider(ctx, c.ProviderID)
	if err != nil {
		return tool.Situation{}, err
	}
	return tool.Situation{
		Tools:               switches,
		Groups:              groups,
		Administrator:       who.Administrator,
		ConfigurationGroups: c.AllowedToolGroups,
		SkillList:           skillList,
		CallerList:          callerList,
		Zone:                tool.Zone(provider.TrustZone),
	}, nil
}

// offerOf is what a situation leaves to call, and what it denies.
func offerOf(tools *tool.Registry, situation tool.Situation) offer {
	out := offer{situation: situation}
	for _, e := range tools.Explain(situation) {
		switch {
		case e.Denial == nil:
			out.definitions = append(out.definitions, e.Spec.Definition)
		case e.Spec.Name == tool.LoadSkill && !situation.Loads: // nothing to load is nobody's refusal
		default:
			out.denied = append(out.denied, *e.Denial)
		}
	}
	return out
}

// resolveOffer fixes what a segment that goes on may call.
func (s *segment) resolveOffer(ctx context.Context, set lineup, held []heldPin) error {
	situation, err := s.agent.situation(ctx, s.initiator, s.configuration, s.skillList(set, held), s.run.CallerTools)
	if err != nil {
		return err
	}
	situation.Loads = s.catalogue.offers()
	return s.takeOffer(ctx, offerOf(s.tools, situation))
}

// skillList is the run's skill-derived list now. The stored list is the upper bound, the
// live one may take tools away and never adds one (RULES T2, T3).
func (s *segment) skillList(set lineup, held []heldPin) []string {
	return run.Shrink(s.run.SkillAllowList, set.allowList(held))
}

// takeOffer fixes what this segment may call. What is denied is audited once a
// resolution (RULES T6).
func (s *segment) takeOffer(ctx context.Context, o offer) error {
	s.offer = o
	if len(o.denied) == 0 {
		return nil
	}
	entry := audit.Record(s.agent.World, s.initiator, audit.ToolDenied).InRun(s.id).With("denied", o.denied)
	return s.write(ctx, nil, change.Change{Audit: []audit.Entry{entry}})
}

// plan says what happens to each call of a turn, before any of them runs.
func (s *segment) plan(calls []prompt.Call) run.Plan {
	facts := make([]run.Call, len(calls))
	for i, c := range calls {
		facts[i] = s.facts(c)
	}
	_, process := s.pins.Process()
	return run.PlanTurn(process, facts)
}

func (s *segment) facts(c prompt.Call) run.Call {
	tools := s.tools
	if _, denied := tools.Decide(c.Tool, s.offer.situation); denied {
		return run.Call{Refused: run.NotOffered}
	}
	if _, ok := tools.Check(c.Tool, c.Arguments); !ok {
		return run.Call{Refused: run.InvalidArguments}
	}
	spec, _ := tools.Spec(c.Tool)
	if s.echoes[c.ID] && tool.EffectOf(spec).Writes() {
		return run.Call{Refused: run.MarkerWritten}
	}
	bound := tool.ApprovalBound(spec, s.approvals) || s.boundByRules(spec)
	return run.Call{
		ApprovalBound: bound,
		Write:         tool.DeclaredWrite(spec),
		Input:         spec.RequiresInput,
		PlainRead:     !spec.Remote && !bound && !tool.EffectOf(spec).Writes(),
		Completes:     tool.ReportsCompletion(c.Tool, c.Arguments),
	}
}
