package ingest

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign/countersign/internal/fault"
)

// maxListings bounds the requests for one tree: a tree that GitHub cuts is asked
// for folder by folder.
const maxListings = 300

const modeFolder Mode = "040000"

// gitHubEntry is one line of a listing.
type gitHubEntry struct {
	Path string `json:"path"`
	Mode Mode   `json:"mode"`
	SHA  string `json:"sha"`
	Size int64  `json:"size"` // of a file
}

// gitHubFile is where a hash was listed.
type gitHubFile struct {
	commit, path string
	size         int64
}

// Tree implements Repository. Every folder of a listing is hashed, so that one that
// lacks a line, whether GitHub says so or not, is never taken for the whole.
func (r *gitHubRepository) Tree(ctx context.Context, commit string) ([]Entry, error) {
	if r.trees[commit] == "" {
		if _, err := r.commit(ctx, commit); err != nil {
			return nil, err
		}
	}
	l := gitHubLister{ctx: ctx, repo: r, commit: commit}
	if err := l.list(r.trees[commit], ""); err != nil {
		return nil, err
	}
	l.finish()
	r.lists[commit] = l.entries
	return slices.Clone(l.entries), nil // the caller sorts its own
}

type gitHubLister struct {
	ctx      context.Context
	repo     *gitHubRepository
	commit   string
	entries  []Entry
	sizes    []int64 // of the same entries
	unproven bool    // some folder's lines do not give its hash
	visited  int     // lines of every kind
	requests int
}

// list reads a folder with everything below it. What GitHub cuts is read one
// folder at a time.
func (l *gitHubLister) list(hash, dir string) error {
	lines, whole, err := l.ask(hash, "?recursive=1", dir)
	if err != nil {
		return err
	}
	if whole {
		return l.take(hash, dir, lines)
	}
	if lines, whole, err = l.ask(hash, "", dir); err != nil {
		return err
	}
	if !whole {
		return l.broken("the folder %q has more entries than %s lists", dir, l.repo.site.host)
	}
	var folders, files []gitHubEntry
	for _, line := range lines {
		if line.Mode == modeFolder {
			folders = append(folders, line)
			continue
		}
		files = append(files, line)
	}
	if err := l.takeFolder(hash, dir, lines, files); err != nil {
		return err
	}
	for _, folder := range folders {
		if err := l.list(folder.SHA, path.Join(dir, folder.Path)); err != nil {
			return err
		}
	}
	return nil
}

// ask requests one listing. It is whole unless GitHub says that it was cut.
func (l *gitHubLister) ask(hash, how, dir string) (lines []gitHubEntry, whole bool, err error) {
	if l.requests++; l.requests > maxListings {
		return nil, false, l.tooLarge()
	}
	var listing struct {
		Tree      []gitHubEntry `json:"tree"`
		Truncated bool          `json:"truncated"`
	}
	status, err := l.repo.get(l.ctx, "/git/trees/"+hash+how, fixed, &listing)
	switch {
	case err != nil:
		return nil, false, err
	case status != http.StatusOK && status != http.StatusNotFound:
		return nil, false, l.repo.unexpected(status)
	case status == http.StatusNotFound:
		return nil, false, l.broken("the folder %q is missing", dir)
	}
	for _, line := range listing.Tree {
		if !commitPattern.MatchString(line.SHA) || !modePattern.MatchString(string(line.Mode)) || line.Size < 0 {
			return nil, false, l.broken("the folder %q holds an entry that cannot be read", dir)
		}
	}
	return listing.Tree, !listing.Truncated, nil
}

// take splits a listing into its folders, and takes each.
func (l *gitHubLister) take(hash, dir string, lines []gitHubEntry) error {
	folders := map[string]string{".": hash} // path in the listing → hash
	below := map[string][]gitHubEntry{}
	for _, line := range lines {
		parent, name := path.Dir(line.Path), line.Path[strings.LastIndexByte(line.Path, '/')+1:]
		if line.Mode == modeFolder {
			folders[line.Path] = line.SHA
		}
		line.Path = name
		below[parent] = append(below[parent], line)
	}
	for at := range below {
		if folders[at] == "" {
			return l.broken("the folder %q is missing", path.Join(dir, at))
		}
	}
	for _, at := range slices.Sorted(maps.Keys(folders)) {
		files := slices.DeleteFunc(slices.Clone(below[at]), func(line gitHubEntry) bool { return line.Mode == modeFolder })
		if err := l.takeFolder(folders[at], path.Join(dir, at), below[at], files); err != nil {
			return err
		}
	}
	return nil
}

