package skill

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
)

func TestInvisibleCharacters(t *testing.T) {
	accepted := []struct{ name, text string }{
		{"tab and line ends", "a\tb\n"},
		{"a warning sign with its selector", "⚠\ufe0f careful ✅"},
		{"a keycap", "press 1\ufe0f\u20e3 or #\ufe0f\u20e3 or *\ufe0f\u20e3"},
		{"two emoji joined", "👩\u200d💻"},
		{"an emoji with a selector joined to another", "❤\ufe0f\u200d🔥"},
		{"a skin tone joined to an emoji", "👩🏽\u200d🚀"},
		{"a chain of joined emoji", "👨\u200d👩\u200d👧"},
		{"an emoji with a selector after one with a selector", "☀\ufe0f☀\ufe0f"},
		{"a combining accent", "e\u0301"},
		{"a no-break space", "a\u00a0b"},
		{"other scripts", "校对 Ω हिन्दी"},
	}
	for _, c := range accepted {
		t.Run("A6 accepted: "+c.name, func(t *testing.T) {
			if got := invisibleIn("body", c.text); len(got) > 0 {
				t.Errorf("obstacles = %+v", got)
			}
		})
	}
	refused := []struct {
		name, text, codePoint string
		line, column          int
	}{
		{"a carriage return", "a\rb", "U+000D", 1, 2},
		{"a control", "a\n\u0085", "U+0085", 2, 1},
		{"a soft hyphen", "a\u00adb", "U+00AD", 1, 2},
		{"a zero width space", "é\nab\u200b", "U+200B", 2, 3},
		{"a byte order mark inside", "a\ufeff", "U+FEFF", 1, 2},
		{"a right-to-left override", "ok \u202e abc", "U+202E", 1, 4},
		{"an isolate", "\u2066x", "U+2066", 1, 1},
		{"a right-to-left mark", "x\u200f", "U+200F", 1, 2},
		{"a line separator", "x\u2028", "U+2028", 1, 2},
		{"a paragraph separator", "x\u2029", "U+2029", 1, 2},
		{"a combining grapheme joiner", "x\u034f", "U+034F", 1, 2},
		{"a Hangul filler", "x\u3164", "U+3164", 1, 2},
		{"a text selector after an emoji", "⚠\ufe0e", "U+FE0E", 1, 2},
		{"a supplementary selector", "a\U000e0100", "U+E0100", 1, 2},
		{"a selector after a letter", "a\ufe0f", "U+FE0F", 1, 2},
		{"a second selector after an emoji", "⚠\ufe0f\ufe0f", "U+FE0F", 1, 3},
		{"a selector at the beginning", "\ufe0f", "U+FE0F", 1, 1},
		{"a selector on the line after an emoji", "⚠\n\ufe0f", "U+FE0F", 2, 1},
		{"a selector after a digit without a keycap", "1\ufe0f2", "U+FE0F", 1, 2},
		{"a joiner between letters", "a\u200db", "U+200D", 1, 2},
		{"a joiner after an emoji only", "👩\u200dx", "U+200D", 1, 2},
		{"a joiner before an emoji only", "x\u200d👩", "U+200D", 1, 2},
		{"a joiner between digits", "1\u200d2", "U+200D", 1, 2},
		{"a joiner at the end", "👩\u200d", "U+200D", 1, 2},
		{"a non-joiner between emoji", "👩\u200c👩", "U+200C", 1, 2},
	}
	for _, c := range refused {
		t.Run("A6 refused: "+c.name, func(t *testing.T) {
			got := invisibleIn("body", c.text)
			if len(got) != 1 {
				t.Fatalf("obstacles = %+v, want one", got)
			}
			o := got[0]
			if o.Code != ObstacleInvisibleCharacters || o.Field != "body" || o.CodePoint != c.codePoint || o.Line != c.line || o.Column != c.column {
				t.Errorf("obstacle = %+v, want %s at %d:%d", o, c.codePoint, c.line, c.column)
			}
			if !strings.Contains(o.Message, c.codePoint) || !strings.Contains(o.Message, fmt.Sprintf("line %d, column %d", c.line, c.column)) {
				t.Errorf("the message %q does not say what and where", o.Message)
			}
		})
	}
	t.Run("A6 every ignorable, format and separator character is refused alone", func(t *testing.T) {
		for r := rune(0); r <= unicode.MaxRune; r++ {
			if r == '\t' || r == '\n' || r >= 0xD800 && r <= 0xDFFF {
				continue
			}
			hidden := unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
			if got := invisibleIn("body", string(r)); (len(got) == 1) != hidden {
				t.Errorf("%U: %+v", r, got)
			}
		}
	})
}

