package countersign_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// link is a Markdown link's target.
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// page is a page of docs/ as comments and messages name it.
	page = regexp.MustCompile(`\bdocs/[a-z0-9-]+\.md\b`)
)

func TestPages(t *testing.T) {
	t.Run("a page links only to what is there", func(t *testing.T) {
		each(t, ".md", func(path, text string) int {
			links := 0
			for _, match := range link.FindAllStringSubmatch(text, -1) {
				target, _, _ := strings.Cut(match[1], "#")
				if target == "" || strings.Contains(target, "://") {
					continue
				}
				links++
				if _, err := os.Stat(filepath.Join(filepath.Dir(path), target)); err != nil {
					t.Errorf("%s links to %s, which is not there", path, match[1])
				}
			}
			return links
		})
	})
	t.Run("code names only pages that are there", func(t *testing.T) {
		each(t, ".go", func(path, text string) int {
			if strings.HasSuffix(path, "_test.go") {
				return 0
			}
			named := page.FindAllString(text, -1)
			for _, name := range named {
				if _, err := os.Stat(name); err != nil {
					t.Errorf("%s names %s, which is not there", path, name)
				}
			}
			return len(named)
		})
	})
}

// each gives the files of one kind to a look that counts what it found; finding
// nothing at all means that it looked wrongly.
func each(t *testing.T, extension string, look func(path, text string) int) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"node_modules", ".git", "testdata", "skills"}, entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(path) != extension:
			return nil
		}
		text, err := os.ReadFile(path)
		found += look(path, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Error("nothing was found")
	}
}
