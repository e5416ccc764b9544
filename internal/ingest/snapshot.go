package ingest

import (
	"path"
	"slices"
	"strings"
)

// snapshot is one commit of one repository, listed but not read.
type snapshot struct {
	name     Name
	repo     Repository
	revision Revision
	entries  []Entry        // sorted by path
	index    map[string]int // path → position in entries
	folders  map[string]bool
	skilled  map[string]bool    // folders with a SKILL.md in them or below
	hashed   map[string]measure // content hashes by blob, so that shared files are read once
	valid    map[string]bool    // folders of skills that were loaded: descent stops there
}

// measure is what a bundle says of a blob.
type measure struct {
	size   int64
	sha256 string
}

func newSnapshot(name Name, repo Repository, revision Revision, entries []Entry) *snapshot {
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	s := &snapshot{
		name: name, repo: repo, revision: revision, entries: entries,
		index: make(map[string]int, len(entries)), folders: map[string]bool{".": true}, skilled: map[string]bool{},
		hashed: map[string]measure{}, valid: map[string]bool{},
	}
	for i, entry := range entries {
		s.index[entry.Path] = i
		for dir := path.Dir(entry.Path); !s.folders[dir]; dir = path.Dir(dir) {
			s.folders[dir] = true
		}
		if path.Base(entry.Path) == skillFile {
			s.markSkilled(path.Dir(entry.Path))
		}
	}
	return s
}

func (s *snapshot) markSkilled(dir string) {
	for !s.skilled[dir] {
		s.skilled[dir] = true
		dir = path.Dir(dir)
	}
}

func (s *snapshot) lookup(at string) (Entry, bool) {
	i, ok := s.index[at]
	if !ok {
		return Entry{}, false
	}
	return s.entries[i], true
}

// under returns the entries below a folder, in order of path.
func (s *snapshot) under(dir string) []Entry {
	if dir == "." {
		return s.entries
	}
	from, _ := slices.BinarySearchFunc(s.entries, dir+"/", func(e Entry, prefix string) int { return strings.Compare(e.Path, prefix) })
	to := from
	for to < len(s.entries) && strings.HasPrefix(s.entries[to].Path, dir+"/") {
		to++
	}
	return s.entries[from:to]
}

// within reports whether a path is the folder itself or below it.
func within(at, dir string) bool {
	return dir == "." || at == dir || strings.HasPrefix(at, dir+"/")
}

// below gives a path relative to a folder that holds it; "." for the folder.
func below(at, dir string) string {
	if dir == "." {
		return at
	}
	if at == dir {
		return "."
	}
	return strings.TrimPrefix(at, dir+"/")
}

// depth counts the folders of a folder's path.
func depth(dir string) int {
	if dir == "." {
		return 0
	}
	return strings.Count(dir, "/") + 1
}
