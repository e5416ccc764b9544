package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Text is a text that a call would write. Pointer is its place in the call's arguments
// (RFC 6901).
type Text struct {
	Pointer string `json:"pointer"`
	Text    string `json:"text"`
}

// Texts lists the texts of a call that a person may change before they approve it: the
// strings that stand where the tool's declaration says that it writes text, sorted by
// place. Where a call writes, and everything that is not text, is not among them.
func (s Spec) Texts(arguments json.RawMessage) []Text {
	v, err := decodeArguments(arguments)
	if err != nil {
		return nil
	}
	var out []Text
	for _, place := range s.TextPlaces {
		out = appendTexts(out, v, "", steps(place))
	}
	slices.SortFunc(out, func(a, b Text) int { return strings.Compare(a.Pointer, b.Pointer) })
	return out
}

func appendTexts(out []Text, v any, at string, rest []string) []Text {
	if len(rest) == 0 {
		if text, is := v.(string); is {
			out = append(out, Text{Pointer: at, Text: text})
		}
		return out
	}
	members, _ := v.(map[string]any)
	for name, member := range members {
		if rest[0] == anyMember || rest[0] == name {
			out = appendTexts(out, member, at+"/"+escape.Replace(name), rest[1:])
		}
	}
	return out
}

// Reworded is the arguments of a call with other texts in the places that Texts names;
// everything else stays as it is. It fails for any other place.
func (s Spec) Reworded(arguments json.RawMessage, texts []Text) (json.RawMessage, error) {
	there := s.Texts(arguments)
	v, err := decodeArguments(arguments)
	if err != nil {
		return nil, err
	}
	for _, t := range texts {
		if !slices.ContainsFunc(there, func(old Text) bool { return old.Pointer == t.Pointer }) {
			return nil, fmt.Errorf("%s proposes no text at %q", s.Name, t.Pointer)
		}
		path := steps(t.Pointer)
		members := v.(map[string]any) // Texts found the place by these steps
		for _, step := range path[:len(path)-1] {
			members = members[step].(map[string]any)
		}
		members[path[len(path)-1]] = t.Text
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("writing the arguments of %s: %w", s.Name, err)
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// Changed lists the texts of a call that differ between two versions of its arguments, as
// they stand in the second.
func (s Spec) Changed(before, after json.RawMessage) []Text {
	was := s.Texts(before)
	return slices.DeleteFunc(s.Texts(after), func(t Text) bool { return slices.Contains(was, t) })
}

// anyMember stands in a place for every member of an object.
const anyMember = "*"

var (
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
)

// steps are the members that a pointer goes through.
func steps(pointer string) []string {
	out := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, step := range out {
		out[i] = unescape.Replace(step)
	}
	return out
}

func decodeArguments(arguments json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(arguments))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("reading the arguments: %w", err)
	}
	return v, nil
}
