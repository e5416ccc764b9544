package builtin

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/tool"
)

func TestDocument(t *testing.T) {
	page, err := os.ReadFile("../../docs/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, line := range strings.Split(string(page), "\n") {
		if strings.HasPrefix(line, "| `") {
			rows++
		}
	}
	specs := newSite(t).tools.Specs()
	for _, spec := range specs {
		effect := "read"
		if tool.EffectOf(spec).Writes() {
			effect = "write"
		}
		if row := fmt.Sprintf("\n| `%s` | %s | ", spec.Name, effect); !strings.Contains(string(page), row) {
			t.Errorf("docs/tools.md has no row %q", row)
		}
	}
	if rows != len(specs) {
		t.Errorf("docs/tools.md lists %d tools, there are %d", rows, len(specs))
	}
}

func TestQuote(t *testing.T) {
	t.Run("G7 a text cannot end its quotation nor look like a spelled-out sign", func(t *testing.T) {
		if got, want := quote("a” → “b \\u{200B}"), `“a\u{201D} → “b \u{005C}u{200B}”`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
