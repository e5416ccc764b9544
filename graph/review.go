package graph

import (
	"github.com/google/uuid"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/skill"
)

func toReview(r library.Review) *model.Review {
	out := &model.Review{
		Digest: given(r.Digest), Diff: toDiff(r.Diff), ToolsGained: append([]string{}, r.ToolsGained...), ToolsLost: append([]string{}, r.ToolsLost...),
		Findings: toFindings(r.Findings), OutsideChanges: append([]string{}, r.OutsideChanges...), Obstacles: toObstacles(r.Obstacles),
	}
	if r.Latest != nil {
		out.PreviousApproval = toApproval(*r.Latest)
	}
	return out
}

func toDiff(lines []skill.DiffLine) *model.Diff {
	out := &model.Diff{Lines: make([]*model.DiffLine, len(lines))}
	for i, l := range lines {
		out.Lines[i] = &model.DiffLine{Kind: diffKinds.out(l.Kind), Text: l.Text}
	}
	return out
}

func toObstacles(obstacles []skill.Obstacle) []*model.Obstacle {
	out := make([]*model.Obstacle, len(obstacles))
	for i, o := range obstacles {
		out[i] = &model.Obstacle{
			Code: obstacleCodes.out(o.Code), Message: o.Message, Field: given(o.Field), Line: positive(o.Line), Column: positive(o.Column),
			CodePoint: given(o.CodePoint),
		}
	}
	return out
}

func toApproval(a library.Approval) *model.Approval {
	return &model.Approval{
		ID: approvalKind.id(a.ID), SkillID: skillKind.id(a.SkillID), SourceID: sourceKind.id(a.SourceID), Digest: string(a.Digest),
		Name: a.Version.Name, Description: a.Version.Description, Body: a.Version.Body, AllowedTools: toTools(a.Version.Tools),
		Process: a.Version.Process == skill.ProcessYes, TrustLevel: trustLevels.out(a.TrustLevel), RawDigest: given(a.RawDigest),
		BundleDigest: given(a.BundleDigest), Bundle: toBundle(a.Bundle), Comment: a.Comment, At: a.At, ApproverID: a.ApproverID,
	}
}

func approvalConnection(w window, read []library.Approval) *model.ApprovalConnection {
	c := &model.ApprovalConnection{}
	c.Nodes, c.Edges, c.PageInfo = connect(w, read, approvalKey, toApproval,
		func(cursor string, n *model.Approval) *model.ApprovalEdge {
			return &model.ApprovalEdge{Cursor: cursor, Node: n}
		})
	return c
}

var (
	approvalKey   = rowKey(func(a library.Approval) uuid.UUID { return a.ID })
	revocationKey = rowKey(func(r library.Revocation) uuid.UUID { return r.ID })
)

func toRevocation(r library.Revocation) *model.Revocation {
	return &model.Revocation{
		ID: revocationKind.id(r.ID), SkillID: skillKind.id(r.SkillID), Digest: string(r.Digest), Reason: r.Reason, At: r.At, ActorID: r.ActorID,
	}
}

func revocationConnection(w window, read []library.Revocation) *model.RevocationConnection {
	c := &model.RevocationConnection{}
	c.Nodes, c.Edges, c.PageInfo = connect(w, read, revocationKey, toRevocation,
		func(cursor string, n *model.Revocation) *model.RevocationEdge {
			return &model.RevocationEdge{Cursor: cursor, Node: n}
		})
	return c
}
