package content

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
)

func TestFieldValues(t *testing.T) {
	const id = "01900000-0000-7000-8000-0000000000AA"
	for _, c := range []struct {
		name  string
		table string
		field string
		value any
		want  string // the complaint; empty means valid
	}{
		{"a line", PageTable, "title", "Über uns – 1.", ""},
		{"a line with a break", PageTable, "title", "a\nb", "title: must be one line without control characters"},
		{"a line as number", PageTable, "title", 3.0, "title: must be text"},
		{"a required field blank", PageTable, "title", " \u00a0", "title: must not be empty"},
		{"a required field null", PageTable, "title", nil, "title: must not be empty"},
		{"an optional field null", PageTable, "description", nil, ""},
		{"a line as long as allowed", PageTable, "title", strings.Repeat("ü", 1000), ""},
		{"a line too long", PageTable, "title", strings.Repeat("ü", 1001), "title: must have at most 1000 characters"},
		{"text with breaks and tabs", ElementTable, "text", "a\r\n\tb", ""},
		{"text with a zero byte", ElementTable, "text", "a\x00b", "text: must not hold control characters"},
		{"text that is not UTF-8", ElementTable, "text", "a\xffb", "text: must be valid UTF-8"},
		{"text too long", ElementTable, "text", strings.Repeat("x", 100_001), "text: must have at most 100000 characters"},
		{"a slug", PageTable, "slug", "/über-uns/team_1.html", ""},
		{"an empty slug", PageTable, "slug", "", ""},
		{"a slug with a space", PageTable, "slug", "about us", "slug: may hold letters, digits and / . _ ~ - only"},
		{"a flag", PageTable, "noIndex", true, ""},
		{"a flag as text", PageTable, "noIndex", "yes", "noIndex: must be true or false"},
		{"readers", PageTable, ReaderIDs, []any{id}, ""},
		{"no readers", PageTable, ReaderIDs, []any{}, ""},
		{"readers as text", PageTable, ReaderIDs, id, "readerIds: must be a list of user ids"},
		{"readers mixed", PageTable, ReaderIDs, []any{id, 1.0}, "readerIds: must be a list of user ids"},
		{"a reader that is none", PageTable, ReaderIDs, []any{"bob"}, `readerIds: "bob" is no user id`},
		{"an unknown field", ElementTable, "colour", "red", "colour: there is no such field"},
	} {
		t.Run(c.name, func(t *testing.T) {
			table, err := TableNamed(c.table)
			if err != nil {
				t.Fatal(err)
			}
			_, err = table.valid(map[string]any{c.field: c.value})
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (!fault.Is(err, fault.BadInput) || err.Error() != c.want):
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestFieldsTogether(t *testing.T) {
	t.Run("every complaint is told at once", func(t *testing.T) {
		page, _ := TableNamed(PageTable)
		_, err := page.valid(map[string]any{"title": "", "noIndex": 1.0, "zebra": "", "apple": ""})
		want := "apple: there is no such field; zebra: there is no such field; title: must not be empty; noIndex: must be true or false"
		if err == nil || err.Error() != want {
			t.Errorf("got %v", err)
		}
	})

	t.Run("user ids are kept in one spelling", func(t *testing.T) {
		const id = "01900000-0000-7000-8000-0000000000AA"
		page, _ := TableNamed(PageTable)
		kept, err := page.valid(map[string]any{ReaderIDs: []any{id}})
		if diff := cmp.Diff(map[string]any{ReaderIDs: []string{strings.ToLower(id)}}, kept); diff != "" || err != nil {
			t.Error(diff, err)
		}
	})

	t.Run("an unknown table is bad input", func(t *testing.T) {
		if _, err := TableNamed("skill"); !fault.Is(err, fault.BadInput) {
			t.Errorf("got %v", err)
		}
	})
}

func TestSame(t *testing.T) {
	for _, c := range []struct {
		a, b any
		want bool
	}{
		{nil, "", true},
		{nil, []any{}, true},
		{false, nil, true},
		{true, nil, false},
		{"a", "a", true},
		{"a", "b", false},
		{"a", true, false},
		{[]string{"a"}, []any{"a"}, true},
		{[]string{"a"}, []any{"b"}, false},
		{[]string{"a"}, "a", false},
		{"a", []string{"a"}, false},
		{map[string]any{}, map[string]any{}, false},
	} {
		if Same(c.a, c.b) != c.want || Same(c.b, c.a) != c.want {
			t.Errorf("Same(%#v, %#v) is not %v both ways", c.a, c.b, c.want)
		}
	}
}

func TestReadersThatCannotBeRead(t *testing.T) {
	t.Run("I6 a list of readers that cannot be read names nobody", func(t *testing.T) {
		for _, list := range []any{"everyone", 1.0, map[string]any{}, []any{1.0}} {
			if names(list, actor.Actor{}) {
				t.Errorf("%#v let somebody through", list)
			}
		}
	})
}