// takeFolder checks the lines of one folder against its hash, and keeps its files.
func (l *gitHubLister) takeFolder(hash, dir string, lines, files []gitHubEntry) error {
	seen := make(map[string]bool, len(lines))
	for _, line := range lines {
		if l.visited++; l.visited > maxEntries || len(dir)+len(line.Path) >= maxPathLength {
			return l.tooLarge()
		}
		if badName(line.Path) || seen[line.Path] {
			return l.broken("the folder %q holds an impossible or repeated name", dir)
		}
		seen[line.Path] = true
	}
	if hashOf(lines) != hash {
		l.unproven = true
		if err := l.confirm(hash, dir, lines); err != nil {
			return err
		}
	}
	for _, file := range files {
		l.entries = append(l.entries, Entry{Path: path.Join(dir, file.Path), Mode: file.Mode, Hash: file.SHA})
		l.sizes = append(l.sizes, file.Size)
	}
	return nil
}

// finish notes where files lie. JSON has no bytes that are not UTF-8: a path that
// may have lost some becomes one that cannot be shown, so that it is rejected and
// not guessed.
func (l *gitHubLister) finish() {
	for i := range l.entries {
		entry := &l.entries[i]
		if l.unproven {
			entry.Path = strings.ReplaceAll(entry.Path, string(utf8.RuneError), "\xff")
		}
		if entry.Mode != modeSubmodule {
			l.repo.files[entry.Hash] = gitHubFile{commit: l.commit, path: entry.Path, size: l.sizes[i]}
		}
	}
}

// confirm asks for a folder by itself when its lines do not give its hash. Old
// programs wrote trees that a listing cannot tell (modes of another shape, names that
// are not UTF-8); two listings that agree are believed.
func (l *gitHubLister) confirm(hash, dir string, lines []gitHubEntry) error {
	again, whole, err := l.ask(hash, "", dir)
	if err != nil {
		return err
	}
	order := func(a, b gitHubEntry) int { return strings.Compare(a.Path, b.Path) }
	slices.SortFunc(again, order)
	if lines = slices.Clone(lines); !whole || !slices.Equal(slices.SortedFunc(slices.Values(lines), order), again) {
		return l.broken("the folder %q was not listed to its end", dir)
	}
	return nil
}

// hashOf is the hash of the tree object that these lines describe.
func hashOf(lines []gitHubEntry) string {
	inOrder := func(line gitHubEntry) string { // git sorts a folder as if its name ended in a slash
		if line.Mode == modeFolder {
			return line.Path + "/"
		}
		return line.Path
	}
	lines = slices.SortedFunc(slices.Values(lines), func(a, b gitHubEntry) int { return strings.Compare(inOrder(a), inOrder(b)) })
	var object []byte
	for _, line := range lines {
		object = fmt.Appendf(object, "%s %s\x00", strings.TrimLeft(string(line.Mode), "0"), line.Path)
		object, _ = hex.AppendDecode(object, []byte(line.SHA)) // ask has seen that it is hexadecimal
	}
	return plumbing.ComputeHash(plumbing.TreeObject, object).String()
}

func (l *gitHubLister) broken(format string, args ...any) error {
	return fault.New(fault.Unavailable, "the listing of %s from %s is incomplete or damaged: %s; try again later, or read it through a mirror",
		l.repo.name, l.repo.site.host, fmt.Sprintf(format, args...))
}

func (l *gitHubLister) tooLarge() error {
	return fault.New(fault.BadInput, "%s is too large to read: more than %d paths, more than %d listings, or a path longer than %d bytes",
		l.repo.name, maxEntries, maxListings, maxPathLength)
}
