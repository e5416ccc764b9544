package server_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/server"
)

var discard = slog.New(slog.NewTextHandler(io.Discard, nil))

// ask sends a request that takes until it is given up, and tells whether it was
// answered.
func ask(base string) <-chan error {
	answered := make(chan error, 1)
	go func() {
		r, err := http.NewRequest(http.MethodPost, base+"/graphql", strings.NewReader(`{"query":"{slow}"}`))
		if err != nil {
			answered <- err
			return
		}
		r.Header.Set("Authorization", "Bearer cs_token")
		r.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultTransport.RoundTrip(r)
		if err == nil {
			err = response.Body.Close()
		}
		answered <- err
	}()
	return answered
}

func TestServe(t *testing.T) {
	start := func(t *testing.T, change func(*server.Options)) (h *house, base string, stop func() error) {
		t.Helper()
		h = open(t, change)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- h.server.Serve(ctx, listener) }()
		return h, "http://" + listener.Addr().String(), func() error {
			cancel()
			http.DefaultTransport.(*http.Transport).CloseIdleConnections()
			return <-ended
		}
	}
	t.Run("shutting down ends streams without complete, so that clients connect again", func(t *testing.T) {
		h, base, stop := start(t, nil)
		response := post(t, base, "subscription{silence}", streamed)
		eventually(t, "it runs", func() bool { return h.schema.Running.Load() == 1 })
		if err := stop(); err != nil {
			t.Error(err)
		}
		if got := events(t, response); got != "" {
			t.Errorf("got %q", got)
		}
		wantStatus(t, h.do(request{method: "GET", path: "/readyz"}), 503)
		wantStatus(t, h.do(request{method: "GET", path: "/healthz"}), 200)
	})
	t.Run("shutting down closes WebSockets with 1012", func(t *testing.T) {
		_, base, stop := start(t, nil)
		conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = conn.Write([]byte("GET /graphql HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
			"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n"))
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		reader := bufio.NewReader(conn)
		upgraded, err := http.ReadResponse(reader, nil)
		if err != nil || upgraded.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("got %v, %v", upgraded, err)
		}
		stopped := make(chan error, 1)
		go func() { stopped <- stop() }()
		frame := make([]byte, 4) // FIN and close, length, and the code
		if _, err := io.ReadFull(reader, frame); err != nil || frame[0] != 0x88 || binary.BigEndian.Uint16(frame[2:]) != 1012 {
			t.Errorf("got % x, %v", frame, err)
		}
		_ = conn.Close()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	t.Run("shutting down waits for requests under way", func(t *testing.T) {
		h, base, stop := start(t, func(o *server.Options) { o.OperationTimeout = 100 * time.Millisecond })
		answered := ask(base)
		eventually(t, "the request is under way", func() bool { return h.accounts.Asked.Load() > 0 })
		if err := stop(); err != nil {
			t.Error(err)
		}
		if err := <-answered; err != nil {
			t.Errorf("the request was cut: %v", err)
		}
	})
	t.Run("requests that outlast the drain are cut, and that is an error", func(t *testing.T) {
		h, base, stop := start(t, func(o *server.Options) { o.DrainTimeout = 50 * time.Millisecond })
		answered := ask(base)
		eventually(t, "the request is under way", func() bool { return h.accounts.Asked.Load() > 0 })
		if err := stop(); err == nil {
			t.Error("no error")
		}
		if err := <-answered; err == nil {
			t.Error("the request was answered")
		}
	})
	t.Run("a listener that fails is an error", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_ = listener.Close()
		if err := open(t, nil).server.Serve(t.Context(), listener); err == nil {
			t.Error("no error")
		}
	})
}

func TestRoutes(t *testing.T) {
	h := open(t, func(o *server.Options) {
		o.Ready = func(context.Context) []string { return []string{"2 migrations are pending"} }
		o.Origins = []string{"https://chat.example.org"}
	})
	get := func(path string, header ...string) *http.Response {
		return h.do(request{method: "GET", path: path, header: header})
	}
	t.Run("readyz says why it is not", func(t *testing.T) {
		if body := wantStatus(t, get("/readyz"), 503); body != `{"ready":false,"reasons":["2 migrations are pending"]}`+"\n" {
			t.Errorf("got %s", body)
		}
		if body := wantStatus(t, open(t, nil).do(request{method: "GET", path: "/readyz"}), 200); body != `{"ready":true,"reasons":[]}`+"\n" {
			t.Errorf("got %s", body)
		}
	})
	t.Run("the root opens the playground", func(t *testing.T) {
		if response := get("/"); response.StatusCode != 302 || response.Header.Get("Location") != "/playground" {
			t.Errorf("got %v", response)
		}
		wantStatus(t, get("/nothing"), 404)
		wantStatus(t, get("/playground/../server.go"), 307)
		wantStatus(t, get("/playground/nothing"), 404)
	})
	t.Run("pages load their own files only, and may not be framed", func(t *testing.T) {
		for path, kind := range map[string]string{
			"/playground": "text/html", "/playground/playground.js": "text/javascript", "/playground/playground.css": "text/css",
			"/sign-in": "text/html", "/sign-in/sign-in.js": "text/javascript", "/sign-in/sign-in.css": "text/css",
		} {
			response := get(path)
			wantStatus(t, response, 200)
			header := response.Header
			if !strings.HasPrefix(header.Get("Content-Type"), kind) || header.Get("X-Content-Type-Options") != "nosniff" ||
				!strings.Contains(header.Get("Content-Security-Policy"), "frame-ancestors 'none'") ||
				!strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self';") {
				t.Errorf("%s: got %v", path, header)
			}
			wantStatus(t, get(path, "If-None-Match: "+header.Get("ETag")), 304)
		}
	})
	t.Run("pages of configured origins may ask with a token, others may not", func(t *testing.T) {
		preflight := func(origin string) http.Header {
			return h.do(request{method: "OPTIONS", path: "/graphql", header: []string{"Origin: " + origin, "Access-Control-Request-Method: POST"}}).Header
		}
		if got := preflight("https://chat.example.org"); got.Get("Access-Control-Allow-Origin") != "https://chat.example.org" ||
			got.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("got %v", got)
		}
		if got := preflight("https://evil.example.org"); got.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("got %v", got)
		}
	})
	t.Run("metrics count requests and operations in a fixed set of series", func(t *testing.T) {
		h.ask("{greeting}")
		h.ask("query Invented{fail}")
		h.ask("{nothing}")
		h.do(request{method: "INVENTED", path: "/graphql"})
		body := wantStatus(t, get("/metrics"), 200)
		for _, want := range []string{
			`countersign_graphql_operations_total{outcome="ok",type="query"} 1`,
			`countersign_graphql_operations_total{outcome="error",type="query"} 1`,
			`countersign_graphql_operations_total{outcome="refused",type="unknown"} 1`,
			`countersign_http_requests_total{code="200",method="POST",route="/graphql"} 3`,
			`countersign_http_requests_total{code="405",method="other",route="/graphql"} 1`,
			`countersign_graphql_operation_duration_seconds_count{type="query"} 2`,
			`countersign_websockets_open 0`,
			`countersign_subscriptions_open 0`,
		} {
			if !strings.Contains(body, want+"\n") {
				t.Errorf("no %s", want)
			}
		}
		if t.Failed() {
			t.Log(body)
		}
	})
}
