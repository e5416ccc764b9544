package ws_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/server/internal/servertest"
	"github.com/countersign/countersign/server/ws"
)

func TestOperations(t *testing.T) {
	t.Run("a subscription sends each event and completes", func(t *testing.T) {
		client := open(t, nil).connect()
		client.subscribe("s", "subscription{ticks(to:3)}")
		for i := range 3 {
			want := fmt.Sprintf(`{"data":{"ticks":%d}}`, i+1)
			if m := client.want("next", "s"); string(m.Payload) != want {
				t.Fatalf("got %s, want %s", m.Payload, want)
			}
		}
		client.want("complete", "s")
	})
	t.Run("queries and mutations are answered once and complete", func(t *testing.T) {
		h := open(t, nil)
		client := h.connect()
		client.subscribe("q", `{greeting(name:"you")}`)
		if m := client.want("next", "q"); string(m.Payload) != `{"data":{"greeting":"Hello, you!"}}` {
			t.Errorf("got %s", m.Payload)
		}
		client.want("complete", "q")
		client.subscribe("m", `mutation{count}`)
		client.want("next", "m")
		client.want("complete", "m")
		if n := h.schema.Counted.Load(); n != 1 {
			t.Errorf("the mutation ran %d times", n)
		}
	})
	t.Run("variables keep their digits and the operation is chosen by name", func(t *testing.T) {
		client := open(t, nil).connect()
		client.send(`{"type":"subscribe","id":"1","payload":{"query":"query A($n:String){greeting(name:$n)} query B{viewer{name}}","operationName":"A","variables":{"n":"9007199254740993"}}}`)
		if m := client.want("next", "1"); string(m.Payload) != `{"data":{"greeting":"Hello, 9007199254740993!"}}` {
			t.Errorf("got %s", m.Payload)
		}
	})
	t.Run("an id is free again once its operation is complete", func(t *testing.T) {
		client := open(t, nil).connect()
		for range 20 {
			client.subscribe("1", "{greeting}")
			client.want("next", "1")
			client.want("complete", "1")
		}
	})
	t.Run("what is not valid is answered with error, and the connection lives", func(t *testing.T) {
		client := open(t, nil).connect()
		for _, query := range []string{"{nothing}", "{", ""} {
			client.subscribe("1", query)
			if m := client.want("error", "1"); !strings.HasPrefix(string(m.Payload), `[{"message":`) {
				t.Errorf("got %s", m.Payload)
			}
		}
		client.subscribe("1", "{greeting}")
		client.want("next", "1")
	})
	t.Run("a resolver's error is data beside null, without its cause", func(t *testing.T) {
		client := open(t, nil).connect()
		client.subscribe("1", "{fail}")
		m := client.want("next", "1")
		if !strings.Contains(string(m.Payload), `"data":{"fail":null}`) || strings.Contains(string(m.Payload), "hunter2") {
			t.Errorf("got %s", m.Payload)
		}
	})
	t.Run("a panic is answered as INTERNAL, logged once, and costs only its operation", func(t *testing.T) {
		h := open(t, nil)
		client := h.connect()
		client.subscribe("1", "subscription{boom}")
		client.want("next", "1")
		if m := client.want("error", "1"); !strings.Contains(string(m.Payload), `"code":"INTERNAL"`) {
			t.Errorf("got %s", m.Payload)
		}
		client.subscribe("1", "{greeting}")
		client.want("next", "1")
		if h.panics.String() != "panic;" {
			t.Errorf("logged %q", h.panics.String())
		}
	})
	t.Run("an operation that takes too long is given up", func(t *testing.T) {
		client := open(t, func(o *ws.Options) { o.OperationTimeout = time.Millisecond }).connect()
		client.subscribe("1", "{slow}")
		for { // the resolver may have seen the end first
			m := client.receive()
			if m.Type == "error" && strings.Contains(string(m.Payload), "UNAVAILABLE") || m.Type == "complete" {
				break
			}
		}
		client.subscribe("1", "subscription{ticks}")
		client.want("next", "1")
	})
	t.Run("complete from the client stops the operation without an answer", func(t *testing.T) {
		h := open(t, nil)
		client := h.connect()
		client.subscribe("1", "subscription{silence}")
		eventually(t, "the subscription runs", func() bool { return h.schema.Running.Load() == 1 })
		client.send(`{"type":"complete","id":"1"}`)
		eventually(t, "the subscription ends", func() bool { return h.schema.Running.Load() == 0 })
		client.send(`{"type":"complete","id":"never existed"}`)
		client.send(`{"type":"ping","payload":{"n":1}}`)
		if m := client.want("pong", ""); string(m.Payload) != `{"n":1}` {
			t.Errorf("got %s", m.Payload)
		}
	})
	t.Run("a connection has a limited number of open operations", func(t *testing.T) {
		h := open(t, func(o *ws.Options) { o.MaxOperations = 2 })
		client := h.connect()
		client.subscribe("1", "subscription{silence}")
		client.subscribe("2", "subscription{silence}")
		client.subscribe("3", "subscription{silence}")
		if m := client.want("error", "3"); !strings.Contains(string(m.Payload), "RATE_LIMITED") {
			t.Errorf("got %s", m.Payload)
		}
		client.send(`{"type":"complete","id":"1"}`)
		client.subscribe("3", "{greeting}")
		client.want("next", "3")
	})
	t.Run("a client that hangs up ends its operations", func(t *testing.T) {
		h := open(t, nil)
		client := h.connect()
		client.subscribe("1", "subscription{silence}")
		client.subscribe("2", "subscription{forever}")
		eventually(t, "both run", func() bool { return h.schema.Running.Load() == 2 })
		_ = client.socket.NetConn().Close()
		eventually(t, "both end", func() bool { return h.schema.Running.Load() == 0 })
	})
}

