package library

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/prompt"
)

// Snippet is a text that configurations join to their prompts. Editors write it; only
// what an administrator marked may join a caller's own system message (RULES N2, N4).
type Snippet struct {
	ID uuid.UUID
	prompt.Snippet
	Revision  int
	EditorID  uuid.UUID // who wrote the present text
	CreatedAt time.Time
	UpdatedAt time.Time // of the present text; marking does not change it
}

// StaleSnippet is the detail of a STALE_SNIPPET or STALE_REVISION: the snippet as it
// is now.
type StaleSnippet struct{ Current Snippet }

// needSnippets lets those read snippets who may edit them or read skills.
func needSnippets(by actor.Actor) error {
	if by.May(actor.SnippetEdit) {
		return needSignedIn(by)
	}
	return need(by, actor.SkillRead)
}

// FindSnippet reads a snippet; it needs snippet:edit or skill:read.
func (l *Library) FindSnippet(ctx context.Context, by actor.Actor, id uuid.UUID) (Snippet, error) {
	if err := needSnippets(by); err != nil {
		return Snippet{}, err
	}
	return l.Store.Snippet(ctx, id)
}

// ListSnippets pages through the snippets; it needs snippet:edit or skill:read.
func (l *Library) ListSnippets(ctx context.Context, by actor.Actor, page Page) ([]Snippet, error) {
	if err := needSnippets(by); err != nil {
		return nil, err
	}
	return l.Store.Snippets(ctx, page)
}

// Snippets reads a configuration's snippets for the runtime, in their order.
func (l *Library) Snippets(ctx context.Context, c Configuration) ([]Snippet, error) {
	if len(c.SnippetIDs) == 0 {
		return nil, nil
	}
	return l.Store.SnippetsByID(ctx, c.SnippetIDs)
}

const maxSnippets = 100 // of one configuration

// checkSnippets holds a configuration's list against the snippets there are.
func (l *Library) checkSnippets(ctx context.Context, ids []uuid.UUID) error {
	if len(ids) > maxSnippets {
		return fault.New(fault.BadInput, "snippetIds names %d snippets; at most %d are accepted.", len(ids), maxSnippets)
	}
	seen := make(map[uuid.UUID]bool, len(ids))
	for _, id := range ids {
		if seen[id] {
			return fault.New(fault.BadInput, "snippetIds names a snippet twice.")
		}
		seen[id] = true
	}
	if len(ids) == 0 {
		return nil
	}
	found, err := l.Store.SnippetsByID(ctx, ids)
	if err == nil && len(found) < len(ids) {
		return fault.New(fault.NotFound, "snippetIds names a snippet that does not exist.")
	}
	return err
}
