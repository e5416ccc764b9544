package tool

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/internal/prompt"
)

// RULES C8: of a proposal only its texts can be changed.
func TestTexts(t *testing.T) {
	spec := Spec{
		Definition: prompt.Definition{Name: "translate"},
		TextPlaces: []string{"/fields/title", "/elements/*/*", "/note"},
	}
	tests := []struct {
		name, arguments string
		want            []Text
	}{
		{"none there", `{"id":"1"}`, nil},
		{"where it writes is no text", `{"id":"1","fields":{"slug":"/a"}}`, nil},
		{"only strings", `{"note":3,"fields":{"title":null},"elements":{"7":{"text":["x"]}}}`, nil},
		{"what is no object", `[1]`, nil},
		{"what is no JSON", `{"note":`, nil},
		{
			"every member, sorted, with odd names",
			`{"elements":{"b/c":{"te~xt":"two"},"a":{"text":"one"}},"note":"n","fields":{"title":"t","text":"no"}}`,
			[]Text{{"/elements/a/text", "one"}, {"/elements/b~1c/te~0xt", "two"}, {"/fields/title", "t"}, {"/note", "n"}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, spec.Texts(json.RawMessage(test.arguments))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// RULES C8
func TestReworded(t *testing.T) {
	spec := Spec{
		Definition: prompt.Definition{Name: "translate"},
		TextPlaces: []string{"/fields/title", "/elements/*/*"},
	}
	const arguments = `{"big":12345678901234567890,"fields":{"title":"t","slug":"s"},"elements":{"b/c":{"text":"two"}}}`
	got, err := spec.Reworded(json.RawMessage(arguments), []Text{{"/elements/b~1c/text", "zwei <b>"}, {"/fields/title", ""}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"big":12345678901234567890,"elements":{"b/c":{"text":"zwei <b>"}},"fields":{"slug":"s","title":""}}`
	if string(got) != want {
		t.Errorf("the arguments became %s", got)
	}
	for _, pointer := range []string{"/fields/slug", "/fields/header", "/fields", "/elements/b~1c", "/elements/*/text", "", "fields/title", "/big"} {
		if _, err := spec.Reworded(json.RawMessage(arguments), []Text{{pointer, "x"}}); err == nil {
			t.Errorf("%q was changed", pointer)
		}
	}
}
