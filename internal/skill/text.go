package skill

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	maxFrontmatter = 64 << 10  // bytes
	maxBody        = 512 << 10 // bytes
)

var byteOrderMark = []byte("\ufeff")

// document is a file cut at its fences: text with LF line ends, and the lines its parts begin on.
type document struct {
	frontmatter string
	body        string
	bodyLine    int // 1-based line of the body's first byte
}

// frontmatterLine is the 1-based line the frontmatter begins on: the one after the opening fence.
const frontmatterLine = 2

// readDocument is steps 1 and 2 of reading a file: bytes to text, then the fences.
func readDocument(data []byte) (document, error) {
	if err := checkCharacters(data); err != nil {
		return document{}, err
	}
	text := bytes.TrimPrefix(data, byteOrderMark)
	start, end, body, err := findFences(text)
	if err != nil {
		return document{}, err
	}
	shift := len(data) - len(text)
	if err := checkFrontmatterBreaks(data, shift+start, shift+end); err != nil {
		return document{}, err
	}
	doc := document{frontmatter: toLF(text[start:end]), body: toLF(text[body:]), bodyLine: 1 + bytes.Count(text[:body], []byte("\n"))}
	if len(doc.frontmatter) > maxFrontmatter {
		return document{}, reject(RejectFrontmatterTooLarge, frontmatterLine,
			fmt.Sprintf("the frontmatter is %d bytes, more than the %d bytes allowed", len(doc.frontmatter), maxFrontmatter), "move text into the body")
	}
	if len(doc.body) > maxBody {
		return document{}, reject(RejectBodyTooLarge, doc.bodyLine,
			fmt.Sprintf("the body is %d bytes, more than the %d bytes allowed", len(doc.body), maxBody), "move material into bundled files")
	}
	return doc, nil
}

func toLF(text []byte) string { return strings.ReplaceAll(string(text), "\r\n", "\n") }

// checkCharacters refuses what is no text: invalid UTF-8, and every control character but tab, LF and CR.
func checkCharacters(data []byte) error {
	for at := 0; at < len(data); {
		if c := data[at]; c < utf8.RuneSelf {
			if (c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == 0x7F {
				return characterRejection(RejectControlCharacter, data, at, fmt.Sprintf("control character U+%04X", c))
			}
			at++
			continue
		}
		r, size := utf8.DecodeRune(data[at:])
		switch {
		case r == utf8.RuneError && size == 1:
			return characterRejection(RejectInvalidUTF8, data, at, fmt.Sprintf("byte 0x%02X is not valid UTF-8", data[at]))
		case r <= 0x9F:
			return characterRejection(RejectControlCharacter, data, at, fmt.Sprintf("control character U+%04X", r))
		}
		at += size
	}
	return nil
}

// checkFrontmatterBreaks refuses, inside data[start:end], the characters at which a YAML reader may break a line although no reviewer sees one:
// `description: foo<U+2028>process: true` would be two keys.
func checkFrontmatterBreaks(data []byte, start, end int) error {
	for at := start; at < end; {
		r, size := utf8.DecodeRune(data[at:end])
		loneCR := r == '\r' && (at+1 >= len(data) || data[at+1] != '\n')
		if loneCR || r == '\u2028' || r == '\u2029' || r == '\ufeff' {
			return characterRejection(RejectControlCharacter, data, at, fmt.Sprintf("control character U+%04X in the frontmatter", r))
		}
		at += size
	}
	return nil
}

func characterRejection(code RejectionCode, data []byte, at int, reason string) *Rejection {
	hint := "remove the character"
	if code == RejectInvalidUTF8 {
		hint = "save the file as UTF-8"
	}
	return &Rejection{Code: code, Reason: reason, Line: 1 + bytes.Count(data[:at], []byte("\n")), Offset: at, Hint: hint}
}

// findFences finds the frontmatter text[start:end] and where the body begins. Only a line that is exactly `---` is a fence.
func findFences(text []byte) (start, end, body int, err error) {
	first, next := lineAt(text, 0)
	if first != "---" {
		return 0, 0, 0, noFrontmatter(text, first)
	}
	start = next
	for at := start; at < len(text); at = next {
		var line string
		line, next = lineAt(text, at)
		if line == "---" {
			return start, at, next, nil
		}
	}
	return 0, 0, 0, reject(RejectFrontmatterNotClosed, 1, "the frontmatter is not closed: no later line is exactly `---`",
		"put `---` alone on the line after the last key")
}

// lineAt returns the line that begins at a position, without its LF or CRLF, and where the next one begins.
func lineAt(text []byte, at int) (line string, next int) {
	length := bytes.IndexByte(text[at:], '\n')
	if length < 0 {
		return string(text[at:]), len(text)
	}
	return string(bytes.TrimSuffix(text[at:at+length], []byte("\r"))), at + length + 1
}

// noFrontmatter says what is wrong with a file whose first line is no fence: a block that comes too late, or none at all.
func noFrontmatter(text []byte, first string) error {
	if strings.TrimSpace(first) == "---" {
		return reject(RejectNoFrontmatter, 1, "no frontmatter: the first line is not exactly `---`", "remove the space around `---`")
	}
	previousIsFence := false
	for at, number := 0, 1; at < len(text); number++ {
		var line string
		line, at = lineAt(text, at)
		if previousIsFence && topLevelKey.MatchString(line) {
			return reject(RejectFrontmatterNotFirst, number-1, fmt.Sprintf("the frontmatter must be first: it begins on line %d", number-1),
				"remove everything before the opening `---`, blank lines and comments too")
		}
		previousIsFence = line == "---"
	}
	return reject(RejectNoFrontmatter, 1, "no frontmatter: the first line is not exactly `---`",
		"begin the file with `---`, name and description, and `---`")
}
