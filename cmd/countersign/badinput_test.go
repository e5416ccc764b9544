package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/store/storetest"
)

// everything is what must not change by input that is refused.
const everything = `{
  sources(first: 100) { nodes { id title trustLevel enabled headCommit } }
  skills(first: 100) { nodes { id digest enabled orphaned standing { instructs } } }
  configurations(first: 100) { nodes { id name revision attachments { nodes { id } } } }
  runs { nodes { id status } }
  pages { nodes { id revision fields children(table: "element") { nodes { id revision fields } } } }
}`

const (
	nobody  = "skl_agrc5mou4n553ebxubfnb4x6li"
	someRun = "run_agrc5mou4n553ebxubfnb4x6li"
	approve = `mutation($id: ID!, $digest: Digest!) {
		approveSkillVersion(input: {skillId: $id, digest: $digest}) { approval { id } refusal { code } }
	}`
	createSource = `mutation($url: String!) {
		createSource(input: {title: "Acme", type: REPO, url: $url, trustLevel: VERIFIED}) { source { id } refusal { code message } }
	}`
	syncSource = `mutation($id: ID!) {
		syncSource(input: {sourceId: $id}) { report { found loaded } source { syncStatus syncError } refusal { code message } }
	}`
)

// rejected are operations that cannot be right, with what their answer must say.
var rejected = []struct {
	name, query string
	variables   object
	code, says  string
}{
	{"an unknown skill", approve, object{"id": nobody, "digest": "1:" + strings.Repeat("0", 64)}, "NOT_FOUND", "no such skill"},
	{"an unknown run", `mutation($id: ID!) { cancelRun(input: {runId: $id}) { cancelled } }`, object{"id": someRun}, "NOT_FOUND", "no such run"},
	{"the id of something else", approve, object{"id": someRun, "digest": "1:" + strings.Repeat("0", 64)}, "BAD_USER_INPUT", "skl_"},
	{"an id that is none", approve, object{"id": "42", "digest": "1:" + strings.Repeat("0", 64)}, "BAD_USER_INPUT", "skl_"},
	{"a digest that is too short", approve, object{"id": nobody, "digest": "1:00"}, "BAD_USER_INPUT", "digest"},
	{"a digest that is not hexadecimal", approve, object{"id": nobody, "digest": "1:" + strings.Repeat("x", 64)}, "BAD_USER_INPUT", "digest"},
	{"a digest that is a number", approve, object{"id": nobody, "digest": 7}, "BAD_USER_INPUT", "digest"},
	{"a source somewhere else", createSource, object{"url": "https://example.org/acme/skills"}, "BAD_USER_INPUT", "github.com"},
	{"a source that is no address", createSource, object{"url": "acme"}, "BAD_USER_INPUT", "url"},
	{"a page of 101", `{ skills(first: 101) { nodes { id } } }`, nil, "BAD_USER_INPUT", "100"},
	{"a cursor that is none", `{ skills(after: "x") { nodes { id } } }`, nil, "BAD_USER_INPUT", "cursor"},
	{"a field that does not exist", `{ skillz { id } }`, nil, "BAD_USER_INPUT", "skillz"},
	{"what is not GraphQL", `{ skills(`, nil, "BAD_USER_INPUT", "expected name"},
	{"a variable that is missing", approve, nil, "BAD_USER_INPUT", "must be defined"},
}

func TestRejectedInput(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		before := s.must(everything, nil)
		for _, tt := range rejected {
			t.Run(tt.name, func(t *testing.T) {
				a := s.in(t).ask(tt.query, tt.variables)
				if a.code() != tt.code || !strings.Contains(strings.ToLower(a.Errors[0].Message), strings.ToLower(tt.says)) {
					t.Errorf("want %s and %q, got %d %s", tt.code, tt.says, a.Status, a.Raw)
				}
			})
		}
		t.Run("a bad token", func(t *testing.T) {
			stranger := s.in(t)
			stranger.token = "cs_" + strings.Repeat("a", 40)
			if a := stranger.ask("{ viewer { name } }", nil); a.Status != 401 || a.code() != "UNAUTHENTICATED" || a.Data != nil {
				t.Errorf("got %d %s", a.Status, a.Raw)
			}
		})
		t.Run("a body that is too large", func(t *testing.T) {
			body := operation(t, "{ viewer { name } }", object{"x": strings.Repeat("x", 8<<20)})
			if a := s.in(t).send(body); a.Status != 413 || a.code() != "BAD_USER_INPUT" {
				t.Errorf("got %d %s", a.Status, a.Raw)
			}
		})
		t.Run("a body that is not JSON", func(t *testing.T) {
			if a := s.in(t).send([]byte("{")); a.Status != 400 || a.code() != "BAD_USER_INPUT" {
				t.Errorf("got %d %s", a.Status, a.Raw)
			}
		})
		if after := s.must(everything, nil); !reflect.DeepEqual(after, before) {
			t.Errorf("something has changed: %v, before %v", after, before)
		}
	})
}