func TestNeighbours(t *testing.T) {
	t.Run("a client that does not read is dropped, and its resolvers were not asked in vain", func(t *testing.T) {
		h := open(t, func(o *ws.Options) { o.WriteTimeout = 200 * time.Millisecond })
		client := h.connect()
		client.subscribe("1", "subscription{flood(bytes:1000000)}")
		eventually(t, "the flood runs", func() bool { return h.schema.Pulled.Load() > 0 })
		eventually(t, "the flood ends", func() bool { return h.schema.Running.Load() == 0 })
		if n := h.schema.Pulled.Load(); n > 60 {
			t.Errorf("%d MB were made for a client that takes none", n)
		}
	})
	t.Run("a client that answers no ping is dropped", func(t *testing.T) {
		h := open(t, func(o *ws.Options) { o.PingInterval = 20 * time.Millisecond })
		client := h.connect()
		client.subscribe("1", "subscription{silence}")
		eventually(t, "the subscription runs", func() bool { return h.schema.Running.Load() == 1 })
		eventually(t, "the subscription ends", func() bool { return h.schema.Running.Load() == 0 }) // nobody reads, so nobody answers
	})
	t.Run("a client that answers pings is kept", func(t *testing.T) {
		h := open(t, func(o *ws.Options) { o.PingInterval = 20 * time.Millisecond })
		client := h.connect()
		pings := 0
		answer := client.socket.PingHandler()
		client.socket.SetPingHandler(func(data string) error {
			if pings++; pings == 10 {
				client.subscribe("1", "{greeting}")
			}
			return answer(data)
		})
		client.want("next", "1")
	})
	t.Run("a client that never answers a close frame is not waited for", func(t *testing.T) {
		h := open(t, func(o *ws.Options) { o.CloseTimeout = 20 * time.Millisecond })
		client := h.dial(nil)
		client.send("no JSON") // and the answer is not read
		eventually(t, "the server hangs up", func() bool {
			return client.socket.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second)) != nil
		})
	})
}

func TestRevocation(t *testing.T) {
	quick := func(o *ws.Options) { o.RecheckInterval = 20 * time.Millisecond }
	for _, c := range []struct {
		name   string
		change func(*servertest.Accounts)
		code   int
	}{
		{"a revoked token ends its connections with 4403", func(a *servertest.Accounts) { a.Revoke(servertest.Token) }, 4403},
		{"a revoked right ends connections with 4403", func(a *servertest.Accounts) {
			who := servertest.Ada
			who.Granted = who.Granted[1:]
			a.Set(servertest.Token, who)
		}, 4403},
		{"a right that is gained ends connections too: they see more now", func(a *servertest.Accounts) {
			who := servertest.Ada
			who.Administrator = true
			a.Set(servertest.Token, who)
		}, 4403},
		{"a token that is somebody else's now ends connections with 4403", func(a *servertest.Accounts) {
			a.Set(servertest.Token, actor.Actor{ID: [16]byte{9}, Kind: actor.Person, Granted: actor.Default})
		}, 4403},
		{"rights that cannot be looked up end connections with 1013", func(a *servertest.Accounts) { a.SetDown(true) }, 1013},
	} {
		t.Run("I2 "+c.name, func(t *testing.T) {
			h := open(t, quick)
			client := h.connect()
			client.subscribe("1", "subscription{silence}")
			eventually(t, "the subscription runs", func() bool { return h.schema.Running.Load() == 1 })
			c.change(h.accounts)
			client.wantClose(c.code)
			eventually(t, "the subscription ends", func() bool { return h.schema.Running.Load() == 0 })
		})
	}
	t.Run("I2 a mutation with a revoked token does not run", func(t *testing.T) {
		h := open(t, func(o *ws.Options) { o.RecheckInterval = time.Hour })
		client := h.connect()
		h.accounts.Revoke(servertest.Token)
		client.subscribe("1", "mutation{count}")
		client.wantClose(4403)
		if n := h.schema.Counted.Load(); n != 0 {
			t.Errorf("it ran %d times", n)
		}
	})
	t.Run("I2 a connection whose rights stay is left alone", func(t *testing.T) {
		h := open(t, quick)
		client := h.connect()
		asked := h.accounts.Asked.Load()
		eventually(t, "several checks", func() bool { return h.accounts.Asked.Load() > asked+5 })
		client.subscribe("1", "{greeting}")
		client.want("next", "1")
	})
}

func TestDrain(t *testing.T) {
	t.Run("shutting down closes connections with 1012 and refuses new ones", func(t *testing.T) {
		h := open(t, nil)
		client, idle := h.connect(), h.dial(nil)
		client.subscribe("1", "subscription{forever}")
		client.want("next", "1")
		drained := make(chan error, 1)
		go func() { drained <- h.transport.Drain(context.Background()) }()
		client.wantClose(websocket.CloseServiceRestart)
		idle.wantClose(websocket.CloseServiceRestart)
		if err := <-drained; err != nil {
			t.Error(err)
		}
		dialer := websocket.Dialer{Subprotocols: []string{ws.Subprotocol}}
		_, response, err := dialer.Dial(h.url(), nil)
		if err == nil || response.StatusCode != 503 {
			t.Errorf("got %v, %v", response, err)
		}
	})
	t.Run("a connection that does not answer is cut when the time is up", func(t *testing.T) {
		h := open(t, func(o *ws.Options) { o.CloseTimeout = patience })
		client := h.connect()
		client.subscribe("1", "subscription{silence}")
		eventually(t, "the subscription runs", func() bool { return h.schema.Running.Load() == 1 })
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		if err := h.transport.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}
