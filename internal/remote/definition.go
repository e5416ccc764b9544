package remote

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/skill"
	"github.com/countersign/countersign/internal/tool"
)

// The bounds of what is imported. Models' endpoints accept names of 64 characters.
const (
	maxToolName    = 64       // characters, of the full name
	maxDescription = 4 << 10  // bytes
	maxSchema      = 32 << 10 // bytes
	maxDepth       = 32       // levels of objects and lists
	maxTools       = 100      // of one server
)

// Class is a tool.DataClass as it is kept.
type Class string

// classes are the data classes by name.
var classes = map[Class]tool.DataClass{
	"editor_content": tool.EditorContent, "internal_configuration": tool.InternalConfiguration,
	"diagnostics": tool.Diagnostics, "secret_adjacent": tool.SecretAdjacent,
}

// The classes.
const (
	EditorContent         Class = "editor_content"
	InternalConfiguration Class = "internal_configuration"
	Diagnostics           Class = "diagnostics"
	SecretAdjacent        Class = "secret_adjacent"
)

// Classes lists the classes, from harmless to close to secrets.
func Classes() []Class {
	return []Class{EditorContent, InternalConfiguration, Diagnostics, SecretAdjacent}
}

// data is the class as the gates know it: one that nobody knows is the worst.
func (c Class) data() tool.DataClass {
	if d, known := classes[c]; known {
		return d
	}
	return tool.SecretAdjacent
}

const prefix = "mcp__"

// FullName is a tool's name in this installation (RULES S5).
func FullName(server, name string) string { return prefix + server + "__" + name }

// splitName reads a full name: a server's name holds no two underscores in a row and
// none at its ends, so that there is one way to read it.
func splitName(full string) (server, name string, ok bool) {
	rest, is := strings.CutPrefix(full, prefix)
	server, name, cut := strings.Cut(rest, "__")
	return server, name, is && cut && server != "" && name != ""
}

// Digest names a definition: lower-case hex of a SHA-256 over everything that a model
// reads of it. Keys and white space of the schema do not matter, order of lists does.
func (d Definition) Digest() string {
	h := sha256.New()
	for _, field := range [][]byte{
		[]byte("countersign/mcp-tool/1"), []byte(d.Name), []byte(d.Description), run.CanonicalJSON(d.Schema),
	} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(field)))
		h.Write(length[:])
		h.Write(field)
	}
	return hex.EncodeToString(h.Sum(nil))
}

var toolNames = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// judge parts what a server lists into what can be imported and what cannot, and why.
func judge(server string, listed []Definition) (fit []Definition, rejected []Rejected) {
	seen := map[string]bool{}
	for _, d := range listed {
		why := objection(server, d)
		if why == "" && seen[d.Name] {
			why = "the server lists a tool of this name twice"
		}
		if why != "" {
			rejected = append(rejected, Rejected{Name: clip(d.Name), Reason: why})
			continue
		}
		seen[d.Name] = true
		fit = append(fit, d)
	}
	return fit, rejected
}

// objection says why a definition cannot be imported, and what would help; "" when it
// can.
func objection(server string, d Definition) string {
	longest := maxToolName - len(FullName(server, ""))
	switch {
	case !toolNames.MatchString(d.Name) || len(d.Name) > longest:
		return fmt.Sprintf("its name must be 1 to %d letters, digits, - and _; import the server under a shorter name, or rename the tool there", longest)
	case !utf8.ValidString(d.Description):
		return "its description is not UTF-8"
	case len(d.Description) > maxDescription:
		return fmt.Sprintf("its description has %d bytes of %d; shorten it on the server", len(d.Description), maxDescription)
	case strings.ContainsFunc(d.Description, hidden) || len(skill.Obstacles(skill.Version{Description: d.Description, Process: skill.ProcessNo})) > 0:
		return "its description holds characters that a reviewer cannot see; remove them on the server"
	case len(d.Schema) > maxSchema:
		return fmt.Sprintf("its input schema has %d bytes of %d; simplify it on the server", len(d.Schema), maxSchema)
	case depth(d.Schema) > maxDepth:
		return fmt.Sprintf("its input schema is nested more than %d levels deep; simplify it on the server", maxDepth)
	}
	if _, err := tool.CompileSchema(d.Schema); err != nil {
		return "its input schema cannot be used: " + clip(err.Error())
	}
	return ""
}

func hidden(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' }

// depth is how deep objects and lists lie within each other.
func depth(raw json.RawMessage) int {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	deepest, now := 0, 0
	for {
		t, err := d.Token()
		if err != nil {
			return deepest
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			now++
			deepest = max(deepest, now)
		case json.Delim('}'), json.Delim(']'):
			now--
		}
	}
}

// clip shortens what somebody else sent, for a message or a row.
func clip(text string) string { return tool.BoundLine(text, 300) }
