package graph

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/content/contenttest"
	"github.com/countersign/countersign/internal/world"
)

// TestContentMutations walks the writes of the content over one small site, each step
// on what the one before left.
func TestContentMutations(t *testing.T) {
	room := content.New(contenttest.NewMemory(), world.Fixed(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), 7))
	for _, c := range []content.Creation{
		{Table: "page", ID: "home", Fields: map[string]any{"title": "Home", "language": "en"}},
		{Table: "page", ID: "care", ParentID: "home", Fields: map[string]any{"title": "Care"}},
		{Table: "file", ID: "leaf", Fields: map[string]any{"name": "leaf.jpg"}},
		{Table: "file", ID: "moss", Fields: map[string]any{"name": "moss.jpg"}},
		{Table: "element", ID: "intro", ParentID: "home", Fields: map[string]any{"header": "Hello", "image": "leaf"}},
	} {
		if _, err := room.Create(t.Context(), admin, c); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct{ name, mutation, want string }{
		{
			"a translation says what it left in the other language",
			`x: translateRecord(input: {table: "page", id: "home", language: "de", fields: {title: "Start"}}) { record { id translationOf hidden } untranslated }`,
			`map[record:map[hidden:true id:home-de translationOf:home] untranslated:[element intro: header]]`,
		},
		{
			"a record is published", `x: publishRecord(input: {table: "page", id: "home-de", revision: 1}) { record { hidden revision } }`,
			`map[record:map[hidden:false revision:2]]`,
		},
		{
			"a stale revision is refused as data", `x: hideRecord(input: {table: "page", id: "home-de", revision: 1}) { record { id } refusal { code } }`,
			`map[record:<nil> refusal:map[code:STALE_REVISION]]`,
		},
		{
			"a record is hidden", `x: hideRecord(input: {table: "page", id: "home-de", revision: 2}) { record { hidden } }`,
			`map[record:map[hidden:true]]`,
		},
		{
			"a page is moved to the top, before another", `x: moveRecord(input: {table: "page", id: "care", parentId: "", beforeId: "home", revision: 1}) { record { parentId position } left { id } leftOthers }`,
			`map[left:[] leftOthers:0 record:map[parentId:<nil> position:0]]`,
		},
		{
			"a copy is hidden", `x: copyRecord(input: {table: "element", id: "intro", parentId: "care"}) { record { parentId hidden fields } }`,
			`map[record:map[fields:map[header:Hello image:leaf] hidden:true parentId:care]]`,
		},
		{
			"a file that is shown is not deleted", `x: deleteRecord(input: {table: "file", id: "leaf", revision: 1}) { deletedId refusal { code } }`,
			`map[deletedId:<nil> refusal:map[code:IN_USE]]`,
		},
		{
			"a picture is replaced", `x: replaceFileReference(input: {table: "element", id: "intro", fileId: "moss", alternative: "Moss", revision: 1}) { record { fields } left { id } }`,
			`map[left:[] record:map[fields:map[alternative:Moss header:Hello image:moss]]]`,
		},
		{
			"a page goes with its translations", `x: deleteRecord(input: {table: "page", id: "home", revision: 1}) { deletedId left { id } leftOthers refusal { code } }`,
			`map[deletedId:home left:[] leftOthers:0 refusal:<nil>]`,
		},
	} {
		t.Run(step.name, func(t *testing.T) {
			got := ask(t, t.Context(), Rooms{Content: room}, admin, "mutation { "+step.mutation+" }", nil).next()
			if diff := cmp.Diff(step.want, fmt.Sprint(got.Data["x"])); diff != "" || got.Errors != nil {
				t.Errorf("%s%v", diff, got.Errors)
			}
		})
	}
}
