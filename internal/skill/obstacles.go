package skill

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/skill/emoji"
)

// ObstacleCode says what refuses an approval.
type ObstacleCode string

const (
	ObstacleOrphaned            ObstacleCode = "orphaned"
	ObstacleIntegrityFailed     ObstacleCode = "integrity_failed"
	ObstacleLegacy              ObstacleCode = "legacy"
	ObstacleStaleDigest         ObstacleCode = "stale_digest"
	ObstacleProcessUnreadable   ObstacleCode = "process_unreadable"
	ObstacleInvisibleCharacters ObstacleCode = "invisible_characters"
)

// Obstacle is one thing that refuses an approval. The place is set for characters only.
type Obstacle struct {
	Code      ObstacleCode
	Message   string
	Field     string // name, description or body
	Line      int    // 1-based, in the field
	Column    int    // 1-based, in characters
	CodePoint string // U+XXXX; the first one of a run
}

// maxObstacles bounds the list of one text. A body of nothing but hidden characters is refused just the same, without half a million entries.
const maxObstacles = 1000

// ApprovalObstacles lists everything that refuses an approval now, in the order in which a refusal names it (RULES A6): the first is the refusal. The
// posted digest is the one the approver saw; empty when nothing was posted yet, as in a review.
func ApprovalObstacles(f Facts, orphaned bool, posted Digest) []Obstacle {
	gates := []struct {
		code    ObstacleCode
		stands  bool
		message string
	}{
		{ObstacleOrphaned, orphaned, "the skill is gone from its source"},
		{ObstacleIntegrityFailed, f.integrityFailed(), "the stored text is not the text that was synced"},
		{ObstacleLegacy, f.legacy(), "the skill was imported without a digest; sync its source first"},
		{ObstacleStaleDigest, posted != "" && posted != f.Version.Digest(), "the version has changed since it was shown"},
	}
	var obstacles []Obstacle
	for _, gate := range gates {
		if gate.stands {
			obstacles = append(obstacles, Obstacle{Code: gate.code, Message: gate.message})
		}
	}
	return append(obstacles, Obstacles(f.Version)...)
}

// Obstacles lists what refuses an approval from the text itself: an unreadable process marker, then invisible and bidirectional control characters in
// name, description and body. What a reviewer cannot see, nobody can approve.
func Obstacles(v Version) []Obstacle {
	var obstacles []Obstacle
	if v.Process != ProcessNo && v.Process != ProcessYes {
		obstacles = append(obstacles, Obstacle{Code: ObstacleProcessUnreadable, Message: "process is declared but is neither true nor false"})
	}
	for _, field := range []struct{ name, text string }{{"name", v.Name}, {"description", v.Description}, {"body", v.Body}} {
		obstacles = append(obstacles, invisibleIn(field.name, field.text)...)
	}
	return obstacles
}

// invisibleIn lists the refused characters of one text. A run of tag characters (U+E0000–E007F) is one obstacle that shows what it spells.
func invisibleIn(field, text string) []Obstacle {
	var obstacles []Obstacle
	walk := characterWalk{text: text, line: 1}
	for walk.next() {
		if !walk.refused() {
			continue
		}
		at := Obstacle{
			Code: ObstacleInvisibleCharacters, Field: field, Line: walk.line, Column: walk.column, CodePoint: fmt.Sprintf("U+%04X", walk.r),
		}
		at.Message = fmt.Sprintf("%s in the %s at line %d, column %d cannot be seen", at.CodePoint, field, at.Line, at.Column)
		if spelled := walk.skipTags(); spelled != "" {
			at.Message = fmt.Sprintf("tag characters from %s in the %s at line %d, column %d cannot be seen; they spell %q",
				at.CodePoint, field, at.Line, at.Column, clip(spelled, 400))
		}
		if obstacles = append(obstacles, at); len(obstacles) == maxObstacles {
			obstacles[maxObstacles-1].Message += "; what follows is not listed"
			break
		}
	}
	return obstacles
}

// characterWalk goes through a text character by character and remembers what stood before.
type characterWalk struct {
	text         string
	at           int // byte after r
	r            rune
	line, column int
	// emojiBefore is the emoji that ends directly before r: itself, or with its selector. 0 when there is none.
	emojiBefore  rune
	selectorLast bool // the emoji before has its selector already
}

// next moves to the next character. It is false at the end.
func (w *characterWalk) next() bool {
	if w.at >= len(w.text) {
		return false
	}
	switch {
	case w.at > 0 && w.r == '\n':
		w.line, w.column = w.line+1, 0
		w.emojiBefore, w.selectorLast = 0, false
	case w.at > 0 && w.r == selector && w.emojiBefore != 0 && !w.selectorLast:
		w.selectorLast = true
	case w.at > 0:
		w.emojiBefore, w.selectorLast = 0, false
		if w.r >= '#' && emoji.Is(w.r) {
			w.emojiBefore = w.r
		}
	}
	r, size := rune(w.text[w.at]), 1
	if r >= utf8.RuneSelf {
		r, size = utf8.DecodeRuneInString(w.text[w.at:])
	}
	w.r, w.at, w.column = r, w.at+size, w.column+1
	return true
}

const (
	selector = '\ufe0f' // asks for the emoji form of the character before it
	joiner   = '\u200d' // makes one emoji out of two
	keycap   = '\u20e3' // makes a keycap of a digit, # or *
)

// refused tells whether the current character keeps the text from being approved (SKILL-FILES, Review).
func (w *characterWalk) refused() bool {
	if !Invisible(w.r) {
		return false
	}
	following, _ := utf8.DecodeRuneInString(w.text[w.at:])
	switch w.r {
	case selector:
		isEmoji := w.emojiBefore != 0 && !w.selectorLast
		return !isEmoji || (w.emojiBefore < utf8.RuneSelf && following != keycap)
	case joiner:
		return w.emojiBefore < utf8.RuneSelf || following < utf8.RuneSelf || !emoji.Is(following)
	}
	return true
}

// skipTags moves over the tag characters that follow a first one and returns what all of them spell in ASCII; empty when r is none.
func (w *characterWalk) skipTags() string {
	var spelled strings.Builder
	for isTag(w.r) {
		if plain := w.r - 0xE0000; plain >= ' ' && plain < 0x7F {
			spelled.WriteRune(plain)
		} else {
			fmt.Fprintf(&spelled, "<U+%04X>", w.r)
		}
		if following, _ := utf8.DecodeRuneInString(w.text[w.at:]); !isTag(following) || !w.next() {
			break
		}
	}
	return spelled.String()
}

func isTag(r rune) bool { return r >= 0xE0000 && r <= 0xE007F }

// Invisible tells the characters that show nothing or change how others are shown: controls except tab and LF, formats (bidirectional ones among
// them), line and paragraph separators, variation selectors, and every other Default_Ignorable_Code_Point.
func Invisible(r rune) bool {
	if r >= ' ' && r < 0x7F {
		return false
	}
	if r == '\t' || r == '\n' {
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
