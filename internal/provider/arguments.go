package provider

import (
	"bytes"
	"encoding/json"
	"strings"
)

// receivedArguments is what leaves the client as a call's arguments. An object is
// kept exactly as written. Nothing, or null, is how models call a tool that takes
// nothing: {}. Whatever else arrived becomes a JSON string that holds it: valid
// JSON, so that it can be stored, and no object, so that every gate refuses the
// call with an error the model can correct. Guessing {} instead would run a tool
// with arguments nobody wrote.
func receivedArguments(raw string) json.RawMessage {
	switch trimmed := strings.TrimSpace(raw); {
	case trimmed == "" || trimmed == "null":
		return json.RawMessage(`{}`)
	case trimmed[0] == '{' && json.Valid([]byte(trimmed)):
		return json.RawMessage(trimmed)
	}
	return quoted(raw)
}

// sentArguments is a call's arguments as the transcript shows them to the model.
// Servers parse them into their prompt template and fail on what is no object, so
// the text of a refused call travels inside one.
func sentArguments(arguments json.RawMessage) string {
	trimmed := bytes.TrimSpace(arguments)
	if len(trimmed) == 0 {
		return "{}"
	}
	if trimmed[0] == '{' && json.Valid(trimmed) {
		return string(trimmed)
	}
	var text string
	if json.Unmarshal(trimmed, &text) != nil {
		text = string(trimmed)
	}
	return `{"unreadable_arguments":` + string(quoted(text)) + `}`
}

// quoted is text as a JSON string.
func quoted(text string) json.RawMessage {
	out, _ := marshal(text) // a string always encodes
	return out
}

// marshal is json.Marshal without the escapes for HTML: a model reads what was
// written.
func marshal(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// scanner follows arguments as they arrive and knows, without reading them again,
// whether an object has closed.
type scanner struct {
	depth    int
	inString bool
	escaped  bool
	closed   bool
}

func (s *scanner) read(fragment string) {
	for i := range len(fragment) {
		switch c := fragment[i]; {
		case s.escaped:
			s.escaped = false
		case s.inString:
			s.escaped = c == '\\'
			s.inString = c != '"'
		case c == '"':
			s.inString = true
		case c == '{' || c == '[':
			s.depth++
		case c == '}' || c == ']':
			s.depth--
			s.closed = s.closed || s.depth == 0
		}
	}
}
