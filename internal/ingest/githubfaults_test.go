package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/internal/fault"
)

// noon is when the tests of rate limits happen.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// answering is a twist that always answers the same.
func answering(status int, header http.Header, body string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
		return true
	}
}

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// endless sends zeros until nobody reads them.
func endless(w http.ResponseWriter, _ *http.Request) bool {
	w.Header().Set("Content-Type", "application/json")
	for zeros := make([]byte, 1<<20); ; {
		if _, err := w.Write(zeros); err != nil {
			return true
		}
	}
}

// silent takes a request and does not answer.
func silent(_ http.ResponseWriter, r *http.Request) bool {
	<-r.Context().Done()
	return true
}

// halted answers in part and then stops.
func halted(w http.ResponseWriter, r *http.Request) bool {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"full_name":`)
	w.(http.Flusher).Flush()
	return silent(w, r)
}

// broken announces more than it sends.
func broken(w http.ResponseWriter, _ *http.Request) bool {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "1000")
	_, _ = io.WriteString(w, `{"full_name":`)
	return true
}

const said = `{"message":"Resource protected by organization SAML enforcement."}`

// faults is what GitHub, or something in its place, may do to any request.
var faults = []struct {
	name  string
	twist func(http.ResponseWriter, *http.Request) bool
	kind  fault.Kind
	says  string // when it is the first request
}{
	{"403 with an exhausted quota", answering(403, header("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", strconv.FormatInt(noon.Add(time.Hour).Unix(), 10)), `{"message":"API rate limit exceeded"}`), fault.RateLimited, "try again after 2026-03-04T13:00:00Z"},
	{"403 with a time to come back", answering(403, header("Retry-After", "90"), ""), fault.RateLimited, "try again after 2026-03-04T12:01:30Z"},
	{"403 that speaks of a rate limit", answering(403, nil, `{"message":"You have exceeded a secondary rate limit."}`), fault.RateLimited, "try again after 2026-03-04T12:01:00Z"},
	{"429 with seconds", answering(429, header("Retry-After", "120"), ""), fault.RateLimited, "try again after 2026-03-04T12:02:00Z"},
	{"429 with a date", answering(429, header("Retry-After", noon.Add(time.Minute).Format(http.TimeFormat)), ""), fault.RateLimited, "try again after 2026-03-04T12:01:00Z"},
	{"429 without a time", answering(429, nil, ""), fault.RateLimited, "try again after 2026-03-04T12:01:00Z"},
	{"429 with nonsense", answering(429, header("Retry-After", "soon", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "x"), "<html>"), fault.RateLimited, "try again after 2026-03-04T12:01:00Z"},
	{"429 with a time that is past", answering(429, header("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1"), ""), fault.RateLimited, "try again after 2026-03-04T12:01:00Z"},
	{"429 for a year", answering(429, header("Retry-After", "31536000"), ""), fault.RateLimited, "try again after 2026-03-05T12:00:00Z"},
	{"401", answering(401, nil, `{"message":"Bad credentials: `+secret+`"}`), fault.Forbidden, "refused the source's access token"},
	{"403", answering(403, header("X-RateLimit-Remaining", "17"), said), fault.Forbidden, "SAML enforcement"},
	{"403 that repeats the token", answering(403, nil, `{"message":"no `+secret+`"}`), fault.Forbidden, "may need more rights"},
	{"451", answering(451, nil, `{"message":"Repository access blocked"}`), fault.Unavailable, "for legal reasons (it says: Repository access blocked)"},
	{"404", answering(404, nil, ""), "", "no repository o/r, or the source's token may not read it"},
	{"409", answering(409, nil, ""), "", "answered 409"},
	{"500", answering(500, nil, "<h1>"), fault.Unavailable, "answered 500 Internal Server Error"},
	{"503", answering(503, nil, ""), fault.Unavailable, "answered 503"},
	{"204", answering(204, nil, ""), fault.Unavailable, "answered 204"},
	{"304 though nothing is known", answering(304, nil, ""), fault.Unavailable, "answered 304"},
	{"HTML instead of JSON", answering(200, header("Content-Type", "text/html"), "<html>login</html>"), fault.Unavailable, "not JSON"},
	{"JSON that says it is HTML", answering(200, header("Content-Type", "text/html"), "{}"), fault.Unavailable, "not JSON"},
	{"JSON of another shape", answering(200, header("Content-Type", "application/json"), `[1]`), fault.Unavailable, "not JSON"},
	{"JSON about nothing", answering(200, header("Content-Type", "application/json"), `{}`), "", "has moved"},
	{"an empty answer", answering(200, header("Content-Type", "application/json"), ""), fault.Unavailable, "not JSON"},
	{"a connection that breaks", broken, fault.Unavailable, "could not be read"},
	{"no end", endless, fault.Unavailable, "more than 33554432 bytes"},
	{"no answer", silent, fault.Unavailable, "did not answer in time"},
	{"half an answer", halted, fault.Unavailable, "did not answer in time"},
	{"a redirect off the list", answering(302, header("Location", "https://evil.example/repos/o/r"), ""), "", "has moved"},
	{"a redirect to a private address", answering(302, header("Location", "https://169.254.169.254/latest/meta-data/"), ""), "", "has moved"},
	{"a redirect to nowhere", answering(302, nil, ""), "", "has moved"},
}

// TestGitHubFaults puts every fault in the place of every request of a fetch.
func TestGitHubFaults(t *testing.T) {
	fake := faked(t, manySkills())
	fake.tokens["o/r"] = secret
	fetchAfresh := func(faultAt int32, patience time.Duration, twist func(http.ResponseWriter, *http.Request) bool) (any, error) {
		host := fake.client(GitHubOptions{Now: func() time.Time { return noon }})
		defer host.transport.CloseIdleConnections()
		host.waits.idle = patience
		var at atomic.Int32
		fake.misbehave(func(w http.ResponseWriter, r *http.Request) bool {
			return at.Add(1)-1 == faultAt && twist(w, r)
		})
		return fetch(host, withToken(repoAt("o/r", "")))
	}
	want, err := fetchAfresh(-1, time.Minute, nil)
	check(t, err)
	all := int32(len(fake.requests()))
	if all != 3+oneByOne+2 {
		t.Fatalf("%d requests", all)
	}
	for _, f := range faults {
		t.Run("S2 "+f.name+", wherever it happens, is an error and never a shorter list", func(t *testing.T) {
			patience := time.Minute
			if f.says == "did not answer in time" {
				patience = 50 * time.Millisecond
			}
			for at := range all {
				got, err := fetchAfresh(at, patience, f.twist)
				switch {
				case err == nil:
					// Only an archive can be done without.
					if diff := cmp.Diff(want, got); diff != "" || at < 3+oneByOne {
						t.Errorf("request %d: no error\n%s", at, diff)
					}
					continue
				case at == 0:
					if message := err.Error(); !strings.Contains(message, f.says) {
						t.Errorf("message %q lacks %q", message, f.says)
					}
				case f.kind != "" && at != 3+oneByOne+1 && !fault.Is(err, f.kind), !isOneOf(err, fault.Unavailable, fault.NotFound, f.kind):
					t.Errorf("request %d: %v", at, err)
				}
				for e := err; e != nil; e = errors.Unwrap(e) {
					if strings.Contains(e.Error(), secret) || strings.Contains(e.Error(), archivePass) {
						t.Errorf("request %d: the error %q holds a secret", at, e)
					}
				}
			}
		})
	}
}

func isOneOf(err error, kinds ...fault.Kind) bool {
	for _, kind := range kinds {
		if fault.Is(err, kind) {
			return true
		}
	}
	return false
}

func TestGitHubPause(t *testing.T) {
	fake := faked(t, tree{"a/SKILL.md": aSkill("a")})
	now := noon
	fake.host.now = func() time.Time { return now }
	fake.misbehave(answering(429, header("Retry-After", "60"), ""))
	_, err := fetch(fake.host, repoAt("o/r", ""))
	wantError(t, err, fault.RateLimited, "(without an access token few requests are allowed); try again after 2026-03-04T12:01:00Z")
	fake.misbehave(nil)
	fake.requests()
	t.Run("S2 until a rate limit ends nothing more is asked", func(t *testing.T) {
		now = now.Add(59 * time.Second)
		_, err := fetch(fake.host, repoAt("o/other", ""))
		wantError(t, err, fault.RateLimited, "try again after 2026-03-04T12:01:00Z")
		if made := fake.requests(); len(made) != 0 {
			t.Errorf("requests %q", made)
		}
	})
	t.Run("S2 a rate limit holds for the token that met it", func(t *testing.T) {
		_, err := fetch(fake.host, withToken(repoAt("o/r", "")))
		check(t, err)
	})
	t.Run("S2 after a rate limit has ended all is well", func(t *testing.T) {
		now = now.Add(time.Second)
		_, err := fetch(fake.host, repoAt("o/r", ""))
		check(t, err)
		fake.host.pause("", "elsewhere", now.Add(time.Minute))
		if len(fake.host.paused) != 1 {
			t.Errorf("%d pauses are kept", len(fake.host.paused))
		}
	})
}

func TestGitHubRedirects(t *testing.T) {
	for name, location := range map[string]string{
		"a private address":     "https://169.254.169.254/latest/meta-data/?token=" + archivePass,
		"this machine":          "https://127.0.0.1/x?token=" + archivePass,
		"a host off the list":   "https://codeload.github.com.evil.example/x?token=" + archivePass,
		"another port":          "https://codeload.github.com:8443/x",
		"http":                  "http://codeload.github.com/x",
		"a user name":           "https://codeload.github.com@evil.example/x",
		"a user name on a host": "https://evil@codeload.github.com/x",
		"a file":                "file:///etc/passwd",
		"no URL":                "https://%zz/" + archivePass,
		"itself, for ever":      "https://api.github.com/repos/o/r/tarball/x",
	} {
		t.Run("S2 a redirect of an archive to "+name+" is not followed", func(t *testing.T) {
			fake := faked(t, manySkills())
			fake.tokens["o/r"] = secret
			fake.misbehave(func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, "/tarball/") {
					return false
				}
				w.Header().Set("Location", location)
				w.WriteHeader(http.StatusFound)
				return true
			})
			_, err := fetch(fake.host, withToken(repoAt("o/r", "")))
			says := "which is not https on a host that is read from"
			if strings.HasPrefix(name, "no URL") {
				says = "leads to no address"
			} else if strings.HasPrefix(name, "itself") {
				says = "sends the request for o/r elsewhere"
			}
			wantError(t, err, fault.Unavailable, says)
			if strings.Contains(err.Error(), archivePass) {
				t.Errorf("the error %q lets somebody in", err)
			}
			tarballs := 0
			for _, request := range fake.requests() {
				if !strings.HasPrefix(request, "api.github.com/") {
					t.Errorf("asked %s", request)
				}
				if strings.Contains(request, "/tarball/") {
					tarballs++
				}
			}
			if tarballs > 3 {
				t.Errorf("%d requests went in circles", tarballs)
			}
		})
	}
	t.Run("S2 a redirect between hosts of the list goes without the token", func(t *testing.T) {
		fake := faked(t, manySkills())
		fake.tokens["o/r"] = secret
		fake.misbehave(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/tarball/") || r.Header.Get("Authorization") == "" {
				return false
			}
			http.Redirect(w, r, "https://api.github.com/repos/o/r/tarball/elsewhere", http.StatusTemporaryRedirect)
			return true
		})
		_, err := fetch(fake.host, withToken(repoAt("o/r", "")))
		wantError(t, err, fault.Unavailable, "answered 404")
	})
}

func TestGitHubMoved(t *testing.T) {
	const fresh = "; if that is still the repository you mean, give the source its new address"
	for name, c := range map[string]struct {
		twist func(http.ResponseWriter, *http.Request) bool
		says  string
	}{
		"by a redirect":            {moveTo("o/r", "new-owner/new"), "o/r has moved to new-owner/new, which is not followed" + fresh},
		"by another name":          {answering(200, header("Content-Type", "application/json"), `{"full_name":"o/renamed"}`), "o/r has moved to o/renamed"},
		"to an impossible name":    {moveTo("o/r", "../../x"), "o/r has moved; find out where to"},
		"to a private repository":  {answering(301, header("Location", "https://api.github.com/repositories/9"), ""), "o/r has moved; find out where to"},
		"to somewhere off the API": {answering(301, header("Location", "https://evil.example/repositories/7"), ""), "o/r has moved; find out where to"},
	} {
		t.Run("S3 a repository that moved "+name+" is not followed, and that is said", func(t *testing.T) {
			fake := faked(t, tree{"a/SKILL.md": aSkill("a")})
			fake.misbehave(c.twist)
			_, err := fetch(fake.host, withToken(repoAt("o/r", "")))
			wantError(t, err, fault.NotFound, c.says)
			fake.mu.Lock()
			defer fake.mu.Unlock()
			for i, request := range fake.log {
				if i > 0 && fake.headers[i].Get("Authorization") != "" {
					t.Errorf("%s was sent the token", request)
				}
			}
		})
	}
}

func TestGitHubListing(t *testing.T) {
	files := manySkills()
	want, err := fetch(onShelf(t, map[string]tree{"o/r": files}).memory(), repoAt("o/r", ""))
	check(t, err)
	t.Run("S2 a tree that GitHub cuts is read folder by folder", func(t *testing.T) {
		for _, lines := range []int{60, 20, 14} {
			fake := faked(t, files)
			fake.listing = lines
			got, err := fetch(fake.host, repoAt("o/r", ""))
			check(t, err)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("cut at %d: %s", lines, diff)
			}
		}
	})
	t.Run("S2 a folder that GitHub cuts even by itself is an error", func(t *testing.T) {
		fake := faked(t, files)
		fake.listing = 11
		_, err := fetch(fake.host, repoAt("o/r", ""))
		wantError(t, err, fault.Unavailable, `the folder "skills" has more entries`)
	})
	t.Run("S2 a tree of too many folders to ask for is an error", func(t *testing.T) {
		many := tree{}
		for i := range maxListings {
			many[fmt.Sprintf("d%03d/e/f/SKILL.md", i)] = aSkill("x")
		}
		fake := faked(t, many)
		fake.listing = maxListings
		_, err := fetch(fake.host, repoAt("o/r", ""))
		wantError(t, err, fault.BadInput, "too large to read")
	})
	type listing = struct {
		Tree      []map[string]any `json:"tree"`
		Truncated bool             `json:"truncated"`
	}
	for name, change := range map[string]func(*listing){
		"lacks a file":     func(l *listing) { l.Tree = l.Tree[:len(l.Tree)-1] },
		"lacks everything": func(l *listing) { l.Tree = nil },
		"has one more": func(l *listing) {
			l.Tree = append(l.Tree, map[string]any{"path": "x", "mode": "100644", "sha": strings.Repeat("1", 40)})
		},
		"has another hash":         func(l *listing) { l.Tree[0]["sha"] = strings.Repeat("1", 40) },
		"has another mode":         func(l *listing) { l.Tree[0]["mode"] = "100755" },
		"has an impossible hash":   func(l *listing) { l.Tree[0]["sha"] = "../../../user" },
		"has an impossible mode":   func(l *listing) { l.Tree[0]["mode"] = "rw-r--r--" },
		"has a negative size":      func(l *listing) { l.Tree[0]["size"] = -1 },
		"has a path upwards":       func(l *listing) { l.Tree[0]["path"] = "../LICENSE" },
		"has a path from the root": func(l *listing) { l.Tree[0]["path"] = "/LICENSE" },
		"has a name twice":         func(l *listing) { l.Tree = append(l.Tree, l.Tree[0]) },
		"has a folder twice":       func(l *listing) { l.Tree[1]["path"], l.Tree[1]["mode"] = ".", "040000" },
		"lacks a folder's line":    func(l *listing) { l.Tree = append(l.Tree[:2], l.Tree[3:]...) },
	} {
		t.Run("S2 a listing that "+name+" without saying so is an error", func(t *testing.T) {
			fake := faked(t, files)
			fake.misbehave(func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, "/git/trees/") || r.URL.RawQuery == "" {
					return false
				}
				repo, full := fake.repository("o/r")
				answer, _ := fake.answer(repo, full, strings.TrimPrefix(r.URL.Path, "/repos/o/r/"), r)
				text, err := json.Marshal(answer)
				var l listing
				if err := errors.Join(err, json.Unmarshal(text, &l)); err != nil {
					t.Error(err)
				}
				change(&l)
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(l)
				return true
			})
			_, err := fetch(fake.host, repoAt("o/r", ""))
			wantError(t, err, fault.Unavailable, "incomplete or damaged")
		})
	}
}
