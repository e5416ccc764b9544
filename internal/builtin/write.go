package builtin

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/tool"
)

func writing(name, title, description string, effect tool.Effect, schema map[string]any) tool.Spec {
	return tool.Spec{
		Definition: define(name, description, schema), Title: title,
		Group: tool.GroupContentWrite, Effect: effect, OffByDefault: true,
	}
}

// fieldsOf is the JSON Schema of a table's fields as a tool may set them. Who may
// read and edit is not among them: no tool changes rights.
func fieldsOf(table string) map[string]any {
	declared, err := content.TableNamed(table)
	if err != nil {
		panic(err) // a program error: the tables are the content room's constants
	}
	properties := map[string]any{}
	for _, f := range declared.Fields {
		switch f.Type {
		case content.Users: // no tool changes rights
		case content.Flag:
			properties[f.Name] = map[string]any{"type": "boolean"}
		default:
			properties[f.Name] = map[string]any{"type": "string"}
		}
	}
	schema := object([]string{}, properties)
	schema["minProperties"] = 1
	return schema
}

// textsOf is where the arguments of a tool hold a table's text: the fields that a
// translation says anew.
func textsOf(table string) []string {
	declared, err := content.TableNamed(table)
	if err != nil {
		panic(err) // as in fieldsOf
	}
	var places []string
	for _, f := range declared.Fields {
		if f.Spoken {
			places = append(places, "/fields/"+f.Name)
		}
	}
	return places
}

// withTexts is a declaration that says where its arguments hold text.
func withTexts(spec tool.Spec, places ...string) tool.Spec {
	spec.TextPlaces = places
	return spec
}

// seen is what the preview of a call showed, as the content room asks for it.
func seen(call tool.Call) content.Seen {
	if call.Basis == nil {
		return nil
	}
	out := content.Seen{}
	for r, revision := range call.Basis {
		out[content.Name(r)] = revision
	}
	return out
}

// note notes in a preview's basis which records it showed.
func note(call tool.Call, shown ...content.Record) {
	for _, r := range shown {
		call.Basis.Note(recordOf(r), r.Revision)
	}
}

func origin(call tool.Call) content.Origin { return content.Origin{Run: call.Run, Key: call.Key} }

type updateArgs struct {
	ID     string         `json:"id"`
	Fields map[string]any `json:"fields"`
}

func updateElement(c *content.Content) tool.Tool {
	return update(c, content.ElementTable, "update_element", "Change an element",
		"Proposes new values for fields of an element. Nothing changes before a person has approved it.")
}

func updatePageMetadata(c *content.Content) tool.Tool {
	return update(c, content.PageTable, "update_page_metadata", "Change a page's metadata",
		"Proposes new values for a page's own fields, such as its title or description. Nothing changes before a person has approved it.")
}

func update(c *content.Content, table, name, title, description string) tool.Tool {
	edit := func(call tool.Call, a updateArgs) content.Edit {
		return content.Edit{
			Table: table, ID: a.ID, Fields: a.Fields, Origin: origin(call),
			Revision: call.Basis[tool.Record{Table: table, ID: a.ID}],
		}
	}
	return write[updateArgs]{
		spec: withTexts(writing(name, title, description, tool.IdempotentWrite,
			object([]string{"id", "fields"}, map[string]any{"id": text("The record's id."), "fields": fieldsOf(table)})), textsOf(table)...),
		kind: content.KindUpdate,
		target: func(a updateArgs) (tool.Target, bool) {
			return tool.Target{
				Record: tool.Record{Table: table, ID: a.ID},
				Fields: slices.Sorted(maps.Keys(a.Fields)),
			}, true
		},
		plan: func(ctx context.Context, call tool.Call, a updateArgs) ([]string, error) {
			plan, err := c.PlanUpdate(ctx, call.Actor, edit(call, a))
			if err != nil {
				return nil, err
			}
			note(call, plan.Record)
			return append([]string{heading("change", plan.Record)}, fieldLines(plan)...), nil
		},
		run: func(ctx context.Context, call tool.Call, a updateArgs) (content.Written, error) {
			return c.Update(ctx, call.Actor, edit(call, a))
		},
	}
}

type createElementArgs struct {
	PageID string         `json:"pageId"`
	Fields map[string]any `json:"fields"`
}

func createElementDraft(c *content.Content) tool.Tool {
	creation := func(call tool.Call, a createElementArgs) content.Creation {
		return content.Creation{
			Table: content.ElementTable, ParentID: a.PageID, Fields: a.Fields, Hidden: true, Origin: origin(call),
		}
	}
	return write[createElementArgs]{
		spec: withTexts(writing("create_element_draft", "Draft an element",
			"Proposes a new element at the end of a page, hidden until somebody publishes it. Nothing is made before a person has approved it.",
			tool.NonIdempotentWrite,
			object([]string{"pageId", "fields"}, map[string]any{
				"pageId": text("The page that the element stands on."), "fields": fieldsOf(content.ElementTable),
			})), textsOf(content.ElementTable)...),
		kind:   content.KindCreate,
		target: func(createElementArgs) (tool.Target, bool) { return tool.Target{}, false },
		plan: func(ctx context.Context, call tool.Call, a createElementArgs) ([]string, error) {
			plan, err := c.PlanCreate(ctx, call.Actor, creation(call, a))
			if err != nil {
				return nil, err
			}
			page, err := c.Read(ctx, call.Actor, content.PageTable, a.PageID)
			if err != nil {
				return nil, fmt.Errorf("reading the page of the draft: %w", err)
			}
			return append([]string{heading("new hidden element at the end of", page)}, fieldLines(plan)...), nil
		},
		run: func(ctx context.Context, call tool.Call, a createElementArgs) (content.Written, error) {
			return c.Create(ctx, call.Actor, creation(call, a))
		},
	}
}
