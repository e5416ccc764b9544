package ingest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// manySkills is a repository that is worth an archive.
func manySkills() tree {
	files := tree{"README.md": "not in a skill", "LICENSE": "the same everywhere", "zz/big.bin": strings.Repeat("z", 1000)}
	for i := range 12 {
		dir := fmt.Sprintf("skills/s%02d/", i)
		files[dir+"SKILL.md"], files[dir+"run.sh"], files[dir+"LICENSE"] = aSkill(fmt.Sprintf("s%02d", i)), asScript+dir, "the same everywhere"
		files[dir+"link"] = asLink + "run.sh"
	}
	return files
}

// faked starts a fake that serves one repository, o/r.
func faked(t *testing.T, files tree) *fakeGitHub {
	t.Helper()
	fake := startFake(onShelf(t, map[string]tree{"o/r": files}))
	t.Cleanup(fake.close)
	return fake
}

// hostsOf are the hosts of requests, in order, without repetitions.
func hostsOf(requests []string) []string {
	var hosts []string
	for _, request := range requests {
		host, _, _ := strings.Cut(request, "/")
		hosts = append(hosts, host)
	}
	return slices.Compact(hosts)
}

func TestGitHub(t *testing.T) {
	t.Run("S2 a public repository is read without the API where that needs no quota", func(t *testing.T) {
		fake := faked(t, tree{"a/SKILL.md": aSkill("a"), "a/run.sh": "x", "b.md": "never asked for"})
		got, err := fetch(fake.host, repoAt("o/r", ""))
		check(t, err)
		wantLines(t, got, "a/SKILL.md loaded")
		made := fake.requests()
		if got := hostsOf(made); !slices.Equal(got, []string{"api.github.com", "raw.githubusercontent.com"}) || len(made) != 5 {
			t.Errorf("requests %q", made)
		}
	})
	t.Run("S2 many files come in one archive, of which only what has the tree's hash is believed", func(t *testing.T) {
		files := manySkills()
		fake := faked(t, files)
		fake.archive = func(at string, content []byte) ([]byte, bool) {
			switch at {
			case "skills/s09/run.sh": // export-subst
				return []byte("substituted"), true
			case "skills/s10/run.sh": // export-ignore
				return nil, false
			case "skills/s11/run.sh": // of the same length
				return append([]byte("X"), content[1:]...), true
			}
			return content, true
		}
		got, err := fetch(fake.host, repoAt("o/r", ""))
		check(t, err)
		want, err := fetch(fake.shelf.memory(), repoAt("o/r", ""))
		check(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		made := fake.requests()
		archives := slices.DeleteFunc(slices.Clone(made), func(r string) bool { return !strings.HasPrefix(r, "codeload.") })
		if len(archives) != 1 || len(made) != 3+oneByOne+1+3 {
			t.Errorf("%d requests: %q", len(made), made)
		}
	})
	t.Run("S2 a repository in which nothing changed costs two conditional requests", func(t *testing.T) {
		fake := faked(t, manySkills())
		first, err := fetch(fake.host, repoAt("o/r", ""))
		check(t, err)
		fake.requests()
		again, err := fetch(fake.host, repoAt("o/r", ""))
		check(t, err)
		if diff := cmp.Diff(first, again); diff != "" {
			t.Error(diff)
		}
		fake.mu.Lock()
		headers := fake.headers
		fake.mu.Unlock()
		if len(headers) != 2 || headers[0].Get("If-None-Match") == "" || headers[1].Get("If-None-Match") == "" {
			t.Errorf("requests %q", fake.requests())
		}
	})
	t.Run("S2 a repository that changed is read anew, and only what changed in it", func(t *testing.T) {
		files := manySkills()
		fake := faked(t, files)
		_, err := fetch(fake.host, repoAt("o/r", ""))
		check(t, err)
		fake.requests()
		files["skills/s03/SKILL.md"] = aSkill("changed")
		commit := writeCommit(t, fake.shelf["o/r"], "main", files)
		got, err := fetch(fake.host, repoAt("o/r", ""))
		check(t, err)
		if name := itemAt(t, got, "skills/s03/SKILL.md").File.Version.Name; name != "changed" || got.Commit != commit {
			t.Errorf("%q at %s", name, got.Commit)
		}
		if made := fake.requests(); len(made) != 4 {
			t.Errorf("requests %q", made)
		}
	})
	t.Run("S3 the default branch is asked, not assumed, and asked again each time", func(t *testing.T) {
		fake := faked(t, tree{"a/SKILL.md": aSkill("a")})
		_, err := fetch(fake.host, repoAt("o/r", ""))
		check(t, err)
		commit := writeCommit(t, fake.shelf["o/r"], "trunk", tree{"b/SKILL.md": aSkill("b")})
		got, err := fetch(fake.host, repoAt("O/R", ""))
		check(t, err)
		if got.Branch != "trunk" || got.Commit != commit {
			t.Errorf("%s of %s", got.Commit, got.Branch)
		}
	})
	t.Run("S11 fetches may run side by side", func(t *testing.T) {
		fake := faked(t, manySkills())
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if got, err := fetch(fake.host, repoAt("o/r", "")); err != nil || len(got.Items) != 12 {
					t.Errorf("%d items, %v", len(got.Items), err)
				}
			})
		}
		all.Wait()
	})
}

