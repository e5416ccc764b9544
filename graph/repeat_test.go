package graph

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/countersign/countersign/graph/generated"
	"github.com/countersign/countersign/graph/model"
)

func TestWhatIsKeptOfAnAnswer(t *testing.T) {
	schema := parsedSchema()
	t.Run("R18 every type of refusal comes back as itself", func(t *testing.T) {
		for _, def := range schema.PossibleTypes["Refusal"] {
			_, plain := plainRefusals[def.Name]
			_, shows := showingRefusals[def.Name]
			if plain == shows {
				t.Errorf("%s must be in exactly one of plainRefusals and showingRefusals (graph/repeatrefusal.go)", def.Name)
			}
		}
	})
	t.Run("R18 every object of a payload is read again, and data holds no object", func(t *testing.T) {
		resolvers := reflect.TypeFor[generated.MutationResolver]()
		known := map[string]bool{}
		for of := range objects {
			known[of.Elem().Name()] = true
		}
		plain := map[string]bool{"SyncReport": true, "RecordReference": true}
		for i := range resolvers.NumMethod() {
			name := resolvers.Method(i).Type.Out(0).Elem().Name()
			for _, f := range schema.Types[name].Fields {
				shown := schema.Types[f.Type.Name()]
				if shown.Kind == ast.Object && !known[shown.Name] && !plain[shown.Name] {
					t.Errorf("%s.%s is a %s: give it a line in objects (graph/repeatobject.go)", name, f.Name, shown.Name)
				}
			}
		}
	})
	t.Run("R18 an input is the same whatever its key and echo, and absent is not null", func(t *testing.T) {
		digest := func(in model.UpdateConfigurationInput) string {
			d, err := inputDigest(reflect.ValueOf(in))
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		key, echo := "k", "e"
		plain := digest(model.UpdateConfigurationInput{ConfigurationID: "c"})
		if plain != digest(model.UpdateConfigurationInput{ConfigurationID: "c", IdempotencyKey: &key, ClientMutationID: &echo}) {
			t.Error("the key or the echo counts")
		}
		if plain == digest(model.UpdateConfigurationInput{ConfigurationID: "c", ContextWindow: graphql.OmittableOf[*int](nil)}) {
			t.Error("null is taken for absent")
		}
		record := func(fields string) string {
			d, err := inputDigest(reflect.ValueOf(model.CreateRecordInput{Fields: json.RawMessage(fields)}))
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		if record(`{"a":1,"b":2}`) != record(`{"b": 2, "a": 1}`) {
			t.Error("the order of JSON's keys counts")
		}
	})
	t.Run("R18 a secret is not kept", func(t *testing.T) {
		secret := "cs_secret"
		packed, err := packPayload(&model.CreateTokenPayload{Token: &model.Token{ID: "tok_x"}, Secret: &secret})
		if err != nil || string(packed) != `{"objects":{"token":"tok_x"}}` {
			t.Errorf("%s, %v", packed, err)
		}
	})
}
