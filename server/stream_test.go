package server_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/server"
	"github.com/countersign/countersign/server/internal/servertest"
)

// panicking is an Authenticator that is broken.
type panicking struct{ server.Authenticator }

func (panicking) Bearer(context.Context, string) (actor.Actor, error) { panic("broken") }

func (h *house) present(ctx context.Context, err error) *gqlerror.Error {
	return servertest.Present(ctx, err)
}

func (h *house) recoverPanic(ctx context.Context, p any) error {
	_, _ = h.log.Write([]byte("panic\n"))
	return servertest.Recover(discard)(ctx, p)
}

// post asks a real server as Ada.
func post(t *testing.T, base, query string, header ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/graphql", strings.NewReader(`{"query":"`+query+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range append([]string{asAda, json_}, header...) {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// events reads an event stream to its end, without the keep-alives.
func events(t *testing.T, response *http.Response) string {
	t.Helper()
	return strings.ReplaceAll(read(t, response), ":\n\n", "")
}

func serve(t *testing.T, change func(*server.Options)) (*house, string) {
	t.Helper()
	h := open(t, change)
	s := httptest.NewServer(h.server)
	t.Cleanup(func() {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		s.Close()
		eventually(t, "no subscription outlives its request", func() bool { return h.schema.Running.Load() == 0 })
	})
	return h, s.URL
}

func TestStream(t *testing.T) {
	t.Run("a subscription sends next for each event, and complete", func(t *testing.T) {
		_, base := serve(t, nil)
		response := post(t, base, "subscription{ticks(to:2)}", streamed)
		want := "event: next\ndata: {\"data\":{\"ticks\":1}}\n\nevent: next\ndata: {\"data\":{\"ticks\":2}}\n\nevent: complete\ndata: \n\n"
		if got := events(t, response); got != want || response.StatusCode != 200 {
			t.Errorf("got %q", got)
		}
	})
	t.Run("a query, and what is not valid, is one next and complete", func(t *testing.T) {
		_, base := serve(t, nil)
		for query, want := range map[string]string{
			"{greeting}": `{"data":{"greeting":"Hello, world!"}}`,
			"{":          `{"errors":[{"message":`,
		} {
			got := events(t, post(t, base, query, streamed))
			if !strings.HasPrefix(got, "event: next\ndata: "+want) || !strings.HasSuffix(got, "event: complete\ndata: \n\n") {
				t.Errorf("got %q", got)
			}
		}
	})
	t.Run("a panic is the last event, and is logged once", func(t *testing.T) {
		h, base := serve(t, nil)
		got := events(t, post(t, base, "subscription{boom}", streamed))
		if !strings.Contains(got, `"code":"INTERNAL"`) || strings.Count(h.log.String(), "panic") != 1 {
			t.Errorf("got %q, logged %s", got, h.log)
		}
	})
	t.Run("an idle stream is kept alive", func(t *testing.T) {
		_, base := serve(t, func(o *server.Options) { o.KeepAliveInterval = 5 * time.Millisecond })
		lines := bufio.NewScanner(post(t, base, "subscription{silence}", streamed).Body)
		for comments := 0; comments < 3 && lines.Scan(); {
			if lines.Text() == ":" {
				comments++
			} else if lines.Text() != "" {
				t.Fatalf("got %q", lines.Text())
			}
		}
	})
	t.Run("a client that goes away ends the subscription", func(t *testing.T) {
		h, base := serve(t, nil)
		response := post(t, base, "subscription{silence}", streamed)
		eventually(t, "it runs", func() bool { return h.schema.Running.Load() == 1 })
		_ = response.Body.Close()
		eventually(t, "it ends", func() bool { return h.schema.Running.Load() == 0 })
	})
	t.Run("a client that does not read is dropped, and its resolver was not asked in vain", func(t *testing.T) {
		h, base := serve(t, func(o *server.Options) { o.WriteTimeout = 200 * time.Millisecond })
		post(t, base, "subscription{flood(bytes:1000000)}", streamed)
		eventually(t, "it ends", func() bool { return h.schema.Pulled.Load() > 0 && h.schema.Running.Load() == 0 })
		if n := h.schema.Pulled.Load(); n > 60 {
			t.Errorf("%d MB were made for a client that takes none", n)
		}
	})
	for name, c := range map[string]struct {
		change func(*servertest.Accounts)
		code   string
	}{
		"a revoked token":             {func(a *servertest.Accounts) { a.Revoke(servertest.Token) }, "UNAUTHENTICATED"},
		"a revoked right":             {func(a *servertest.Accounts) { a.Set(servertest.Token, actor.Actor{ID: servertest.Ada.ID}) }, "FORBIDDEN"},
		"rights that cannot be known": {func(a *servertest.Accounts) { a.SetDown(true) }, "UNAVAILABLE"},
	} {
		t.Run("I2 "+name+" ends the stream and says so", func(t *testing.T) {
			h, base := serve(t, func(o *server.Options) { o.RecheckInterval = 10 * time.Millisecond })
			response := post(t, base, "subscription{silence}", streamed)
			eventually(t, "it runs", func() bool { return h.schema.Running.Load() == 1 })
			c.change(h.accounts)
			if got := events(t, response); !strings.Contains(got, `"code":"`+c.code+`"`) || !strings.HasSuffix(got, "event: complete\ndata: \n\n") {
				t.Errorf("got %q", got)
			}
		})
	}
}
