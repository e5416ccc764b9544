package agent_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
)

func (h *house) rules(side, pattern, action string) {
	h.t.Helper()
	h.setting("guardrails", `[{"name":"rule","side":"`+side+`","pattern":"`+pattern+`","action":"`+action+`"}]`)
}

// answers are turns of text alone.
func (h *house) answers(texts ...string) {
	for _, text := range texts {
		h.model.does(func(ctx context.Context) (agent.Turn, error) {
			write(ctx, text)
			return agent.Turn{Text: text}, nil
		})
	}
}

// noticed says whether the run and its steps tell a notice once.
func (h *house) noticed(r agent.Run, code run.NoticeCode) {
	h.t.Helper()
	told := 0
	for _, e := range h.events(r.ID) {
		if e.Kind == run.EventNotice && e.Data.Code == string(code) {
			told++
		}
	}
	if !slices.Contains(codes(r), code) || told != 1 {
		h.t.Errorf("M2 the notice %s is told %d times, and the run has %v", code, told, codes(r))
	}
}

func TestGuardrailsOnInput(t *testing.T) {
	t.Run("M2 a denial ends the run before any model is asked", func(t *testing.T) {
		each(t, func(h *house) {
			h.rules("input", "Go", "deny")
			r := h.start(h.admin, h.plain())
			if r.Status != run.Failed || r.Reason != run.ReasonGuardrailBlocked || r.Outcome != run.OutcomeGuardrailBlocked || h.model.count() != 0 {
				h.t.Errorf("%s %s %s, asked %d times", r.Status, r.Reason, r.Outcome, h.model.count())
			}
			h.noticed(r, run.NoticeGuardrailBlocked)
		})
	})
	t.Run("M2 a result is redacted before the model reads it, and a denied one ends the run behind its step", func(t *testing.T) {
		each(t, func(h *house) {
			_, err := h.content.Update(context.Background(), h.admin, content.Edit{Table: content.ElementTable, ID: "hello", Fields: map[string]any{"text": "Ada was here"}})
			h.ok(err)
			read := calls("read_record", `{"table":"element","id":"hello"}`)
			h.rules("both", "Ada", "redact")
			h.model.says(read)
			if r := h.start(h.admin, h.plain()); r.Status != run.Completed {
				h.t.Fatalf("%s %q", r.Status, r.Message)
			}
			result := h.model.asked(1).Messages
			if text := result[len(result)-1].Text; strings.Contains(text, "Ada") || !strings.Contains(text, "[redacted:rule] was here") {
				h.t.Errorf("M2 %q", text)
			}
			h.rules("input", "Ada was", "deny")
			h.model.says(read)
			r := h.start(h.admin, h.plain())
			if r.Reason != run.ReasonGuardrailBlocked || !slices.Contains(kinds(h.events(r.ID)), run.EventToolCall) {
				h.t.Errorf("%s %v", r.Reason, kinds(h.events(r.ID)))
			}
		})
	})
	t.Run("M2 after a suspicious input builtin reads go on", func(t *testing.T) {
		each(t, func(h *house) {
			h.rules("input", "Go", "require_approval")
			h.model.says(calls("get_page", `{"id":"home"}`))
			r := h.start(h.admin, h.plain())
			if r.Status != run.Completed {
				h.t.Errorf("%s %q", r.Status, r.Message)
			}
			h.noticed(r, run.NoticeGuardrailApproval)
		})
	})
}

func TestGuardrailsOnOutput(t *testing.T) {
	t.Run("M2 a denied answer is kept and shown nowhere", func(t *testing.T) {
		each(t, func(h *house) {
			h.setting("privacy.level", "full")
			h.rules("output", "forbidden", "deny")
			h.answers("A forbidden word")
			r := h.start(h.admin, h.plain())
			if r.Reason != run.ReasonGuardrailBlocked || r.Answer != "" || h.kept(r.ID) != (agent.LiveText{}) {
				h.t.Errorf("%s %q", r.Reason, r.Answer)
			}
			for _, e := range kept(h, h.admin, r.ID) {
				if strings.Contains(e.Content.Text, "forbidden") {
					h.t.Errorf("the step %s keeps it", e.Kind)
				}
			}
			h.noticed(r, run.NoticeGuardrailBlocked)
		})
	})
	t.Run("M2 the model is asked again, at most twice, and every call counts", func(t *testing.T) {
		each(t, func(h *house) {
			h.rules("output", "as an AI", "retry")
			h.answers("Well, as an AI", "Hello")
			r := h.start(h.admin, h.plain())
			if r.Status != run.Completed || r.Answer != "Hello" {
				h.t.Fatalf("%s %q", r.Status, r.Answer)
			}
			first, second := h.model.asked(0).Messages, h.model.asked(1).Messages
			if len(second) != len(first)+1 || second[len(first)].Role != prompt.User {
				h.t.Errorf("it was asked again with %d messages after %d", len(second), len(first))
			}
			h.answers("as an AI", "as an AI", "as an AI", "never asked for")
			r = h.start(h.admin, h.plain())
			asked := 0
			for _, e := range h.events(r.ID) {
				if e.Kind == run.EventModelCall {
					asked++
				}
			}
			if r.Reason != run.ReasonGuardrailBlocked || asked != 3 {
				h.t.Errorf("%s after %d model calls", r.Reason, asked)
			}
		})
	})
	t.Run("M2 G3 a turn that matches waits for a person, and an answer cannot", func(t *testing.T) {
		each(t, func(h *house) {
			h.rules("output", "home", "require_approval")
			h.model.says(calls("get_page", `{"id":"home"}`))
			r := h.start(h.admin, h.plain())
			if r.Status != run.WaitingForApproval {
				h.t.Fatalf("%s %q", r.Status, r.Message)
			}
			h.noticed(r, run.NoticeGuardrailApproval)
			if r = h.decide(h.admin, r, true, ""); r.Status != run.Completed || r.Answer != "Done." {
				h.t.Errorf("%s %q", r.Status, r.Answer)
			}
			h.answers("I am home")
			r = h.start(h.admin, h.plain())
			if r.Status != run.Failed || r.Reason != run.ReasonGuardrailApproval || r.Answer != "" {
				h.t.Errorf("%s %s %q", r.Status, r.Reason, r.Answer)
			}
		})
	})
	t.Run("M2 with a rule on output a text is shown once it has passed, redacted", func(t *testing.T) {
		each(t, func(h *house) {
			h.rules("output", "Ada", "redact")
			k := h.typist()
			r := h.begins()
			reader := h.reads(h.agent, r.ID)
			k.keys <- "Ada says"
			k.ends <- agent.Turn{Text: "Ada says hello", Calls: calls("update_element", `{"id":"hello","fields":{"text":"Ada"}}`)}
			reader.until("[redacted:rule] says hello")
			r = h.settled(r.ID)
			h.decide(h.admin, r, true, "")
			if got := h.text("hello"); got != "[redacted:rule]" {
				h.t.Errorf("M2 %q was written", got)
			}
		})
	})
	t.Run("M2 rules that cannot be read are refused when they are set", func(t *testing.T) {
		each(t, func(h *house) {
			value := `[{"name":"x","side":"both","pattern":"(","action":"deny"}]`
			if _, err := h.access.UpdateSetting(context.Background(), h.admin, "guardrails", &value); !fault.Is(err, fault.BadInput) {
				h.t.Errorf("got %v", err)
			}
		})
	})
}
