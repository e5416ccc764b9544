package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// piece is what a reader of a document does or sees: a fenced block, by the words
// after its fence, or a comment that only tests read.
type piece struct {
	line int // of the document
	kind string
	text string
}

// The kinds of pieces that a walk through a document knows.
const (
	pieceQuery     = "graphql"
	pieceVariables = "json variables"
	pieceAnswer    = "json answer" // what a query is answered, without the data around it
	pieceEvents    = "json events" // what a subscription sends next
	pieceShell     = "sh"
	pieceKeep      = "keep"            // names in the next answer that later pieces use
	pieceEnd       = "the stream ends" // a subscription has completed
)

var comment = regexp.MustCompile(`^<!-- (keep|the stream ends)(?:: (.*))? -->$`)

// readPieces returns the pieces of a document in order.
func readPieces(t *testing.T, path string) []piece {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []piece
	inside := false
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		info, fence := strings.CutPrefix(line, "```")
		found := comment.FindStringSubmatch(line)
		switch {
		case fence && inside:
			inside = false
		case fence:
			inside = true
			all = append(all, piece{line: n, kind: info})
		case inside:
			all[len(all)-1].text += line + "\n"
		case found != nil:
			all = append(all, piece{line: n, kind: found[1], text: found[2]})
		}
	}
	if err := lines.Err(); err != nil || inside {
		t.Fatalf("%s does not end as it should: %v", path, err)
	}
	return all
}

// walk does what a document says, as a reader would: it sends each query with the
// variables under it, compares what comes with what the document shows, and keeps what
// is to be kept.
type walk struct {
	*testing.T
	path string
	site *site

	at      int               // the line of the document
	pending []byte            // the body of the request to send next
	kept    map[string]string // by name; empty until an answer has it
	stream  *stream
	sent    int
}

func walkThrough(t *testing.T, path string, s *site) *walk {
	w := &walk{T: t, path: path, site: s, kept: map[string]string{}}
	pieces := readPieces(t, path)
	for i, p := range pieces {
		w.at = p.line
		switch p.kind {
		case pieceQuery:
			given := object{}
			if i+1 < len(pieces) && pieces[i+1].kind == pieceVariables {
				given, _ = w.fill(w.parse(pieces[i+1].text)).(object)
			}
			w.prepare(operation(t, p.text, given))
		case pieceShell:
			if body := curlBody.FindStringSubmatch(p.text); body != nil {
				w.prepare([]byte(body[1]))
			}
		case pieceKeep:
			for _, name := range strings.Split(p.text, ", ") {
				w.kept[name] = ""
			}
		case pieceAnswer:
			w.answered(w.parse(p.text))
		case pieceEvents:
			w.streamed(w.parse(p.text))
		case pieceEnd:
			if more, open := w.stream.next(); open {
				w.failf("the stream goes on: %v", more.Data)
			}
		}
	}
	if w.pending != nil {
		w.failf("nothing says how the last query is answered")
	}
	for name, value := range w.kept {
		if value == "" {
			w.failf("no answer has %s", name)
		}
	}
	return w
}

// curlBody is the body in a curl command.
var curlBody = regexp.MustCompile(`(?s)curl .*-d '([^']*)'`)

func (w *walk) failf(format string, args ...any) {
	w.Helper()
	w.Fatalf("%s:%d: %s", w.path, w.at, fmt.Sprintf(format, args...))
}

func (w *walk) prepare(body []byte) {
	if w.pending != nil {
		w.failf("nothing says how the query before this one is answered")
	}
	w.pending = body
}

func (w *walk) take() []byte {
	body := w.pending
	w.pending = nil
	w.sent++
	return body
}

func (w *walk) answered(want any) {
	if w.pending == nil {
		w.failf("an answer without a query")
	}
	got := w.site.send(w.take())
	if len(got.Errors) > 0 {
		w.failf("the server answered with errors:\n%s", got.Raw)
	}
	w.compare(want, got.Data)
}

func (w *walk) streamed(want any) {
	if w.pending != nil {
		w.stream = w.site.subscribe(w.take())
	}
	listed, _ := want.([]any)
	if len(listed) == 0 {
		w.failf("no events are listed")
	}
	for _, one := range listed {
		got, open := w.stream.next()
		if !open || len(got.Errors) > 0 {
			w.failf("instead of %v the stream has %v, open %t", one, got, open)
		}
		w.compare(one, got.Data)
	}
}

