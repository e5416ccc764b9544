package library

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/skill"
)

// The kinds of line of an export (docs/importing.md).
const (
	exportLine     = "export"
	sourceLine     = "source"
	skillLine      = "skill"
	attachmentLine = "attachment"
)

// exportFormat is the one format of exports there is.
const exportFormat = 1

// exported are the lines of an export as they are written, one type a kind. A key that
// is not among the fields is an error: nothing of an older installation is lost
// without a word.
type (
	exportedHeader struct {
		Kind         string `json:"kind"`
		Format       int    `json:"format"`
		Installation string `json:"installation"`
	}
	exportedSource struct {
		Kind                string           `json:"kind"`
		ID                  exportID         `json:"id"`
		Title               string           `json:"title"`
		Type                SourceType       `json:"type"`
		URL                 string           `json:"url"`
		Ref                 string           `json:"ref"`
		PinnedCommit        string           `json:"pinned_commit"`
		TrustLevel          skill.TrustLevel `json:"trust_level"`
		ExpectedFingerprint string           `json:"expected_fingerprint"`
		Enabled             *bool            `json:"enabled"`
	}
	exportedSkill struct {
		Kind         string          `json:"kind"`
		ID           exportID        `json:"id"`
		Source       exportID        `json:"source"`
		Identifier   string          `json:"identifier"`
		Name         string          `json:"name"`
		Description  string          `json:"description"`
		Body         string          `json:"body"`
		AllowedTools json.RawMessage `json:"allowed_tools"`
		Frontmatter  json.RawMessage `json:"frontmatter"`
		BodyChecksum string          `json:"body_checksum"`
		Enabled      bool            `json:"enabled"`
		Orphaned     bool            `json:"orphaned"`
	}
	exportedAttachment struct {
		Kind          string   `json:"kind"`
		Skill         exportID `json:"skill"`
		Configuration string   `json:"configuration"`
		Task          string   `json:"task"`
	}
)

// exportID is the id of a row in the older installation: text or a number.
type exportID string

// UnmarshalJSON reads text, or a number as its digits.
func (id *exportID) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		var number json.Number
		if err := json.Unmarshal(raw, &number); err != nil {
			return fmt.Errorf("an id is text or a number")
		}
		text = number.String()
	}
	*id = exportID(text)
	return nil
}

// kindOf is the kind that a line says it is.
func kindOf(line []byte) (string, error) {
	if !utf8.Valid(line) {
		return "", errors.New("the line is not valid UTF-8")
	}
	var head struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return "", errors.New("the line is not a JSON object")
	}
	return head.Kind, nil
}

// decodeLine reads a line of a known kind.
func decodeLine(line []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("the line does not have the format: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the line holds more than one object")
	}
	// A decoder writes U+FFFD for half a surrogate pair; nobody else may have written it.
	if halves := replaced(line); halves {
		return errors.New("the line holds half of a surrogate pair")
	}
	return nil
}

// replaced tells whether decoding a line puts in U+FFFD where the line has none.
func replaced(line []byte) bool {
	var any any
	if json.Unmarshal(line, &any) != nil {
		return true
	}
	decoded, err := json.Marshal(any)
	count := func(text []byte) int {
		lower := bytes.ToLower(text)
		return bytes.Count(lower, []byte("�")) + bytes.Count(lower, []byte(`\ufffd`))
	}
	return err != nil || count(decoded) > count(line)
}

// version is the version that an exported skill's fields make. The older installation knew no processes:
// the marker is what the stored frontmatter says.
func (s exportedSkill) version(frontmatter string) (skill.Version, error) {
	v := skill.Version{Name: s.Name, Description: s.Description, Body: s.Body, Support: skill.SupportOf(s.Body), Process: skill.ProcessNo}
	for _, text := range []struct{ name, value string }{{"name", v.Name}, {"description", v.Description}, {"body", v.Body}} {
		switch {
		case len(text.value) > maxBody:
			return v, fmt.Errorf("%s has %d bytes; at most %d are accepted", text.name, len(text.value), maxBody)
		case strings.ContainsRune(text.value, 0):
			return v, fmt.Errorf("%s holds a NUL character, which the database cannot keep", text.name)
		}
	}
	if strings.TrimSpace(v.Name) == "" {
		return v, errors.New("name is missing")
	}
	if !isHex(s.BodyChecksum, 64) {
		return v, errors.New("body_checksum is not 64 lower-case hexadecimal digits")
	}
	var err error
	if v.Tools, err = s.tools(); err != nil {
		return v, err
	}
	if file, err := parseFrontmatter(frontmatter); err == nil {
		v.Process = file.Version.Process
	}
	return v, nil
}

// tools reads the declaration as a skill file's: JSON is YAML, and there is one
// parser.
func (s exportedSkill) tools() (skill.Tools, error) {
	if len(s.AllowedTools) == 0 || string(s.AllowedTools) == "null" {
		return skill.NoTools(), nil
	}
	file, err := skill.Parse([]byte("---\nname: n\ndescription: d\nallowed-tools: " + string(s.AllowedTools) + "\n---\n"))
	if err != nil {
		return skill.Tools{}, fmt.Errorf("allowed_tools cannot be read: %w", err)
	}
	return file.Version.Tools, nil
}

// frontmatter is the stored frontmatter as text: JSON text holds it, a JSON object is
// it.
func (s exportedSkill) frontmatter() (string, error) {
	var text string
	raw := bytes.TrimSpace(s.Frontmatter)
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "", nil
	case raw[0] == '{':
		return string(raw), nil
	case json.Unmarshal(raw, &text) != nil || strings.ContainsRune(text, 0):
		return "", errors.New("frontmatter is neither text without NUL characters nor an object")
	}
	return text, nil
}

// parseFrontmatter reads stored frontmatter as if it stood at the head of a file
// without a body.
func parseFrontmatter(text string) (skill.File, error) {
	text = strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\n") + "\n"
	file, err := skill.Parse([]byte("---\n" + text + "---\n"))
	if err == nil && file.Version.Body != "" {
		return file, errors.New("it holds a fence")
	}
	return file, err
}
