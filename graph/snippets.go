package graph

import (
	"github.com/google/uuid"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/library"
)

func toSnippet(s library.Snippet) *model.Snippet {
	return &model.Snippet{
		ID: snippetKind.id(s.ID), Name: s.Name, Text: s.Text, Block: s.Block(), BlockDigest: s.Digest(), Marked: s.Marked(),
		Revision: s.Revision, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, EditorUUID: s.EditorID,
	}
}

func snippetConnection(w window, read []library.Snippet) *model.SnippetConnection {
	c := &model.SnippetConnection{}
	key := func(s library.Snippet) uuid.UUID { return s.ID }
	c.Nodes, c.Edges, c.PageInfo = connect(w, oldestFirst(read, key), rowKey(key), toSnippet,
		func(cursor string, n *model.Snippet) *model.SnippetEdge {
			return &model.SnippetEdge{Cursor: cursor, Node: n}
		})
	return c
}
