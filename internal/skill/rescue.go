package skill

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
)

// topLevelKey matches a line that begins a top-level entry: a plain key at the margin and its colon, followed by the value's first line.
var topLevelKey = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*:(?:[ \t]+(.*)|$)`)

// rescued is frontmatter that was made readable.
type rescued struct {
	text    string
	repairs []Repair
	// swallowed names the granting keys that stand inside a value that was read as text. They count as declared: a restriction someone wrote must not
	// vanish because a line above it was no YAML.
	swallowed map[string]bool
}

// rescue repairs frontmatter that is not YAML: paired surrogate escapes are decoded, and every top-level plain value that is no YAML by itself is quoted.
// The number of lines stays, so that places in messages stay right.
func rescue(frontmatter string) rescued {
	out := rescued{swallowed: map[string]bool{}}
	text, line := decodeSurrogates(frontmatter)
	if line > 0 {
		out.repairs = append(out.repairs, Repair{
			Code: RepairSurrogates, Line: line + frontmatterLine - 1,
			Message: "escapes of surrogate pairs were read as the characters they stand for",
		})
	}
	if _, err := loadYAML(text); err == nil {
		out.text = text
		return out
	}
	lines := strings.Split(text, "\n")
	for at := 0; at < len(lines); {
		end := entryEnd(lines, at)
		if quoted, key, ok := quoteEntry(lines[at:end]); ok {
			out.repairs = append(out.repairs, Repair{
				Code: RepairQuotedValue, Key: key, Line: at + frontmatterLine,
				Message: fmt.Sprintf("the value of %s is not YAML and was read as text", key),
			})
			out.noteSwallowed(lines[at+1 : end])
			lines[at] = quoted
			clear(lines[at+1 : end])
		}
		at = end
	}
	out.text = strings.Join(lines, "\n")
	return out
}

// entryEnd finds where the entry that begins at a line ends: at the next line that is neither blank nor indented.
func entryEnd(lines []string, at int) int {
	end := at + 1
	for end < len(lines) && (strings.TrimSpace(lines[end]) == "" || lines[end][0] == ' ' || lines[end][0] == '\t') {
		end++
	}
	return end
}

// quoteEntry rewrites an entry whose plain value is no YAML by itself as a double-quoted value on one line.
func quoteEntry(lines []string) (quoted, key string, ok bool) {
	match := topLevelKey.FindStringSubmatch(lines[0])
	if match == nil || !isPlainStart(match[2]) {
		return "", "", false
	}
	if node, err := loadYAML(strings.Join(lines, "\n")); err == nil && node != nil {
		return "", "", false
	}
	first := blockIndicator.ReplaceAllString(match[2], "")
	return match[1] + ": " + doubleQuote(fold(first, lines[1:])), match[1], true
}

// blockIndicator matches a block scalar's indicator that wrongly has text behind it.
var blockIndicator = regexp.MustCompile(`^[|>][0-9+-]{0,2}(?:[ \t]+|$)`)

// isPlainStart tells whether a value was meant as plain text. Quoted values and flow collections were not, and neither were anchors and tags, which are
// refused however they are written.
func isPlainStart(value string) bool {
	return value != "" && !strings.ContainsRune(`"'[{&!`, rune(value[0]))
}

// fold joins a value's lines as YAML folds plain text: a line break is a space, and n blank lines are n line breaks. Nothing is cut at ` #`.
func fold(first string, rest []string) string {
	var text strings.Builder
	text.WriteString(strings.TrimSpace(first))
	blank := 0
	for _, line := range rest {
		line = strings.TrimSpace(line)
		if line == "" {
			blank++
			continue
		}
		if blank > 0 {
			text.WriteString(strings.Repeat("\n", blank))
		} else if text.Len() > 0 {
			text.WriteByte(' ')
		}
		blank = 0
		text.WriteString(line)
	}
	return text.String()
}

var quoteEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`)

func doubleQuote(text string) string { return `"` + quoteEscapes.Replace(text) + `"` }

func (r *rescued) noteSwallowed(lines []string) {
	for _, line := range lines {
		if match := topLevelKey.FindStringSubmatch(strings.TrimSpace(line)); match != nil {
			r.swallowed[match[1]] = true
		}
	}
}

var surrogatePair = regexp.MustCompile(`(\\+)u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})`)

// decodeSurrogates turns `\ud83d\udd0d` into the character it stands for, as JSON readers do, and returns the 1-based line of the first one (0: none).
// A backslash that is itself escaped begins no escape.
func decodeSurrogates(text string) (decoded string, line int) {
	var out strings.Builder
	last := 0
	for _, at := range surrogatePair.FindAllStringSubmatchIndex(text, -1) {
		if (at[3]-at[2])%2 == 0 {
			continue
		}
		high, _ := strconv.ParseUint(text[at[4]:at[5]], 16, 16)
		low, _ := strconv.ParseUint(text[at[6]:at[7]], 16, 16)
		out.WriteString(text[last : at[3]-1])
		out.WriteRune(utf16.DecodeRune(rune(high), rune(low)))
		last = at[1]
		if line == 0 {
			line = 1 + strings.Count(text[:at[0]], "\n")
		}
	}
	if line == 0 {
		return text, 0
	}
	out.WriteString(text[last:])
	return out.String(), line
}
