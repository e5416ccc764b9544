package main

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/store/storetest"
)

// TestQuickStart does what docs/quickstart.md says, query by query, and holds the
// answers against those that the document shows.
func TestQuickStart(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		w := walkThrough(t, "../../docs/quickstart.md", s)
		if w.sent < 15 {
			t.Errorf("the document holds only %d queries", w.sent)
		}
	})
}

func TestApproving(t *testing.T) {
	s := startSite(t, demoAt(storetest.URLs[0].URL(t)))
	if w := walkThrough(t, "../../docs/approving.md", s); w.sent == 0 {
		t.Error("the document holds no query")
	}
}

// TestConfigurationDocument holds docs/configuration.md against what can be set.
func TestConfigurationDocument(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	t.Run("every key of the file, and every variable of --help", func(t *testing.T) {
		for _, field := range reflect.VisibleFields(reflect.TypeFor[config]()) {
			if key := field.Tag.Get("yaml"); !strings.Contains(text, "| `"+key+"` |") {
				t.Errorf("%s is not there", key)
			}
		}
		for _, name := range regexp.MustCompile(`COUNTERSIGN_[A-Z_]+`).FindAllString(environment, -1) {
			if !strings.Contains(text, "\n| `"+name+"` |") {
				t.Errorf("%s is not there", name)
			}
		}
	})
	t.Run("every setting with its default", func(t *testing.T) {
		s := startSite(t, demoAt(storetest.URLs[0].URL(t)))
		settings := s.must(`{ settings { name default } }`, nil)["settings"].([]any)
		for _, one := range settings {
			row := fmt.Sprintf("\n| `%s` | %s |", one.(object)["name"], one.(object)["default"])
			if !strings.Contains(text, row) {
				t.Errorf("there is no row %s", row)
			}
		}
		if rows := strings.Count(text[strings.Index(text, "## Settings"):], "\n| `"); rows != len(settings) {
			t.Errorf("%d rows for %d settings", rows, len(settings))
		}
	})
	t.Run("the example can be read", func(t *testing.T) {
		for _, p := range readPieces(t, "../../docs/configuration.md") {
			if p.kind != "yaml" {
				continue
			}
			file := t.TempDir() + "/c.yaml"
			if err := os.WriteFile(file, []byte(p.text), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := readConfig(env("COUNTERSIGN_CONFIG", file, "COUNTERSIGN_ENCRYPTION_KEY", storetest.Key.String()))
			if err != nil || len(c.Settings) == 0 {
				t.Errorf("%+v, %v", c, err)
			}
			return
		}
		t.Error("there is no example")
	})
}
