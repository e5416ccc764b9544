package webhook

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/notify"
)

var local = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

func TestSender(t *testing.T) {
	var got *http.Request
	var body string
	answer := func(w http.ResponseWriter) { w.WriteHeader(204) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r, string(b)
		answer(w)
	}))
	defer server.Close()
	at := time.Date(2026, 12, 1, 13, 0, 0, 0, time.UTC)
	message := notify.Message{ID: "ndl_1", URL: server.URL, Body: `{"type":"ping"}`, Secret: "whsec_c2VjcmV0", At: at}
	t.Run("the signature is the one of the specification", func(t *testing.T) {
		// Made with openssl: printf 'ndl_1.1796130000.{"type":"ping"}' | openssl dgst -sha256 -hmac secret -binary | base64
		const want = "v1,jstfg9xtRRXZ7QXwXvHZssSMXvDoTGiyDOliPRaCpDA="
		if out, err := NewSender(local).Post(t.Context(), message); err != nil || out.StatusCode != 204 {
			t.Fatalf("%+v, %v", out, err)
		}
		h := got.Header
		if h.Get("webhook-id") != "ndl_1" || h.Get("webhook-timestamp") != "1796130000" || h.Get("webhook-signature") != want || body != message.Body {
			t.Errorf("%v %q", h, body)
		}
	})
	t.Run("a redirect is no delivery and is not followed", func(t *testing.T) {
		answer = func(w http.ResponseWriter) { w.Header().Set("Location", "/elsewhere"); w.WriteHeader(302) }
		if out, err := NewSender(local).Post(t.Context(), message); err != nil || out.StatusCode != 302 || got.URL.Path != "/" {
			t.Errorf("%+v, %v, %s", out, err, got.URL)
		}
	})
	t.Run("what the server asks for is read as seconds or as a date, and never less than nothing", func(t *testing.T) {
		for text, want := range map[string]time.Duration{
			"120": 2 * time.Minute, "-5": 0, at.Add(time.Hour).Format(http.TimeFormat): time.Hour, at.Add(-time.Hour).Format(http.TimeFormat): 0, "soon": 0, "": 0,
		} {
			answer = func(w http.ResponseWriter) { w.Header().Set("Retry-After", text); w.WriteHeader(429) }
			if out, err := NewSender(local).Post(t.Context(), message); err != nil || out.StatusCode != 429 || out.RetryAfter != want {
				t.Errorf("%q: %+v, %v", text, out, err)
			}
		}
	})
	t.Run("a server in a private network is not dialled, and its address is not told", func(t *testing.T) {
		got = nil
		if _, err := NewSender(nil).Post(t.Context(), message); err == nil || got != nil || strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%v", err)
		}
	})
	t.Run("a server that is not there is told as such", func(t *testing.T) {
		gone := httptest.NewServer(nil)
		gone.Close()
		m := message
		m.URL = gone.URL
		if _, err := NewSender(local).Post(t.Context(), m); err == nil || strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%v", err)
		}
	})
	t.Run("a post ends with its context", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if _, err := NewSender(local).Post(ctx, message); err == nil {
			t.Error("it was posted")
		}
	})
}

// answering is a message to a server that answers like this.
func answering(t *testing.T, answer http.HandlerFunc) notify.Message {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return notify.Message{ID: "ndl_1", URL: server.URL, Body: "{}", Secret: "whsec_c2VjcmV0", At: time.Now()}
}

func TestSenderBounds(t *testing.T) {
	t.Run("a server that does not answer is not waited for", func(t *testing.T) {
		released := make(chan struct{})
		m := answering(t, func(http.ResponseWriter, *http.Request) { <-released })
		out, err := newSender(local, 50*time.Millisecond).Post(t.Context(), m)
		close(released)
		if err == nil || err.Error() != "the server did not answer in time" || out.StatusCode != 0 {
			t.Errorf("%+v, %v", out, err)
		}
	})
	t.Run("an answer without an end is taken by its status", func(t *testing.T) {
		ended := make(chan error, 1)
		m := answering(t, func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					ended <- err // the connection was closed
					return
				}
			}
		})
		if out, err := NewSender(local).Post(t.Context(), m); err != nil || out.StatusCode != 200 {
			t.Errorf("%+v, %v", out, err)
		}
		<-ended
	})
	t.Run("headers without an end are no answer", func(t *testing.T) {
		m := answering(t, func(w http.ResponseWriter, _ *http.Request) {
			for i := range 100 {
				w.Header().Set("X-"+strconv.Itoa(i), strings.Repeat("x", 1<<10))
			}
		})
		if out, err := NewSender(local).Post(t.Context(), m); err == nil {
			t.Errorf("%+v", out)
		}
	})
}

// What is reached over http lies in a named network, also when others are named: a public
// address is dialled over https alone, and this machine only by who named it.
func TestReach(t *testing.T) {
	over := func(scheme string) reach {
		return map[string]reach{"https": {local, true}, "http": {local, false}}[scheme]
	}
	for _, c := range []struct {
		scheme, address string
		ok              bool
	}{
		{"https", "8.8.8.8:443", true},
		{"http", "8.8.8.8:80", false},
		{"http", "127.0.0.1:80", true},
		{"https", "[::1]:443", true},
		{"https", "10.0.0.1:443", false},
		{"https", "169.254.169.254:443", false},
		{"http", "169.254.169.254:80", false},
		{"https", "[::ffff:10.0.0.1]:443", false},
		{"https", "[fd00::1]:443", false},
		{"https", "nowhere", false},
	} {
		if err := over(c.scheme).permitted(c.address); (err == nil) != c.ok {
			t.Errorf("%s to %s: %v", c.scheme, c.address, err)
		}
	}
}

func TestSenderCheck(t *testing.T) {
	for url, ok := range map[string]bool{
		"https://hooks.example.org/x": true, "http://hooks.example.org/x": false, "https://user:pw@example.org": false, "ftp://example.org": false,
		"https://": false, "": false, "/x": false, "https://example.org/" + strings.Repeat("x", 2000): false,
	} {
		if err := NewSender(nil).Check(url); (err == nil) != ok || err != nil && !fault.Is(err, fault.BadInput) {
			t.Errorf("%q: %v", url, err)
		}
	}
	if err := NewSender(local).Check("http://127.0.0.1/x"); err != nil {
		t.Errorf("a named network: %v", err)
	}
}
