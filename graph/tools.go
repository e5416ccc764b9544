package graph

import (
	"context"
	"slices"
	"strings"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/tool"
)

var toolDenials = mapping[model.ToolDenial](tool.GateNotRegistered, tool.GateDisabled, tool.GateAdminOnly, tool.GateConfigurationGroup,
	tool.GateSkillList, tool.GateTrustZone)

// switches are the installation's, of tools and of their groups, and which reads wait for
// an approval.
type switches struct {
	tools     map[string]bool
	groups    map[tool.Group]bool
	approvals tool.Approvals
}

func (r *Resolver) switches(ctx context.Context) (at switches, err error) {
	if at.tools, err = r.Library.ToolSwitches(ctx); err != nil {
		return switches{}, err
	}
	if at.groups, err = r.Library.GroupSwitches(ctx); err != nil {
		return switches{}, err
	}
	values, err := r.Access.Values(ctx)
	if err != nil {
		return switches{}, err
	}
	at.approvals, err = tool.ParseApprovals(values.ApprovalTools)
	return at, err
}

// group tells whether a group is on: one that nobody switched is.
func (s switches) group(g tool.Group) bool {
	on, set := s.groups[g]
	return on || !set
}

// toTool writes a tool with the installation's switches.
func toTool(s tool.Spec, at switches) *model.Tool {
	enabled, set := at.tools[s.Name]
	if !set {
		enabled = !s.OffByDefault && !s.Remote
	}
	return &model.Tool{
		Name: s.Name, Title: s.Title, Description: s.Description, Group: string(s.Group), Effect: toolEffects.out(tool.EffectOf(s)),
		RequiresApproval: tool.ApprovalBound(s, at.approvals), RequiresInput: s.RequiresInput, AdminOnly: s.AdminOnly || s.Remote, Remote: s.Remote,
		Blocked: given(s.Blocked), Enabled: enabled, GroupEnabled: at.group(s.Group), Schema: s.Schema,
	}
}

func byName(a, b tool.Spec) int { return strings.Compare(a.Name, b.Name) }

func toToolGroup(group tool.Group, specs []tool.Spec, at switches) *model.ToolGroup {
	in := slices.DeleteFunc(slices.Clone(specs), func(s tool.Spec) bool { return s.Group != group })
	return &model.ToolGroup{Name: string(group), Enabled: at.group(group), Tools: toolList(in, at)}
}

func toolList(specs []tool.Spec, at switches) []*model.Tool {
	sorted := slices.SortedFunc(slices.Values(specs), byName)
	out := make([]*model.Tool, len(sorted))
	for i, s := range sorted {
		out[i] = toTool(s, at)
	}
	return out
}

func toExplanations(explained []tool.Explained, at switches) []*model.ToolExplanation {
	sorted := slices.SortedFunc(slices.Values(explained), func(a, b tool.Explained) int { return byName(a.Spec, b.Spec) })
	out := make([]*model.ToolExplanation, len(sorted))
	for i, e := range sorted {
		out[i] = &model.ToolExplanation{Tool: toTool(e.Spec, at), Allowed: e.Denial == nil}
		if e.Denial != nil {
			out[i].Denial = toolDenials.maybe(e.Denial.Gate)
		}
	}
	return out
}
