package store

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/ent"
	entsnippet "github.com/countersign/countersign/ent/snippet"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
)

// Snippet implements library.Store.
func (s *Store) Snippet(ctx context.Context, id uuid.UUID) (library.Snippet, error) {
	row, err := s.client.Snippet.Get(ctx, id)
	return one(ctx, "snippet", row, err, toSnippet)
}

// SnippetsByID implements library.Store.
func (s *Store) SnippetsByID(ctx context.Context, ids []uuid.UUID) ([]library.Snippet, error) {
	rows, err := s.client.Snippet.Query().Where(entsnippet.IDIn(ids...)).All(ctx)
	slices.SortFunc(rows, func(a, b *ent.Snippet) int { return slices.Index(ids, a.ID) - slices.Index(ids, b.ID) })
	return all(ctx, "snippet", rows, err, toSnippet)
}

// Snippets implements library.Store.
func (s *Store) Snippets(ctx context.Context, page library.Page) ([]library.Snippet, error) {
	p := paged{page.Cursor, page.Limit, page.Backward, false}
	rows, err := s.client.Snippet.Query().Where(p.on).All(ctx)
	return all(ctx, "snippet", in(p, rows), err, toSnippet)
}

func toSnippet(row *ent.Snippet) library.Snippet {
	return library.Snippet{
		ID: row.ID, Snippet: prompt.Snippet{Name: row.Name, Text: row.Text, Mark: row.Mark}, Revision: row.Revision,
		EditorID: row.EditorID, CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
	}
}

// Task implements library.Store.
func (s *Store) Task(ctx context.Context, id uuid.UUID) (library.Task, error) {
	row, err := s.client.Task.Get(ctx, id)
	return one(ctx, "task", row, err, toTask)
}

// Tasks implements library.Store.
func (s *Store) Tasks(ctx context.Context, page library.Page) ([]library.Task, error) {
	p := paged{page.Cursor, page.Limit, page.Backward, false}
	rows, err := s.client.Task.Query().Where(p.on).All(ctx)
	return all(ctx, "task", in(p, rows), err, toTask)
}

func toTask(row *ent.Task) library.Task {
	return library.Task{
		ID: row.ID, Name: row.Name, ConfigurationID: row.ConfigurationID, Prompt: row.Prompt,
		Arrangement: row.Arrangement, CreatedAt: row.CreatedAt.UTC(),
	}
}
