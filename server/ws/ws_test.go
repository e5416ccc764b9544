package ws_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/gorilla/websocket"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"go.uber.org/goleak"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/server/internal/servertest"
	"github.com/countersign/countersign/server/internal/wire"
	"github.com/countersign/countersign/server/ws"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what must happen; only a broken test waits for it.
const patience = 20 * time.Second

// house is a server with one WebSocket transport and nothing else.
type house struct {
	t         *testing.T
	schema    *servertest.Schema
	accounts  *servertest.Accounts
	transport *ws.Transport
	http      *httptest.Server
	panics    *strings.Builder
}

func open(t *testing.T, change func(*ws.Options)) *house {
	t.Helper()
	h := &house{t: t, schema: &servertest.Schema{}, accounts: servertest.NewAccounts(), panics: &strings.Builder{}}
	options := ws.Options{
		Authenticate: func(ctx context.Context, r *http.Request, token string) (actor.Actor, error) {
			if token == "" {
				token = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
			}
			if token == "" {
				return actor.Actor{}, nil
			}
			return h.accounts.Bearer(ctx, token)
		},
		Recovered: func(context.Context, any) *gqlerror.Error {
			h.panics.WriteString("panic;")
			return wire.Error(fault.Internal, "internal error")
		},
		CloseTimeout: 500 * time.Millisecond,
	}
	if change != nil {
		change(&options)
	}
	h.transport = ws.New(options)
	exec := executor.New(h.schema)
	exec.SetErrorPresenter(servertest.Present)
	exec.SetRecoverFunc(servertest.Recover(slog.New(slog.NewTextHandler(io.Discard, nil))))
	h.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.transport.Do(w, r, exec)
	}))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := h.transport.Drain(ctx); err != nil {
			t.Errorf("drain: %v", err)
		}
		h.http.Close()
		eventually(t, "no subscription outlives its connection", func() bool { return h.schema.Running.Load() == 0 })
	})
	return h
}

func (h *house) url() string { return "ws" + strings.TrimPrefix(h.http.URL, "http") }

// client is a client that sends exactly what it is told.
type client struct {
	t      *testing.T
	socket *websocket.Conn
}

func (h *house) dial(header http.Header) *client {
	h.t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{ws.Subprotocol}, HandshakeTimeout: patience}
	socket, _, err := dialer.Dial(h.url(), header)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = socket.Close() })
	return &client{h.t, socket}
}

// connect is dial, connection_init and connection_ack.
func (h *house) connect() *client {
	h.t.Helper()
	c := h.dial(nil)
	c.send(`{"type":"connection_init","payload":{"token":"` + servertest.Token + `"}}`)
	c.want("connection_ack", "")
	return c
}

func (c *client) send(frame string) {
	c.t.Helper()
	if err := c.socket.WriteMessage(websocket.TextMessage, []byte(frame)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) subscribe(id, query string) {
	c.t.Helper()
	payload, err := json.Marshal(map[string]any{"id": id, "type": "subscribe", "payload": map[string]any{"query": query}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.send(string(payload))
}

type received struct {
	Type    string
	ID      string
	Payload json.RawMessage
}

func (c *client) receive() received {
	c.t.Helper()
	_ = c.socket.SetReadDeadline(time.Now().Add(patience))
	var m received
	if err := c.socket.ReadJSON(&m); err != nil {
		c.t.Fatal(err)
	}
	return m
}

func (c *client) want(kind, id string) received {
	c.t.Helper()
	m := c.receive()
	if m.Type != kind || m.ID != id {
		c.t.Fatalf("got %s for %q with %s, want %s for %q", m.Type, m.ID, m.Payload, kind, id)
	}
	return m
}

// wantClose reads until the connection ends and compares the close code.
func (c *client) wantClose(code int) {
	c.t.Helper()
	_ = c.socket.SetReadDeadline(time.Now().Add(patience))
	for {
		_, _, err := c.socket.ReadMessage()
		if err == nil {
			continue
		}
		if !websocket.IsCloseError(err, code) {
			c.t.Fatalf("got %v, want close code %d", err, code)
		}
		return
	}
}

// eventually waits for a condition that another goroutine brings about.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatalf("%s: never", what)
}
