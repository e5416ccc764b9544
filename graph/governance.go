package graph

import (
	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/access"
)

func toGovernance(r access.Readout) *model.Governance {
	out := &model.Governance{InForce: make([]*model.GovernanceValue, len(r.InForce)), Profiles: make([]*model.GovernanceProfile, len(r.Profiles))}
	for i, v := range r.InForce {
		out.InForce[i] = &model.GovernanceValue{Name: v.Name, Value: v.Value}
	}
	for i, p := range r.Profiles {
		profile := &model.GovernanceProfile{Name: p.Name}
		for _, e := range p.Expected {
			profile.Expectations = append(profile.Expectations, &model.GovernanceExpectation{
				Name: e.Name, Expected: e.Want, Value: e.Is, Comparison: comparisons.out(e.Comparison),
			})
		}
		out.Profiles[i] = profile
	}
	return out
}
