package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Schema validates an object against a JSON Schema: what a model wrote against what a
// tool declared, and what a person answered against what was asked. Immutable.
type Schema struct{ compiled *jsonschema.Schema }

// noLoader refuses every reference out of a schema: a declaration must stand alone,
// and reading it must reach neither the network nor the disk.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("the schema refers to %s, outside itself", url)
}

// CompileSchema reads a schema of an object. It refuses one that refers outside itself.
func CompileSchema(schema json.RawMessage) (Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return Schema{}, fmt.Errorf("reading the schema: %w", err)
	}
	if object, ok := doc.(map[string]any); !ok || object["type"] != "object" {
		return Schema{}, errors.New(`the schema must be an object of "type": "object"`)
	}
	const self = "object:schema"
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(self, doc); err != nil {
		return Schema{}, fmt.Errorf("adding the schema: %w", err)
	}
	compiled, err := compiler.Compile(self)
	if err != nil {
		return Schema{}, fmt.Errorf("compiling the schema: %w", err)
	}
	return Schema{compiled: compiled}, nil
}

// Check returns what is wrong with an object in words that a model or a person can
// act on, or "".
func (s Schema) Check(raw json.RawMessage) string {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return "the arguments are not one JSON object"
	}
	err = s.compiled.Validate(doc)
	if err == nil {
		return ""
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return "the arguments do not fit the tool's schema"
	}
	var lines []string
	for _, leaf := range leaves(invalid, nil) {
		lines = append(lines, describe(leaf))
	}
	return strings.Join(lines, "; ")
}

// maxComplaints keeps an answer about hopeless arguments short.
const maxComplaints = 5

func leaves(e *jsonschema.ValidationError, out []*jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 && len(out) < maxComplaints {
		return append(out, e)
	}
	for _, cause := range e.Causes {
		out = leaves(cause, out)
	}
	return out
}

// describe names the field first, because that is what the model has to change.
func describe(e *jsonschema.ValidationError) string {
	at := strings.Join(e.InstanceLocation, ".")
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return within(at, "missing "+strings.Join(k.Missing, ", "))
	case *kind.AdditionalProperties:
		return within(at, "unknown "+strings.Join(k.Properties, ", "))
	default:
		return e.Error() // "at '/fields/header': got number, want string"
	}
}

func within(at, what string) string {
	if at == "" {
		return what
	}
	return at + ": " + what
}