// git runs git in a folder.
func git(t *testing.T, folder string, args ...string) {
	t.Helper()
	command := exec.Command("git", args...)
	command.Dir = folder
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// mirrorOf makes a mirror with one repository, acme/skills, that holds one skill.
func mirrorOf(t *testing.T, content string) (mirror, repository string) {
	t.Helper()
	work := t.TempDir()
	mirror = t.TempDir()
	repository = filepath.Join(mirror, "acme", "skills.git")
	if err := os.MkdirAll(filepath.Join(work, "greet"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "greet", "SKILL.md"), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	git(t, work, "init", "-q", "-b", "main")
	git(t, work, "add", "-A")
	git(t, work, "commit", "-q", "-m", "A skill")
	git(t, work, "clone", "-q", "--bare", work, repository)
	return mirror, repository
}

// damage empties every object of a repository.
func damage(t *testing.T, repository string) {
	t.Helper()
	damaged := 0
	err := filepath.WalkDir(filepath.Join(repository, "objects"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		damaged++
		if err := os.Chmod(path, 0o644); err != nil {
			return err
		}
		return os.WriteFile(path, bytes.Repeat([]byte{0}, 10), 0o644)
	})
	if err != nil || damaged == 0 {
		t.Fatalf("%d objects damaged, %v", damaged, err)
	}
}

// wantFailedSync syncs a source that cannot be read and returns why not.
func wantFailedSync(t *testing.T, s *site, source any) string {
	t.Helper()
	payload := s.must(syncSource, object{"id": source})["syncSource"].(object)
	refusal, _ := payload["refusal"].(object)
	if payload["report"] != nil || refusal["code"] != "SYNC_FAILED" {
		t.Fatalf("got %v", payload)
	}
	return refusal["message"].(string)
}

func newSource(s *site, url string) any {
	return s.must(createSource, object{"url": url})["createSource"].(object)["source"].(object)["id"]
}

func TestSourceThatCannotBeRead(t *testing.T) {
	for _, database := range storetest.URLs {
		t.Run(database.Name, func(t *testing.T) {
			mirror, repository := mirrorOf(t, "---\nname: Greet\ndescription: How to greet.\n---\nSay hello.\n")
			c := demoAt(database.URL(t))
			c.GitMirror = mirror
			s := startSite(t, c)

			t.Run("S13 a repository that the mirror does not have", func(t *testing.T) {
				s := s.in(t)
				says := wantFailedSync(t, s, newSource(s, "https://github.com/acme/nothing"))
				if !strings.Contains(says, "acme/nothing") {
					t.Errorf("the reason does not name it: %s", says)
				}
			})
			t.Run("S4 S8 a repository that is damaged after it was synced: its skills stay as they were", func(t *testing.T) {
				s := s.in(t)
				source := newSource(s, "https://github.com/acme/skills")
				if report := s.must(syncSource, object{"id": source})["syncSource"].(object)["report"].(object); report["loaded"] != 1.0 {
					t.Fatalf("got %v", report)
				}
				before := s.must(everything, nil)
				damage(t, repository)
				if says := wantFailedSync(t, s, source); says == "" || strings.Contains(says, mirror) {
					t.Errorf("the reason is empty or tells where the mirror is: %s", says)
				}
				if after := s.must(everything, nil); !reflect.DeepEqual(after, before) {
					t.Errorf("something has changed: %v, before %v", after, before)
				}
			})
		})
	}
	t.Run("S2 without a mirror, a GitHub that cannot be reached", func(t *testing.T) {
		nobody, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		nobody.Close() // its address refuses whoever connects
		c := demoAt(storetest.URLs[0].URL(t))
		c.GitHubProxy = "http://" + nobody.Addr().String()
		s := startSite(t, c)
		before := s.must(`{ skills(first: 100) { nodes { id digest } } }`, nil)
		if says := wantFailedSync(t, s, newSource(s, "https://github.com/acme/skills")); !strings.Contains(says, "could not be read") {
			t.Errorf("got %s", says)
		}
		if after := s.must(`{ skills(first: 100) { nodes { id digest } } }`, nil); !reflect.DeepEqual(after, before) {
			t.Errorf("something has changed: %v, before %v", after, before)
		}
	})
}
