package content

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/fault"
)

// FieldType says what a field may hold.
type FieldType int

// The types. A field that was never set, or set to null, is absent.
const (
	Line   FieldType = iota // one line of text
	Text                    // text of several lines
	Flag                    // true or false
	Users                   // a list of user ids (UUIDs); only administrators set it
	FileID                  // the id of a file
)

// Field is one field of a table.
type Field struct {
	Name     string
	Type     FieldType
	Required bool // present and not blank at every moment of the record
	// Spoken is text in a language: what a translation says anew.
	Spoken  bool
	pattern *regexp.Regexp
	hint    string // what the pattern wants, in words
}

// Table is a table with its fields in the order in which people see them.
type Table struct {
	Name   string
	Fields []Field
}

// The fields that say who may read and edit a page and everything below it
// (RULES I6).
const (
	ReaderIDs = "readerIds"
	EditorIDs = "editorIds"
)

// The fields of a page or an element that show a file: which, and the text for those
// who do not see it. An empty one leaves the speaking to the file's own.
const (
	ImageField       = "image"
	AlternativeField = "alternative"
)

// LanguageField says in which language a page or an element is.
const LanguageField = "language"

var (
	slugPattern = regexp.MustCompile(`^[\p{L}\p{N}/._~-]*$`)
	wordPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,39}$`)
)

// tables is what the store may hold.
var tables = []Table{
	{Name: PageTable, Fields: []Field{
		{Name: "title", Type: Line, Spoken: true, Required: true},
		{Name: "navigationTitle", Type: Line, Spoken: true},
		{Name: "slug", Type: Line, pattern: slugPattern, hint: "may hold letters, digits and / . _ ~ - only"},
		{Name: "description", Type: Text, Spoken: true},
		{Name: "keywords", Type: Line, Spoken: true},
		{Name: "seoTitle", Type: Line, Spoken: true},
		{Name: LanguageField, Type: Line, pattern: wordPattern, hint: "must be a language tag such as en or de-AT"},
		{Name: "noIndex", Type: Flag},
		{Name: ImageField, Type: FileID},
		{Name: AlternativeField, Type: Line, Spoken: true},
		{Name: ReaderIDs, Type: Users},
		{Name: EditorIDs, Type: Users},
	}},
	{Name: ElementTable, Fields: []Field{
		{Name: "kind", Type: Line, pattern: wordPattern, hint: "must be one word such as text or image"},
		{Name: "header", Type: Line, Spoken: true},
		{Name: "subheader", Type: Line, Spoken: true},
		{Name: "text", Type: Text, Spoken: true},
		{Name: "link", Type: Line},
		{Name: ImageField, Type: FileID},
		{Name: AlternativeField, Type: Line, Spoken: true},
		{Name: "caption", Type: Line, Spoken: true},
		{Name: LanguageField, Type: Line, pattern: wordPattern, hint: "must be a language tag such as en or de-AT"},
	}},
	{Name: FileTable, Fields: []Field{
		{Name: "name", Type: Line, Required: true},
		{Name: "url", Type: Line},
		{Name: AlternativeField, Type: Line, Spoken: true},
		{Name: "title", Type: Line, Spoken: true},
	}},
}

// Tables lists the tables in their order.
func Tables() []Table { return slices.Clone(tables) }

// TableNamed returns a table's declaration, or fault.BadInput.
func TableNamed(name string) (Table, error) {
	for _, t := range tables {
		if t.Name == name {
			return t, nil
		}
	}
	return Table{}, fault.New(fault.BadInput, "there is no table %q; the tables are page, element and file", name)
}

// Field returns a field's declaration.
func (t Table) Field(name string) (Field, bool) {
	i := slices.IndexFunc(t.Fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return Field{}, false
	}
	return t.Fields[i], true
}

// The bounds of a field's value.
const (
	maxLine  = 1_000   // characters
	maxText  = 100_000 // characters
	maxUsers = 500
)

// valid checks fields that are to be set and returns them as the store keeps them:
// lists of users as []string. Every complaint names its field.
func (t Table) valid(fields map[string]any) (map[string]any, error) {
	out := make(map[string]any, len(fields))
	var wrong []string
	for name := range fields {
		if _, ok := t.Field(name); !ok {
			wrong = append(wrong, name+": there is no such field")
		}
	}
	slices.Sort(wrong)
	for _, f := range t.Fields {
		v, given := fields[f.Name]
		if !given {
			continue
		}
		kept, complaint := f.valid(v)
		if complaint != "" {
			wrong = append(wrong, f.Name+": "+complaint)
		}
		out[f.Name] = kept
	}
	if len(wrong) > 0 {
		return nil, fault.New(fault.BadInput, "%s", strings.Join(wrong, "; "))
	}
	return out, nil
}

// valid returns the value as kept, and what is wrong with it.
func (f Field) valid(v any) (any, string) {
	if v == nil {
		if f.Required {
			return nil, "must not be empty"
		}
		return nil, ""
	}
	switch f.Type {
	case Flag:
		if _, ok := v.(bool); !ok {
			return nil, "must be true or false"
		}
		return v, ""
	case Users:
		return validUsers(v)
	default:
		s, ok := v.(string)
		if !ok {
			return nil, "must be text"
		}
		return s, f.validText(s)
	}
}

func (f Field) validText(s string) string {
	limit, controls := maxText, "\n\r\t"
	if f.Type == Line {
		limit, controls = maxLine, ""
	}
	switch {
	case !utf8.ValidString(s):
		return "must be valid UTF-8"
	case utf8.RuneCountInString(s) > limit:
		return fmt.Sprintf("must have at most %d characters", limit)
	case f.Required && strings.TrimSpace(s) == "":
		return "must not be empty"
	case strings.ContainsFunc(s, func(r rune) bool { return (r < ' ' || r == 0x7f) && !strings.ContainsRune(controls, r) }):
		if f.Type == Line {
			return "must be one line without control characters"
		}
		return "must not hold control characters"
	case f.Type == FileID && s != "" && !idPattern.MatchString(s):
		return fmt.Sprintf("%q is no id of a file", s)
	case f.pattern != nil && s != "" && !f.pattern.MatchString(s):
		return f.hint
	}
	return ""
}

func validUsers(v any) (any, string) {
	ids, ok := stringList(v)
	if !ok {
		return nil, "must be a list of user ids"
	}
	if len(ids) > maxUsers {
		return nil, fmt.Sprintf("must name at most %d users", maxUsers)
	}
	out := make([]string, 0, len(ids))
	for _, id := range ids {
		parsed, err := uuid.Parse(id)
		if err != nil {
			return nil, fmt.Sprintf("%q is no user id", id)
		}
		out = append(out, parsed.String())
	}
	return out, ""
}

// stringList reads a list of strings, as made here or as read from JSON.
func stringList(v any) ([]string, bool) {
	switch list := v.(type) {
	case []string:
		return list, true
	case []any:
		out := make([]string, len(list))
		for i, item := range list {
			s, ok := item.(string)
			if !ok {
				return nil, false
			}
			out[i] = s
		}
		return out, true
	default:
		return nil, false
	}
}

// Same reports whether two values of a field mean the same: an absent field, null,
// empty text and an empty list do, and so does false.
func Same(a, b any) bool {
	if blank(a) || blank(b) {
		return blank(a) && blank(b)
	}
	if la, ok := stringList(a); ok {
		lb, ok := stringList(b)
		return ok && slices.Equal(la, lb)
	}
	switch a.(type) {
	case string, bool:
		return a == b
	default:
		return false // nothing that a table declares
	}
}

func blank(v any) bool {
	if list, ok := stringList(v); ok {
		return len(list) == 0
	}
	return v == nil || v == "" || v == false
}
