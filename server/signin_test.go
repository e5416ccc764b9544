package server_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/countersign/countersign/server"
	"github.com/countersign/countersign/server/internal/servertest"
)

const goodCode = `{"code":"` + servertest.Code + `"}`

func (h *house) signIn(header ...string) *http.Response {
	h.t.Helper()
	return h.do(request{"POST", "/sign-in", goodCode, append([]string{json_, csrf}, header...)})
}

func TestSignIn(t *testing.T) {
	t.Run("a code becomes a cookie that scripts and other sites cannot use", func(t *testing.T) {
		h := open(t, nil)
		response := h.signIn()
		wantStatus(t, response, 204)
		cookie := response.Cookies()[0]
		if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.Secure || cookie.Domain != "" {
			t.Errorf("got %v", cookie)
		}
		session := "Cookie: " + cookie.Name + "=" + cookie.Value
		body := wantStatus(t, h.do(request{"POST", "/graphql", `{"query":"{viewer{name}}"}`, []string{json_, session, csrf}}), 200)
		if !strings.Contains(body, "Ada") {
			t.Errorf("got %s", body)
		}
		t.Run("which signing out ends", func(t *testing.T) {
			wantCode(t, h.do(request{"POST", "/sign-out", "", []string{session}}), 403, "FORBIDDEN")
			out := h.do(request{"POST", "/sign-out", "", []string{session, csrf}})
			wantStatus(t, out, 204)
			if gone := out.Cookies()[0]; gone.MaxAge >= 0 || gone.Name != cookie.Name {
				t.Errorf("got %v", gone)
			}
			wantCode(t, h.do(request{"POST", "/graphql", `{"query":"{viewer{name}}"}`, []string{json_, session, csrf}}), 401, "UNAUTHENTICATED")
		})
	})
	t.Run("over TLS the cookie is Secure and bound to this host", func(t *testing.T) {
		h := open(t, func(o *server.Options) { o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} })
		r := httptest.NewRequest("POST", "/sign-in", strings.NewReader(goodCode))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Countersign-CSRF", "1")
		r.TLS = &tls.ConnectionState{}
		w := httptest.NewRecorder()
		h.server.ServeHTTP(w, r)
		behindProxy := h.signIn("X-Forwarded-Proto: https")
		for _, response := range []*http.Response{w.Result(), behindProxy} {
			wantStatus(t, response, 204)
			if c := response.Cookies()[0]; !c.Secure || !strings.HasPrefix(c.Name, "__Host-") {
				t.Errorf("got %v", c)
			}
		}
	})
	t.Run("X-Forwarded-Proto of a stranger is not believed", func(t *testing.T) {
		if c := open(t, nil).signIn("X-Forwarded-Proto: https").Cookies()[0]; c.Secure {
			t.Errorf("got %v", c)
		}
	})
	t.Run("another site cannot sign its victim in", func(t *testing.T) {
		h := open(t, nil)
		wantCode(t, h.do(request{"POST", "/sign-in", goodCode, []string{json_}}), 403, "FORBIDDEN")
		wantCode(t, h.signIn("Origin: https://evil.example.org"), 403, "FORBIDDEN")
		wantCode(t, h.signIn("Sec-Fetch-Site: cross-site"), 403, "FORBIDDEN")
	})
	t.Run("a request that is none is refused", func(t *testing.T) {
		h := open(t, nil)
		for _, body := range []string{"", "{}", `{"code":7}`, `["x"]`} {
			wantCode(t, h.do(request{"POST", "/sign-in", body, []string{json_, csrf}}), 400, "BAD_USER_INPUT")
		}
		wantCode(t, h.do(request{"POST", "/sign-in", goodCode, []string{csrf}}), 415, "BAD_USER_INPUT")
	})
	t.Run("failed attempts are limited by client address", func(t *testing.T) {
		h := open(t, func(o *server.Options) { o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} })
		fail := func(from string) *http.Response {
			return h.do(request{"POST", "/sign-in", `{"code":"wrong"}`, []string{json_, csrf, "X-Forwarded-For: " + from}})
		}
		for range 10 {
			wantCode(t, fail("198.51.100.7"), 401, "UNAUTHENTICATED")
		}
		limited := fail("198.51.100.7")
		wantCode(t, limited, 429, "RATE_LIMITED")
		if limited.Header.Get("Retry-After") == "" {
			t.Error("the answer does not say when to come back")
		}
		wantCode(t, fail("203.0.113.9, 198.51.100.7"), 429, "RATE_LIMITED") // what a client claims before the proxy does not count
		wantCode(t, fail("198.51.100.8"), 401, "UNAUTHENTICATED")
		for i := range 10 {
			wantCode(t, fail("2001:db8::"+string("0123456789"[i])), 401, "UNAUTHENTICATED")
		}
		wantCode(t, fail("2001:db8::ffff"), 429, "RATE_LIMITED") // one client owns a whole /64
	})
	t.Run("signing in forgets the failures before it", func(t *testing.T) {
		h := open(t, nil)
		for range 30 {
			wantCode(t, h.do(request{"POST", "/sign-in", `{"code":"wrong"}`, []string{json_, csrf}}), 401, "UNAUTHENTICATED")
			wantStatus(t, h.signIn(), 204)
		}
	})
}

func TestForgery(t *testing.T) {
	h := open(t, nil)
	cookie := h.signIn().Cookies()[0]
	session := "Cookie: " + cookie.Name + "=" + cookie.Value
	count := func(header ...string) *http.Response {
		return h.do(request{"POST", "/graphql", `{"query":"mutation{count}"}`, append([]string{json_, session}, header...)})
	}
	for name, header := range map[string][]string{
		"without the header":             nil,
		"from another origin":            {csrf, "Origin: https://evil.example.org"},
		"that the browser calls foreign": {csrf, "Sec-Fetch-Site: same-site"},
		"from a null origin":             {csrf, "Origin: null"},
	} {
		t.Run("a cookie request "+name+" is refused", func(t *testing.T) {
			wantCode(t, count(header...), 403, "FORBIDDEN")
		})
	}
	if n := h.schema.Counted.Load(); n != 0 {
		t.Errorf("a forged mutation ran %d times", n)
	}
	t.Run("a cookie request of our own page passes", func(t *testing.T) {
		wantStatus(t, count(csrf, "Origin: http://example.com", "Sec-Fetch-Site: same-origin"), 200)
	})
	t.Run("a bearer token needs no header", func(t *testing.T) {
		wantStatus(t, h.ask("mutation{count}", "Origin: https://evil.example.org"), 200)
	})
	t.Run("a token beside the cookie decides alone", func(t *testing.T) {
		wantStatus(t, count(asAda), 200)
		wantCode(t, count("Authorization: Bearer cs_wrong", csrf), 401, "UNAUTHENTICATED")
	})
}
