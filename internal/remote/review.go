package remote

import (
	"context"
	"crypto/subtle"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
)

// Review is the input of Room.Review.
type Review struct {
	Tool   string // its full name
	Digest string // of the definition that the reviewer saw
	// ApprovalRequired nil leaves it as it is, and lets a changed definition begin with an
	// approval.
	ApprovalRequired *bool
}

// StaleTool is the detail of a STALE_DIGEST refusal: the tool as it is now.
type StaleTool struct{ Tool Tool }

// Current is the definition that a review is about, with its digest: the server's
// present one.
func (t Tool) Current() (Definition, string) {
	if t.Found != nil {
		return *t.Found, t.FoundDigest
	}
	return t.Definition, t.Digest
}

// Review says that an administrator has seen a tool's present definition. It becomes the
// pinned one, so that a tool that was blocked may be called again (RULES G8), and it is
// the one place where a remote tool's approval is switched off (RULES C6). Audited, also
// when it is refused.
func (r *Room) Review(ctx context.Context, by actor.Actor, in Review) (Tool, error) {
	for range attempts {
		t, err := r.ToolNamed(ctx, by, in.Tool)
		if err != nil {
			return Tool{}, err
		}
		current, digest := t.Current()
		if refused := t.refusal(in.Digest, digest); refused != nil {
			entry := audit.Record(r.World, by, audit.MCPToolReviewRefused).With("tool", t.FullName()).With("code", refused.Code).
				With("posted", clip(in.Digest)).With("current", digest)
			if _, err := change.One(ctx, r.Store, change.Change{Audit: []audit.Entry{entry}, Refused: refused}); err != nil {
				return Tool{}, err
			}
			return Tool{}, refused
		}
		required := t.ApprovalRequired || t.Status == Drifted
		if in.ApprovalRequired != nil {
			required = *in.ApprovalRequired
		}
		entry := audit.Record(r.World, by, audit.MCPToolReviewed).With("tool", t.FullName()).With("was", t.Digest).
			With("now", digest).With("approvalRequired", required)
		out, err := change.One(ctx, r.Store, change.Change{
			Updates: []change.Update{{
				Table: toolsTable, ID: t.ID,
				If: []change.Value{toolDigest.Is(t.Digest), toolStatus.Is(t.Status), toolFoundDigest.Is(t.FoundDigest), toolApproval.Is(t.ApprovalRequired)},
				Set: append(found(nil),
					toolDescription.To(current.Description), toolSchema.To(string(current.Schema)), toolDigest.To(digest), toolStatus.To(Pinned),
					toolApproval.To(required), toolReviewerID.To(by.ID), toolReviewedAt.To(r.World.Now())),
			}},
			Audit: []audit.Entry{entry},
		})
		if err != nil {
			return Tool{}, err
		}
		if out.Applied {
			return r.ToolNamed(ctx, by, in.Tool)
		}
	}
	return Tool{}, fault.New(fault.Unavailable, "Others keep changing this tool; try again.")
}

// refusal says why a review does not count.
func (t Tool) refusal(posted, current string) *fault.Refused {
	switch {
	case t.Status == Gone:
		return fault.Refuse(fault.ToolGone, "The server %s does not have the tool %s any more; import the server again once it does.", t.ServerName, t.Name)
	case subtle.ConstantTimeCompare([]byte(posted), []byte(current)) != 1:
		return fault.Refuse(fault.StaleDigest, "The definition of %s is another one than you saw; look at it again.", t.FullName()).With(StaleTool{t})
	}
	return nil
}
