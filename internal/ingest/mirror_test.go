package ingest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
)

func repoAt(name, ref string) library.Origin {
	return library.Origin{Type: library.Repo, URL: "https://github.com/" + name, Ref: ref}
}

// wantError checks kind and message, and that the message does not show a path of
// the server.
func wantError(t *testing.T, err error, kind fault.Kind, part string) {
	t.Helper()
	if !fault.Is(err, kind) || err == nil {
		t.Fatalf("error %v, want the kind %s", err, kind)
	}
	message := err.(*fault.Error).Message
	if !strings.Contains(message, part) {
		t.Errorf("message %q lacks %q", message, part)
	}
	if strings.Contains(message, os.TempDir()) {
		t.Errorf("message %q shows a path of the server", message)
	}
}

func TestMirror(t *testing.T) {
	dir := t.TempDir()
	commit, _ := inMirror(t, dir, "acme/skills", tree{"a/SKILL.md": aSkill("a")})
	t.Run("S13 owner/repo is read from the mirror", func(t *testing.T) {
		got, err := fetch(Mirror(dir), repoAt("acme/skills", ""))
		check(t, err)
		wantLines(t, got, "a/SKILL.md loaded")
		if got.Commit != commit || got.Branch != "main" {
			t.Errorf("commit %s of branch %q, want %s of main", got.Commit, got.Branch, commit)
		}
		if len(got.Reached) != 1 || got.Reached[0] != "acme/skills" {
			t.Errorf("reached %q", got.Reached)
		}
	})
	t.Run("S13 a mirror that is not there is unavailable", func(t *testing.T) {
		_, err := fetch(Mirror(filepath.Join(dir, "gone")), repoAt("acme/skills", ""))
		wantError(t, err, fault.Unavailable, "missing or unreadable")
	})
	t.Run("S13 a mirror that is a file is unavailable", func(t *testing.T) {
		write(t, filepath.Join(dir, "file"), "x")
		_, err := fetch(Mirror(filepath.Join(dir, "file")), repoAt("acme/skills", ""))
		wantError(t, err, fault.Unavailable, "missing or unreadable")
	})
	t.Run("S13 a repository the mirror lacks is not found", func(t *testing.T) {
		_, err := fetch(Mirror(dir), repoAt("acme/other", ""))
		wantError(t, err, fault.NotFound, "the mirror holds no acme/other")
	})
	t.Run("S13 a folder that is no repository is unavailable", func(t *testing.T) {
		write(t, filepath.Join(dir, "acme/fake.git/readme"), "x")
		_, err := fetch(Mirror(dir), repoAt("acme/fake", ""))
		wantError(t, err, fault.Unavailable, "no git repository")
	})
	t.Run("S13 a repository that is a file is unavailable", func(t *testing.T) {
		write(t, filepath.Join(dir, "acme/flat.git"), "x")
		_, err := fetch(Mirror(dir), repoAt("acme/flat", ""))
		wantError(t, err, fault.Unavailable, "cannot be read")
	})
	t.Run("S13 an empty repository says so", func(t *testing.T) {
		bare(t, dir, "acme/empty")
		_, err := fetch(Mirror(dir), repoAt("acme/empty", ""))
		wantError(t, err, fault.NotFound, "empty")
	})
	t.Run("S3 a default branch that does not exist names those that do", func(t *testing.T) {
		repo, _ := bare(t, dir, "acme/unborn")
		writeCommit(t, repo.Storer, "main", tree{"a": "b"})
		check(t, repo.Storer.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, "refs/heads/master")))
		_, err := fetch(Mirror(dir), repoAt("acme/unborn", ""))
		wantError(t, err, fault.NotFound, "name one of its branches as ref: main")
	})
}

