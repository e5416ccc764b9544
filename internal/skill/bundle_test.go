package skill

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBundleVectors(t *testing.T) {
	var table struct {
		Bundles []struct {
			Files  []BundleFile `json:"files"`
			Digest string       `json:"digest"`
		} `json:"bundles"`
		Raws []struct{ Frontmatter, Body, Digest string } `json:"raws"`
	}
	readJSON(t, "testdata/bundles.json", &table)
	t.Run("A5 the bundle digest does not depend on the order of the files", func(t *testing.T) {
		for _, c := range table.Bundles {
			backwards := slices.Clone(c.Files)
			slices.Reverse(backwards)
			if BundleDigest(c.Files) != c.Digest || BundleDigest(backwards) != c.Digest {
				t.Errorf("digest of %v = %s, want %s", c.Files, BundleDigest(c.Files), c.Digest)
			}
		}
	})
	t.Run("A5 files that share a path have one order", func(t *testing.T) {
		a, b := BundleFile{"x", "100644", 1, "a"}, BundleFile{"x", "100644", 1, "b"}
		if BundleDigest([]BundleFile{a, b}) != BundleDigest([]BundleFile{b, a}) {
			t.Error("the digests differ")
		}
	})
	t.Run("A5 the raw digest covers all frontmatter text and the body", func(t *testing.T) {
		for _, c := range table.Raws {
			if got := RawDigest(c.Frontmatter, c.Body); got != c.Digest {
				t.Errorf("raw digest = %s, want %s", got, c.Digest)
			}
		}
	})
}

func TestOutsideChanges(t *testing.T) {
	from := []BundleFile{
		{"SKILL.md", "100644", 1, "a"},
		{"scripts/kept.sh", "100644", 1, "a"},
		{"scripts/run.sh", "100644", 10, "a"},
		{"scripts/gone.sh", "100644", 1, "a"},
		{"scripts/mode.sh", "100644", 1, "a"},
	}
	to := []BundleFile{
		{"SKILL.md", "100644", 2, "b"},
		{"scripts/kept.sh", "100644", 1, "a"},
		{"scripts/run.sh", "100644", 12, "b"},
		{"scripts/mode.sh", "100755", 1, "a"},
		{"assets/new.png", "100644", 5, "c"},
		{"assets/SKILL.md", "100644", 5, "c"},
	}
	t.Run("A9 what changed beside the skill file is listed", func(t *testing.T) {
		want := []string{
			"added assets/SKILL.md (5 bytes)",
			"added assets/new.png (5 bytes)",
			"removed scripts/gone.sh",
			"mode of scripts/mode.sh changed (100644 → 100755)",
			"changed scripts/run.sh (10 → 12 bytes)",
		}
		if diff := cmp.Diff(want, OutsideChanges(from, to)); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
	})
	t.Run("A9 an unchanged bundle lists nothing", func(t *testing.T) {
		if got := OutsideChanges(to, to); len(got) > 0 {
			t.Errorf("changes = %v", got)
		}
	})
}
