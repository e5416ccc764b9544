package ingest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/internal/fault"
)

func TestGitHubContent(t *testing.T) {
	for name, body := range map[string]string{
		"other bytes of the same length": strings.Repeat("x", len(aSkill("a"))), "fewer bytes": "x", "no bytes": "", "more bytes": aSkill("a") + "x", "a page to sign in": "<html>",
	} {
		t.Run("S2 "+name+" than those of the commit are an error", func(t *testing.T) {
			fake := faked(t, tree{"a/SKILL.md": aSkill("a")})
			fake.misbehave(func(w http.ResponseWriter, r *http.Request) bool {
				return r.Host == "raw.githubusercontent.com" && answering(200, nil, body)(w, r)
			})
			_, err := fetch(fake.host, repoAt("o/r", ""))
			wantError(t, err, fault.Unavailable, "other bytes than those of a/SKILL.md")
		})
	}
	for name, twist := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"is no archive": answering(200, nil, "<html>"), "is empty": answering(200, nil, ""), "has no end": endless,
	} {
		t.Run("S2 an archive that "+name+" is done without", func(t *testing.T) {
			fake := faked(t, manySkills())
			fake.misbehave(func(w http.ResponseWriter, r *http.Request) bool {
				return r.Host == "codeload.github.com" && twist(w, r)
			})
			got, err := fetch(fake.host, repoAt("o/r", ""))
			check(t, err)
			want, err := fetch(fake.shelf.memory(), repoAt("o/r", ""))
			check(t, err)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for name, c := range map[string]struct{ ref, asked, answered string }{
		"branch": {"main", "/branches/main", "/branches/other"}, "tag": {"v1", "/git/ref/tags/v1", "/git/ref/tags/v10"}, "commit": {"", "", ""},
	} {
		t.Run("S2 a "+name+" that answers with another is an error", func(t *testing.T) {
			fake := faked(t, tree{"a/SKILL.md": aSkill("a")})
			store := fake.shelf["o/r"]
			main, err := store.Reference("refs/heads/main")
			check(t, err)
			other := writeCommit(t, store, "other", tree{"b/SKILL.md": aSkill("b")})
			check(t, store.SetReference(plumbing.NewHashReference("refs/tags/v10", main.Hash())))
			if name == "commit" {
				c.ref, c.asked, c.answered = other, "/git/commits/"+other, "/git/commits/"+main.Hash().String()
			}
			fake.misbehave(func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, c.asked) {
					return false
				}
				repo, full := fake.repository("o/r")
				answer, _ := fake.answer(repo, full, strings.TrimPrefix(c.answered, "/"), r)
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(answer)
				return true
			})
			_, err = fetch(fake.host, repoAt("o/r", c.ref))
			wantError(t, err, fault.Unavailable, "did not answer what was asked")
		})
	}
}

// counted counts what is read of it, and ends after so much that no bound was kept.
type counted struct {
	io.Reader
	read int64
}

func (c *counted) Read(p []byte) (int, error) {
	if c.read > 64<<20 {
		return 0, io.EOF
	}
	n, err := c.Reader.Read(p)
	c.read += int64(n)
	return n, err
}

// repeated gives the same bytes again and again.
type repeated struct {
	text []byte
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}

func TestGitHubArchive(t *testing.T) {
	const limit = 1 << 20
	r := &gitHubRepository{files: map[string]gitHubFile{}}
	t.Run("S2 an archive of nothing, for ever, is read up to its limit", func(t *testing.T) {
		var nothing bytes.Buffer
		check(t, gzip.NewWriter(&nothing).Close())
		packed := &counted{Reader: &repeated{text: nothing.Bytes()}}
		r.unpack(packed, limit, map[string]string{"a": "b"})
		if packed.read == 0 || packed.read > limit {
			t.Errorf("%d bytes were read", packed.read)
		}
	})
	t.Run("S2 an archive that unfolds for ever is read up to its limit", func(t *testing.T) {
		var head bytes.Buffer
		check(t, tar.NewWriter(&head).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "r/huge", Size: 1 << 40}))
		plain := &counted{Reader: io.MultiReader(&head, &repeated{text: make([]byte, 1<<20)})}
		out, in := io.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			packer := gzip.NewWriter(in)
			_, err := io.Copy(packer, plain)
			in.CloseWithError(errors.Join(err, packer.Close()))
		}()
		r.unpack(out, limit, map[string]string{"a": "b"})
		out.Close()
		<-done
		if plain.read <= limit || plain.read > 32<<20 {
			t.Errorf("%d bytes were unfolded", plain.read)
		}
	})
	t.Run("S2 an archive brings no more into memory than there is room for, and nothing beside skills", func(t *testing.T) {
		r := &gitHubRepository{gitHub: &gitHub{cache: newBodyCache(0)}, files: map[string]gitHubFile{}, lists: map[string][]Entry{}, room: 100}
		for i := range 30 {
			at := []string{"a/SKILL.md", "a/b/%d", "ab/%d"}[min(i, 1+i%2)]
			if i > 0 {
				at = fmt.Sprintf(at, i)
			}
			hash := fmt.Sprintf("%040x", i)
			r.lists["c"] = append(r.lists["c"], Entry{Path: at, Mode: "100644", Hash: hash})
			r.files[hash] = gitHubFile{commit: "c", path: at, size: 10}
		}
		wanted := r.wanted("c")
		for at := range wanted {
			if !strings.HasPrefix(at, "a/") {
				t.Errorf("%s is wanted", at)
			}
		}
		if len(wanted) != 10 || wanted["a/SKILL.md"] == "" {
			t.Errorf("wanted %v", wanted)
		}
		r.files[fmt.Sprintf("%040x", 29)] = gitHubFile{commit: "c", size: maxArchived}
		if r.wanted("c") != nil {
			t.Error("the archive of a repository that is too large is wanted")
		}
	})
}
