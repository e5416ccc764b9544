package skill

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// warnBody is the size in bytes above which a body is worth a warning whatever the settings are.
const warnBody = 64 << 10

// knownKeys are the frontmatter keys that this or another host reads. A key close to one of them is probably a slip.
var knownKeys = []string{
	"name", "description", "license", "compatibility", "metadata", "version", keyTools, keyProcess,
	"argument-hint", "disable-model-invocation", "user-invocable", "when-to-use",
}

// readElsewhere are keys of other hosts that are too short or too common to guess at; they only keep a key from being called a slip.
var readElsewhere = map[string]bool{
	keyToolsUnderline: true, "licence": true, "tools": true, "model": true, "context": true, "agent": true, "agents": true, "hooks": true, "paths": true,
	"shell": true, "effort": true, "when_to_use": true, "arguments": true, "author": true, "tags": true, "category": true,
}

// frontmatterFindings lists what a reviewer should know about the frontmatter.
func frontmatterFindings(fields fieldList, tools Tools) []Finding {
	var findings []Finding
	for _, f := range fields {
		if suggestion := nearMiss(f.key); suggestion != "" {
			findings = append(findings, Finding{
				Rule: "near_miss_key", Severity: SeverityWarning, Line: f.line, Excerpt: clip(f.key, 80),
				Message: fmt.Sprintf("nothing reads the key %q; did the author mean %s?", clip(f.key, 80), suggestion),
			})
		}
	}
	if f, ok := fields.get("tools"); ok {
		findings = append(findings, Finding{
			Rule: "tools_key", Severity: SeverityInfo, Line: f.line, Excerpt: "tools",
			Message: "tools is not allowed-tools: nothing reads it here",
		})
	}
	return append(findings, toolFindings(fields, tools)...)
}

func toolFindings(fields fieldList, tools Tools) []Finding {
	declared, ok := fields.get(keyTools)
	if !ok {
		declared, ok = fields.get(keyToolsUnderline)
	}
	var findings []Finding
	if tools.State == ToolsUnreadable {
		finding := Finding{
			Rule: "tools_unreadable", Severity: SeverityWarning,
			Message: "allowed-tools cannot be read: it counts as declared and grants nothing",
		}
		if ok {
			finding.Line, finding.Excerpt = declared.line, excerptOf(declared.value)
		}
		findings = append(findings, finding)
	}
	for _, item := range tools.Items {
		if strings.Contains(item, "(") {
			findings = append(findings, Finding{
				Rule: "tool_with_parentheses", Severity: SeverityInfo, Line: declared.line, Excerpt: clip(item, 120),
				Message: fmt.Sprintf("%s matches no tool here: a limit in parentheses cannot be enforced", clip(item, 120)),
			})
		}
	}
	return findings
}

func excerptOf(node *yaml.Node) string {
	if node.Kind == yaml.ScalarNode {
		return clip(node.Value, 120)
	}
	return kindOf(node)
}

// nearMiss returns the known key that an unknown one resembles, or nothing.
func nearMiss(key string) string {
	if readElsewhere[key] || len(key) > 40 {
		return ""
	}
	folded := strings.ReplaceAll(strings.ToLower(key), "_", "-")
	best, nearest := "", 3
	for _, known := range knownKeys {
		if key == known {
			return ""
		}
		allowed := 0
		switch {
		case len(known) >= 8:
			allowed = 2
		case len(known) >= 6:
			allowed = 1
		}
		if d := distance(folded, known); d <= allowed && d < nearest {
			best, nearest = known, d
		}
	}
	return best
}

// distance is the Levenshtein distance of two short texts, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// SizeFinding warns of a body larger than the setting `skills.maxBytes`: it is said at import and review, because at run time the fenced skill would
// only be left out. ok is false when the body fits.
func SizeFinding(body string, maxBytes int) (finding Finding, ok bool) {
	if len(body) <= maxBytes {
		return Finding{}, false
	}
	return Finding{
		Rule: "body_exceeds_max_bytes", Severity: SeverityWarning,
		Message: fmt.Sprintf("the body is %d bytes; skills.maxBytes allows %d bytes for all fenced skills together", len(body), maxBytes),
	}, true
}

// ScanText lists what a reviewer should know about a version's text. bodyLine is the line of the file on which the body begins (1 for a text that was
// written here); findings about name and description have no line. Nothing it finds refuses anything.
func ScanText(v Version, bodyLine int) []Finding {
	var findings []Finding
	if strings.HasPrefix(v.Body, "---\n") && strings.Contains(v.Body[4:], "\n---") {
		findings = append(findings, Finding{
			Rule: "second_frontmatter", Severity: SeverityWarning, Line: bodyLine, Excerpt: "---",
			Message: "a second frontmatter block follows the first; it is read as body",
		})
	}
	if len(v.Body) > warnBody {
		findings = append(findings, Finding{
			Rule: "large_body", Severity: SeverityWarning, Line: bodyLine,
			Message: fmt.Sprintf("the body is %d bytes, more than %d bytes", len(v.Body), warnBody),
		})
	}
	findings = append(findings, unusualSpaces(v, bodyLine)...)
	findings = append(findings, scanHostSyntax(v.Body, bodyLine)...)
	for _, text := range []string{v.Name, v.Description} {
		for _, finding := range scanInjection(text, 1) {
			finding.Line = 0
			findings = append(findings, finding)
		}
	}
	return append(findings, scanInjection(v.Body, bodyLine)...)
}

// unusualSpaces reports space characters other than the ordinary one: once for each kind and field, at its first place.
func unusualSpaces(v Version, bodyLine int) []Finding {
	var findings []Finding
	for _, field := range []struct {
		name, text string
		line       int
	}{{"name", v.Name, 0}, {"description", v.Description, 0}, {"body", v.Body, bodyLine}} {
		seen := map[rune]bool{}
		for at := 0; at < len(field.text); {
			if field.text[at] < utf8.RuneSelf {
				at++
				continue
			}
			r, size := utf8.DecodeRuneInString(field.text[at:])
			if unicode.Is(unicode.Zs, r) && !seen[r] {
				seen[r] = true
				finding := Finding{
					Rule: "unusual_space", Severity: SeverityInfo, Excerpt: fmt.Sprintf("U+%04X", r),
					Message: fmt.Sprintf("the %s holds the space character U+%04X, which looks like an ordinary space or like nothing", field.name, r),
				}
				if field.line > 0 {
					finding.Line = field.line + strings.Count(field.text[:at], "\n")
				}
				findings = append(findings, finding)
			}
			at += size
		}
	}
	return findings
}
