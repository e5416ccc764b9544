package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/content"
)

const secret = "0123456789abcdef"

var (
	here  = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	now   = func() time.Time { return time.Unix(1_700_000_000, 0) }
	event = content.Event{Kind: "update", Fields: []string{"text"}, Record: content.Record{
		Table: "element", ID: "intro", Revision: 2, Fields: map[string]any{"text": "words"},
	}}
)

func hookTo(t *testing.T, url string, networks []netip.Prefix) *Hook {
	t.Helper()
	h, err := New(Target{URL: url, Secret: secret, Networks: networks}, now)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHook(t *testing.T) {
	t.Run("G6 a server is told by names and ids, signed", func(t *testing.T) {
		var got, signature string
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			got, signature = string(body), r.Header.Get(SignatureHeader)
		}))
		defer server.Close()
		if err := hookTo(t, server.URL, here).AfterWrite(t.Context(), event); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got, `"id":"intro","revision":2,"fields":["text"]`) || strings.Contains(got, "words") {
			t.Errorf("told %s", got)
		}
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte("1700000000." + got))
		if want := "t=1700000000,v1=" + hex.EncodeToString(mac.Sum(nil)); signature != want {
			t.Errorf("signed %s, want %s", signature, want)
		}
	})
	t.Run("G6 an error and a redirect are failures, and nothing is followed", func(t *testing.T) {
		calls := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls++
			if r.URL.Path == "/moved" {
				http.Redirect(w, r, "/", http.StatusTemporaryRedirect)
				return
			}
			w.WriteHeader(http.StatusInternalServerError)
		}))
		defer server.Close()
		for _, path := range []string{"/", "/moved"} {
			if err := hookTo(t, server.URL+path, here).AfterWrite(t.Context(), event); err == nil {
				t.Errorf("%s: no failure", path)
			}
		}
		if calls != 2 {
			t.Errorf("%d calls, want 2", calls)
		}
	})
	t.Run("a private address is not dialled unless its network is named", func(t *testing.T) {
		called := false
		server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
		defer server.Close()
		err := hookTo(t, server.URL, nil).AfterWrite(t.Context(), event)
		if err == nil || !strings.Contains(err.Error(), "not public") || called {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a target that cannot be trusted is refused at the start", func(t *testing.T) {
		for _, target := range []Target{
			{URL: "http://hooks.example.org", Secret: secret},
			{URL: "https://hooks.example.org", Secret: "short"},
			{URL: "https://me:pw@hooks.example.org", Secret: secret},
			{URL: "file:///etc/passwd", Secret: secret},
		} {
			if _, err := New(target, now); err == nil {
				t.Errorf("%s was taken", target.URL)
			}
		}
	})
}
