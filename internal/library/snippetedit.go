package library

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/prompt"
)

// NewSnippet is the input of CreateSnippet.
type NewSnippet struct{ Name, Text string }

// CreateSnippet writes a snippet, unmarked. It needs snippet:edit.
func (l *Library) CreateSnippet(ctx context.Context, by actor.Actor, in NewSnippet) (Snippet, error) {
	if err := need(by, actor.SnippetEdit); err != nil {
		return Snippet{}, err
	}
	text, err := checkSnippet(prompt.Snippet{Name: in.Name, Text: in.Text})
	if err != nil {
		return Snippet{}, err
	}
	id, now := l.World.NewID(), l.World.Now()
	_, err = change.One(ctx, l.Store, change.Change{Inserts: []change.Insert{{Table: snippetsTable, Row: []change.Value{
		snippetID.To(id), snippetName.To(text.Name), snippetText.To(text.Text), snippetMark.To(""), snippetRevision.To(1),
		snippetEditorID.To(by.ID), snippetCreatedAt.To(now), snippetUpdatedAt.To(now),
	}}}})
	if err != nil {
		return Snippet{}, err
	}
	return l.Store.Snippet(ctx, id)
}

// SnippetUpdate is the input of UpdateSnippet; a nil field stays as it is.
type SnippetUpdate struct {
	ID       uuid.UUID
	Revision *int // the revision the edit started from; nil takes what is there
	Name     *string
	Text     *string
}

// UpdateSnippet edits a snippet. Whoever edits it, another block is no longer the one
// that was marked (RULES N4); an edit that ends a mark, or brings the marked block
// back, is audited. It needs snippet:edit.
//
// Refusals: STALE_REVISION with a StaleSnippet.
func (l *Library) UpdateSnippet(ctx context.Context, by actor.Actor, in SnippetUpdate) (Snippet, error) {
	if err := need(by, actor.SnippetEdit); err != nil {
		return Snippet{}, err
	}
	err := l.retried(ctx, "the snippet", func() (change.Change, error) {
		was, err := l.Store.Snippet(ctx, in.ID)
		if err != nil {
			return change.Change{}, err
		}
		if in.Revision != nil && *in.Revision != was.Revision {
			return change.Change{}, fault.Refuse(fault.StaleRevision, "The snippet is at revision %d by now; the edit started from revision %d.",
				was.Revision, *in.Revision).With(StaleSnippet{Current: was})
		}
		now := was
		set(&now.Name, in.Name)
		set(&now.Text, in.Text)
		if now.Snippet, err = checkSnippet(now.Snippet); err != nil || now == was {
			return change.Change{}, err
		}
		return l.snippetEdit(by, was, now), nil
	})
	if err != nil {
		return Snippet{}, err
	}
	return l.Store.Snippet(ctx, in.ID)
}

func (l *Library) snippetEdit(by actor.Actor, was, now Snippet) change.Change {
	c := change.Change{Updates: []change.Update{{
		Table: snippetsTable, ID: was.ID,
		If: []change.Value{snippetRevision.Is(was.Revision), snippetMark.Is(was.Mark)},
		Set: []change.Value{
			snippetName.To(now.Name), snippetText.To(now.Text), snippetRevision.To(was.Revision + 1), snippetEditorID.To(by.ID),
			snippetUpdatedAt.To(l.World.Now()),
		},
	}}}
	if was.Marked() != now.Marked() {
		now.Revision++
		c.Audit = []audit.Entry{l.markEntry(by, now, now.Marked(), "edit")}
	}
	return c
}

const maxSnippet = 64 << 10 // bytes

// checkSnippet refuses what cannot be a block.
func checkSnippet(s prompt.Snippet) (_ prompt.Snippet, err error) {
	if s.Name, err = label("name", s.Name); err != nil {
		return s, err
	}
	if s.Text, err = prose("text", s.Text, maxSnippet); err != nil {
		return s, err
	}
	if strings.TrimSpace(s.Text) == "" {
		return s, fault.New(fault.BadInput, "text must not be empty.")
	}
	return s, nil
}
