package skill

import (
	"fmt"
	"regexp"
	"strings"
)

// lineRule reports lines that a pattern matches. The anchors are literal texts, lower-case, one of which stands in every match: they are looked for
// first, because a pattern over every line would cost more than all the rest of reading a file.
type lineRule struct {
	rule     string
	severity Severity
	message  string
	anchors  []string
	pattern  *regexp.Regexp // applied to the line in lower case
}

// hostSyntax is text that is inert here and that other hosts would execute or fill in.
var hostSyntax = []lineRule{
	{
		"host_command", SeverityWarning, "other hosts would execute this command; here it is only text",
		[]string{"!`"},
		regexp.MustCompile("!`[^`]+`"),
	},
	{
		"host_arguments", SeverityInfo, "other hosts would execute this with arguments filled in; here it is only text",
		[]string{"$arguments"},
		regexp.MustCompile(`\$arguments\b`),
	},
	{
		"host_file", SeverityInfo, "other hosts would execute this by reading the file; here it is only text",
		[]string{"@"},
		regexp.MustCompile(`(?:^|[\s(])@(?:(?:~|\.{1,2})?/[\w.-]|[\w.-]+(?:/[\w.-]+)*\.(?:md|txt|json|ya?ml|toml|sh|py|js|ts|go)\b)`),
	},
}

// injectionRules look for text that tries to take over its reader. Public skills that trip them are nearly always honest, so they advise and never
// decide (SKILL-FILES, Review).
var injectionRules = []lineRule{
	{
		"ignore_instructions", SeverityHigh, "asks its reader to set earlier instructions aside",
		[]string{"ignore", "disregard", "forget", "override"},
		regexp.MustCompile(`\b(?:ignore|disregard|forget|override)\s+(?:[\w']+\s+){0,3}(?:previous|prior|above|earlier|preceding|system|other)\s+(?:[\w']+\s+){0,2}(?:instruction|prompt|rule|guideline|message)s?\b`),
	},
	{
		"conceal_from_user", SeverityHigh, "asks its reader to hide something from the person",
		[]string{" the user"},
		regexp.MustCompile(`\b(?:do not|don't|never|without)\s+(?:tell|inform|notify|alert|telling|informing|notifying|alerting)\s+the user\b`),
	},
	{
		"reveal_prompt", SeverityHigh, "asks for the system prompt",
		[]string{"system prompt", "hidden instruction"},
		regexp.MustCompile(`\b(?:print|reveal|output|repeat|show|leak|dump)\s+(?:[\w']+\s+){0,3}(?:system prompt|hidden instruction)`),
	},
	{
		"role_marker", SeverityHigh, "holds a marker that separates roles in a conversation",
		[]string{"<|im_", "<|system|", "<|user|", "<|assistant|", "[inst]", "[/inst]", "<<sys>>"},
		regexp.MustCompile(`<\|(?:im_start|im_end|im_sep|system|user|assistant)\|?>|\[/?inst\]|<<sys>>`),
	},
	{
		"sends_secrets", SeverityHigh, "sends what looks like a secret to the network",
		[]string{".ssh/", "id_rsa", "id_ed25519", "/etc/passwd", ".aws/credentials", ".env"},
		regexp.MustCompile(`\b(?:curl|wget)\b.*(?:\.ssh/|id_rsa|id_ed25519|/etc/passwd|\.aws/credentials|@\.env\b|cat\s+\S*\.env\b)`),
	},
	{
		"decoded_command", SeverityHigh, "runs a command that is hidden by an encoding",
		[]string{"base64"},
		regexp.MustCompile(`base64\s+(?:-d|--decode)\b.*\|\s*(?:sudo\s+)?(?:ba|z)?sh\b`),
	},
	{
		"piped_to_shell", SeverityWarning, "runs a script straight from the network",
		[]string{"| sh", "| bash", "| zsh", "| sudo", "|sh", "|bash", "|zsh", "|sudo"},
		regexp.MustCompile(`\b(?:curl|wget)\b[^|]*\| ?(?:sudo\s+)?(?:ba|z)?sh\b`),
	},
	{
		"skips_approval", SeverityWarning, "asks its reader to act without asking",
		[]string{"without "},
		regexp.MustCompile(`\bwithout\s+(?:asking|waiting\s+for)\s+(?:[\w']+\s+){0,3}(?:approval|confirmation|permission)\b`),
	},
}

// maxPerRule bounds the findings of one rule; a text that trips a rule this often has been noticed.
const maxPerRule = 20

func scanInjection(text string, firstLine int) []Finding {
	return scanLines(injectionRules, text, firstLine, maxPerRule)
}

// scanHostSyntax reports each kind once, at its first place: skills written for other hosts are full of it.
func scanHostSyntax(text string, firstLine int) []Finding {
	return scanLines(hostSyntax, text, firstLine, 1)
}

func scanLines(rules []lineRule, text string, firstLine, limit int) []Finding {
	lower := lowerASCII(text)
	var findings []Finding
	for _, rule := range rules {
		found := 0
		for at := rule.nextLine(lower, 0); at < len(lower) && found < limit; at = rule.nextLine(lower, lineEnd(lower, at)) {
			end := lineEnd(lower, at)
			match := rule.pattern.FindStringIndex(lower[at:end])
			if match == nil {
				continue
			}
			found++
			findings = append(findings, Finding{
				Rule: rule.rule, Severity: rule.severity, Line: firstLine + strings.Count(lower[:at], "\n"),
				Message: fmt.Sprintf("line %d %s", firstLine+strings.Count(lower[:at], "\n"), rule.message),
				Excerpt: clip(strings.TrimSpace(text[at+match[0]:end]), 160),
			})
		}
	}
	return findings
}

// nextLine returns where the next line that holds an anchor begins, from a line's beginning or end on; len(text) when there is none.
func (r lineRule) nextLine(text string, from int) int {
	nearest := len(text)
	for _, anchor := range r.anchors {
		if at := strings.Index(text[from:nearest], anchor); at >= 0 {
			nearest = from + at
		}
	}
	if nearest == len(text) {
		return nearest
	}
	return strings.LastIndexByte(text[:nearest], '\n') + 1
}

func lineEnd(text string, at int) int {
	if length := strings.IndexByte(text[at:], '\n'); length >= 0 {
		return at + length
	}
	return len(text)
}

// lowerASCII folds ASCII letters only, so that every place in the result is the same place in the text.
func lowerASCII(text string) string {
	lower := []byte(text)
	for i, c := range lower {
		if 'A' <= c && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	return string(lower)
}