func (w *walk) compare(want, got any) {
	if differs := w.differences("", want, got); len(differs) > 0 {
		shown, _ := json.MarshalIndent(got, "", "  ")
		w.failf("the server answers something else:\n%s\nThe answer:\n%s", strings.Join(differs, "\n"), shown)
	}
}

func (w *walk) parse(text string) any {
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		w.failf("this is not JSON: %v", err)
	}
	return value
}

// fill puts what was kept in the place of its names.
func (w *walk) fill(value any) any {
	switch value := value.(type) {
	case string:
		if kept := w.kept[value]; kept != "" {
			return kept
		}
	case object:
		for name := range value {
			value[name] = w.fill(value[name])
		}
	case []any:
		for i := range value {
			value[i] = w.fill(value[i])
		}
	}
	return value
}

// anything stands for any value, and at the end of a list for the rest of it.
const anything = "…"

// differences says where got is not what is wanted. It may hold more: members of
// objects that are not named. A name that is to be kept takes the value it meets.
func (w *walk) differences(where string, want, got any) []string {
	switch wanted := want.(type) {
	case object:
		found, ok := got.(object)
		if !ok {
			return []string{fmt.Sprintf("%s is %v and no object", where, got)}
		}
		var all []string
		for name := range wanted {
			all = append(all, w.differences(where+"."+name, wanted[name], found[name])...)
		}
		return all
	case []any:
		return w.listDifferences(where, wanted, got)
	case string:
		value, isText := got.(string)
		if kept, known := w.kept[wanted]; known && kept != "" {
			wanted = kept
		} else if known && value != "" {
			w.kept[wanted] = value
			return nil
		}
		if wanted == anything && got != nil || isText && value == wanted {
			return nil
		}
	default:
		if reflect.DeepEqual(want, got) {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s is %v, not %v", where, got, want)}
}

func (w *walk) listDifferences(where string, wanted []any, got any) []string {
	found, ok := got.([]any)
	if !ok {
		return []string{fmt.Sprintf("%s is %v and no list", where, got)}
	}
	if n := len(wanted) - 1; n >= 0 && wanted[n] == anything && len(found) > n {
		wanted, found = wanted[:n], found[:n]
	}
	if len(wanted) != len(found) {
		return []string{fmt.Sprintf("%s has %d items, not %d", where, len(found), len(wanted))}
	}
	var all []string
	for i := range wanted {
		all = append(all, w.differences(fmt.Sprintf("%s[%d]", where, i), wanted[i], found[i])...)
	}
	return all
}

func TestDifferences(t *testing.T) {
	for _, tt := range []struct{ want, got, differs string }{
		{`{"a": 1}`, `{"a": 1, "b": 2}`, ""},
		{`{"a": 1}`, `{"a": 2}`, ".a is 2, not 1"},
		{`{"a": null}`, `{"a": 2}`, ".a is 2, not <nil>"},
		{`{"a": "…"}`, `{"a": {"b": 1}}`, ""},
		{`{"a": "…"}`, `{}`, ".a is <nil>, not …"},
		{`["x"]`, `["x", "y"]`, " has 2 items, not 1"},
		{`["x", "…"]`, `["x", "y", "z"]`, ""},
		{`["x", "…"]`, `["y", "x"]`, "[0] is y, not x"},
		{`{"a": {"b": 1}}`, `{"a": []}`, ".a is [] and no object"},
		{`["NEW", "NEW"]`, `["x", "x"]`, ""},
		{`["NEW", "NEW"]`, `["x", "y"]`, "[1] is y, not NEW"},
		{`"OLD"`, `"kept"`, ""},
		{`"OLD"`, `"OLD"`, " is OLD, not OLD"},
	} {
		t.Run(tt.want+" against "+tt.got, func(t *testing.T) {
			w := &walk{T: t, kept: map[string]string{"OLD": "kept", "NEW": ""}}
			if got := strings.Join(w.differences("", w.parse(tt.want), w.parse(tt.got)), "; "); got != tt.differs {
				t.Errorf("got %q, want %q", got, tt.differs)
			}
		})
	}
}
