package web_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign/countersign/web"
)

func TestPlayground(t *testing.T) {
	t.Run("what is embedded is what the sources build", func(t *testing.T) {
		if _, err := os.Stat(filepath.Join("playground", "node_modules")); err != nil {
			t.Fatalf("the build is not installed (%v); install Node 20 or newer and run: npm --prefix web/playground ci", err)
		}
		check := exec.CommandContext(t.Context(), "npm", "run", "check")
		check.Dir = "playground"
		if output, err := check.CombinedOutput(); err != nil {
			t.Fatalf("npm run check: %v\n%s", err, output)
		}
	})
	t.Run("the pages name no other host", func(t *testing.T) {
		for _, folder := range []fs.FS{web.Playground(), web.SignIn()} {
			page, err := fs.ReadFile(folder, "index.html")
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(page), "//") {
				t.Errorf("a page loads from elsewhere: %s", page)
			}
		}
	})
}
