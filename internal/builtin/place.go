package builtin

import (
	"context"

	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/tool"
)

// whole is the target of a call that is about a record and none of its fields
// (RULES G7).
func whole(table, id string) (tool.Target, bool) {
	return tool.Target{Record: tool.Record{Table: table, ID: id}, Fields: []string{}}, true
}

const notBefore = "Nothing changes before a person has approved it."

type moveArgs struct {
	ID       string  `json:"id"`
	PageID   *string `json:"pageId"`
	ParentID *string `json:"parentId"`
	BeforeID string  `json:"beforeId"`
}

func moveElement(c *content.Content) tool.Tool {
	return move(c, content.ElementTable, "move_element", "Move an element", map[string]any{
		"id": text("The element's id."), "pageId": text("The page to put it on; without it the one that it is on."),
		"beforeId": text("The element to put it before; without it at the end."),
	})
}

func movePage(c *content.Content) tool.Tool {
	return move(c, content.PageTable, "move_page", "Move a page", map[string]any{
		"id": text("The page's id."),
		"parentId": map[string]any{
			"type": "string", "maxLength": 1000,
			"description": "The page to put it below, empty for the top of the site; without it where it is.",
		},
		"beforeId": text("The page to put it before; without it at the end."),
	})
}

func move(c *content.Content, table, name, title string, properties map[string]any) tool.Tool {
	moving := func(call tool.Call, a moveArgs) content.Move {
		to := a.ParentID
		if table == content.ElementTable {
			to = a.PageID
		}
		return content.Move{Table: table, ID: a.ID, ParentID: to, BeforeID: a.BeforeID, Seen: seen(call), Origin: origin(call)}
	}
	return write[moveArgs]{
		spec: writing(name, title, "Proposes another place for it; its translations go along. "+notBefore,
			tool.IdempotentWrite, object([]string{"id"}, properties)),
		kind:   content.KindMove,
		target: func(a moveArgs) (tool.Target, bool) { return whole(table, a.ID) },
		plan: func(ctx context.Context, call tool.Call, a moveArgs) ([]string, error) {
			in := moving(call, a)
			in.Seen = nil
			plan, err := c.PlanMove(ctx, call.Actor, in)
			if err != nil {
				return nil, err
			}
			note(call, append(plan.Along, plan.Record)...)
			return moveLines(ctx, c, call, plan, a.BeforeID)
		},
		run: func(ctx context.Context, call tool.Call, a moveArgs) (content.Written, error) {
			return c.Move(ctx, call.Actor, moving(call, a))
		},
	}
}

func moveLines(ctx context.Context, c *content.Content, call tool.Call, plan content.Journey, beforeID string) ([]string, error) {
	from, err := placeOf(ctx, c, call, plan.Record.ParentID)
	if err != nil {
		from = "a page that you may not read"
	}
	to, err := placeOf(ctx, c, call, plan.ToID)
	if err != nil {
		return nil, err
	}
	where := "at the end"
	if beforeID != "" {
		sibling, err := c.Read(ctx, call.Actor, plan.Record.Table, beforeID)
		if err != nil {
			return nil, err
		}
		where = "before " + nameOf(sibling)
	}
	lines := []string{heading("move", plan.Record), "place: " + from + " → " + to + ", " + where}
	lines = append(lines, recordLines("goes along: ", plan.Along)...)
	return append(lines, listLines("stays: ", leftNames(plan.Left))...), nil
}

func deleteRecord(c *content.Content) tool.Tool {
	deletion := func(call tool.Call, a tool.Record) content.Deletion {
		return content.Deletion{Table: a.Table, ID: a.ID, Seen: seen(call), Origin: origin(call)}
	}
	return write[tool.Record]{
		spec: writing("delete_record", "Delete a record",
			"Proposes to delete a record with everything that depends on it: what stands below a page, and translations. "+notBefore,
			tool.IdempotentWrite, object([]string{"table", "id"}, map[string]any{"table": tableName(), "id": text("The record's id.")})),
		kind:   content.KindDelete,
		target: func(a tool.Record) (tool.Target, bool) { return whole(a.Table, a.ID) },
		plan: func(ctx context.Context, call tool.Call, a tool.Record) ([]string, error) {
			in := deletion(call, a)
			in.Seen = nil
			plan, err := c.PlanDelete(ctx, call.Actor, in)
			if err != nil {
				return nil, err
			}
			note(call, append(plan.Along, plan.Record)...)
			lines := []string{heading("delete", plan.Record), "the record: there → deleted"}
			lines = append(lines, recordLines("with it: ", plan.Along)...)
			return append(lines, listLines("stays: ", leftNames(plan.Left))...), nil
		},
		run: func(ctx context.Context, call tool.Call, a tool.Record) (content.Written, error) {
			return c.Delete(ctx, call.Actor, deletion(call, a))
		},
	}
}

func publishRecord(c *content.Content) tool.Tool {
	showing := func(call tool.Call, a tool.Record) content.Showing {
		return content.Showing{Table: a.Table, ID: a.ID, Revision: call.Basis[a], Origin: origin(call)}
	}
	return write[tool.Record]{
		spec: writing("publish_record", "Publish a record", "Proposes to show a hidden record to visitors. "+notBefore,
			tool.IdempotentWrite, object([]string{"table", "id"}, map[string]any{"table": tableName(), "id": text("The record's id.")})),
		kind:   content.KindPublish,
		target: func(a tool.Record) (tool.Target, bool) { return whole(a.Table, a.ID) },
		plan: func(ctx context.Context, call tool.Call, a tool.Record) ([]string, error) {
			now, err := c.PlanShow(ctx, call.Actor, showing(call, a))
			if err != nil {
				return nil, err
			}
			note(call, now)
			line := "hidden: unchanged, it is published already"
			if now.Hidden {
				line = "hidden: true → false"
			}
			return []string{heading("publish", now), line}, nil
		},
		run: func(ctx context.Context, call tool.Call, a tool.Record) (content.Written, error) {
			return c.Show(ctx, call.Actor, showing(call, a))
		},
	}
}

// listLines shows names after a mark, one a line.
func listLines(mark string, names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = mark + name
	}
	return out
}

func recordLines(mark string, records []content.Record) []string {
	out := make([]string, len(records))
	for i, r := range records {
		out[i] = mark + nameOf(r)
	}
	return out
}
