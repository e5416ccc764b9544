package library

import (
	"context"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
)

// MarkSnippet marks the block whose digest the administrator posts, which is that of
// the block they read (RULES N3). Only a marked block joins a caller's own system
// message (RULES N2). Audited; so is every refusal, the missing right too.
//
// Refusals: STALE_SNIPPET with a StaleSnippet when the block is another by now.
func (l *Library) MarkSnippet(ctx context.Context, by actor.Actor, id uuid.UUID, blockDigest string) (Snippet, error) {
	if err := needAdministrator(by); err != nil {
		if failed := l.noteForbiddenMark(ctx, by, id, blockDigest); failed != nil {
			return Snippet{}, failed
		}
		return Snippet{}, err
	}
	err := l.retried(ctx, "the snippet", func() (change.Change, error) {
		s, err := l.Store.Snippet(ctx, id)
		if err != nil {
			return change.Change{}, err
		}
		if s.Digest() != blockDigest {
			refused := fault.Refuse(fault.StaleSnippet, "The snippet's block is not the one whose digest was posted; read it as it is now.").
				With(StaleSnippet{Current: s})
			if err := l.noteRefusedMark(ctx, by, s, blockDigest, string(fault.StaleSnippet), refused); err != nil {
				return change.Change{}, err
			}
			return change.Change{}, refused
		}
		if s.Marked() {
			return change.Change{}, nil
		}
		return l.mark(by, s, blockDigest), nil
	})
	if err != nil {
		return Snippet{}, err
	}
	return l.Store.Snippet(ctx, id)
}

// UnmarkSnippet takes a snippet's mark away, so that only another marking brings it
// back. Administrators only; audited as SNIPPET_MARKED that says marked: false.
func (l *Library) UnmarkSnippet(ctx context.Context, by actor.Actor, id uuid.UUID) (Snippet, error) {
	if err := needAdministrator(by); err != nil {
		return Snippet{}, err
	}
	err := l.retried(ctx, "the snippet", func() (change.Change, error) {
		s, err := l.Store.Snippet(ctx, id)
		if err != nil || s.Mark == "" {
			return change.Change{}, err
		}
		return l.mark(by, s, ""), nil
	})
	if err != nil {
		return Snippet{}, err
	}
	return l.Store.Snippet(ctx, id)
}

// mark sets the mark of a snippet whose text is still the one that was judged.
func (l *Library) mark(by actor.Actor, s Snippet, mark string) change.Change {
	return change.Change{
		Updates: []change.Update{{
			Table: snippetsTable, ID: s.ID, If: []change.Value{snippetRevision.Is(s.Revision), snippetMark.Is(s.Mark)},
			Set: []change.Value{snippetMark.To(mark)},
		}},
		Audit: []audit.Entry{l.markEntry(by, s, mark != "", "administrator")},
	}
}

// markEntry says that a snippet's present block is marked from now on, or is not, and
// what made it so: an administrator or an edit.
func (l *Library) markEntry(by actor.Actor, s Snippet, marked bool, through string) audit.Entry {
	return audit.Record(l.World, by, audit.SnippetMarked).About(uuid.Nil, uuid.Nil, s.Digest()).
		With("snippet", s.ID.String()).With("revision", s.Revision).With("marked", marked).With("through", through)
}

// noteForbiddenMark audits an attempt of somebody who is no administrator. Nothing is
// known of a snippet that does not exist.
func (l *Library) noteForbiddenMark(ctx context.Context, by actor.Actor, id uuid.UUID, posted string) error {
	if by.IsNobody() {
		return nil
	}
	s, err := l.Store.Snippet(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return l.noteRefusedMark(ctx, by, s, posted, string(fault.Forbidden), nil)
}

// noteRefusedMark audits a refused mark with the posted and the current digest. A missing
// permission is no refusal of the rules: then refused is nil.
func (l *Library) noteRefusedMark(ctx context.Context, by actor.Actor, s Snippet, posted, code string, refused *fault.Refused) error {
	_, err := change.One(ctx, l.Store, change.Change{Refused: refused, Audit: []audit.Entry{
		audit.Record(l.World, by, audit.SnippetMarkRefused).About(uuid.Nil, uuid.Nil, s.Digest()).
			With("snippet", s.ID.String()).With("posted", clip(posted, 80)).With("current", s.Digest()).With("code", code),
	}})
	return err
}
