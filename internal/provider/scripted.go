package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
)

// scripted answers from a script. It remembers nothing between turns, not even
// through a circuit breaker: the same request gets the same answer on any replica.
type scripted struct {
	caller
	script *script
}

func newScripted(m *Models, provider library.Provider) (agent.Model, error) {
	parsed, err := parseScript(provider.Script)
	if err != nil {
		return nil, err
	}
	return &scripted{caller: m.caller(provider.Name, "", nil), script: parsed}, nil
}

// Turn implements agent.Model.
func (s *scripted) Turn(ctx context.Context, request agent.TurnRequest, onText func(string)) (agent.Turn, error) {
	at := positionOf(request.Messages)
	chosen := s.script.choose(at)
	if chosen == nil {
		return agent.Turn{}, s.told(failed(false, "has no step for turn %d after %s, and no default", at.turn, at.describe()))
	}
	planned, err := chosen.render(at.turn, newScope(request.SubjectID, at.result))
	if err != nil {
		return agent.Turn{}, s.told(failed(false, "cannot take the step in line %d: %s", chosen.line, err))
	}
	return s.turn(ctx, func(number int) (agent.Turn, error) {
		if fail := chosen.fail; fail != nil && (fail.times == 0 || number <= fail.times) {
			f := failed(retryableStatus(fail.status), "answered %s", strings.TrimSpace(fmt.Sprint(fail.status, " ", http.StatusText(fail.status))))
			f.Status, f.unanswered = fail.status, true
			return agent.Turn{}, f
		}
		return planned, stream(ctx, planned.Text, chosen.cut, onText)
	})
}

// stream passes the text on word by word. It ends early with ctx's error, or with a
// *failure where the script cuts it.
func stream(ctx context.Context, text string, cut int, onText func(string)) error {
	words := chunks(text)
	for i, word := range words {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if i == cut {
			return cutOff()
		}
		if onText != nil {
			onText(word)
		}
	}
	if cut >= 0 {
		return cutOff()
	}
	return ctx.Err()
}

// chunks splits text into words, each with the blanks that follow it; together they
// are the text.
func chunks(text string) []string {
	var out []string
	begin, blank := 0, false
	for i, r := range text {
		if blank && !unicode.IsSpace(r) {
			out = append(out, text[begin:i])
			begin = i
		}
		blank = unicode.IsSpace(r)
	}
	if begin < len(text) {
		out = append(out, text[begin:])
	}
	return out
}

// position is where in a script a transcript stands.
type position struct {
	turn   int             // assistant messages since the last user message, and one
	result *prompt.Message // the last tool message since then
	last   result          // how that ended, "" when there is none
}

func positionOf(messages []prompt.Message) position {
	out := position{turn: 1}
	for i := len(messages) - 1; i >= 0 && messages[i].Role != prompt.User; i-- {
		switch messages[i].Role {
		case prompt.Assistant:
			out.turn++
		case prompt.ToolRole:
			if out.result == nil {
				out.result = &messages[i]
				out.last = resultOf(messages[i])
			}
		}
	}
	return out
}

func (p position) describe() string {
	if p.last == "" {
		return "no result"
	}
	return "the result " + string(p.last)
}

// resultOf reads a tool message. A denial is the runtime's own error text, with the
// reason beside its token (RULES R14).
func resultOf(message prompt.Message) result {
	var denial struct {
		Error  string `json:"error"`
		Reason result `json:"reason"`
	}
	if json.Unmarshal([]byte(message.Text), &denial) == nil && denial.Error == "approval_denied" {
		if denial.Reason == resultVariant || denial.Reason == resultSkip {
			return denial.Reason
		}
		return resultError
	}
	if message.Failed {
		return resultError
	}
	return resultOK
}

// choose returns the first step that fits, else the default.
func (s *script) choose(at position) *step {
	for i := range s.steps {
		candidate := &s.steps[i]
		if (candidate.turn == 0 || candidate.turn == at.turn) && (candidate.last == "" || candidate.last == at.last) {
			return candidate
		}
	}
	return s.fallback
}

// render fills the placeholders in. Call ids follow from the turn, so they are the
// same on every replica and unique until the next user message.
func (s *step) render(turn int, in *scope) (agent.Turn, error) {
	text, err := s.text.fill(in)
	if err != nil {
		return agent.Turn{}, err
	}
	out := agent.Turn{Text: text, Usage: s.usage}
	for i, call := range s.calls {
		var arguments bytes.Buffer
		if err := call.arguments.write(&arguments, in); err != nil {
			return agent.Turn{}, err
		}
		out.Calls = append(out.Calls, prompt.Call{
			ID: fmt.Sprintf("call_%d_%d", turn, i+1), Tool: call.tool, Arguments: arguments.Bytes(),
		})
	}
	return out, nil
}
