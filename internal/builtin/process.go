package builtin

import (
	"context"
	"fmt"

	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/tool"
)

func process(name, title, description string, schema map[string]any) tool.Spec {
	return tool.Spec{
		Definition: define(name, description, schema), Title: title,
		Group: tool.GroupProcess, Effect: tool.ReadOnly,
	}
}

// reportProgress says where a process is (RULES C2).
func reportProgress() tool.Tool {
	return read[tool.Progress]{
		spec: process(tool.ReportProgress, "Report progress", "Says at which point of how many you are, and whether the process is done.",
			object([]string{"position", "total"}, map[string]any{
				"position": map[string]any{"type": "integer", "description": "The point you are at; the first is 1."},
				"total":    map[string]any{"type": "integer", "description": "How many points there are."},
				"done":     map[string]any{"type": "boolean", "description": "True when the whole process is done."},
			})),
		run: func(_ context.Context, _ tool.Call, p tool.Progress) (tool.Result, error) {
			if p.Position < 1 || p.Position > p.Total {
				return tool.Fail("position_out_of_range", fmt.Sprintf("position must be from 1 to total: %d of %d is not", p.Position, p.Total)), nil
			}
			result := tool.OK("noted")
			result.Report = &tool.Report{Progress: &p}
			return result, nil
		},
	}
}

// highlightRecord shows which record the process is at (RULES C2): the subject of the
// run or, where that is a page, an element on it that the initiator may read.
func highlightRecord(c *content.Content) tool.Tool {
	return read[tool.Record]{
		spec: process("highlight_record", "Highlight a record", "Shows the person which record you are at: the subject of this run or an element on it.",
			object([]string{"table", "id"}, map[string]any{"table": tableName(), "id": text("The record's id.")})),
		run: func(ctx context.Context, call tool.Call, at tool.Record) (tool.Result, error) {
			if call.Subject == nil {
				return tool.Fail("no_subject", "This run works on no record, so there is nothing to highlight."), nil
			}
			r, err := c.Read(ctx, call.Actor, at.Table, at.ID)
			if err != nil && !fault.Is(err, fault.NotFound) {
				return tool.Result{}, err
			}
			if err != nil || !belongs(r, *call.Subject) {
				return tool.Fail("not_a_target", "Only the subject of this run and the elements on it can be highlighted."), nil
			}
			result := tool.OK("highlighted")
			result.Report = &tool.Report{Highlight: &at}
			return result, nil
		},
	}
}

func belongs(r content.Record, subject tool.Record) bool {
	if recordOf(r) == subject {
		return true
	}
	return subject.Table == content.PageTable && r.Table == content.ElementTable && r.ParentID == subject.ID
}
