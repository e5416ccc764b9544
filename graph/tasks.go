package graph

import (
	"github.com/google/uuid"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/library"
)

func toTask(t library.Task) *model.Task {
	return &model.Task{ID: taskKind.id(t.ID), Name: t.Name, Prompt: t.Prompt, CreatedAt: t.CreatedAt, Domain: t}
}

func taskConnection(w window, read []library.Task) *model.TaskConnection {
	c := &model.TaskConnection{}
	key := func(t library.Task) uuid.UUID { return t.ID }
	c.Nodes, c.Edges, c.PageInfo = connect(w, oldestFirst(read, key), rowKey(key), toTask,
		func(cursor string, n *model.Task) *model.TaskEdge {
			return &model.TaskEdge{Cursor: cursor, Node: n}
		})
	return c
}