func TestRefs(t *testing.T) {
	dir := t.TempDir()
	repo, _ := bare(t, dir, "acme/refs")
	first := writeCommit(t, repo.Storer, "trunk", tree{"one/SKILL.md": aSkill("one")})
	side := writeCommit(t, repo.Storer, "feature/x", tree{"two/SKILL.md": aSkill("two")})
	check(t, repo.Storer.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, "refs/heads/trunk")))
	check(t, repo.Storer.SetReference(plumbing.NewHashReference("refs/tags/v1", plumbing.NewHash(first))))
	cases := []struct{ name, ref, pinned, commit, branch string }{
		{"S3 the default branch is asked, not assumed", "", "", first, "trunk"},
		{"S1 a branch", "trunk", "", first, "trunk"},
		{"S1 a branch with a slash", "feature/x", "", side, "feature/x"},
		{"S1 a full reference", "refs/heads/feature/x", "", side, "feature/x"},
		{"S1 a tag", "v1", "", first, ""},
		{"S1 a commit", side, "", side, ""},
		{"S1 a commit in capitals", strings.ToUpper(side), "", side, ""},
		{"S1 a pinned commit beats the ref", "trunk", side, side, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			origin := repoAt("acme/refs", c.ref)
			origin.PinnedCommit = c.pinned
			got, err := fetch(Mirror(dir), origin)
			check(t, err)
			if got.Commit != c.commit || got.Branch != c.branch {
				t.Errorf("commit %s of branch %q, want %s of %q", got.Commit, got.Branch, c.commit, c.branch)
			}
		})
	}
	missing := map[string]string{
		"S1 a branch that does not exist":         "gone",
		"S1 the beginning of a branch":            "feature",
		"S1 a short commit":                       first[:8],
		"S1 a commit that does not exist":         strings.Repeat("a", 40),
		"S1 a ref that climbs out of the folder":  "../../../../etc/passwd",
		"S1 a full ref that climbs":               "refs/heads/../../config",
		"S1 a ref with a control character":       "a\nb",
		"S1 a ref that is an option":              "--upload-pack=x",
		"S1 a ref that is a lock":                 "trunk.lock",
		"S1 a ref with an empty part":             "feature//x",
		"S1 a reference that is no branch or tag": "refs/",
	}
	for name, ref := range missing {
		t.Run(name+" is not found", func(t *testing.T) {
			_, err := fetch(Mirror(dir), repoAt("acme/refs", ref))
			wantError(t, err, fault.NotFound, "acme/refs has no")
		})
	}
	t.Run("S1 a pinned commit of another shape is bad input", func(t *testing.T) {
		origin := repoAt("acme/refs", "")
		origin.PinnedCommit = "v1"
		_, err := fetch(Mirror(dir), origin)
		wantError(t, err, fault.BadInput, "40 hex digits")
	})
	t.Run("S1 a hash that is no commit is not found", func(t *testing.T) {
		blob := storeBlob(t, repo.Storer, "just a file")
		_, err := fetch(Mirror(dir), repoAt("acme/refs", blob.String()))
		wantError(t, err, fault.NotFound, "is a blob, not a commit")
	})
}

// gitIn runs the git binary, which packs as real mirrors are packed. A machine
// without it fails the test with what to install.
func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull,
		"GIT_AUTHOR_NAME=T", "GIT_AUTHOR_EMAIL=t@example.com", "GIT_COMMITTER_NAME=T", "GIT_COMMITTER_EMAIL=t@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v (install git to run this test)\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// packedMirror is what an operator has: a clone --mirror with packed objects and
// packed references.
func packedMirror(t *testing.T) (mirror, dir, commit string) {
	t.Helper()
	work, mirror := t.TempDir(), t.TempDir()
	gitIn(t, work, "init", "-q", "-b", "trunk")
	for _, name := range []string{"a", "b", "c"} {
		write(t, filepath.Join(work, name, "SKILL.md"), aSkill(name)+strings.Repeat("the same line again\n", 200)+name)
	}
	check(t, os.Symlink("../a/SKILL.md", filepath.Join(work, "c", "other.md")))
	gitIn(t, work, "add", "-A")
	gitIn(t, work, "commit", "-qm", "one")
	gitIn(t, work, "tag", "-a", "v1", "-m", "annotated")
	gitIn(t, work, "tag", "-a", "v1-again", "-m", "a tag of a tag", "v1")
	write(t, filepath.Join(work, "a", "SKILL.md"), aSkill("a")+strings.Repeat("the same line again\n", 201))
	gitIn(t, work, "commit", "-qam", "two")
	gitIn(t, work, "branch", "release/1")
	dir = filepath.Join(mirror, "acme", "packed.git")
	gitIn(t, work, "clone", "-q", "--mirror", work, dir)
	gitIn(t, dir, "gc", "-q", "--aggressive", "--prune=now")
	gitIn(t, dir, "pack-refs", "--all")
	return mirror, dir, gitIn(t, work, "rev-parse", "HEAD")
}

