package builtin

import (
	"context"
	"fmt"

	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/tool"
)

// creates is the target of a call that makes its record: none (RULES G7).
func creates[A any](A) (tool.Target, bool) { return tool.Target{}, false }

// hidden tells a model what becomes of what it drafts.
const hidden = "hidden until somebody publishes it. Nothing is made before a person has approved it."

type createPageArgs struct {
	ParentID string         `json:"parentId"`
	Fields   map[string]any `json:"fields"`
}

func createPageDraft(c *content.Content) tool.Tool {
	creation := func(call tool.Call, a createPageArgs) content.Creation {
		return content.Creation{
			Table: content.PageTable, ParentID: a.ParentID, Fields: a.Fields, Hidden: true, Origin: origin(call),
		}
	}
	return write[createPageArgs]{
		spec: withTexts(writing("create_page_draft", "Draft a page", "Proposes a new page, "+hidden, tool.NonIdempotentWrite,
			object([]string{"fields"}, map[string]any{
				"parentId": text("The page that it stands below; without it the top of the site."), "fields": fieldsOf(content.PageTable),
			})), textsOf(content.PageTable)...),
		kind:   content.KindCreate,
		target: creates[createPageArgs],
		plan: func(ctx context.Context, call tool.Call, a createPageArgs) ([]string, error) {
			plan, err := c.PlanCreate(ctx, call.Actor, creation(call, a))
			if err != nil {
				return nil, err
			}
			place, err := placeOf(ctx, c, call, a.ParentID)
			if err != nil {
				return nil, err
			}
			return append([]string{"new hidden page at the end of " + place}, fieldLines(plan)...), nil
		},
		run: func(ctx context.Context, call tool.Call, a createPageArgs) (content.Written, error) {
			return c.Create(ctx, call.Actor, creation(call, a))
		},
	}
}

// placeOf names a page as a place.
func placeOf(ctx context.Context, c *content.Content, call tool.Call, id string) (string, error) {
	if id == "" {
		return "the top of the site", nil
	}
	page, err := c.Read(ctx, call.Actor, content.PageTable, id)
	if err != nil {
		return "", fmt.Errorf("reading the page of a place: %w", err)
	}
	return nameOf(page), nil
}

type translationArgs struct {
	tool.Record
	Language string                    `json:"language"`
	Fields   map[string]any            `json:"fields"`
	Elements map[string]map[string]any `json:"elements"`
}

func createTranslationDraft(c *content.Content) tool.Tool {
	translating := func(call tool.Call, a translationArgs) content.Translating {
		return content.Translating{
			Table: a.Table, ID: a.ID, Language: a.Language, Fields: a.Fields, Elements: a.Elements,
			Seen: seen(call), Origin: origin(call),
		}
	}
	texts := map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}}
	return write[translationArgs]{
		spec: withTexts(writing("create_translation_draft", "Draft a translation",
			"Proposes a translation of a page with its elements, or of one element, "+hidden+" Text that is not given stays in the original's language.",
			tool.NonIdempotentWrite,
			object([]string{"table", "id", "language", "fields"}, map[string]any{
				"table":    tableAmong(content.PageTable, content.ElementTable),
				"id":       text("The original's id."),
				"language": text("The language's tag, such as de or pt-BR."),
				"fields":   texts,
				"elements": map[string]any{
					"type": "object", "additionalProperties": texts,
					"description": "For a page: the texts of its elements, by the element's id.",
				},
			})), "/fields/*", "/elements/*/*"),
		kind:   content.KindCreate,
		target: creates[translationArgs],
		plan: func(ctx context.Context, call tool.Call, a translationArgs) ([]string, error) {
			in := translating(call, a)
			in.Seen = nil
			plan, err := c.PlanTranslate(ctx, call.Actor, in)
			if err != nil {
				return nil, err
			}
			note(call, append(plan.Originals, plan.Of)...)
			return translationLines(a.Language, plan), nil
		},
		run: func(ctx context.Context, call tool.Call, a translationArgs) (content.Written, error) {
			return c.Translate(ctx, call.Actor, translating(call, a))
		},
	}
}

func translationLines(language string, plan content.Translation) []string {
	lines := append([]string{heading("new hidden translation into "+language+" of", plan.Of)}, fieldLines(plan.Plan)...)
	for i, e := range plan.Elements {
		for _, line := range fieldLines(e) {
			lines = append(lines, "element "+plan.Originals[i].ID+": "+line)
		}
	}
	return append(lines, listLines("stays untranslated: ", plan.Untranslated)...)
}

type copyArgs struct {
	tool.Record
	ParentID *string `json:"parentId"`
}

func copyRecord(c *content.Content) tool.Tool {
	copying := func(call tool.Call, a copyArgs) content.Copying {
		return content.Copying{Table: a.Table, ID: a.ID, ParentID: a.ParentID, Seen: seen(call), Origin: origin(call)}
	}
	return write[copyArgs]{
		spec: writing("copy_record", "Copy a record",
			"Proposes a copy of a record, of a page with its elements and without subpages and address, "+hidden, tool.NonIdempotentWrite,
			object([]string{"table", "id"}, map[string]any{
				"table": tableName(), "id": text("The record's id."), "parentId": text("The page to put the copy below; without it beside the record."),
			})),
		kind:   content.KindCreate,
		target: creates[copyArgs],
		plan: func(ctx context.Context, call tool.Call, a copyArgs) ([]string, error) {
			in := copying(call, a)
			in.Seen = nil
			plan, err := c.PlanCopy(ctx, call.Actor, in)
			if err != nil {
				return nil, err
			}
			note(call, append(plan.Elements, plan.Record)...)
			lines := []string{heading("new hidden copy of", plan.Record)}
			if plan.Record.Table != content.FileTable {
				place, err := placeOf(ctx, c, call, plan.ToID)
				if err != nil {
					return nil, err
				}
				lines = append(lines, "place: the end of "+place)
			} else {
				lines = append(lines, "place: among the files")
			}
			return append(lines, recordLines("with it: ", plan.Elements)...), nil
		},
		run: func(ctx context.Context, call tool.Call, a copyArgs) (content.Written, error) {
			return c.Copy(ctx, call.Actor, copying(call, a))
		},
	}
}
