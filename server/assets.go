package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"time"
)

// assets serves the files of one folder of the embedded console. Each has an ETag
// made of its content, because an embedded file has no time.
type assets map[string]asset

type asset struct {
	content []byte
	tag     string
}

func newAssets(folder fs.FS) assets {
	files := assets{}
	err := fs.WalkDir(folder, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(folder, path)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		files[path] = asset{content, `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
		return nil
	})
	if err != nil {
		panic(fmt.Errorf("read the embedded console: %w", err)) // it is part of the binary
	}
	return files
}

// ServeHTTP serves the file that the route's {file} names.
func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.page(r.PathValue("file")).ServeHTTP(w, r)
}

// page serves one file.
func (a assets) page(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, ok := a[name]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("ETag", file.tag)
		w.Header().Set("Cache-Control", "no-cache")
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(file.content))
	})
}
