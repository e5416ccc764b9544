package graph

import (
	"bytes"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"

	"github.com/countersign/countersign/graph/generated"
)

var update = flag.Bool("update", false, "write the golden files anew")

func parsedSchema() *ast.Schema {
	return generated.NewExecutableSchema(generated.Config{}).Schema()
}

// The schema is a promise: a change of it must be seen in review.
func TestSchemaIsTheGoldenOne(t *testing.T) {
	const golden = "testdata/schema.golden.graphql"
	var got bytes.Buffer
	formatter.NewFormatter(&got, formatter.WithIndent("  ")).FormatSchema(parsedSchema())
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("the schema changed; when that is meant, run go test ./graph -update (-golden +schema):\n%s", diff)
	}
}

// eachType visits the types that the project defines.
func eachType(visit func(*ast.Definition)) {
	for name, def := range parsedSchema().Types {
		if !def.BuiltIn && !strings.HasPrefix(name, "__") {
			visit(def)
		}
	}
}

func TestEveryElementIsDescribed(t *testing.T) {
	described := func(what, description string) {
		if strings.TrimSpace(description) == "" {
			t.Errorf("%s has no description", what)
		}
	}
	eachType(func(def *ast.Definition) {
		described(def.Name, def.Description)
		for _, f := range def.Fields {
			if strings.HasPrefix(f.Name, "__") {
				continue
			}
			described(def.Name+"."+f.Name, f.Description)
			for _, a := range f.Arguments {
				described(def.Name+"."+f.Name+"("+a.Name+")", a.Description)
			}
		}
		for _, v := range def.EnumValues {
			described(def.Name+"."+v.Name, v.Description)
		}
	})
}

func TestEveryMutationTakesOneInputAndAnswersWithItsPayload(t *testing.T) {
	schema := parsedSchema()
	for _, f := range schema.Mutation.Fields {
		name := strings.ToUpper(f.Name[:1]) + f.Name[1:]
		if len(f.Arguments) != 1 || f.Arguments[0].Name != "input" || f.Arguments[0].Type.String() != name+"Input!" {
			t.Errorf("%s takes %v, not one input: %sInput!", f.Name, f.Arguments, name)
			continue
		}
		if f.Type.String() != name+"Payload" {
			t.Errorf("%s answers %s", f.Name, f.Type)
			continue
		}
		payload := schema.Types[name+"Payload"]
		for field, want := range map[string]string{"refusal": "Refusal", "clientMutationId": "String"} {
			if got := payload.Fields.ForName(field); got == nil || got.Type.String() != want {
				t.Errorf("%s.%s is %v, not %s", payload.Name, field, got, want)
			}
		}
		for _, field := range payload.Fields {
			if field.Type.NonNull {
				t.Errorf("%s.%s cannot be null when the rules refuse", payload.Name, field.Name)
			}
		}
		for _, field := range []string{"clientMutationId", "idempotencyKey"} {
			if got := schema.Types[name+"Input"].Fields.ForName(field); got == nil || got.Type.String() != "String" {
				t.Errorf("R18 %sInput has no %s: String", name, field)
			}
		}
	}
}

func TestEveryConnectionIsRelays(t *testing.T) {
	schema := parsedSchema()
	costs := reflect.ValueOf(complexity())
	eachType(func(def *ast.Definition) {
		for _, f := range def.Fields {
			if !strings.HasSuffix(f.Type.Name(), "Connection") {
				continue
			}
			for _, argument := range []string{"first", "after"} {
				if f.Arguments.ForName(argument) == nil {
					t.Errorf("%s.%s has no argument %s", def.Name, f.Name, argument)
				}
			}
			connection := schema.Types[f.Type.Name()]
			for _, field := range []string{"edges", "nodes", "pageInfo"} {
				if connection.Fields.ForName(field) == nil {
					t.Errorf("%s has no %s", connection.Name, field)
				}
			}
			cost := costs.FieldByName(def.Name).FieldByName(strings.ToUpper(f.Name[:1]) + f.Name[1:])
			if !cost.IsValid() || cost.IsNil() {
				t.Errorf("%s.%s costs the same whatever its page size", def.Name, f.Name)
			}
		}
	})
}
