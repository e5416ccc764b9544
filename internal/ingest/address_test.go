package ingest

import (
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
)

func TestRepositoryAddress(t *testing.T) {
	host := onShelf(t, map[string]tree{"o/r": {"a/SKILL.md": aSkill("a")}}).host()
	for _, url := range []string{
		"https://github.com/o/r", "https://github.com/o/r.git", "https://github.com/o/r/", " https://GitHub.com/o/r ",
	} {
		t.Run("S1 accepted: "+url, func(t *testing.T) {
			got, err := fetch(host, library.Origin{Type: library.Repo, URL: url})
			check(t, err)
			wantLines(t, got, "a/SKILL.md loaded")
		})
	}
	for _, url := range []string{
		"", "o/r", "http://github.com/o/r", "git@github.com:o/r.git", "ssh://git@github.com/o/r", "file:///etc/passwd",
		"https://gitlab.com/o/r", "https://github.com.evil.example/o/r", "https://user:pw@github.com/o/r", "https://github.com:8443/o/r",
		"https://github.com/o", "https://github.com/o/r/tree/main", "https://github.com/../r", "https://github.com/o/..", "https://github.com/o/%2e%2e",
		"https://github.com/o/..%2f..%2fetc", "https://github.com/o/a%00b", "https://github.com/o%2fx/r", "https://github.com/.hidden/r", "https://github.com/o/.git",
		"https://github.com/o/r?token=x", "https://github.com/o/r.git.git", "https://github.com/-o/r", "https://github.com/o/r\\..", "https://%zz",
	} {
		t.Run("S2 refused: "+url, func(t *testing.T) {
			for _, kind := range []library.SourceType{library.Repo, library.Marketplace} {
				_, err := fetch(host, library.Origin{Type: kind, URL: url})
				wantError(t, err, fault.BadInput, "https://github.com/owner/repo")
			}
		})
	}
	t.Run("S1 an authored source is not fetched", func(t *testing.T) {
		_, err := fetch(host, library.Origin{Type: library.Authored})
		wantError(t, err, fault.BadInput, "authored")
	})
}

func TestSingleFile(t *testing.T) {
	store := memory.NewStorage()
	old := writeCommit(t, store, "feature/x", tree{"skills/a/SKILL.md": aSkill("old"), "skills/a/run.sh": "x"})
	writeCommit(t, store, "main", tree{
		"skills/a/SKILL.md": aSkill("new"), "prompt.md": aSkill("prompt"), "ein weg/SKILL.md": aSkill("space"),
		"bad.md": aBrokenSkill, "link.md": asLink + "skills/a/SKILL.md", "out.md": asLink + "../x", "zero\u200bwidth.md": aSkill("z"),
	})
	check(t, store.SetReference(plumbing.NewHashReference("refs/tags/feature", plumbing.NewHash(old))))
	host := shelf{"o/r": store}.host()
	const blob, raw = "https://github.com/o/r/blob/", "https://raw.githubusercontent.com/o/r/"
	cases := []struct{ name, url, pinned, skill, branch, identifier string }{
		{"S3 a blob URL", blob + "main/skills/a/SKILL.md", "", "new", "main", "skills/a"},
		{"S3 a raw URL", raw + "main/skills/a/SKILL.md", "", "new", "main", "skills/a"},
		{"S3 a raw URL on github.com", "https://github.com/o/r/raw/main/skills/a/SKILL.md?raw=true#L3", "", "new", "main", "skills/a"},
		{"S3 a raw URL with a full reference", raw + "refs/heads/main/prompt.md", "", "prompt", "main", "prompt.md"},
		{"S3 the ref in the URL is honoured, slashes too", blob + "feature/x/skills/a/SKILL.md", "", "old", "feature/x", "skills/a"},
		{"S3 a slash in the ref may be encoded", blob + "feature%2Fx/skills/a/SKILL.md", "", "old", "feature/x", "skills/a"},
		{"S3 a tag in the URL", blob + "feature/skills/a/SKILL.md", "", "old", "", "skills/a"},
		{"S3 a commit in the URL", blob + old + "/skills/a/SKILL.md", "", "old", "", "skills/a"},
		{"S3 an encoded space in the path", blob + "main/ein%20weg/SKILL.md", "", "space", "main", "ein weg"},
		{"S1 a pinned commit beats the ref in the URL", blob + "main/skills/a/SKILL.md", old, "old", "", "skills/a"},
		{"S6 a file of another name is identified by its own path", blob + "main/prompt.md", "", "prompt", "main", "prompt.md"},
		{"S3 a link is followed inside the tree", blob + "main/link.md", "", "new", "main", "link.md"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := fetch(host, library.Origin{Type: library.SingleFile, URL: c.url, PinnedCommit: c.pinned})
			check(t, err)
			if len(got.Items) != 1 || got.Branch != c.branch || len(got.Reached) != 1 {
				t.Fatalf("fetched %+v", got)
			}
			item := got.Items[0]
			if item.File.Version.Name != c.skill || item.Identifier != c.identifier || len(item.Bundle) != 1 {
				t.Errorf("name %q, identifier %q, bundle %+v", item.File.Version.Name, item.Identifier, item.Bundle)
			}
		})
	}
	t.Run("S4 a bad file is rejected, not an error", func(t *testing.T) {
		got, err := fetch(host, library.Origin{Type: library.SingleFile, URL: blob + "main/bad.md"})
		check(t, err)
		wantLines(t, got, "bad.md rejected no_frontmatter")
	})
	t.Run("S3 a path that cannot be shown is rejected", func(t *testing.T) {
		got, err := fetch(host, library.Origin{Type: library.SingleFile, URL: blob + "main/zero%E2%80%8Bwidth.md"})
		check(t, err)
		wantLines(t, got, `"zero\u200bwidth.md" rejected path_unreadable`)
	})
	t.Run("S3 the source's own ref gives way to the one in the URL, and that is said", func(t *testing.T) {
		got, err := fetch(host, library.Origin{Type: library.SingleFile, URL: blob + "main/prompt.md", Ref: "feature/x"})
		check(t, err)
		wantFinding(t, got, "is not used")
	})
	missing := map[string]string{
		blob + "gone/prompt.md":      "no branch or tag",
		blob + "main/gone.md":        "no file gone.md at main",
		blob + "main/skills":         "no file skills at main",
		blob + "main/out.md":         "no file out.md at main",
		blob + "feature/x/prompt.md": "no file prompt.md at feature/x",
	}
	for url, part := range missing {
		t.Run("S3 not found: "+url, func(t *testing.T) {
			_, err := fetch(host, library.Origin{Type: library.SingleFile, URL: url})
			wantError(t, err, fault.NotFound, part)
		})
	}
	for _, url := range []string{
		"https://github.com/o/r", "https://github.com/o/r/blob/main", "https://github.com/o/r/tree/main/skills", "https://github.com/o/r/edit/main/prompt.md",
		"https://raw.githubusercontent.com/o/r/main", blob + "main/../../x", blob + "main/a%2F..%2Fb\\c", "https://gist.github.com/o/1234", blob + "main/prompt.md?token=abc",
		strings.Replace(blob, "https", "http", 1) + "main/prompt.md",
	} {
		t.Run("S2 refused: "+url, func(t *testing.T) {
			_, err := fetch(host, library.Origin{Type: library.SingleFile, URL: url})
			wantError(t, err, fault.BadInput, "https://raw.githubusercontent.com/owner/repo/REF")
		})
	}
}
