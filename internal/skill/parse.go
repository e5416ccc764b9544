package skill

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	keyTools          = "allowed-tools"
	keyToolsUnderline = "allowed_tools" // read as the same key
	keyProcess        = "process"
)

// Parse reads a skill file. It is the only parser: import, review, digest and composition all see what it returned, and nothing else splits fences or
// reads YAML. The file is read (status ok), read after repairs (status repaired), or refused with a *Rejection. One file never affects another.
//
// Text is kept as written but for a leading byte order mark, CRLF line ends, and the white space around name and description.
func Parse(data []byte) (File, error) {
	doc, err := readDocument(data)
	if err != nil {
		return File{}, err
	}
	source, root, err := readFrontmatter(doc.frontmatter)
	if err != nil {
		return File{}, err
	}
	fields := fieldsOf(root)
	name, refusal := requiredText(fields, "name", RejectNameMissing)
	if refusal != nil {
		return File{}, refusal
	}
	description, refusal := requiredText(fields, "description", RejectDescriptionMissing)
	if refusal != nil {
		return File{}, refusal
	}
	file := File{
		Version: Version{
			Name: name, Description: description, Body: doc.body, Support: SupportOf(doc.body),
			Tools: source.tools(fields), Process: source.process(fields),
		},
		Status:      ParseOK,
		Repairs:     source.repairs,
		Frontmatter: doc.frontmatter, RawDigest: RawDigest(doc.frontmatter, doc.body),
		VersionLabel: versionLabel(fields), Licence: firstText(fields, "license", "licence"),
	}
	if source.wasRepaired {
		file.Status = ParseRepaired
	}
	file.Findings = append(frontmatterFindings(fields, file.Version.Tools), ScanText(file.Version, doc.bodyLine)...)
	return file, nil
}

// frontmatterSource is what the granting keys have to know about how the frontmatter came to be read.
type frontmatterSource struct {
	wasRepaired bool
	repairs     []Repair
	swallowed   map[string]bool
}

// readFrontmatter is steps 3 and 4 of reading a file: YAML, or YAML after a rescue.
func readFrontmatter(text string) (frontmatterSource, *yaml.Node, error) {
	var source frontmatterSource
	root, err := loadYAML(text)
	if err != nil {
		saved := rescue(text)
		source = frontmatterSource{wasRepaired: true, repairs: saved.repairs, swallowed: saved.swallowed}
		if len(saved.repairs) == 0 {
			return source, nil, notYAML(err)
		}
		if root, err = loadYAML(saved.text); err != nil {
			return source, nil, notYAML(err)
		}
	}
	if refusal := checkTree(root); refusal != nil {
		return source, nil, refusal
	}
	return source, root, nil
}

// field is one top-level entry of the frontmatter.
type field struct {
	key   string
	line  int // 1-based, in the file
	value *yaml.Node
}

type fieldList []field

func fieldsOf(root *yaml.Node) fieldList {
	fields := make(fieldList, 0, len(root.Content)/2)
	for i := 0; i < len(root.Content); i += 2 {
		key := root.Content[i]
		fields = append(fields, field{key: key.Value, line: key.Line + frontmatterLine - 1, value: root.Content[i+1]})
	}
	return fields
}

func (l fieldList) get(key string) (field, bool) {
	for _, f := range l {
		if f.key == key {
			return f, true
		}
	}
	return field{}, false
}

// requiredText reads a key that must be text. Null, a list, a mapping and white space alone are all the same: missing. Nothing stands in for it.
func requiredText(fields fieldList, key string, code RejectionCode) (string, *Rejection) {
	hint := fmt.Sprintf("write `%s:` and a text", key)
	f, ok := fields.get(key)
	if !ok {
		return "", reject(code, 1, key+" missing", hint)
	}
	if f.value.Kind != yaml.ScalarNode || isNull(f.value) {
		return "", reject(code, f.line, fmt.Sprintf("%s missing: it is %s, not text", key, kindOf(f.value)), hint)
	}
	text := strings.TrimSpace(f.value.Value)
	if text == "" {
		return "", reject(code, f.line, key+" missing: it is empty", hint)
	}
	return text, nil
}

// tools reads the declaration under either spelling. In a repaired file it is unreadable: nobody knows what the author meant.
func (s frontmatterSource) tools(fields fieldList) Tools {
	hyphen, hasHyphen := fields.get(keyTools)
	underline, hasUnderline := fields.get(keyToolsUnderline)
	switch {
	case s.wasRepaired && (hasHyphen || hasUnderline || s.swallowed[keyTools] || s.swallowed[keyToolsUnderline]):
		return UnreadableTools()
	case hasHyphen && hasUnderline:
		return UnreadableTools()
	case hasHyphen:
		return readTools(hyphen.value)
	case hasUnderline:
		return readTools(underline.value)
	}
	return NoTools()
}

// process reads the marker (RULES S14): the plain words true and false, and nothing that merely looks like them.
func (s frontmatterSource) process(fields fieldList) Process {
	f, declared := fields.get(keyProcess)
	switch {
	case s.wasRepaired && (declared || s.swallowed[keyProcess]):
		return ProcessUnreadable
	case !declared:
		return ProcessNo
	case isPlain(f.value) && f.value.Value == "true":
		return ProcessYes
	case isPlain(f.value) && f.value.Value == "false":
		return ProcessNo
	}
	return ProcessUnreadable
}

// versionLabel is `metadata.version`, or else `version`: the author's words, which mean nothing here.
func versionLabel(fields fieldList) string {
	if metadata, ok := fields.get("metadata"); ok && metadata.value.Kind == yaml.MappingNode {
		if label := firstText(fieldsOf(metadata.value), "version"); label != "" {
			return label
		}
	}
	return firstText(fields, "version")
}

// firstText is the text of the first of the keys that has one.
func firstText(fields fieldList, keys ...string) string {
	for _, key := range keys {
		if f, ok := fields.get(key); ok && f.value.Kind == yaml.ScalarNode && !isNull(f.value) {
			return strings.TrimSpace(f.value.Value)
		}
	}
	return ""
}
