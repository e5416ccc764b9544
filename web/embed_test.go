package web_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/countersign/countersign/web"
)

func TestPlayground(t *testing.T) {
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
