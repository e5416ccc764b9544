package graph

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
)

func TestWhatWasSaidInAStep(t *testing.T) {
	arguments, values := json.RawMessage(`{"id":"home"}`), json.RawMessage(`{"choice":"yes"}`)
	said := func(kind run.EventKind, c run.Content) run.Event { return run.Event{Kind: kind, Content: &c} }
	for kind, c := range map[run.EventKind]struct {
		event run.Event
		got   func(model.RunEvent) any
		want  any
	}{
		run.EventStarted: {
			said(run.EventStarted, run.Content{Messages: []prompt.Message{{Role: prompt.User, Text: "Go."}}}),
			func(e model.RunEvent) any { return e.(*model.StartedEvent).Messages },
			[]*model.EventMessage{{Role: model.MessageRoleUser, Text: "Go."}},
		},
		run.EventModelCall: {
			said(run.EventModelCall, run.Content{Text: "Yes."}),
			func(e model.RunEvent) any { return *e.(*model.ModelCallEvent).Text }, "Yes.",
		},
		run.EventToolCall: {
			said(run.EventToolCall, run.Content{Arguments: arguments, Result: "found"}),
			func(e model.RunEvent) any {
				return []string{string(e.(*model.ToolCallEvent).Arguments), *e.(*model.ToolCallEvent).Result}
			},
			[]string{string(arguments), "found"},
		},
		run.EventSuspended: {
			said(run.EventSuspended, run.Content{Proposed: []run.Proposed{{Tool: "t", Arguments: arguments, Preview: []string{"a"}}, {Tool: "u"}}}),
			func(e model.RunEvent) any { return e.(*model.SuspendedEvent).Proposed },
			[]*model.EventProposal{{Tool: "t", Arguments: arguments, Preview: []string{"a"}}, {Tool: "u", Preview: []string{}}},
		},
		run.EventInput: {
			said(run.EventInput, run.Content{Values: values}),
			func(e model.RunEvent) any { return string(e.(*model.InputEvent).Values) }, string(values),
		},
		run.EventSettled: {
			said(run.EventSettled, run.Content{Text: "Done."}),
			func(e model.RunEvent) any { return *e.(*model.SettledEvent).Answer }, "Done.",
		},
	} {
		t.Run("Y1 "+string(kind)+" shows what was said", func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.got(toEvent(c.event))); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("Y1 every kind says when what was said cannot be decrypted", func(t *testing.T) {
		for kind := range eventTypes {
			for _, unreadable := range []bool{true, false} {
				shown, err := json.Marshal(toEvent(run.Event{Kind: kind, Unreadable: unreadable}))
				if err != nil || strings.Contains(string(shown), `"contentUnreadable":true`) != unreadable {
					t.Errorf("%s: %s %v", kind, shown, err)
				}
			}
		}
	})
}
