package agent_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
)

// sort is what a call of a random turn is.
type sort struct {
	name, tool, arguments string
	refused               string // the token of a call that may not run, whatever stands beside it
	write, asks, done     bool
}

// sorts are the calls that a random turn is made of.
var sorts = []sort{
	{name: "read", tool: "get_page", arguments: `{"id":"home"}`},
	{name: "progress", tool: "report_progress", arguments: `{"position":1,"total":3}`},
	{name: "write", tool: "update_element", arguments: `{"id":"hello","fields":{"text":"%d"}}`, write: true},
	{name: "question", tool: "ask_choice", arguments: `{"question":"Which?","options":["a","b"]}`, asks: true},
	{name: "completion", tool: "report_progress", arguments: `{"position":3,"total":3,"done":true}`, done: true},
	{name: "unknown tool", tool: "no_such_tool", arguments: `{}`, refused: "not_offered"},
	{name: "unoffered tool", tool: "list_pages", arguments: `{}`, refused: "not_offered"},
	{name: "unoffered write", tool: "update_page_metadata", arguments: `{"id":"home","fields":{"title":"x"}}`, refused: "not_offered"},
	{name: "read with bad arguments", tool: "get_page", arguments: `{}`, refused: "invalid_arguments"},
	{name: "write with bad arguments", tool: "update_element", arguments: `{"id":"hello","fields":{}}`, refused: "invalid_arguments"},
	{name: "arguments that are no JSON", tool: "get_page", arguments: `{"id":`, refused: "invalid_arguments"},
}

// randomTurn is a turn of 1 to 8 calls, and what the rules say becomes of each: the token of its error,
// "waits", "before" for one that runs before the pause, or "after".
func randomTurn(r *rand.Rand, number int) (made []prompt.Call, what []sort, want []string, pending int) {
	for i := range 1 + r.IntN(8) {
		s := sorts[r.IntN(len(sorts))]
		if s.write && s.refused == "" {
			s.arguments = fmt.Sprintf(s.arguments, 1000*number+i)
		}
		what = append(what, s)
		made = append(made, prompt.Call{ID: fmt.Sprint("call-", number, "-", i), Tool: s.tool, Arguments: []byte(s.arguments)})
	}
	first := func(is func(sort) bool) int {
		return slices.IndexFunc(what, func(s sort) bool { return s.refused == "" && is(s) })
	}
	write, question := first(func(s sort) bool { return s.write }), first(func(s sort) bool { return s.asks })
	pending = write
	if write < 0 {
		pending = question
	}
	for i, s := range what {
		token := "before"
		switch {
		case s.refused != "":
			token = s.refused
		case i == pending:
			token = "waits"
		case pending >= 0 && s.done:
			token = "report_completion_after_decision"
		case write >= 0 && s.write:
			token = "one_approval_per_turn"
		case write >= 0 && s.asks:
			token = "input_refused_beside_approval"
		case write < 0 && s.asks:
			token = "one_question_per_turn"
		case write < 0 && question >= 0:
			token = "after"
		}
		want = append(want, token)
	}
	return made, what, want, pending
}

// TestRandomProcessTurns makes up turns of 1 to 8 mixed calls and holds what becomes of
// every call against what the rules say, decision and all.
func TestRandomProcessTurns(t *testing.T) {
	t.Run("C1 C7 X8 whatever a turn holds, each call is answered once and as it must be", func(t *testing.T) {
		each(t, func(h *house) {
			ready(h)
			r := rand.New(rand.NewPCG(11, 7))
			for n := range turns {
				h.randomly(r, n)
				if h.t.Failed() {
					h.t.Fatalf("at turn %d", n)
				}
			}
		})
	})
}

func (h *house) randomly(r *rand.Rand, number int) {
	h.t.Helper()
	made, what, want, pending := randomTurn(r, number)
	before, asked := h.text("hello"), h.model.count()
	h.model.says(made)
	rested := h.start(h.admin, h.tour())
	tell := func(format string, args ...any) {
		h.t.Helper()
		var names []string
		for _, s := range what {
			names = append(names, s.name)
		}
		h.t.Errorf("%s\nthe turn: %s", fmt.Sprintf(format, args...), strings.Join(names, ", "))
	}
	rests := run.Completed
	if pending >= 0 {
		if rests = run.WaitingForInput; what[pending].write {
			rests = run.WaitingForApproval
		}
	}
	if rested.Status != rests {
		tell("the run is %s, not %s: %s", rested.Status, rests, rested.Message)
		return
	}
	ran := h.ofKind(rested, run.EventToolCall)
	if pending >= 0 {
		early := map[int]bool{}
		for _, e := range ran {
			early[e.Data.Call] = true
		}
		for i, token := range want {
			if shown := token != "waits" && token != "after"; early[i] != shown {
				tell("call %d (%s) was answered before the pause: %v", i, token, early[i])
			}
		}
		if h.text("hello") != before || len(h.ofKind(rested, run.EventWrite)) > 0 || h.model.count() != asked+1 {
			tell("something was written, or asked, before the decision")
		}
		rested = h.answered(rested, what[pending].write, r.IntN(2) == 0)
	}
	if rested.Status != run.Completed {
		tell("in the end the run is %s: %s", rested.Status, rested.Message)
		return
	}
	h.answersEachOnce(tell, asked+1, made, want)
}

// answered answers the pause of a random turn, and holds a write to the answer.
func (h *house) answered(r agent.Run, write, approve bool) agent.Run {
	h.t.Helper()
	if !write {
		_, err := h.agent.SubmitInput(context.Background(), h.admin, agent.Input{Run: r.ID, TurnDigest: r.TurnDigest, Values: []byte(`{"choice":"b"}`)})
		h.ok(err)
		return h.settled(r.ID)
	}
	before, proposed := h.text("hello"), string(h.card(h.admin, r).Calls[0].Arguments)
	ended := h.decide(h.admin, r, approve, "")
	now := h.text("hello")
	if approve != strings.Contains(proposed, `"`+now+`"`) || !approve && now != before {
		h.t.Errorf("approved: %v, and %q became %q by %s", approve, before, now, proposed)
	}
	return ended
}

// answersEachOnce holds the request after a turn against what providers require: right
// behind the turn every call has one result, and what is in it against the rules.
func (h *house) answersEachOnce(tell func(string, ...any), request int, made []prompt.Call, want []string) {
	h.t.Helper()
	messages := h.model.asked(request).Messages
	at := slices.IndexFunc(messages, func(m prompt.Message) bool { return len(m.Calls) > 0 })
	if at < 0 || len(messages[at].Calls) != len(made) || len(messages) != at+1+len(made) {
		tell("%d messages, the turn at %d", len(messages), at)
		return
	}
	said := map[string]prompt.Message{}
	for i, m := range messages[at+1:] {
		if _, twice := said[m.CallID]; m.Role != prompt.ToolRole || twice {
			tell("message %d is a %s of %q", i, m.Role, m.CallID)
		}
		said[m.CallID] = m
	}
	for i, c := range made {
		m, there := said[c.ID]
		token := strings.Contains(m.Text, `"error":"`+want[i]+`"`)
		ran := want[i] == "before" || want[i] == "after" || want[i] == "waits"
		if !there || !ran && !token || ran && want[i] != "waits" && m.Failed {
			tell("call %d (%s) got %q", i, want[i], m.Text)
		}
	}
}
