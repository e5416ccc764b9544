package library_test

import (
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// inMirror commits files, as all there is, to the main branch of a bare repository in
// a mirror, which it makes if need be.
func inMirror(t testing.TB, mirror, name string, files map[string]string) {
	t.Helper()
	dir := filepath.Join(mirror, filepath.FromSlash(name)+".git")
	repo, err := git.PlainOpen(dir)
	if err != nil {
		repo, err = git.PlainInit(dir, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	who := object.Signature{Name: "T", Email: "t@example.com", When: time.Unix(1700000000, 0).UTC()}
	main := plumbing.NewBranchReferenceName("main")
	commit := stored(t, repo.Storer, &object.Commit{Author: who, Committer: who, Message: "m\n", TreeHash: folder(t, repo.Storer, files)})
	for _, reference := range []*plumbing.Reference{plumbing.NewHashReference(main, commit), plumbing.NewSymbolicReference(plumbing.HEAD, main)} {
		if err := repo.Storer.SetReference(reference); err != nil {
			t.Fatal(err)
		}
	}
}

// folder stores a tree of files by their paths.
func folder(t testing.TB, store storer.EncodedObjectStorer, files map[string]string) plumbing.Hash {
	t.Helper()
	below, tree := map[string]map[string]string{}, &object.Tree{}
	for path, content := range files {
		first, rest, deeper := strings.Cut(path, "/")
		if deeper {
			if below[first] == nil {
				below[first] = map[string]string{}
			}
			below[first][rest] = content
			continue
		}
		blob := store.NewEncodedObject()
		blob.SetType(plumbing.BlobObject)
		w, err := blob.Writer()
		if err == nil {
			_, err = w.Write([]byte(content))
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		hash, err := store.SetEncodedObject(blob)
		if err != nil {
			t.Fatal(err)
		}
		tree.Entries = append(tree.Entries, object.TreeEntry{Name: first, Mode: filemode.Regular, Hash: hash})
	}
	for name, files := range below {
		tree.Entries = append(tree.Entries, object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: folder(t, store, files)})
	}
	sort.Sort(object.TreeEntrySorter(tree.Entries))
	return stored(t, store, tree)
}

func stored(t testing.TB, store storer.EncodedObjectStorer, what interface {
	Encode(plumbing.EncodedObject) error
},
) plumbing.Hash {
	t.Helper()
	o := store.NewEncodedObject()
	err := what.Encode(o)
	if err == nil {
		var hash plumbing.Hash
		if hash, err = store.SetEncodedObject(o); err == nil {
			return hash
		}
	}
	t.Fatal(err)
	return plumbing.ZeroHash
}

// sorted are the keys of a map in their order.
func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
