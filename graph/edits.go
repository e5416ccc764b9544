package graph

import (
	"github.com/google/uuid"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/skill"
)

// edit is a revision with the text that it changed.
type edit struct {
	library.Revision
	before skill.Version
}

// edits are the revisions of a skill, newest first, each with the one before it.
func edits(all []library.Revision) []edit {
	out := make([]edit, len(all))
	for i, r := range all {
		out[i].Revision = r
		if i+1 < len(all) {
			out[i].before = all[i+1].Version
		}
	}
	return out
}

func toSkillRevision(e edit) *model.SkillRevision {
	v := e.Version
	return &model.SkillRevision{
		Number: e.Number, Name: v.Name, Description: v.Description, Body: v.Body, AllowedTools: toTools(v.Tools),
		Process: v.Process == skill.ProcessYes, Digest: string(v.Digest()), At: e.At, Domain: e.Revision, Before: e.before,
	}
}

var editKey = rowKey(func(e edit) uuid.UUID { return e.ID })

func editConnection(w window, read []edit) *model.SkillRevisionConnection {
	c := &model.SkillRevisionConnection{}
	c.Nodes, c.Edges, c.PageInfo = connect(w, read, editKey, toSkillRevision,
		func(cursor string, n *model.SkillRevision) *model.SkillRevisionEdge {
			return &model.SkillRevisionEdge{Cursor: cursor, Node: n}
		})
	return c
}
