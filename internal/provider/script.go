package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/fault"
)

// script is a parsed script, see docs/scripted-provider.md. It is never changed
// once parsed.
type script struct {
	steps    []step
	fallback *step // of the turns that no step is for
}

// step is one scripted answer and the turns it is for.
type step struct {
	line  int
	turn  int    // 0: every turn
	last  result // "": whatever the last result was
	text  template
	calls []scriptedCall
	fail  *scriptedFailure
	cut   int // chunks after which the stream is cut, -1 for never
	usage agent.Usage
}

type scriptedCall struct {
	tool      string
	arguments jsonTemplate
}

type scriptedFailure struct {
	status int
	times  int // requests of one turn that fail, 0 for all of them
}

// result is how the last tool call ended.
type result string

const (
	resultOK      result = "ok"
	resultError   result = "error"
	resultVariant result = "variant"
	resultSkip    result = "skip"
)

const (
	longestScript = 256 << 10
	deepestValue  = 64
	cutAtEnd      = 1 << 30
)

// parseScript reads a script strictly: what it does not know, it refuses with the
// line, because a misspelt key would otherwise be a step that is never taken.
func parseScript(source string) (*script, error) {
	if len(source) > longestScript {
		return nil, fault.New(fault.BadInput, "the script is longer than %d bytes", longestScript)
	}
	decoder := yaml.NewDecoder(strings.NewReader(source))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, fault.New(fault.BadInput, "the script is empty; see docs/scripted-provider.md")
	case err != nil:
		return nil, fault.New(fault.BadInput, "the script is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fault.New(fault.BadInput, "the script holds more than one document")
	}
	out := &script{}
	if err := out.read(document.Content[0]); err != nil {
		return nil, fault.New(fault.BadInput, "script %s", err)
	}
	return out, nil
}

func (s *script) read(node *yaml.Node) error {
	err := eachMember(node, "a script", readers{
		"steps": func(n *yaml.Node) error {
			return eachItem(n, "steps", func(item *yaml.Node) error {
				// A step that does not say when is for the turn of its place in the list.
				made := step{line: item.Line, turn: len(s.steps) + 1, cut: -1}
				if err := made.read(item, true); err != nil {
					return err
				}
				s.steps = append(s.steps, made)
				return nil
			})
		},
		"default": func(n *yaml.Node) error {
			s.fallback = &step{line: n.Line, cut: -1}
			if n.Kind == yaml.ScalarNode {
				return s.fallback.readText(n)
			}
			return s.fallback.read(n, false)
		},
	})
	if err == nil && len(s.steps) == 0 && s.fallback == nil {
		return at(node, "the script has neither steps nor a default")
	}
	return err
}

func (s *step) read(node *yaml.Node, conditional bool) error {
	known := readers{
		"text":  s.readText,
		"calls": s.readCalls,
		"fail":  s.readFail,
		"cut":   s.readCut,
		"usage": func(n *yaml.Node) error {
			return eachMember(n, "usage", readers{
				"inputTokens":  integer(&s.usage.InputTokens, 0, 1<<31-1),
				"outputTokens": integer(&s.usage.OutputTokens, 0, 1<<31-1),
			})
		},
	}
	if conditional {
		known["when"] = s.readWhen
	}
	if err := eachMember(node, "a step", known); err != nil {
		return err
	}
	if s.text == nil && s.calls == nil && s.fail == nil && s.cut < 0 {
		return at(node, "the step does nothing: give it text, calls, fail or cut")
	}
	return nil
}

func (s *step) readWhen(node *yaml.Node) error {
	s.turn = 0
	err := eachMember(node, "when", readers{
		"turn": integer(&s.turn, 1, 1<<31-1),
		"last": func(n *yaml.Node) error {
			text, err := scalar(n)
			s.last = result(text)
			known := []result{resultOK, resultError, resultVariant, resultSkip}
			if err == nil && !slices.Contains(known, s.last) {
				return at(n, "last is %q; it can be ok, error, variant or skip", text)
			}
			return err
		},
	})
	if err == nil && s.turn == 0 && s.last == "" {
		return at(node, "when names neither turn nor last")
	}
	return err
}

func (s *step) readText(node *yaml.Node) (err error) {
	s.text, err = readTemplate(node)
	if err == nil && s.text == nil {
		s.text = template{} // an empty text is an answer too
	}
	return err
}

func (s *step) readCalls(node *yaml.Node) error {
	return eachItem(node, "calls", func(item *yaml.Node) error {
		call := scriptedCall{arguments: jsonTemplate{kind: objectValue}}
		err := eachMember(item, "a call", readers{
			"tool": func(n *yaml.Node) (err error) {
				call.tool, err = scalar(n)
				return err
			},
			"arguments": func(n *yaml.Node) (err error) {
				if n.Kind != yaml.MappingNode {
					return at(n, "arguments is not a mapping")
				}
				call.arguments, err = readValue(n, 0)
				return err
			},
		})
		if err == nil && call.tool == "" {
			return at(item, "the call names no tool")
		}
		s.calls = append(s.calls, call)
		return err
	})
}