func TestPackedMirror(t *testing.T) {
	mirror, dir, commit := packedMirror(t)
	loose, err := filepath.Glob(filepath.Join(dir, "objects", "??"))
	check(t, err)
	if len(loose) != 0 {
		t.Fatalf("objects are not packed: %q", loose)
	}
	for _, ref := range []string{"", "trunk", "release/1", commit} {
		t.Run("S13 packed objects and references are read at "+ref, func(t *testing.T) {
			got, err := fetch(Mirror(mirror), repoAt("acme/packed", ref))
			check(t, err)
			wantLines(t, got, "a/SKILL.md loaded", "b/SKILL.md loaded", "c/SKILL.md loaded")
			if got.Commit != commit {
				t.Errorf("commit %s, want %s", got.Commit, commit)
			}
		})
	}
	for _, ref := range []string{"v1", "v1-again"} {
		t.Run("S1 an annotated tag leads to its commit: "+ref, func(t *testing.T) {
			got, err := fetch(Mirror(mirror), repoAt("acme/packed", ref))
			check(t, err)
			if got.Commit == commit || got.Branch != "" || strings.Count(itemAt(t, got, "a/SKILL.md").File.Version.Body, "again") != 200 {
				t.Errorf("commit %s, branch %q", got.Commit, got.Branch)
			}
		})
	}
}

func TestCorruptRepository(t *testing.T) {
	t.Run("S2 a loose object that is missing, garbled or somebody else's is an error", func(t *testing.T) {
		damage := map[string]func(t *testing.T, at, other string){
			"missing":     func(t *testing.T, at, _ string) { check(t, os.Remove(at)) },
			"garbled":     func(t *testing.T, at, _ string) { overwrite(t, at, []byte("garbage")) },
			"empty":       func(t *testing.T, at, _ string) { overwrite(t, at, nil) },
			"another one": func(t *testing.T, at, other string) { overwrite(t, at, content(t, other)) },
		}
		for kind, hurt := range damage {
			dir := t.TempDir()
			_, repo := inMirror(t, dir, "o/r", tree{"a/SKILL.md": aSkill("a"), "b/SKILL.md": aSkill("b")})
			objects, err := filepath.Glob(filepath.Join(repo, "objects", "??", "*"))
			check(t, err)
			if len(objects) != 6 {
				t.Fatalf("%d objects", len(objects))
			}
			for i, at := range objects {
				whole := content(t, at)
				hurt(t, at, objects[(i+1)%len(objects)])
				_, err := fetch(Mirror(dir), repoAt("o/r", "main"))
				if !fault.Is(err, fault.Unavailable) {
					t.Errorf("object %d %s: error %v", i, kind, err)
				}
				overwrite(t, at, whole)
			}
			_, err = fetch(Mirror(dir), repoAt("o/r", "main"))
			check(t, err)
		}
	})
	t.Run("S2 a flipped byte anywhere in a pack or its index never changes what is read", func(t *testing.T) {
		mirror, dir, _ := packedMirror(t)
		want, err := fetch(Mirror(mirror), repoAt("acme/packed", ""))
		check(t, err)
		files, err := filepath.Glob(filepath.Join(dir, "objects", "pack", "pack-*.[ip][da][xc]*"))
		check(t, err)
		failed := 0
		for _, at := range files {
			whole := content(t, at)
			for i := 0; i < len(whole); i += 7 {
				broken := append([]byte(nil), whole...)
				broken[i] ^= 0x55
				overwrite(t, at, broken)
				got, err := fetch(Mirror(mirror), repoAt("acme/packed", ""))
				if err != nil {
					failed++
					if !fault.Is(err, fault.Unavailable) && !fault.Is(err, fault.NotFound) {
						t.Fatalf("byte %d of %s: %v", i, filepath.Base(at), err)
					}
				} else if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("byte %d of %s: %s", i, filepath.Base(at), diff)
				}
			}
			overwrite(t, at, whole)
		}
		if len(files) != 2 || failed == 0 {
			t.Errorf("%d files, %d failures", len(files), failed)
		}
	})
	t.Run("S2 broken references and settings are errors", func(t *testing.T) {
		for file, text := range map[string]string{"HEAD": "nonsense", "config": "[core\nbroken", "refs/heads/main": "zz"} {
			dir := t.TempDir()
			_, repo := inMirror(t, dir, "o/r", tree{"a/SKILL.md": aSkill("a")})
			overwrite(t, filepath.Join(repo, filepath.FromSlash(file)), []byte(text))
			if _, err := fetch(Mirror(dir), repoAt("o/r", "")); !fault.Is(err, fault.Unavailable) && !fault.Is(err, fault.NotFound) {
				t.Errorf("%s: error %v", file, err)
			}
		}
	})
	t.Run("S13 another object format is an error", func(t *testing.T) {
		dir := t.TempDir()
		at := filepath.Join(dir, "o", "r.git")
		gitIn(t, dir, "init", "-q", "--bare", "--object-format=sha256", at)
		_, err := fetch(Mirror(dir), repoAt("o/r", ""))
		wantError(t, err, fault.Unavailable, "object format")
	})
}

