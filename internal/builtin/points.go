package builtin

import (
	"context"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/chat"
	"github.com/countersign/countersign/internal/tool"
)

// Points lists what was skipped before.
type Points interface {
	List(ctx context.Context, by actor.Actor, filter chat.PointFilter, page chat.Page) ([]chat.Point, error)
}

// pointView is an open point as the model reads it: names, no content.
type pointView struct {
	Table   string   `json:"table"`
	ID      string   `json:"id"`
	Fields  []string `json:"fields"`
	Tool    string   `json:"tool"`
	Skipped string   `json:"skipped"` // the day
	Times   int      `json:"times"`
}

// mostPoints bounds what one call lists.
const mostPoints = 100

// listOpenPoints tells the model what people skipped before on the record that the run
// works on, as far as its initiator may read the records (RULES O4).
func listOpenPoints(points Points) tool.Tool {
	return read[struct{}]{
		spec: process("list_open_points", "List open points", "Lists what was skipped before on the record that this run works on, and not applied since.",
			object([]string{}, map[string]any{})),
		run: func(ctx context.Context, call tool.Call, _ struct{}) (tool.Result, error) {
			if call.Subject == nil {
				return tool.Fail("no_subject", "This run works on no record, so it has no open points."), nil
			}
			open, err := points.List(ctx, call.Actor, chat.PointFilter{Subject: call.Subject}, chat.Page{Limit: mostPoints})
			if err != nil {
				return tool.Result{}, err
			}
			views := make([]pointView, len(open))
			for i, p := range open {
				views[i] = pointView{
					Table: p.Target.Table, ID: p.Target.ID, Fields: p.Target.Fields, Tool: p.Tool,
					Skipped: p.SkippedAt.Format("2006-01-02"), Times: p.Times,
				}
			}
			return answer(map[string]any{"openPoints": views})
		},
	}
}
