package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/countersign/countersign/internal/prompt"
)

// template is a string with ${…} in it, taken apart when the script is read.
type template []part

// part is literal text, or a placeholder when path is set: ["subject", "id"], or
// "last" and the way into the last result.
type part struct {
	literal string
	path    []string
}

// parseTemplate knows ${subject.id}, ${last} and ${last.<path>}, and $${ for a
// literal ${.
func parseTemplate(text string) (template, error) {
	var out template
	for {
		at := strings.Index(text, "${")
		switch {
		case at < 0:
			if text != "" {
				out = append(out, part{literal: text})
			}
			return out, nil
		case at > 0 && text[at-1] == '$':
			out = append(out, part{literal: text[:at-1] + "${"})
			text = text[at+2:]
			continue
		case at > 0:
			out = append(out, part{literal: text[:at]})
		}
		name, rest, closed := strings.Cut(text[at+2:], "}")
		if !closed {
			return nil, fmt.Errorf("${ is never closed; write $${ for a literal ${")
		}
		path, err := parsePath(name)
		if err != nil {
			return nil, err
		}
		out = append(out, part{path: path})
		text = rest
	}
}

// parsePath takes a.b.0.c and a.b[0].c apart.
func parsePath(name string) ([]string, error) {
	if !knownPath.MatchString(name) {
		return nil, fmt.Errorf("${%s} is not known; known are ${subject.id}, ${last} and ${last.<path>}, such as ${last.items.0.id}", name)
	}
	dotted := strings.ReplaceAll(strings.ReplaceAll(name, "[", "."), "]", "")
	return strings.Split(dotted, "."), nil
}

var knownPath = regexp.MustCompile(`^(subject\.id|last(\.[^\s.\[\]]+|\[\d+\])*)$`)

// scope is what placeholders stand for in one turn.
type scope struct {
	subject string
	result  *prompt.Message // the last tool result, nil when there is none
	parsed  any             // of the result, once asked for
	isJSON  bool
}

func newScope(subject string, result *prompt.Message) *scope {
	s := &scope{subject: subject, result: result}
	if result != nil {
		decoder := json.NewDecoder(strings.NewReader(result.Text))
		decoder.UseNumber() // numbers are filled in as they are written
		s.isJSON = decoder.Decode(&s.parsed) == nil && !decoder.More()
	}
	return s
}

func (t template) fill(s *scope) (string, error) {
	var out strings.Builder
	for _, p := range t {
		if p.path == nil {
			out.WriteString(p.literal)
			continue
		}
		text, err := s.value(p.path)
		if err != nil {
			return "", fmt.Errorf("${%s}: %w", strings.Join(p.path, "."), err)
		}
		out.WriteString(text)
	}
	return out.String(), nil
}

func (s *scope) value(path []string) (string, error) {
	switch {
	case path[0] == "subject" && s.subject == "":
		return "", fmt.Errorf("this run works on no subject")
	case path[0] == "subject":
		return s.subject, nil
	case s.result == nil:
		return "", fmt.Errorf("no tool has answered yet")
	case len(path) == 1:
		return s.result.Text, nil
	case !s.isJSON:
		return "", fmt.Errorf("the last result is not JSON")
	}
	at := s.parsed
	for _, step := range path[1:] {
		next, ok := child(at, step)
		if !ok {
			return "", fmt.Errorf("the last result has no %q there", step)
		}
		at = next
	}
	if text, ok := at.(string); ok {
		return text, nil
	}
	out, err := marshal(at)
	return string(out), err
}

func child(of any, step string) (any, bool) {
	switch v := of.(type) {
	case map[string]any:
		value, ok := v[step]
		return value, ok
	case []any:
		i, err := strconv.Atoi(step)
		if err != nil || i < 0 || i >= len(v) {
			return nil, false
		}
		return v[i], true
	}
	return nil, false
}

// jsonTemplate is a JSON value whose strings are templates. kind says which of the
// other fields holds it.
type jsonTemplate struct {
	kind   valueKind
	raw    json.RawMessage
	text   template
	list   []jsonTemplate
	object []member
}

type member struct {
	key   string
	value jsonTemplate
}

type valueKind int

const (
	rawValue valueKind = iota
	textValue
	listValue
	objectValue
)

// write appends the value with its placeholders filled in, members in the order in
// which the script has them.
func (t jsonTemplate) write(out *bytes.Buffer, s *scope) error {
	switch t.kind {
	case rawValue:
		out.Write(t.raw)
	case textValue:
		text, err := t.text.fill(s)
		if err != nil {
			return err
		}
		out.Write(quoted(text))
	case listValue:
		out.WriteByte('[')
		for i, item := range t.list {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := item.write(out, s); err != nil {
				return err
			}
		}
		out.WriteByte(']')
	case objectValue:
		out.WriteByte('{')
		for i, m := range t.object {
			if i > 0 {
				out.WriteByte(',')
			}
			out.Write(quoted(m.key))
			out.WriteByte(':')
			if err := m.value.write(out, s); err != nil {
				return err
			}
		}
		out.WriteByte('}')
	}
	return nil
}