func TestTreeBounds(t *testing.T) {
	t.Run("S2 a tree that unfolds without end is an error, never a shorter list", func(t *testing.T) {
		store := memory.NewStorage()
		setMain(t, store, unfolding(t, store, 10))
		_, err := fetch(shelf{"o/bomb": store}.host(), repoAt("o/bomb", ""))
		wantError(t, err, fault.BadInput, "too large")
	})
	t.Run("S2 a marketplace cannot ask for trees without end", func(t *testing.T) {
		store, home := memory.NewStorage(), memory.NewStorage()
		setMain(t, store, unfolding(t, store, 5))
		main, err := store.Reference("refs/heads/main")
		check(t, err)
		var entries []string
		for _, branch := range []string{"a", "b", "c", "d", "e", "f"} {
			check(t, store.SetReference(plumbing.NewHashReference(plumbing.NewBranchReferenceName(branch), main.Hash())))
			entries = append(entries, `{"name":"`+branch+`","source":{"source":"github","repo":"x/y","ref":"`+branch+`"}}`)
		}
		writeCommit(t, home, "main", tree{marketplaceFile: plugins(entries...)})
		origin := library.Origin{Type: library.Marketplace, URL: "https://github.com/o/r"}
		got, err := fetch(shelf{"o/r": home, "x/y": store}.memory(), origin)
		check(t, err)
		last := got.Items[len(got.Items)-1]
		if last.Code != "not_reached" || !strings.Contains(last.Reason, "more than 500000 paths") || len(got.Reached) != 1 {
			t.Errorf("%+v", got)
		}
	})
	for name, entries := range map[string][]object.TreeEntry{
		"a folder called ..":  {{Name: "..", Mode: filemode.Regular}},
		"a name with a slash": {{Name: "a/b", Mode: filemode.Regular}},
		"a name twice":        {{Name: "a", Mode: filemode.Regular}, {Name: "a", Mode: filemode.Symlink}},
	} {
		t.Run("S2 a tree with "+name+" is an error", func(t *testing.T) {
			store := memory.NewStorage()
			setMain(t, store, rawTree(t, store, entries))
			_, err := fetch(shelf{"o/odd": store}.host(), repoAt("o/odd", ""))
			wantError(t, err, fault.Unavailable, "impossible or repeated name")
		})
	}
}

// unfolding stores one folder a level, ten times in the one above: 10^levels paths
// in a few kilobytes.
func unfolding(t *testing.T, store *memory.Storage, levels int) plumbing.Hash {
	t.Helper()
	below := object.TreeEntry{Mode: filemode.Regular, Hash: storeBlob(t, store, "x")}
	for range levels {
		folder := &object.Tree{}
		for _, name := range strings.Split("abcdefghij", "") {
			folder.Entries = append(folder.Entries, object.TreeEntry{Name: name, Mode: below.Mode, Hash: below.Hash})
		}
		hash, err := storeObject(store, folder)
		check(t, err)
		below = object.TreeEntry{Mode: filemode.Dir, Hash: hash}
	}
	return below.Hash
}

// rawTree stores a tree that git itself would not write.
func rawTree(t *testing.T, store *memory.Storage, entries []object.TreeEntry) plumbing.Hash {
	t.Helper()
	blob := storeBlob(t, store, "x")
	encoded := store.NewEncodedObject()
	encoded.SetType(plumbing.TreeObject)
	writer, err := encoded.Writer()
	check(t, err)
	for _, entry := range entries {
		_, err := fmt.Fprintf(writer, "%o %s\x00%s", uint32(entry.Mode), entry.Name, blob[:])
		check(t, err)
	}
	check(t, writer.Close())
	hash, err := store.SetEncodedObject(encoded)
	check(t, err)
	return hash
}

func setMain(t *testing.T, store *memory.Storage, root plumbing.Hash) {
	t.Helper()
	commit, err := storeObject(store, &object.Commit{TreeHash: root, Message: "m\n"})
	check(t, err)
	check(t, store.SetReference(plumbing.NewHashReference("refs/heads/main", commit)))
	check(t, store.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, "refs/heads/main")))
}

func content(t *testing.T, at string) []byte {
	t.Helper()
	data, err := os.ReadFile(at)
	check(t, err)
	return data
}

func overwrite(t *testing.T, at string, data []byte) {
	t.Helper()
	if err := os.Chmod(at, 0o600); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	check(t, os.WriteFile(at, data, 0o600))
}
