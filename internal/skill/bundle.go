package skill

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// BundleFile is one file under a skill's folder, binaries included.
type BundleFile struct {
	Path   string // relative to the skill's folder, slash-separated
	Mode   string // as git writes it: 100644, 100755, 120000
	Size   int64  // bytes
	SHA256 string // of the content, hexadecimal
}

const (
	bundleFormat = "countersign/bundle/1\n"
	rawFormat    = "countersign/raw/1\n"
)

// BundleDigest is the SHA-256, in hexadecimal, over path, mode, size and content hash of every file, sorted by path: `countersign/bundle/1` and LF, an
// 8-byte count, then for each file path, mode, 8-byte size and hash, texts with an 8-byte big-endian length as in a version's canonical form. The
// order of the input does not matter.
func BundleDigest(files []BundleFile) string {
	h := sha256.New()
	h.Write([]byte(bundleFormat))
	writeCount(h, len(files))
	for _, file := range sortedByPath(files) {
		writeText(h, file.Path)
		writeText(h, file.Mode)
		writeCount(h, int(file.Size))
		writeText(h, file.SHA256)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func sortedByPath(files []BundleFile) []BundleFile {
	return slices.SortedFunc(slices.Values(files), func(a, b BundleFile) int {
		if order := strings.Compare(a.Path, b.Path); order != 0 {
			return order
		}
		return strings.Compare(a.SHA256, b.SHA256)
	})
}

// RawDigest is the SHA-256, in hexadecimal, over all frontmatter text and the body: `countersign/raw/1` and LF, then both texts with their lengths. It
// changes with keys that nothing reads, which a version's digest does not.
func RawDigest(frontmatter, body string) string {
	h := sha256.New()
	h.Write([]byte(rawFormat))
	writeText(h, frontmatter)
	writeText(h, body)
	return hex.EncodeToString(h.Sum(nil))
}

// OutsideChanges lists what changed in the bundled files between two states, one line a file, sorted by path. The skill's own SKILL.md is left out: its
// fields are in the version's diff, and the rest of its frontmatter shows in the raw digest.
func OutsideChanges(from, to []BundleFile) []string {
	before, after := byPath(from), byPath(to)
	paths := maps.Clone(before)
	maps.Copy(paths, after)
	var changes []string
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		old, had := before[path]
		now, has := after[path]
		switch {
		case !had:
			changes = append(changes, fmt.Sprintf("added %s (%d bytes)", path, now.Size))
		case !has:
			changes = append(changes, fmt.Sprintf("removed %s", path))
		case old.SHA256 != now.SHA256:
			changes = append(changes, fmt.Sprintf("changed %s (%d → %d bytes)", path, old.Size, now.Size))
		}
		if had && has && old.Mode != now.Mode {
			changes = append(changes, fmt.Sprintf("mode of %s changed (%s → %s)", path, old.Mode, now.Mode))
		}
	}
	return changes
}

func byPath(files []BundleFile) map[string]BundleFile {
	table := make(map[string]BundleFile, len(files))
	for _, file := range files {
		if file.Path != "SKILL.md" {
			table[file.Path] = file
		}
	}
	return table
}
