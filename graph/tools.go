package graph

import (
	"slices"
	"strings"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/tool"
)

var toolDenials = mapping[model.ToolDenial](tool.GateNotRegistered, tool.GateDisabled, tool.GateAdminOnly, tool.GateConfigurationGroup,
	tool.GateSkillList, tool.GateTrustZone)

// toTool writes a tool with the installation's switches.
func toTool(s tool.Spec, switches map[string]bool) *model.Tool {
	enabled, set := switches[s.Name]
	if !set {
		enabled = !s.OffByDefault && !s.Remote
	}
	return &model.Tool{
		Name: s.Name, Title: s.Title, Description: s.Description, Group: string(s.Group), Effect: toolEffects.out(tool.EffectOf(s)),
		RequiresApproval: tool.ApprovalBound(s, tool.Approvals{}), RequiresInput: s.RequiresInput, AdminOnly: s.AdminOnly || s.Remote, Remote: s.Remote,
		Enabled: enabled, Schema: s.Schema,
	}
}

func byName(a, b tool.Spec) int { return strings.Compare(a.Name, b.Name) }

func toolList(specs []tool.Spec, switches map[string]bool) []*model.Tool {
	sorted := slices.SortedFunc(slices.Values(specs), byName)
	out := make([]*model.Tool, len(sorted))
	for i, s := range sorted {
		out[i] = toTool(s, switches)
	}
	return out
}

func toExplanations(explained []tool.Explained, switches map[string]bool) []*model.ToolExplanation {
	sorted := slices.SortedFunc(slices.Values(explained), func(a, b tool.Explained) int { return byName(a.Spec, b.Spec) })
	out := make([]*model.ToolExplanation, len(sorted))
	for i, e := range sorted {
		out[i] = &model.ToolExplanation{Tool: toTool(e.Spec, switches), Allowed: e.Denial == nil}
		if e.Denial != nil {
			out[i].Denial = toolDenials.maybe(e.Denial.Gate)
		}
	}
	return out
}
