package ingest

import (
	"fmt"
	"os"
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
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
)

// tree describes a commit: path → content. A content that begins with one of the
// prefixes is something other than a plain file.
type tree map[string]string

const (
	asLink      = "link:"      // a symbolic link with this target
	asSubmodule = "submodule:" // a submodule at this commit
	asScript    = "script:"    // an executable file
)

// aSkill is a valid skill file.
func aSkill(name string) string {
	return "---\nname: " + name + "\ndescription: what " + name + " is for\n---\nBody of " + name + "\n"
}

const (
	aBrokenSkill  = "no frontmatter here\n"
	aRepairable   = "---\nname: fix\ndescription: one: two: three\n---\nBody\n"
	someSubmodule = asSubmodule + "1234567890123456789012345678901234567890"
)

// writeCommit stores a tree as a commit on a branch and points HEAD there.
func writeCommit(t *testing.T, store interface {
	storer.EncodedObjectStorer
	storer.ReferenceStorer
}, branch string, files tree,
) string {
	t.Helper()
	who := object.Signature{Name: "T", Email: "t@example.com", When: time.Unix(1700000000, 0).UTC()}
	commit, err := storeObject(store, &object.Commit{
		Author: who, Committer: who, Message: "m\n", TreeHash: storeFiles(t, store, files),
	})
	check(t, err)
	name := plumbing.NewBranchReferenceName(branch)
	check(t, store.SetReference(plumbing.NewHashReference(name, commit)))
	check(t, store.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, name)))
	return commit.String()
}

func storeFiles(t *testing.T, store storer.EncodedObjectStorer, files tree) plumbing.Hash {
	t.Helper()
	folders := map[string]tree{}
	made := &object.Tree{}
	for at, content := range files {
		if first, rest, deeper := strings.Cut(at, "/"); deeper {
			if folders[first] == nil {
				folders[first] = tree{}
			}
			folders[first][rest] = content
			continue
		}
		made.Entries = append(made.Entries, storeLeaf(t, store, at, content))
	}
	for name, below := range folders {
		made.Entries = append(made.Entries, object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: storeFiles(t, store, below)})
	}
	sort.Sort(object.TreeEntrySorter(made.Entries))
	hash, err := storeObject(store, made)
	check(t, err)
	return hash
}

func storeLeaf(t *testing.T, store storer.EncodedObjectStorer, name, content string) object.TreeEntry {
	t.Helper()
	entry := object.TreeEntry{Name: name, Mode: filemode.Regular}
	for prefix, mode := range map[string]filemode.FileMode{asLink: filemode.Symlink, asSubmodule: filemode.Submodule, asScript: filemode.Executable} {
		if rest, found := strings.CutPrefix(content, prefix); found {
			entry.Mode, content = mode, rest
		}
	}
	if entry.Mode == filemode.Submodule {
		entry.Hash = plumbing.NewHash(content)
		return entry
	}
	entry.Hash = storeBlob(t, store, content)
	return entry
}

func storeBlob(t *testing.T, store storer.EncodedObjectStorer, content string) plumbing.Hash {
	t.Helper()
	blob := &plumbing.MemoryObject{}
	blob.SetType(plumbing.BlobObject)
	_, err := blob.Write([]byte(content))
	check(t, err)
	hash, err := store.SetEncodedObject(blob)
	check(t, err)
	return hash
}

// bare makes an empty bare repository in a mirror directory.
func bare(t *testing.T, mirror, name string) (*git.Repository, string) {
	t.Helper()
	dir := filepath.Join(mirror, filepath.FromSlash(name)+".git")
	repo, err := git.PlainInit(dir, true)
	check(t, err)
	return repo, dir
}

// inMirror makes a bare repository on disk with one commit on main.
func inMirror(t *testing.T, mirror, name string, files tree) (commit, dir string) {
	t.Helper()
	repo, dir := bare(t, mirror, name)
	return writeCommit(t, repo.Storer, "main", files), dir
}

// shelf is a host of repositories in memory, for tests that are about what is
// read and not where from.
type shelf map[string]*memory.Storage

