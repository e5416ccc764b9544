package run

import (
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/prompt"
)

// Privacy says how much of what is said the events of a run keep (RULES Y1).
type Privacy string

// The levels.
const (
	PrivacyNone     Privacy = "none"     // only the steps that the runtime itself reads
	PrivacyMetadata Privacy = "metadata" // every step, as counts and names
	PrivacyRedacted Privacy = "redacted" // and words without secrets and values, cut at a bound
	PrivacyFull     Privacy = "full"     // and whole words
)

// Privacies lists the levels, the one that keeps least first.
var Privacies = []Privacy{PrivacyNone, PrivacyMetadata, PrivacyRedacted, PrivacyFull}

// Stricter is the level of two that keeps less. A level that nobody knows keeps nothing.
func Stricter(a, b Privacy) Privacy {
	return Privacies[max(0, min(slices.Index(Privacies, a), slices.Index(Privacies, b)))]
}

// Content is what was said in a step, in words. A kind uses the fields that its line in
// docs/running.md names. It is kept at the levels redacted and full, encrypted at rest.
type Content struct {
	Messages  []prompt.Message `json:"messages,omitempty"`  // STARTED: what was asked
	Text      string           `json:"text,omitempty"`      // MODEL_CALL: what the model said; SETTLED: the answer
	Arguments json.RawMessage  `json:"arguments,omitempty"` // TOOL_CALL
	Result    string           `json:"result,omitempty"`    // TOOL_CALL: what the model read
	Proposed  []Proposed       `json:"proposed,omitempty"`  // SUSPENDED: the calls that wait; TOOL_CALL: a call that a person changed, as it was proposed
	Values    json.RawMessage  `json:"values,omitempty"`    // INPUT: what the person gave
}

// Proposed is a call that waits, with what it would change.
type Proposed struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Preview   []string        `json:"preview,omitempty"`
}

// unread are the kinds that only people read; the runtime decides nothing by them, and
// what a person must know of them stands on the run's row.
var unread = []EventKind{EventModelCall, EventProgress, EventHighlight, EventNotice}

// Keep is what is stored of events. At redacted, hide takes secrets out of a text; nil
// takes none out.
func (p Privacy) Keep(events []Event, hide func(string) string) []Event {
	kept := make([]Event, 0, len(events))
	for _, e := range events {
		switch p {
		case PrivacyFull:
		case PrivacyRedacted:
			e.Content = e.Content.redacted(hide)
		case PrivacyMetadata:
			e.Content = nil
		default:
			if slices.Contains(unread, e.Kind) {
				continue
			}
			e.Content, e.Data.Bytes, e.DurationMS = nil, 0, 0
		}
		e.Data.Content = e.Content != nil
		kept = append(kept, e)
	}
	return kept
}

// redactedBytes is where a redacted text is cut.
const redactedBytes = 500

// redacted is the content without secrets and without the values of fields: of arguments,
// results and values the shape is left, of a text its beginning. Previews are nothing
// but values.
func (c *Content) redacted(hide func(string) string) *Content {
	if c == nil {
		return nil
	}
	if hide == nil {
		hide = func(text string) string { return text }
	}
	out := &Content{Text: cut(hide(c.Text)), Arguments: shape(c.Arguments), Values: shape(c.Values)}
	for _, m := range c.Messages {
		out.Messages = append(out.Messages, prompt.Message{Role: m.Role, Text: cut(hide(m.Text))})
	}
	for _, p := range c.Proposed {
		out.Proposed = append(out.Proposed, Proposed{Tool: p.Tool, Arguments: shape(p.Arguments)})
	}
	if c.Result != "" {
		out.Result = string(shape(json.RawMessage(c.Result)))
	}
	return out
}

// cut bounds a text, at the end of a character.
func cut(text string) string {
	if len(text) <= redactedBytes {
		return text
	}
	at := redactedBytes
	for !utf8.RuneStart(text[at]) {
		at--
	}
	return text[:at] + "… (" + strconv.Itoa(len(text)) + " bytes)"
}

// shape is a JSON value with the sort of every scalar in its place. What is no JSON is a
// text, and a shape that is itself too long is left out.
func shape(text json.RawMessage) json.RawMessage {
	if len(text) == 0 {
		return nil
	}
	var v any
	if json.Unmarshal(text, &v) != nil {
		v = string(text)
	}
	out, err := json.Marshal(sorts(v))
	if err != nil || len(out) > shapeBytes {
		return json.RawMessage(`"` + strconv.Itoa(len(text)) + ` bytes"`)
	}
	return out
}

// shapeBytes is how long a shape may be.
const shapeBytes = 2000

// sorts puts what sort of value it is into the place of every scalar.
func sorts(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = sorts(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = sorts(item)
		}
		return out
	case string:
		return strconv.Itoa(len(v)) + " bytes"
	case float64:
		return "number"
	case bool:
		return "boolean"
	}
	return nil
}