const secret = "ghp_aSecretThatNobodyMayRead"

func withToken(origin library.Origin) library.Origin {
	origin.Token = secret
	return origin
}

func TestGitHubToken(t *testing.T) {
	t.Run("S1 S2 the token reaches the API and nothing else", func(t *testing.T) {
		fake := faked(t, manySkills())
		fake.tokens["o/r"] = secret
		got, err := fetch(fake.host, withToken(repoAt("o/r", "")))
		check(t, err)
		if len(got.Items) != 12 {
			t.Errorf("items %q", lines(got))
		}
		fake.mu.Lock()
		for i, request := range fake.log {
			if sent := fake.headers[i].Get("Authorization"); (sent != "") != strings.HasPrefix(request, "api.github.com/") {
				t.Errorf("%s was sent %q", request, sent)
			}
		}
		fake.mu.Unlock()
		if hosts := hostsOf(fake.requests()); !slices.Equal(hosts, []string{"api.github.com", "codeload.github.com"}) {
			t.Errorf("hosts %q", hosts)
		}
	})
	t.Run("S1 S2 a token is not sent to a host of files, whoever asks for it", func(t *testing.T) {
		fake := faked(t, tree{"a": "b"})
		for _, url := range []string{"https://codeload.github.com/x", "https://github.com/x", "https://raw.githubusercontent.com/x", "https://api.github.com/x"} {
			s, err := fake.host.begin(ctx, publicSite, call{url: url, token: secret, accept: anyType})
			check(t, err)
			s.close()
		}
		fake.mu.Lock()
		defer fake.mu.Unlock()
		for i, request := range fake.log {
			if sent := fake.headers[i].Get("Authorization"); (sent != "") != (request == "api.github.com/x") {
				t.Errorf("%s was sent %q", request, sent)
			}
		}
	})
	t.Run("S1 what one token could read, another or none is not given from memory", func(t *testing.T) {
		fake := faked(t, tree{"a/SKILL.md": aSkill("a")})
		fake.tokens["o/r"] = secret
		_, err := fetch(fake.host, withToken(repoAt("o/r", "")))
		check(t, err)
		_, err = fetch(fake.host, repoAt("o/r", ""))
		wantError(t, err, fault.NotFound, "or it is private and was asked for without a token")
		fake.tokens["o/r"] = "withdrawn"
		_, err = fetch(fake.host, withToken(repoAt("o/r", "")))
		wantError(t, err, fault.Forbidden, "refused the source's access token")
	})
	t.Run("S1 the token of a marketplace is for its owner's repositories on its own host", func(t *testing.T) {
		fake := startFake(onShelf(t, map[string]tree{
			"o/r": {marketplaceFile: plugins(`{"name":"p","source":{"source":"github","repo":"x/y"}}`,
				`{"name":"q","source":{"source":"url","url":"https://`+enterpriseHost+`/o/r"}}`)},
			"x/y": {"SKILL.md": aSkill("a")},
		}))
		t.Cleanup(fake.close)
		_, err := New(fake.host).Beside(enterpriseHost).Fetch(ctx,
			withToken(library.Origin{Type: library.Marketplace, URL: "https://github.com/o/r"}), library.FetchLimits{}, nil)
		check(t, err)
		fake.mu.Lock()
		defer fake.mu.Unlock()
		asked := map[string]bool{}
		for i, request := range fake.log {
			owner := strings.HasPrefix(request, "api.github.com/repos/o/r")
			if (fake.headers[i].Get("Authorization") != "") != owner {
				t.Errorf("%s was sent %q", request, fake.headers[i].Get("Authorization"))
			}
			asked[strings.Split(request, "/")[0]] = true
		}
		if !asked[enterpriseHost] || !asked["raw.githubusercontent.com"] {
			t.Errorf("asked %v", asked)
		}
	})
}

