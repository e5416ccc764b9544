package builtin

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff/lcs"

	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/skill"
	"github.com/countersign/countersign/internal/tool"
)

// heading says which record a card is about: its id, its name where it has one, and
// the page it stands on.
func heading(what string, r content.Record) string {
	line := what + " " + nameOf(r)
	if r.Table == content.ElementTable {
		line += " on page " + r.ParentID
	}
	return line
}

// nameOf is a record's id, and its name where it has one.
func nameOf(r content.Record) string {
	line := r.Table + " " + r.ID
	for _, name := range []string{"title", "header", "name"} {
		if s := field(r, name); s != "" {
			line += " " + quote(s)
			break
		}
	}
	return line
}

// fieldLines shows a plan field by field, current → proposed. What fits one line has
// one line. Longer text shows each passage that changes with what stands around it,
// and new text as a whole, because a person approves what they can read.
func fieldLines(plan content.Plan) []string {
	var lines []string
	for _, f := range plan.Fields {
		lines = append(lines, linesOf(f)...)
	}
	return lines
}

func linesOf(f content.FieldChange) []string {
	name := f.Field.Name
	if !f.Changes() {
		return []string{name + ": unchanged"}
	}
	short := fmt.Sprintf("%s: %s → %s", name, show(f.From), show(f.To))
	if utf8.RuneCountInString(short) <= tool.MaxPreviewCharacters {
		return []string{short}
	}
	from, _ := f.From.(string)
	to, _ := f.To.(string)
	head := fmt.Sprintf("%s: %s → %s", name, measure(from), measure(to))
	if from == "" || to == "" {
		return append([]string{head}, pieces("  ", from+to)...)
	}
	return append([]string{head}, passages(from, to)...)
}

// show is a value as a card shows it.
func show(v any) string {
	switch v := v.(type) {
	case string:
		if v != "" {
			return quote(v)
		}
	case bool:
		return strconv.FormatBool(v)
	}
	return "(empty)"
}

// measure stands for a text that is too long to show: its length, and a fingerprint
// that binds an approval to all of it.
func measure(s string) string {
	if s == "" {
		return "(empty)"
	}
	return fmt.Sprintf("%d characters [%s]", utf8.RuneCountInString(s), tool.Fingerprint(s))
}

// quote shows text as it is, and spells out what would not be seen: a card must not
// read otherwise than what it changes.
func quote(s string) string {
	var b strings.Builder
	b.WriteString("“")
	for _, r := range s {
		switch {
		case r == '”', r == '\\':
			// Nothing that a text holds may end the quotation or look like a spelled-out sign.
			fmt.Fprintf(&b, "\\u{%04X}", r)
		// Of all spaces only the plain one is printable; variation selectors and fillers are
		// printable too, and show nothing.
		case r == '\n', unicode.IsPrint(r) && !skill.Invisible(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "\\u{%04X}", r)
		}
	}
	b.WriteString("”")
	return b.String()
}

// pieces shows a whole text over as many lines as it needs, each after a mark.
func pieces(mark, s string) []string {
	const size = tool.MaxPreviewCharacters - 20 // room for the mark and the quotes
	var out []string
	runes := []rune(s)
	for len(runes) > 0 {
		n := min(len(runes), size)
		out = append(out, mark+quote(string(runes[:n])))
		runes = runes[n:]
	}
	return out
}

// around is how many words, and spaces between them, are shown beside a passage.
const around = 6

// passages shows what differs between two texts, word by word. Passages that stand
// close together are one. One that does not fit a line shows both its sides whole,
// the current one after a minus and the proposed one after a plus.
func passages(from, to string) []string {
	a, b := words(from), words(to)
	var out []string
	for _, d := range merged(lcs.DiffLines(a, b)) {
		before := strings.Join(a[max(0, d.Start-around):d.Start], "")
		after := strings.Join(a[d.End:min(len(a), d.End+around)], "")
		current := before + strings.Join(a[d.Start:d.End], "") + after
		proposed := before + strings.Join(b[d.ReplStart:d.ReplEnd], "") + after
		if line := fmt.Sprintf("  %s → %s", quote(current), quote(proposed)); utf8.RuneCountInString(line) <= tool.MaxPreviewCharacters {
			out = append(out, line)
			continue
		}
		out = append(out, pieces("  − ", current)...)
		out = append(out, pieces("  + ", proposed)...)
	}
	return out
}

func merged(diffs []lcs.Diff) []lcs.Diff {
	var out []lcs.Diff
	for _, d := range diffs {
		if n := len(out); n > 0 && d.Start-out[n-1].End <= around {
			out[n-1].End, out[n-1].ReplEnd = d.End, d.ReplEnd
			continue
		}
		out = append(out, d)
	}
	return out
}

// words splits a text into words and what stands between them; joined they are the
// text again.
func words(s string) []string {
	var out []string
	start, inWord := 0, false
	for i, r := range s {
		isWord := !unicode.IsSpace(r)
		if i > start && isWord != inWord {
			out = append(out, s[start:i])
			start = i
		}
		inWord = isWord
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}