func (s *step) readFail(node *yaml.Node) error {
	s.fail = &scriptedFailure{}
	err := eachMember(node, "fail", readers{
		"status": integer(&s.fail.status, 400, 599),
		"times":  integer(&s.fail.times, 1, 1000),
	})
	if err == nil && s.fail.status == 0 {
		return at(node, "fail names no status")
	}
	return err
}

func (s *step) readCut(node *yaml.Node) error {
	switch node.ShortTag() {
	case "!!int":
		return integer(&s.cut, 0, cutAtEnd)(node)
	case "!!bool":
		var cut bool
		if err := node.Decode(&cut); err != nil {
			return at(node, "cut is neither true, false nor a number of words")
		}
		if cut {
			s.cut = cutAtEnd
		}
		return nil
	}
	return at(node, "cut is neither true, false nor a number of words")
}

// readers take the members of a mapping, by key.
type readers map[string]func(*yaml.Node) error

func at(node *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("line %d: %s", node.Line, fmt.Sprintf(format, args...))
}

// eachMember hands every member of a mapping to its reader and refuses unknown and
// repeated keys.
func eachMember(node *yaml.Node, what string, known readers) error {
	if node.Kind != yaml.MappingNode {
		return at(node, "%s is not a mapping", what)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		read, ok := known[key.Value]
		switch {
		case !ok:
			names := make([]string, 0, len(known))
			for name := range known {
				names = append(names, name)
			}
			slices.Sort(names)
			return at(key, "%q is not known in %s; known are %s", key.Value, what, strings.Join(names, ", "))
		case seen[key.Value]:
			return at(key, "%q is given twice", key.Value)
		}
		seen[key.Value] = true
		if err := readNode(value, read); err != nil {
			return err
		}
	}
	return nil
}

func eachItem(node *yaml.Node, what string, read func(*yaml.Node) error) error {
	if node.Kind != yaml.SequenceNode {
		return at(node, "%s is not a list", what)
	}
	for _, item := range node.Content {
		if err := readNode(item, read); err != nil {
			return err
		}
	}
	return nil
}

// readNode refuses aliases: following them is how a small document becomes an
// endless one, and a script is shorter without.
func readNode(node *yaml.Node, read func(*yaml.Node) error) error {
	if node.Kind == yaml.AliasNode {
		return at(node, "aliases (*name) are not read in a script")
	}
	return read(node)
}

func integer(into *int, low, high int) func(*yaml.Node) error {
	return func(node *yaml.Node) error {
		if node.ShortTag() != "!!int" || node.Decode(into) != nil || *into < low || *into > high {
			return at(node, "%q is not a whole number from %d to %d", node.Value, low, high)
		}
		return nil
	}
}

func scalar(node *yaml.Node) (string, error) {
	if node.Kind != yaml.ScalarNode || node.ShortTag() == "!!null" {
		return "", at(node, "a text is missing here")
	}
	return node.Value, nil
}

func readTemplate(node *yaml.Node) (template, error) {
	text, err := scalar(node)
	if err != nil {
		return nil, err
	}
	out, err := parseTemplate(text)
	if err != nil {
		return nil, at(node, "%s", err)
	}
	return out, nil
}

// readValue makes JSON of a YAML value. A date stays the text it is written as.
func readValue(node *yaml.Node, depth int) (jsonTemplate, error) {
	if depth > deepestValue {
		return jsonTemplate{}, at(node, "the value is nested deeper than %d", deepestValue)
	}
	switch node.Kind {
	case yaml.MappingNode:
		return readObject(node, depth)
	case yaml.SequenceNode:
		out := jsonTemplate{kind: listValue}
		return out, eachItem(node, "a list", func(item *yaml.Node) error {
			value, err := readValue(item, depth+1)
			out.list = append(out.list, value)
			return err
		})
	}
	switch tag := node.ShortTag(); tag {
	case "!!str", "!!timestamp":
		text, err := readTemplate(node)
		return jsonTemplate{kind: textValue, text: text}, err
	case "!!int", "!!float", "!!bool", "!!null":
		var value any
		if err := node.Decode(&value); err != nil {
			return jsonTemplate{}, at(node, "%q cannot be read as %s", node.Value, tag)
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return jsonTemplate{}, at(node, "%q has no place in JSON", node.Value)
		}
		return jsonTemplate{raw: raw}, nil
	default:
		return jsonTemplate{}, at(node, "the tag %s has no place in JSON", tag)
	}
}

func readObject(node *yaml.Node, depth int) (jsonTemplate, error) {
	out := jsonTemplate{kind: objectValue}
	known := readers{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			return jsonTemplate{}, at(key, "a key is not plain text")
		}
		known[key.Value] = func(n *yaml.Node) error {
			value, err := readValue(n, depth+1)
			out.object = append(out.object, member{key: key.Value, value: value})
			return err
		}
	}
	return out, eachMember(node, "an object", known)
}