func TestGitHubMarketplace(t *testing.T) {
	t.Run("S8 a repository that moved costs its entry, and its skills are protected", func(t *testing.T) {
		fake := startFake(onShelf(t, map[string]tree{
			"o/r": {marketplaceFile: plugins(`{"name":"p","source":{"source":"github","repo":"x/y"}}`), "h/SKILL.md": aSkill("h")},
		}))
		t.Cleanup(fake.close)
		fake.misbehave(moveTo("x/y", "z/new"))
		got, err := fetch(fake.host, library.Origin{Type: library.Marketplace, URL: "https://github.com/o/r"})
		check(t, err)
		item := got.Items[0]
		if item.Code != "not_reached" || !strings.Contains(item.Reason, "has moved to z/new") || item.Scope != "x/y" || !slices.Equal(got.Reached, []string{"o/r"}) {
			t.Errorf("%+v, reached %q", item, got.Reached)
		}
	})
	t.Run("S2 a rate limit in the middle stops the whole sync", func(t *testing.T) {
		fake := startFake(onShelf(t, map[string]tree{
			"o/r": {marketplaceFile: plugins(`{"name":"p","source":{"source":"github","repo":"x/y"}}`)}, "x/y": {"SKILL.md": aSkill("a")},
		}))
		t.Cleanup(fake.close)
		fake.misbehave(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasPrefix(r.URL.Path, "/repos/x/y/git/trees/") {
				return false
			}
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		})
		_, err := fetch(fake.host, library.Origin{Type: library.Marketplace, URL: "https://github.com/o/r"})
		wantError(t, err, fault.RateLimited, "try again after")
	})
}

