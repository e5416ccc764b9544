package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
)

func (h *house) window(tokens int) {
	h.t.Helper()
	var err error
	h.config, err = h.library.UpdateConfiguration(context.Background(), h.admin, library.ConfigurationUpdate{ID: h.config.ID, ContextWindow: &tokens})
	h.ok(err)
}

func TestContextBudget(t *testing.T) {
	t.Run("B3 what does not fit even alone ends the run before the model is asked", func(t *testing.T) {
		each(t, func(h *house) {
			h.window(8192)
			req := h.plain()
			req.Messages[0].Text = strings.Repeat("green ferns ", 5000)
			r := h.start(h.admin, req)
			if r.Status != run.Completed || r.Reason != run.ReasonContextTruncated || !r.Truncated || h.model.count() != 0 {
				h.t.Fatalf("%s %s after %d calls", r.Status, r.Reason, h.model.count())
			}
			h.window(100_000)
			if r = h.start(h.admin, req); r.Reason != run.ReasonCompleted {
				h.t.Fatalf("B1 a larger window: %s: %s", r.Reason, r.Message)
			}
		})
	})
	t.Run("B1 a script has no window unless its configuration names one", func(t *testing.T) {
		each(t, func(h *house) {
			req := h.plain()
			req.Messages[0].Text = strings.Repeat("green ferns ", 5000)
			if r := h.start(h.admin, req); r.Reason != run.ReasonCompleted {
				h.t.Fatalf("%s: %s", r.Reason, r.Message)
			}
		})
	})
	t.Run("B3 the oldest turns are left out of what is sent, and stay in the run", func(t *testing.T) {
		each(t, func(h *house) {
			h.window(5000)
			long := `{"id":"` + strings.Repeat("x", 3000) + `"}`
			h.model.says(calls("get_page", long), calls("get_page", long), calls("get_page", long), calls("get_page", long))
			r := h.start(h.admin, h.plain())
			if r.Reason != run.ReasonCompleted {
				h.t.Fatalf("%s: %s", r.Reason, r.Message)
			}
			last := h.model.asked(h.model.count() - 1).Messages
			answers := 0
			for _, m := range last {
				if m.Role == prompt.Assistant {
					answers++
				}
			}
			if answers == 0 || answers >= 4 || last[0].Role != prompt.System || last[1].Text != "Go." {
				h.t.Fatalf("%d of 4 turns were sent", answers)
			}
		})
	})
	t.Run("B5 what the provider counts is learned, also over a pause", func(t *testing.T) {
		each(t, func(h *house) {
			h.window(20_000)
			h.model.does(func(context.Context) (agent.Turn, error) {
				return agent.Turn{Calls: calls("update_element", fix), Usage: agent.Usage{InputTokens: 15_000}}, nil
			})
			req := h.plain()
			req.Messages[0].Text = strings.Repeat("green ferns ", 2000) // estimated at less than half of what is counted
			waiting := h.start(h.admin, req)
			h.model.does(func(context.Context) (agent.Turn, error) {
				return agent.Turn{Calls: calls("list_pages", `{}`), Usage: agent.Usage{InputTokens: 25_000}}, nil
			})
			r := h.decide(h.admin, waiting, true, "")
			if r.Reason != run.ReasonContextTruncated || h.model.count() != 2 {
				h.t.Fatalf("%s after %d calls", r.Reason, h.model.count())
			}
		})
	})
}
