package guard

import (
	"bytes"
	"encoding/json"
)

// JSON is a JSON text without its secrets. Only the strings that hold one are written
// anew; it stays the same value otherwise, byte for byte. A string is also judged by the
// name of the member that it is. What is not JSON is redacted as text.
func (r *Redactor) JSON(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return raw
	}
	if !json.Valid(raw) {
		return json.RawMessage(r.Text(string(raw)))
	}
	return rewrite(raw, func(member string, isName bool, text string) string {
		if isName {
			return r.Text(text)
		}
		return r.member(member, text)
	})
}

// member is the text of a member without its secrets: all of it, if its name says that it
// is one and it looks like one.
func (r *Redactor) member(name, text string) string {
	redacted := r.Text(text)
	if redacted == text && Secret(name, text) {
		return Marker("password")
	}
	return redacted
}

// Secret reports whether a value is a secret by its name and its look, such as that of a
// variable API_TOKEN.
func Secret(name, value string) bool { return secretName(name) && secretValue(value, true) }

// Any is a text without its secrets: as JSON when it is an object or an array, else as text.
func (r *Redactor) Any(text string) string {
	trimmed := bytes.TrimLeft([]byte(text[:min(len(text), 64)]), " \t\r\n")
	if len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid([]byte(text)) {
		return string(r.JSON(json.RawMessage(text)))
	}
	return r.Text(text)
}

// stringEnd is where the string that begins at i ends.
func stringEnd(raw []byte, i int) int {
	for i++; raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// isName says whether a string that was just read is the name of a member.
func isName(rest []byte) bool {
	rest = bytes.TrimLeft(rest, " \t\r\n")
	return len(rest) > 0 && rest[0] == ':'
}

func quoted(text string) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string always has an encoding
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