// host is the shelf as a host. What fetch reads through it, it reads from a fake GitHub
// too, and holds that both say the same.
func (s shelf) host() Host { return twin{Host: s.memory(), shelf: s} }

type twin struct {
	Host
	shelf shelf
}

func (s shelf) memory() Host {
	owners := map[string]Host{}
	for name, store := range s {
		owner, repo, _ := strings.Cut(name, "/")
		owners[owner] = inMemory{name: Name{Owner: owner, Repo: repo}, store: store}
	}
	return ByOwner(owners, Mirror(""))
}

func onShelf(t *testing.T, repos map[string]tree) shelf {
	t.Helper()
	s := shelf{}
	for name, files := range repos {
		s[name] = memory.NewStorage()
		writeCommit(t, s[name], "main", files)
	}
	return s
}

func fetch(host Host, from library.Origin) (library.Fetched, error) {
	got, err := New(host).Fetch(ctx, from, library.FetchLimits{}, nil)
	both, ok := host.(twin)
	if !ok {
		return got, err
	}
	fake := startFake(both.shelf)
	defer fake.close()
	over, errOver := New(fake.host).Fetch(ctx, from, library.FetchLimits{}, nil)
	if err == nil != (errOver == nil) || err != nil && fault.KindOf(err) != fault.KindOf(errOver) {
		return got, fmt.Errorf("in memory: %v; over GitHub: %w", err, errOver)
	}
	if diff := cmp.Diff(unworded(got), unworded(over)); diff != "" {
		return got, fmt.Errorf("over GitHub other things are read (-memory +GitHub):\n%s", diff)
	}
	return got, err
}

// unworded leaves out what each host says in its own words.
func unworded(got library.Fetched) library.Fetched {
	got.Items = slices.Clone(got.Items)
	for i := range got.Items {
		if got.Items[i].Code == "not_reached" {
			got.Items[i].Reason = ""
		}
	}
	return got
}

// fetchTree reads one repository in memory as a source of type repo.
func fetchTree(t *testing.T, files tree) library.Fetched {
	t.Helper()
	got, err := fetch(onShelf(t, map[string]tree{"o/r": files}).host(), library.Origin{Type: library.Repo, URL: "https://github.com/o/r"})
	check(t, err)
	return got
}

// fetchMarket reads o/r as a marketplace, beside other repositories.
func fetchMarket(t *testing.T, manifest string, files tree, others map[string]tree) library.Fetched {
	t.Helper()
	repos := map[string]tree{"o/r": {marketplaceFile: manifest}}
	for at, content := range files {
		repos["o/r"][at] = content
	}
	for name, tree := range others {
		repos[name] = tree
	}
	got, err := fetch(onShelf(t, repos).host(), library.Origin{Type: library.Marketplace, URL: "https://github.com/o/r"})
	check(t, err)
	return got
}

// lines renders what became of every path: "path status code".
func lines(got library.Fetched) []string {
	var said []string
	for _, item := range got.Items {
		said = append(said, strings.TrimSpace(fmt.Sprintf("%s %s %s", item.Path, item.Status, item.Code)))
	}
	return said
}

func itemAt(t *testing.T, got library.Fetched, at string) library.Item {
	t.Helper()
	for _, item := range got.Items {
		if item.Path == at {
			return item
		}
	}
	t.Fatalf("no item %s among %q", at, lines(got))
	return library.Item{}
}

func wantLines(t *testing.T, got library.Fetched, want ...string) {
	t.Helper()
	if have := lines(got); strings.Join(have, "\n") != strings.Join(want, "\n") {
		t.Errorf("items:\n  %s\nwant:\n  %s", strings.Join(have, "\n  "), strings.Join(want, "\n  "))
	}
}

func wantFinding(t *testing.T, got library.Fetched, part string) {
	t.Helper()
	if !strings.Contains(strings.Join(got.Findings, "\n"), part) {
		t.Errorf("findings %q lack %q", got.Findings, part)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, at, content string) {
	t.Helper()
	check(t, os.MkdirAll(filepath.Dir(at), 0o755))
	check(t, os.WriteFile(at, []byte(content), 0o600))
}
