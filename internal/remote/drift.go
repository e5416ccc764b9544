package remote

import (
	"context"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
)

// comparison is what a server's present definitions come to beside the pinned ones.
type comparison struct {
	change               change.Change
	added, drifted, gone []string
}

// compared holds what a server lists against what is pinned. A definition that went back
// to the pinned one needs no review: that text was reviewed.
func (r *Room) compared(ctx context.Context, by actor.Actor, s Server, listed []Definition) (comparison, error) {
	pinned, err := r.Store.MCPTools(ctx, s.ID)
	if err != nil {
		return comparison{}, err
	}
	out := comparison{added: []string{}, drifted: []string{}, gone: []string{}}
	known := map[string]bool{}
	for _, t := range pinned {
		known[t.Name] = true
		status, present := t.beside(listed)
		if status == Drifted {
			out.drifted = append(out.drifted, t.Name)
		}
		if status == Gone {
			out.gone = append(out.gone, t.Name)
		}
		out.change.Updates = append(out.change.Updates, t.update(status, present)...)
	}
	for _, d := range listed {
		if known[d.Name] {
			continue
		}
		out.added = append(out.added, d.Name)
		out.change.Inserts = append(out.change.Inserts, change.Insert{Table: toolsTable, Row: append([]change.Value{
			toolID.To(r.World.NewID()), toolServerID.To(s.ID), toolName.To(d.Name), toolDescription.To(d.Description), toolSchema.To(string(d.Schema)),
			toolDigest.To(d.Digest()), toolStatus.To(Pinned), toolApproval.To(true), toolReviewerID.To(by.ID), toolReviewedAt.To(r.World.Now()),
		}, found(nil)...)})
	}
	return out, nil
}

// beside tells how a tool's pinned definition stands to what its server lists.
func (t Tool) beside(listed []Definition) (Status, *Definition) {
	for _, d := range listed {
		switch {
		case d.Name != t.Name:
		case d.Digest() == t.Digest:
			return Pinned, nil
		default:
			return Drifted, &d
		}
	}
	return Gone, nil
}

// update is what is written of a tool whose state is another one now: nothing when it is
// not.
func (t Tool) update(status Status, present *Definition) []change.Update {
	digest := ""
	if present != nil {
		digest = present.Digest()
	}
	if t.Status == status && t.FoundDigest == digest {
		return nil
	}
	return []change.Update{{
		Table: toolsTable, ID: t.ID,
		If:  []change.Value{toolDigest.Is(t.Digest), toolStatus.Is(t.Status), toolFoundDigest.Is(t.FoundDigest)},
		Set: append(found(present), toolStatus.To(status)),
	}}
}
