package ingest

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/countersign/countersign/internal/fault"
)

// memoryBranch is the default branch of a repository in memory.
const memoryBranch = "main"

// memoryTime is when every repository in memory was committed: the same files
// give the same commit on every machine and at every start.
var memoryTime = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// Memory makes a host with one repository, built from plain files as real git
// objects: one commit on the branch main with a fixed author and time. Only
// regular files are taken; one with an executable bit stays executable.
func Memory(owner, repo string, files fs.FS) (Host, error) {
	name, ok := newName(owner, repo)
	if !ok {
		return nil, fault.New(fault.BadInput, "%s/%s is no name of a repository", owner, repo)
	}
	store := memory.NewStorage()
	tree, err := writeTree(store, files, ".")
	if err != nil {
		return nil, fmt.Errorf("build the repository %s in memory: %w", name, err)
	}
	who := object.Signature{Name: "Countersign", Email: "demo@countersign.invalid", When: memoryTime}
	commit, err := storeObject(store, &object.Commit{Author: who, Committer: who, Message: "Publish\n", TreeHash: tree})
	if err != nil {
		return nil, fmt.Errorf("build the repository %s in memory: %w", name, err)
	}
	head := plumbing.NewBranchReferenceName(memoryBranch)
	for _, ref := range []*plumbing.Reference{
		plumbing.NewHashReference(head, commit),
		plumbing.NewSymbolicReference(plumbing.HEAD, head),
	} {
		if err := store.SetReference(ref); err != nil {
			return nil, fmt.Errorf("build the repository %s in memory: %w", name, err)
		}
	}
	return inMemory{name: name, store: store}, nil
}

// inMemory serves one repository. Its storage is only read after Memory returns.
type inMemory struct {
	name  Name
	store *memory.Storage
}

func (m inMemory) Open(ctx context.Context, name Name, _ string) (Repository, error) {
	if err := interrupted(ctx); err != nil {
		return nil, err
	}
	if !strings.EqualFold(name.String(), m.name.String()) {
		return nil, notFound("there is no repository %s; the bundled one is %s", name, m.name)
	}
	return &gitRepository{name: m.name, store: m.store}, nil
}

// writeTree stores a folder of files with everything below it.
func writeTree(store storer.EncodedObjectStorer, files fs.FS, dir string) (plumbing.Hash, error) {
	children, err := fs.ReadDir(files, dir)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	tree := &object.Tree{}
	for _, child := range children {
		at := path.Join(dir, child.Name())
		entry := object.TreeEntry{Name: child.Name(), Mode: filemode.Dir}
		switch {
		case child.IsDir():
			entry.Hash, err = writeTree(store, files, at)
		case child.Type().IsRegular():
			entry.Mode, entry.Hash, err = writeBlob(store, files, at)
		default:
			err = fmt.Errorf("%s is neither a file nor a folder", at)
		}
		if err != nil {
			return plumbing.ZeroHash, err
		}
		tree.Entries = append(tree.Entries, entry)
	}
	sort.Sort(object.TreeEntrySorter(tree.Entries))
	return storeObject(store, tree)
}

func writeBlob(store storer.EncodedObjectStorer, files fs.FS, at string) (filemode.FileMode, plumbing.Hash, error) {
	content, err := fs.ReadFile(files, at)
	if err != nil {
		return 0, plumbing.ZeroHash, err
	}
	info, err := fs.Stat(files, at)
	if err != nil {
		return 0, plumbing.ZeroHash, err
	}
	mode := filemode.Regular
	if info.Mode()&0o111 != 0 {
		mode = filemode.Executable
	}
	blob := &plumbing.MemoryObject{}
	blob.SetType(plumbing.BlobObject)
	if _, err := blob.Write(content); err != nil {
		return 0, plumbing.ZeroHash, err
	}
	hash, err := store.SetEncodedObject(blob)
	return mode, hash, err
}

// storeObject encodes a commit or tree and stores it.
func storeObject(store storer.EncodedObjectStorer, encoder interface {
	Encode(plumbing.EncodedObject) error
},
) (plumbing.Hash, error) {
	encoded := store.NewEncodedObject()
	if err := encoder.Encode(encoded); err != nil {
		return plumbing.ZeroHash, err
	}
	return store.SetEncodedObject(encoded)
}