// moveTo answers as GitHub does for a repository that was renamed.
func moveTo(from, to string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case strings.HasPrefix(r.URL.Path, "/repos/"+from):
			w.Header().Set("Location", "https://api.github.com/repositories/7")
			fail(w, http.StatusMovedPermanently, "Moved Permanently")
		case r.URL.Path == "/repositories/7":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"full_name":"`+to+`"}`)
		default:
			return false
		}
		return true
	}
}

func TestGitHubEnterprise(t *testing.T) {
	files := manySkills()
	files[marketplaceFile] = plugins(`{"name":"p","source":"./"}`, `{"name":"q","source":{"source":"url","url":"https://`+enterpriseHost+`/o/r"}}`)
	fake := faked(t, files)
	fake.tokens["o/r"] = secret
	fetcher := New(fake.host).Beside(enterpriseHost)
	for _, origin := range []library.Origin{
		{Type: library.Repo, URL: "https://" + enterpriseHost + "/o/r"},
		{Type: library.Marketplace, URL: "https://" + enterpriseHost + "/o/r.git"},
		{Type: library.SingleFile, URL: "https://" + enterpriseHost + "/o/r/blob/main/skills/s01/SKILL.md"},
	} {
		t.Run("S2 an enterprise host that was added is read: "+string(origin.Type), func(t *testing.T) {
			fake.requests()
			got, err := fetcher.Fetch(ctx, withToken(origin), library.FetchLimits{}, nil)
			check(t, err)
			if !slices.Equal(got.Reached, []string{enterpriseHost + "/o/r"}) {
				t.Errorf("reached %q", got.Reached)
			}
			for _, request := range fake.requests() {
				if !strings.HasPrefix(request, enterpriseHost+"/api/v3/") && !strings.HasPrefix(request, "codeload."+enterpriseHost+"/") {
					t.Errorf("asked %s", request)
				}
			}
		})
		t.Run("S2 an enterprise host that was not added is refused: "+string(origin.Type), func(t *testing.T) {
			_, err := New(fake.host).Fetch(ctx, origin, library.FetchLimits{}, nil)
			wantError(t, err, fault.BadInput, "")
		})
	}
	t.Run("S2 where GitHub runs the enterprise, the API has a host of its own", func(t *testing.T) {
		made, err := enterprise("Acme.ghe.com")
		check(t, err)
		if made.api != "https://api.acme.ghe.com" || !slices.Contains(made.hosts, "api.acme.ghe.com") {
			t.Errorf("%+v", made)
		}
	})
	for _, host := range []string{"", "github.com", "api.github.com", "10.0.0.1", "::1", "git.example.com:8443", "git.example.com/x", "https://git.example.com", "a..b", "-a.b", "user@host", "*"} {
		t.Run("S2 it is no enterprise host: "+host, func(t *testing.T) {
			if _, err := GitHub(GitHubOptions{Hosts: []string{host}}); err == nil {
				t.Error("accepted")
			}
		})
	}
	t.Run("S13 a mirror holds an enterprise host's repositories below its name", func(t *testing.T) {
		dir := t.TempDir()
		inMirror(t, dir, enterpriseHost+"/o/r", tree{"a/SKILL.md": aSkill("a")})
		got, err := New(Mirror(dir)).Beside(enterpriseHost).Fetch(ctx, library.Origin{Type: library.Repo, URL: "https://" + enterpriseHost + "/o/r"}, library.FetchLimits{}, nil)
		check(t, err)
		wantLines(t, got, "a/SKILL.md loaded")
	})
}

func TestBodyCache(t *testing.T) {
	key := func(i int) cacheKey { return keyOf("", fmt.Sprint(i)) }
	c := newBodyCache(10 * (512 + 100))
	for i := range 20 {
		c.put(cachedBody{key: key(i), body: make([]byte, 100)})
		c.get(key(0))
	}
	t.Run("S2 answers are kept within bounds, those in use longest", func(t *testing.T) {
		kept := 0
		for i := range 20 {
			if _, ok := c.get(key(i)); ok {
				kept++
			}
		}
		_, first := c.get(key(0))
		_, second := c.get(key(1))
		if kept != 10 || !first || second || c.left != 0 || c.order.Len() != len(c.byKey) {
			t.Errorf("%d kept, the first %t, the second %t, %d left", kept, first, second, c.left)
		}
	})
	t.Run("S2 an answer that is replaced is counted once, and one too large is not kept", func(t *testing.T) {
		c.put(cachedBody{key: key(0), body: []byte("new")})
		if got, _ := c.get(key(0)); string(got.body) != "new" || c.left != 97 {
			t.Errorf("%q, %d left", got.body, c.left)
		}
		c.put(cachedBody{key: key(99), body: make([]byte, 1<<20)})
		if _, ok := c.get(key(99)); ok || c.left < 0 {
			t.Errorf("kept %t, %d left", ok, c.left)
		}
	})
	t.Run("S1 each token has answers of its own", func(t *testing.T) {
		if keyOf("a", "bc") == keyOf("ab", "c") || keyOf("", "x") == keyOf("t", "x") {
			t.Error("two tokens share a key")
		}
	})
}

func TestGitHubCancel(t *testing.T) {
	for i, stage := range []string{"the repository", "the branch", "the tree", "a file"} {
		t.Run("S11 a fetch that is cancelled at "+stage+" ends at once", func(t *testing.T) {
			fake := faked(t, tree{"a/SKILL.md": aSkill("a")})
			stopped, cancel := context.WithCancel(ctx)
			defer cancel()
			at := 0
			fake.misbehave(func(_ http.ResponseWriter, r *http.Request) bool {
				if at++; at <= i {
					return false
				}
				cancel()
				<-r.Context().Done() // nobody answers
				return true
			})
			_, err := New(fake.host).Fetch(stopped, repoAt("o/r", ""), library.FetchLimits{}, nil)
			wantError(t, err, fault.Unavailable, "was cancelled or took too long")
		})
	}
}
