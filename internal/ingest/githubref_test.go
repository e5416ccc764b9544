package ingest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
)

func TestGitHubRefs(t *testing.T) {
	fake := faked(t, tree{"a/SKILL.md": aSkill("old")})
	store := fake.shelf["o/r"]
	main, err := store.Reference("refs/heads/main")
	check(t, err)
	old := main.Hash()
	writeCommit(t, store, "feature/x#1&%", tree{"a/SKILL.md": aSkill("new")})
	tagged := func(target plumbing.Hash, kind plumbing.ObjectType) plumbing.Hash {
		hash, err := storeObject(store, &object.Tag{Name: "t", Message: "m\n", TargetType: kind, Target: target})
		check(t, err)
		return hash
	}
	annotated := tagged(old, plumbing.CommitObject)
	for name, hash := range map[plumbing.ReferenceName]plumbing.Hash{
		"refs/tags/v1": annotated, "refs/tags/v1-again": tagged(annotated, plumbing.TagObject), "refs/tags/light": old, "refs/pull/1/head": old,
		"refs/tags/blob": tagged(storeBlob(t, store, "x"), plumbing.BlobObject), "refs/tags/main": annotated, "refs/heads/v1": main.Hash(),
	} {
		check(t, store.SetReference(plumbing.NewHashReference(name, hash)))
	}
	for _, c := range []struct{ name, ref, skill, branch string }{
		{"S3 the default branch", "", "new", "feature/x#1&%"},
		{"S1 a branch with a slash and other characters", "feature/x#1&%", "new", "feature/x#1&%"},
		{"S1 a full branch", "refs/heads/main", "old", "main"},
		{"S1 a branch wins over a tag", "main", "old", "main"},
		{"S1 a full tag", "refs/tags/main", "old", ""},
		{"S1 an annotated tag", "refs/tags/v1", "old", ""},
		{"S1 a tag of a tag", "v1-again", "old", ""},
		{"S1 a light tag", "light", "old", ""},
		{"S1 another reference", "refs/pull/1/head", "old", ""},
		{"S1 a commit", old.String(), "old", ""},
		{"S1 a commit in capitals", strings.ToUpper(old.String()), "old", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := fetch(fake.host, repoAt("o/r", c.ref))
			check(t, err)
			if name := itemAt(t, got, "a/SKILL.md").File.Version.Name; name != c.skill || got.Branch != c.branch {
				t.Errorf("%q of the branch %q", name, got.Branch)
			}
		})
	}
	for _, ref := range []string{
		"gone", "feature", old.String()[:8], strings.Repeat("a", 40), annotated.String(), "blob", "refs/", "refs/heads/", "../../../user", "a\nb", "x.lock", "--x", "a//b",
		"main/../../../../user", "main?per_page=1", "main#x", "%2e%2e", "refs/../../../../user",
	} {
		t.Run(fmt.Sprintf("S1 the ref %q is not found", ref), func(t *testing.T) {
			_, err := fetch(fake.host, repoAt("o/r", ref))
			wantError(t, err, fault.NotFound, "")
		})
	}
	t.Run("S3 an empty repository says so, and a missing default branch names those there are", func(t *testing.T) {
		empty := startFake(shelf{"o/r": memory.NewStorage()})
		t.Cleanup(empty.close)
		_, err := fetch(empty.host, repoAt("o/r", ""))
		wantError(t, err, fault.NotFound, "empty")
		writeCommit(t, empty.shelf["o/r"], "main", tree{"a": "b"})
		check(t, empty.shelf["o/r"].SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, "refs/heads/master")))
		_, err = fetch(empty.host, repoAt("o/r", ""))
		wantError(t, err, fault.NotFound, "name one of its branches as ref: main")
	})
	t.Run("S3 a branch that was renamed is not followed", func(t *testing.T) {
		fake.misbehave(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/branches/before") {
				return false
			}
			http.Redirect(w, r, "https://api.github.com/repositories/1/branches/main", http.StatusMovedPermanently)
			return true
		})
		defer fake.misbehave(nil)
		_, err := fetch(fake.host, repoAt("o/r", "before"))
		wantError(t, err, fault.NotFound, "no branch or tag")
	})
	t.Run("S3 a single file costs few requests however long its path", func(t *testing.T) {
		fake.requests()
		got, err := fetch(fake.host, library.Origin{Type: library.SingleFile, URL: "https://github.com/o/r/blob/main/a/SKILL.md"})
		check(t, err)
		wantLines(t, got, "a/SKILL.md loaded")
		_, err = fetch(fake.host, library.Origin{Type: library.SingleFile, URL: "https://github.com/o/gone/blob/main/a/b/c/d/e/SKILL.md"})
		wantError(t, err, fault.NotFound, "no repository o/gone")
		if made := fake.requests(); len(made) > 6 || slices.ContainsFunc(made, func(r string) bool { return strings.HasPrefix(r, "codeload.") }) {
			t.Errorf("requests %q", made)
		}
	})
}
