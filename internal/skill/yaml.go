package skill

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

const (
	maxDepth = 32
	maxNodes = 10_000
)

var errSeveralDocuments = errors.New("several YAML documents")

// loadYAML reads the frontmatter as one document of nodes. A nil node is an empty document. A root that is no mapping is returned without a look at what
// follows it: prose before a list reads as one document and the beginning of another, and what is wrong with it is that it has no keys.
func loadYAML(text string) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var first, second yaml.Node
	if err := decoder.Decode(&first); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, err
	}
	root := first.Content[0]
	if root.Kind != yaml.MappingNode {
		return root, nil
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errSeveralDocuments
		}
		return nil, err
	}
	return root, nil
}

// notYAML turns a YAML reader's error into a rejection, its line counted in the file.
func notYAML(err error) *Rejection {
	if errors.Is(err, errSeveralDocuments) {
		return reject(RejectSeveralDocuments, frontmatterLine, "the frontmatter holds several YAML documents", "remove `---` or `...` from between the keys")
	}
	reason := strings.TrimPrefix(err.Error(), "yaml: ")
	line := frontmatterLine
	if at := yamlErrorLine.FindStringSubmatch(reason); at != nil {
		if n, err := strconv.Atoi(at[1]); err == nil {
			line = n + frontmatterLine - 1
		}
		if reason = strings.TrimPrefix(reason, at[0]); countsFromZero.MatchString(reason) {
			line++
		}
	}
	return reject(RejectNotYAML, line, "the frontmatter is not YAML: "+reason, "put the value between double quotes")
}

var yamlErrorLine = regexp.MustCompile(`^line (\d+): `)

// countsFromZero matches the errors of the YAML library's parser, whose lines count from 0; those of its scanner count from 1.
var countsFromZero = regexp.MustCompile(`^did not find expected (?:',' or|key$|'-' indicator|<document start>|node content)`)

// checkTree refuses what a reader of the file could misjudge: indirection, types, keys that are no text, keys given twice, and trees too large to look at.
func checkTree(root *yaml.Node) *Rejection {
	if root == nil || root.Kind != yaml.MappingNode {
		return reject(RejectNotMapping, frontmatterLine, "the frontmatter is not a mapping of keys to values", "write `name:` and `description:` lines")
	}
	budget := maxNodes
	return walk(root, 1, &budget)
}

func walk(node *yaml.Node, depth int, budget *int) *Rejection {
	*budget--
	switch {
	case *budget < 0:
		return rejectNode(RejectTooManyNodes, node, fmt.Sprintf("the frontmatter has more than %d values", maxNodes))
	case depth > maxDepth:
		return rejectNode(RejectTooDeep, node, fmt.Sprintf("the frontmatter is nested deeper than %d levels", maxDepth))
	}
	if refusal := checkNode(node); refusal != nil {
		return refusal
	}
	if node.Kind == yaml.MappingNode {
		if refusal := checkKeys(node, depth == 1); refusal != nil {
			return refusal
		}
	}
	for _, child := range node.Content {
		if refusal := walk(child, depth+1, budget); refusal != nil {
			return refusal
		}
	}
	return nil
}

func checkNode(node *yaml.Node) *Rejection {
	switch {
	case node.Kind == yaml.AliasNode || node.Anchor != "":
		return rejectNode(RejectAliasOrAnchor, node, "the frontmatter uses a YAML alias or anchor")
	case node.Style&yaml.TaggedStyle != 0:
		return rejectNode(RejectExplicitTag, node, fmt.Sprintf("the frontmatter uses an explicit tag, %s", clip(node.Tag, 40)))
	}
	if node.Kind == yaml.ScalarNode {
		if at := strings.IndexFunc(node.Value, isRefusedControl); at >= 0 {
			r := []rune(node.Value[at:])[0]
			return rejectNode(RejectControlCharacter, node, fmt.Sprintf("control character U+%04X, written as an escape", r))
		}
	}
	return nil
}

// isRefusedControl tells the control characters that may not enter through an escape either.
func isRefusedControl(r rune) bool {
	return unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r'
}

// checkKeys refuses keys that are lists or mappings, and keys given twice. Below the top level a value that stands in braces without a colon,
// `{"a": 1, ["b"]}`, is no key anybody wrote: it is a slip in data that nothing reads, and costs the file nothing.
func checkKeys(mapping *yaml.Node, top bool) *Rejection {
	seen := make(map[string]bool, len(mapping.Content)/2)
	for i := 0; i < len(mapping.Content); i += 2 {
		key := mapping.Content[i]
		switch {
		case key.Kind == yaml.AliasNode || key.Anchor != "" || key.Style&yaml.TaggedStyle != 0:
			return checkNode(key)
		case key.Kind != yaml.ScalarNode && !top && mapping.Style&yaml.FlowStyle != 0 && isAbsent(mapping.Content[i+1]):
			continue
		case key.Kind != yaml.ScalarNode:
			return rejectNode(RejectComplexKey, key, "a key of the frontmatter is a list or a mapping")
		case seen[key.Value]:
			return rejectNode(RejectDuplicateKey, key, fmt.Sprintf("duplicate key %q", clip(key.Value, 60)))
		}
		seen[key.Value] = true
	}
	return nil
}

func rejectNode(code RejectionCode, node *yaml.Node, reason string) *Rejection {
	return reject(code, node.Line+frontmatterLine-1, reason, nodeHints[code])
}

var nodeHints = map[RejectionCode]string{
	RejectAliasOrAnchor:    "write the value out, or put it between double quotes",
	RejectExplicitTag:      "remove the tag, or put the value between double quotes",
	RejectComplexKey:       "use plain text as the key",
	RejectDuplicateKey:     "keep one of them",
	RejectControlCharacter: "remove the character",
	RejectTooDeep:          "flatten the value or move it into a bundled file",
	RejectTooManyNodes:     "move the data into a bundled file",
}

// isNull tells a value that YAML 1.2 reads as null. Quoted text is never null.
func isNull(node *yaml.Node) bool {
	if node.Kind != yaml.ScalarNode || node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return false
	}
	switch node.Value {
	case "", "~", "null", "Null", "NULL":
		return true
	}
	return false
}

// isAbsent tells a value that is null because nothing was written.
func isAbsent(node *yaml.Node) bool { return isPlain(node) && node.Value == "" }

// isPlain tells a scalar written without quotes or block indicator.
func isPlain(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Style == 0 }

// kindOf names what stands where text was wanted, for messages.
func kindOf(node *yaml.Node) string {
	switch node.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a mapping"
	}
	return "null"
}
