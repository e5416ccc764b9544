package builtin

import (
	"context"

	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/tool"
)

type pictureArgs struct {
	tool.Record
	FileID      string  `json:"fileId"`
	Alternative *string `json:"alternative"`
}

func (a pictureArgs) picture(call tool.Call) content.Picture {
	return content.Picture{
		Table: a.Table, ID: a.ID, FileID: a.FileID, Alternative: a.Alternative,
		Revision: call.Basis[a.Record], Seen: seen(call), Origin: origin(call),
	}
}

// pictureTarget names the fields that a call sets, sorted.
func pictureTarget(a pictureArgs) (tool.Target, bool) {
	fields := []string{content.ImageField}
	if a.Alternative != nil {
		fields = []string{content.AlternativeField, content.ImageField}
	}
	return tool.Target{Record: a.Record, Fields: fields}, true
}

func pictureSpec(name, title, description string) tool.Spec {
	return withTexts(writing(name, title, description+" "+notBefore, tool.IdempotentWrite,
		object([]string{"table", "id", "fileId"}, map[string]any{
			"table": tableAmong(content.PageTable, content.ElementTable), "id": text("The id of the page or element."),
			"fileId": text("The id of the file to show."),
			"alternative": map[string]any{
				"type": "string", "maxLength": 1000,
				"description": "The text for those who do not see the picture; without it the file's own is used.",
			},
		})), "/alternative")
}

func attachFile(c *content.Content) tool.Tool {
	return write[pictureArgs]{
		spec: pictureSpec("attach_file", "Show a file", "Proposes that a page or an element shows a file; it must show none yet."),
		kind: content.KindUpdate, target: pictureTarget,
		plan: func(ctx context.Context, call tool.Call, a pictureArgs) ([]string, error) {
			plan, err := c.PlanAttach(ctx, call.Actor, a.picture(call))
			if err != nil {
				return nil, err
			}
			note(call, plan.Record)
			return append([]string{heading("show a file on", plan.Record)}, fieldLines(plan)...), nil
		},
		run: func(ctx context.Context, call tool.Call, a pictureArgs) (content.Written, error) {
			return c.Attach(ctx, call.Actor, a.picture(call))
		},
	}
}

func replaceFileReference(c *content.Content) tool.Tool {
	return write[pictureArgs]{
		spec: pictureSpec("replace_file_reference", "Show another file",
			"Proposes that a page or an element, and with it the translations that show the same file, shows another one. A text for the old file that is not replaced goes."),
		kind: content.KindUpdate, target: pictureTarget,
		plan: func(ctx context.Context, call tool.Call, a pictureArgs) ([]string, error) {
			in := a.picture(call)
			in.Seen = nil
			plan, err := c.PlanReplace(ctx, call.Actor, in)
			if err != nil {
				return nil, err
			}
			note(call, append(plan.Along, plan.Record)...)
			lines := append([]string{heading("show another file on", plan.Record)}, fieldLines(plan.Plan)...)
			for _, t := range plan.Along {
				lines = append(lines, "likewise: "+nameOf(t))
				if old := field(t, content.AlternativeField); old != "" {
					lines = append(lines, "  its alternative: "+show(old)+" → (empty)")
				}
			}
			return append(lines, listLines("stays with the old file: ", leftNames(plan.Left))...), nil
		},
		run: func(ctx context.Context, call tool.Call, a pictureArgs) (content.Written, error) {
			return c.Replace(ctx, call.Actor, a.picture(call))
		},
	}
}

type wordingArgs struct {
	tool.Record
	Text string `json:"text"`
}

func setAlternativeText(c *content.Content) tool.Tool {
	wording := func(call tool.Call, a wordingArgs) content.Wording {
		return content.Wording{Table: a.Table, ID: a.ID, Text: a.Text, Revision: call.Basis[a.Record], Origin: origin(call)}
	}
	return write[wordingArgs]{
		spec: withTexts(writing("set_alternative_text", "Describe a picture",
			"Proposes the text for those who do not see a picture: of a file wherever it is shown, or of the file that one page or element shows. "+notBefore,
			tool.IdempotentWrite, object([]string{"table", "id", "text"}, map[string]any{
				"table": tableName(), "id": text("The id of the file, page or element."),
				"text": map[string]any{"type": "string", "maxLength": 1000, "description": "The text; empty takes it away."},
			})), "/text"),
		kind: content.KindUpdate,
		target: func(a wordingArgs) (tool.Target, bool) {
			return tool.Target{Record: a.Record, Fields: []string{content.AlternativeField}}, true
		},
		plan: func(ctx context.Context, call tool.Call, a wordingArgs) ([]string, error) {
			plan, err := c.PlanAlternative(ctx, call.Actor, wording(call, a))
			if err != nil {
				return nil, err
			}
			note(call, plan.Record)
			return append([]string{heading("describe the picture of", plan.Record)}, fieldLines(plan)...), nil
		},
		run: func(ctx context.Context, call tool.Call, a wordingArgs) (content.Written, error) {
			return c.SetAlternative(ctx, call.Actor, wording(call, a))
		},
	}
}
