package graph

import (
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/countersign/countersign/internal/library"
)

// arguments are the fields of inputs that say which record, which version or which
// edit is meant, or how to answer, and write nothing into a skill or a source.
var arguments = map[string][]string{
	"CreateSkillInput":          {"clientMutationId", "idempotencyKey"},
	"UpdateSkillInput":          {"skillId", "revision", "clientMutationId", "idempotencyKey"},
	"RestoreSkillRevisionInput": {"skillId", "number", "revision", "clientMutationId", "idempotencyKey"},
	"MoveSkillInput":            {"skillId", "clientMutationId", "idempotencyKey"},
	"SetSkillEnabledInput":      {"skillId", "clientMutationId", "idempotencyKey"},
	"CreateSourceInput":         {"clientMutationId", "idempotencyKey"},
	"UpdateSourceInput":         {"sourceId", "clientMutationId", "idempotencyKey"},
	"SetSourceTrustLevelInput":  {"sourceId", "clientMutationId", "idempotencyKey"},
	"SetSourceTokenInput":       {"sourceId", "clientMutationId", "idempotencyKey"},
	"DeleteSourceInput":         {"sourceId", "clientMutationId", "idempotencyKey"},
	"SyncSourceInput":           {"sourceId", "background", "clientMutationId", "idempotencyKey"},
	"CancelSyncInput":           {"sourceId", "clientMutationId", "idempotencyKey"},
	"ApproveSkillVersionInput":  {"skillId", "digest", "comment", "clientMutationId", "idempotencyKey"},
	"RevokeSkillVersionInput":   {"skillId", "digest", "reason", "clientMutationId", "idempotencyKey"},
}

// columns are fields of inputs that the field table calls otherwise.
var columns = map[string]string{"sourceId": "source"}

// governed tells whether a mutation answers with a skill, a source or what belongs to
// one, and so may write it.
func governed(schema *ast.Schema, mutation *ast.FieldDefinition) bool {
	return slices.ContainsFunc(schema.Types[mutation.Type.Name()].Fields, func(f *ast.FieldDefinition) bool {
		return slices.Contains([]string{"Skill", "Source", "Approval", "Revocation", "SyncReport"}, f.Type.Name())
	})
}

// What an input may carry is in the field table (RULES W4).
func TestInputsAgainstTheFieldTable(t *testing.T) {
	schema := parsedSchema()
	carried := map[string]bool{}
	for _, mutation := range schema.Mutation.Fields {
		input := schema.Types[mutation.Arguments[0].Type.Name()]
		known, listed := arguments[input.Name]
		deletes := strings.HasPrefix(mutation.Name, "delete") && strings.HasSuffix(mutation.Name, "Source")
		if (governed(schema, mutation) || deletes) != listed {
			t.Errorf("W4 %s may write a skill or a source: %v, but its input is listed: %v", mutation.Name, !listed, listed)
		}
		if !listed {
			continue
		}
		object, creates := library.Object("skill"), strings.HasPrefix(mutation.Name, "create")
		if strings.Contains(mutation.Name, "Source") {
			object = "source"
		}
		for _, field := range input.Fields {
			if slices.Contains(known, field.Name) {
				continue
			}
			name := field.Name
			if column, other := columns[name]; other {
				name = column
			}
			at := slices.IndexFunc(library.Fields(), func(f library.Field) bool { return f.Object == object && f.Name == name })
			if at < 0 {
				t.Errorf("W4 %s.%s is not in the field table", input.Name, field.Name)
				continue
			}
			row := library.Fields()[at]
			writer := row.Change
			if creates {
				writer = row.Create
			}
			if writer == library.ByNobody {
				t.Errorf("W4 %s.%s writes what nobody may write", input.Name, field.Name)
			}
			carried[string(object)+"."+name] = true
		}
	}
	for _, f := range library.Fields() {
		if may := f.Create != library.ByNobody || f.Change != library.ByNobody; may && !carried[string(f.Object)+"."+f.Name] {
			t.Errorf("W4 somebody may write %s.%s, and no input carries it", f.Object, f.Name)
		}
	}
}
