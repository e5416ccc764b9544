package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The bounds of what a tool hands back (RULES G5, G7).
const (
	MaxResultBytes       = 50_000
	MaxPreviewLines      = 20
	MaxPreviewCharacters = 500
)

// Bounded is the result as the model, the event and the card may have it: text of
// at most MaxResultBytes valid UTF-8 bytes, its marker included. Every other member
// of a success stays as it is; an error carries neither a write nor a hook flag
// (RULES G5).
func (r Result) Bounded() Result {
	r.Text = boundText(r.Text)
	if r.IsError {
		r.Write, r.Report, r.HookFailedAfterWrite = nil, nil, false
	}
	return r
}

func boundText(s string) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	if len(s) <= MaxResultBytes {
		return s
	}
	marker := fmt.Sprintf("\n[cut: the whole text has %d bytes]", len(s))
	end := MaxResultBytes - len(marker)
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + marker
}

// BoundPreview cuts a preview to its bounds. A line is one line: line breaks in it
// become the sign ⏎. What is cut away leaves a fingerprint in its place, so that two
// previews which differ anywhere stay different and an approval binds to the whole
// (RULES R12).
func BoundPreview(lines []string) []string {
	out := make([]string, 0, min(len(lines), MaxPreviewLines))
	for i, line := range lines {
		if i == MaxPreviewLines-1 && len(lines) > MaxPreviewLines {
			rest := lines[i:]
			return append(out, fmt.Sprintf("… and %d more lines [%s]", len(rest), Fingerprint(strings.Join(rest, "\n"))))
		}
		out = append(out, BoundLine(line, MaxPreviewCharacters))
	}
	return out
}

var oneLine = strings.NewReplacer("\r\n", "⏎", "\n", "⏎", "\r", "⏎", "\u2028", "⏎", "\u2029", "⏎", "\t", " ")

// BoundLine makes one line of at most limit characters of s. A cut line ends with
// the count of what is missing and a fingerprint of the whole. limit must leave room
// for that ending, 50 characters.
func BoundLine(s string, limit int) string {
	valid := strings.ToValidUTF8(s, string(utf8.RuneError))
	line := []rune(oneLine.Replace(valid))
	if len(line) <= limit {
		return string(line)
	}
	ending := func(missing int) string { return fmt.Sprintf("… [+%d characters, %s]", missing, Fingerprint(s)) }
	keep := limit - utf8.RuneCountInString(ending(len(line)))
	return string(line[:keep]) + ending(len(line)-keep)
}

// Fingerprint tells two texts apart well enough for a card that also binds the call
// itself: 48 bits of SHA-256.
func Fingerprint(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:6])
}