func TestObstacles(t *testing.T) {
	t.Run("A6 tag characters are shown with what they spell", func(t *testing.T) {
		got := invisibleIn("description", "ok\U000e0049\U000e0067\U000e006e\U000e0001 x\U000e0041")
		if len(got) != 2 {
			t.Fatalf("obstacles = %+v, want one for each run", got)
		}
		if !strings.Contains(got[0].Message, `"Ign<U+E0001>"`) || got[0].Column != 3 || got[0].CodePoint != "U+E0049" {
			t.Errorf("first = %+v", got[0])
		}
		if !strings.Contains(got[1].Message, `"A"`) || got[1].Column != 9 {
			t.Errorf("second = %+v", got[1])
		}
	})
	t.Run("A6 name, description and body are looked at", func(t *testing.T) {
		v := Version{Name: "a\u200b", Description: "b\u200b", Body: "c\u200b", Process: ProcessNo}
		var fields []string
		for _, o := range Obstacles(v) {
			fields = append(fields, o.Field)
		}
		if !slices.Equal(fields, []string{"name", "description", "body"}) {
			t.Errorf("fields = %v", fields)
		}
	})
	t.Run("S14 an unreadable process marker refuses the approval, before characters do", func(t *testing.T) {
		for _, process := range []Process{ProcessUnreadable, "", "maybe"} {
			got := Obstacles(Version{Body: "\u200b", Process: process})
			if len(got) != 2 || got[0].Code != ObstacleProcessUnreadable || got[1].Code != ObstacleInvisibleCharacters {
				t.Errorf("process %q: %+v", process, got)
			}
		}
	})
	t.Run("A6 a text full of hidden characters is refused with a bounded list", func(t *testing.T) {
		got := Obstacles(Version{Body: strings.Repeat("\u200b", 50_000), Process: ProcessNo})
		if len(got) != maxObstacles || !strings.Contains(got[maxObstacles-1].Message, "not listed") {
			t.Errorf("%d obstacles, the last says %q", len(got), got[len(got)-1].Message)
		}
	})
}

func TestApprovalObstacles(t *testing.T) {
	codes := func(f Facts, orphaned bool, posted Digest) []ObstacleCode {
		var list []ObstacleCode
		for _, o := range ApprovalObstacles(f, orphaned, posted) {
			list = append(list, o.Code)
		}
		return list
	}
	t.Run("A6 a whole version whose digest was posted has none", func(t *testing.T) {
		f := standingFacts()
		if got := codes(f, false, f.Version.Digest()); len(got) > 0 {
			t.Errorf("obstacles = %v", got)
		}
	})
	t.Run("A6 nothing is stale before a digest is posted", func(t *testing.T) {
		if got := codes(standingFacts(), false, ""); len(got) > 0 {
			t.Errorf("obstacles = %v", got)
		}
	})
	t.Run("A6 refusals stand in their order", func(t *testing.T) {
		f := standingFacts()
		f.Version.Process, f.Version.Name = ProcessUnreadable, "a\u200b"
		f.StoredDigest, f.StoredBodyChecksum = "", "other"
		want := []ObstacleCode{
			ObstacleOrphaned, ObstacleIntegrityFailed, ObstacleLegacy, ObstacleStaleDigest, ObstacleProcessUnreadable, ObstacleInvisibleCharacters,
		}
		if got := codes(f, true, "1:00"); !slices.Equal(got, want) {
			t.Errorf("obstacles = %v, want %v", got, want)
		}
	})
}
