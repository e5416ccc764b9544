package skill

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

var toolIdent = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*`)

// readTools reads an `allowed-tools` value of any kind (RULES S5). It never fails: what it cannot read is an unreadable declaration.
func readTools(node *yaml.Node) Tools {
	switch {
	case isNull(node):
		return DeclareTools()
	case node.Kind == yaml.ScalarNode && !isBool(node):
		tokens, ok := tokenizeTools(node.Value)
		if !ok {
			return UnreadableTools()
		}
		return toolsOf(tokens)
	case node.Kind == yaml.SequenceNode:
		items := make([]string, 0, len(node.Content))
		for _, item := range node.Content {
			if item.Kind != yaml.ScalarNode || isNull(item) || isBool(item) {
				return UnreadableTools()
			}
			items = append(items, item.Value)
		}
		return toolsOf(items)
	}
	return UnreadableTools()
}

// isBool tells a value that is a yes or no in YAML 1.2 and therefore the name of no tool.
func isBool(node *yaml.Node) bool {
	if !isPlain(node) {
		return false
	}
	switch node.Value {
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return true
	}
	return false
}

// toolsOf declares the tokens when every one of them names a tool.
func toolsOf(tokens []string) Tools {
	for _, token := range tokens {
		if !isToolToken(token) {
			return UnreadableTools()
		}
	}
	return DeclareTools(tokens...)
}

// tokenizeTools splits a string at commas and white space outside parentheses and quotes. It fails on parentheses or quotes that do not close.
func tokenizeTools(text string) (tokens []string, ok bool) {
	var state scanState
	start := 0
	for at := 0; at < len(text); at++ {
		if state.outside() && isToolSeparator(text[at]) {
			if at > start {
				tokens = append(tokens, text[start:at])
			}
			start = at + 1
			continue
		}
		if !state.step(text[at]) {
			return nil, false
		}
	}
	if start < len(text) {
		tokens = append(tokens, text[start:])
	}
	return tokens, state.outside()
}

func isToolSeparator(c byte) bool { return strings.IndexByte(", \t\n\r", c) >= 0 }

// scanState is how deep in parentheses a scan is, and in which quotes. Quotes count everywhere: `Bash(echo ")")` is one token.
type scanState struct {
	depth int
	quote byte
}

func (s *scanState) outside() bool { return s.depth == 0 && s.quote == 0 }

// step takes one byte; false means a parenthesis that was never opened. Bytes of longer characters are never ASCII, so they pass as they are.
func (s *scanState) step(c byte) bool {
	switch {
	case s.quote != 0:
		if c == s.quote {
			s.quote = 0
		}
	case c == '"' || c == '\'':
		s.quote = c
	case c == '(':
		s.depth++
	case c == ')':
		s.depth--
	}
	return s.depth >= 0
}

// isToolToken tells `Ident` or `Ident(...)`, the parentheses balanced and closed by the last character.
func isToolToken(token string) bool {
	rest := token[len(toolIdent.FindString(token)):]
	if rest == token || rest == "" {
		return rest == "" && token != ""
	}
	if rest[0] != '(' || strings.ContainsFunc(rest, isRefusedInTool) {
		return false
	}
	var state scanState
	for at := range len(rest) {
		if !state.step(rest[at]) || (state.outside() && at < len(rest)-1) {
			return false
		}
	}
	return state.outside()
}

// isRefusedInTool tells characters a reviewer cannot see in a token: a token holding one is unreadable.
func isRefusedInTool(r rune) bool { return r == '\n' || r == '\r' || Invisible(r) }
