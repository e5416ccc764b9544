package provider

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/countersign/countersign/internal/agent"
)

// completion is an answer on the wire: a chunk of a stream, or all of it.
type completion struct {
	Choices []choice        `json:"choices"`
	Usage   *wireUsage      `json:"usage"`
	Error   json.RawMessage `json:"error"`
	Object  string          `json:"object"`
}

type choice struct {
	Index        int    `json:"index"`
	Delta        *delta `json:"delta"`
	Message      *delta `json:"message"` // in the place of delta when nothing is streamed
	FinishReason string `json:"finish_reason"`
}

type delta struct {
	Content   contentText `json:"content"`
	Refusal   string      `json:"refusal"` // a model's own words for not answering
	ToolCalls []fragment  `json:"tool_calls"`
}

type wireUsage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
}

// contentText is content as a string, null, or a list of parts of which the text
// ones are read.
type contentText string

// UnmarshalJSON accepts the three shapes.
func (c *contentText) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '[' {
		return json.Unmarshal(data, (*string)(c))
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	for _, part := range parts {
		*c += contentText(part.Text)
	}
	return nil
}

// argumentText is arguments as the wire has them, text, or as some servers send
// them, the object itself.
type argumentText string

// UnmarshalJSON accepts both, and null.
func (a *argumentText) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		*a = argumentText(bytes.ToValidUTF8(data, []byte("\uFFFD")))
		return nil
	}
	return json.Unmarshal(data, (*string)(a))
}

// answer gathers an answer while it arrives.
type answer struct {
	limits Limits
	onText func(string)
	add    func(*answer, []byte) *failure // takes one piece: an event's data, or all of it

	text   strings.Builder
	calls  assembly
	size   int
	finish string
	usage  agent.Usage
}

// addCompletion takes a chunk of a chat completion, or a whole one.
func (a *answer) addCompletion(data []byte) *failure {
	var c completion
	if err := json.Unmarshal(data, &c); err != nil {
		return failed(true, "sent something that is no answer: %s", oneLine(string(data))).because(err)
	}
	if stated(c.Error) || c.Object == "error" {
		return reported(data)
	}
	if c.Usage != nil {
		a.usage = agent.Usage{InputTokens: c.Usage.PromptTokens, OutputTokens: c.Usage.CompletionTokens}
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 { // one answer was asked for
			continue
		}
		said := choice.Delta
		if said == nil {
			said = choice.Message
		}
		if said != nil {
			if f := a.addDelta(*said); f != nil {
				return f
			}
		}
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
	}
	return nil
}

func (a *answer) addDelta(d delta) *failure {
	for _, text := range []string{string(d.Content), d.Refusal} {
		if text == "" {
			continue
		}
		a.size += len(text)
		if a.size > a.limits.Answer {
			return failed(false, "sent more than the %d bytes an answer may have", a.limits.Answer)
		}
		a.text.WriteString(text)
		if a.onText != nil {
			a.onText(text)
		}
	}
	for _, f := range d.ToolCalls {
		a.size += len(f.Function.Arguments)
	}
	if a.size > a.limits.Answer {
		return failed(false, "sent more than the %d bytes an answer may have", a.limits.Answer)
	}
	// Before they are put together, which looks at every call for every fragment.
	if len(d.ToolCalls) <= a.limits.Calls {
		a.calls.add(d.ToolCalls)
	}
	if max(len(d.ToolCalls), len(a.calls.calls)) > a.limits.Calls {
		return failed(false, "asked for more than the %d calls a turn may have", a.limits.Calls)
	}
	return nil
}

// turn is the finished answer, or why it is none.
func (a *answer) turn() (agent.Turn, *failure) {
	empty := a.text.Len() == 0 && len(a.calls.calls) == 0
	switch {
	case a.finish == "content_filter":
		return agent.Turn{}, failed(false, "withheld its answer (content filter)")
	case a.finish == "error":
		return agent.Turn{}, failed(true, "broke its answer off with an error it did not explain")
	case a.finish == "length" && empty:
		return agent.Turn{}, failed(false, "used up its tokens before it answered anything")
	}
	calls, f := a.calls.finish()
	if f != nil {
		return agent.Turn{}, f
	}
	return agent.Turn{Text: a.text.String(), Calls: calls, Usage: a.usage}, nil
}
