package ws_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/server/internal/servertest"
	"github.com/countersign/countersign/server/ws"
)

const initAda = `{"type":"connection_init","payload":{"token":"` + servertest.Token + `"}}`

// TestCloseCodes sends one wrong thing at a time.
func TestCloseCodes(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, c := range []struct {
		name   string
		frames []string
		code   int
	}{
		{"no credential is 4401", []string{`{"type":"connection_init"}`}, 4401},
		{"no credential in an empty payload is 4401", []string{`{"type":"connection_init","payload":{}}`}, 4401},
		{"a refused token is 4403", []string{`{"type":"connection_init","payload":{"token":"cs_wrong"}}`}, 4403},
		{"an empty token is 4403", []string{`{"type":"connection_init","payload":{"token":""}}`}, 4403},
		{"a token that is no string is 4403", []string{`{"type":"connection_init","payload":{"token":7}}`}, 4403},
		{"another scheme than Bearer is 4403", []string{`{"type":"connection_init","payload":{"authorization":"Basic abc"}}`}, 4403},
		{"subscribe before connection_ack is 4401", []string{`{"type":"subscribe","id":"1","payload":{"query":"{greeting}"}}`}, 4401},
		{"a second connection_init is 4429", []string{initAda, initAda}, 4429},
		{"a duplicate id is 4409", []string{
			initAda, `{"type":"subscribe","id":"1","payload":{"query":"subscription{silence}"}}`,
			`{"type":"subscribe","id":"1","payload":{"query":"{greeting}"}}`,
		}, 4409},
		{"no JSON is 4400", []string{`hello`}, 4400},
		{"an empty frame is 4400", []string{``}, 4400},
		{"an array is 4400", []string{`[]`}, 4400},
		{"null is 4400", []string{`null`}, 4400},
		{"a broken UTF-8 sequence is 4400", []string{"{\"type\":\"ping\",\"x\":\"\xff\"}"}, 4400},
		{"no type is 4400", []string{`{"id":"1"}`}, 4400},
		{"an unknown type is 4400", []string{`{"type":"start","id":"1"}`}, 4400},
		{"a type that is no string is 4400", []string{`{"type":1}`}, 4400},
		{"a server's message is 4400", []string{`{"type":"connection_ack"}`}, 4400},
		{"an init payload that is a string is 4400", []string{`{"type":"connection_init","payload":"token"}`}, 4400},
		{"an init payload that is an array is 4400", []string{`{"type":"connection_init","payload":[]}`}, 4400},
		{"a ping payload that is a number is 4400", []string{`{"type":"ping","payload":1}`}, 4400},
		{"subscribe without id is 4400", []string{initAda, `{"type":"subscribe","payload":{"query":"{greeting}"}}`}, 4400},
		{"subscribe with an empty id is 4400", []string{initAda, `{"type":"subscribe","id":"","payload":{"query":"{greeting}"}}`}, 4400},
		{"subscribe with a number for id is 4400", []string{initAda, `{"type":"subscribe","id":1,"payload":{"query":"{greeting}"}}`}, 4400},
		{"subscribe with a long id is 4400", []string{initAda, `{"type":"subscribe","id":"` + long + `","payload":{"query":"{greeting}"}}`}, 4400},
		{"subscribe without payload is 4400", []string{initAda, `{"type":"subscribe","id":"1"}`}, 4400},
		{"subscribe without query is 4400", []string{initAda, `{"type":"subscribe","id":"1","payload":{}}`}, 4400},
		{"a query that is no string is 4400", []string{initAda, `{"type":"subscribe","id":"1","payload":{"query":{}}}`}, 4400},
		{"variables that are no object are 4400", []string{initAda, `{"type":"subscribe","id":"1","payload":{"query":"{greeting}","variables":[]}}`}, 4400},
		{"complete without id is 4400", []string{initAda, `{"type":"complete"}`}, 4400},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := open(t, nil).dial(nil)
			for _, frame := range c.frames {
				client.send(frame)
			}
			client.wantClose(c.code)
		})
	}

	t.Run("a reason that does not fit is cut, and the code still arrives", func(t *testing.T) {
		client := open(t, nil).connect()
		id := strings.Repeat("é", 128)
		client.subscribe(id, "subscription{silence}")
		client.subscribe(id, "subscription{silence}")
		client.wantClose(4409)
	})
	t.Run("a binary frame is 4400", func(t *testing.T) {
		client := open(t, nil).dial(nil)
		if err := client.socket.WriteMessage(websocket.BinaryMessage, []byte(initAda)); err != nil {
			t.Fatal(err)
		}
		client.wantClose(4400)
	})
	t.Run("no connection_init in time is 4408", func(t *testing.T) {
		open(t, func(o *ws.Options) { o.InitTimeout = time.Millisecond }).dial(nil).wantClose(4408)
	})
	t.Run("pings do not stand for connection_init", func(t *testing.T) {
		client := open(t, func(o *ws.Options) { o.InitTimeout = 50 * time.Millisecond }).dial(nil)
		client.send(`{"type":"ping"}`)
		client.want("pong", "")
		client.wantClose(4408)
	})
	t.Run("accounts that are down are 1013", func(t *testing.T) {
		h := open(t, nil)
		h.accounts.SetDown(true)
		client := h.dial(nil)
		client.send(initAda)
		client.wantClose(websocket.CloseTryAgainLater)
	})
	t.Run("an authentication that panics is 1013 and ends nothing else", func(t *testing.T) {
		h := open(t, func(o *ws.Options) { o.Authenticate = nil })
		client := h.dial(nil)
		client.send(initAda)
		client.wantClose(websocket.CloseTryAgainLater)
	})
	t.Run("a message over the limit is 1009", func(t *testing.T) {
		client := open(t, func(o *ws.Options) { o.MaxMessageBytes = 1 << 10 }).dial(nil)
		client.send(`{"type":"ping","payload":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`)
		client.wantClose(websocket.CloseMessageTooBig)
	})
	t.Run("fragments over the limit are 1009", func(t *testing.T) {
		client := open(t, func(o *ws.Options) { o.MaxMessageBytes = 1 << 10 }).dial(nil)
		w, err := client.socket.NextWriter(websocket.TextMessage)
		if err != nil {
			t.Fatal(err)
		}
		for range 100 { // the server may have hung up before the last of them
			if _, err := io.WriteString(w, strings.Repeat("x", 5000)); err != nil {
				break
			}
		}
		client.wantClose(websocket.CloseMessageTooBig)
	})
	t.Run("a frame that breaks the WebSocket protocol is 1002", func(t *testing.T) {
		client := open(t, nil).dial(nil)
		// FIN and a reserved opcode, masked, empty.
		if _, err := client.socket.NetConn().Write([]byte{0x83, 0x80, 0, 0, 0, 0}); err != nil {
			t.Fatal(err)
		}
		client.wantClose(websocket.CloseProtocolError)
	})
	t.Run("a client's close is answered with its own code", func(t *testing.T) {
		client := open(t, nil).connect()
		frame := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
		if err := client.socket.WriteControl(websocket.CloseMessage, frame, time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		client.wantClose(websocket.CloseNormalClosure)
	})
}

func TestUpgrade(t *testing.T) {
	for _, c := range []struct {
		name, origin, protocol string
		status                 int
	}{
		{"no origin", "", ws.Subprotocol, 101},
		{"the server's own origin", "self", ws.Subprotocol, 101},
		{"a configured origin", "https://chat.example.org", ws.Subprotocol, 101},
		{"another origin", "https://evil.example.org", ws.Subprotocol, 403},
		{"a configured host by another scheme", "http://chat.example.org", ws.Subprotocol, 403},
		{"the null origin", "null", ws.Subprotocol, 403},
		{"the legacy graphql-ws subprotocol", "", "graphql-ws", 400},
		{"no subprotocol", "", "", 400},
		{"both subprotocols", "", "graphql-ws, " + ws.Subprotocol, 101},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := open(t, func(o *ws.Options) { o.Origins = []string{"https://chat.example.org"} })
			header := http.Header{}
			if c.origin == "self" {
				c.origin = h.http.URL
			}
			if c.origin != "" {
				header.Set("Origin", c.origin)
			}
			if c.protocol != "" {
				header.Set("Sec-WebSocket-Protocol", c.protocol)
			}
			socket, response, err := websocket.DefaultDialer.Dial(h.url(), header)
			if response == nil || response.StatusCode != c.status {
				t.Fatalf("got %v, %v; want %d", response, err, c.status)
			}
			if err == nil {
				if socket.Subprotocol() != ws.Subprotocol {
					t.Errorf("got subprotocol %q", socket.Subprotocol())
				}
				_ = socket.Close()
				return
			}
			var body struct{ Errors []struct{ Message string } }
			if err := json.NewDecoder(response.Body).Decode(&body); err != nil || len(body.Errors) != 1 {
				t.Errorf("the refusal says nothing: %v", err)
			}
		})
	}
}

func TestInit(t *testing.T) {
	for name, payload := range map[string]string{
		"token":                       `{"token":"cs_token"}`,
		"authorization":               `{"authorization":"Bearer cs_token"}`,
		"Authorization, capitalised":  `{"Authorization":"bearer cs_token"}`,
		"authorization and something": `{"locale":"en","authorization":"Bearer cs_token"}`,
	} {
		t.Run("I2 the actor comes from the payload: "+name, func(t *testing.T) {
			client := open(t, nil).dial(nil)
			client.send(`{"type":"connection_init","payload":` + payload + `}`)
			client.want("connection_ack", "")
			client.subscribe("1", "{viewer{name}}")
			if m := client.want("next", "1"); string(m.Payload) != `{"data":{"viewer":{"name":"Ada"}}}` {
				t.Errorf("got %s", m.Payload)
			}
		})
	}
	t.Run("I2 the actor comes from the upgrade's header", func(t *testing.T) {
		client := open(t, nil).dial(http.Header{"Authorization": {"Bearer cs_token"}})
		client.send(`{"type":"connection_init"}`)
		client.want("connection_ack", "")
	})
	t.Run("the token in the payload goes before the header's", func(t *testing.T) {
		h := open(t, nil)
		h.accounts.Set("cs_grace", actor.Actor{ID: [16]byte{2}, Name: "Grace", Kind: actor.Person})
		client := h.dial(http.Header{"Authorization": {"Bearer cs_token"}})
		client.send(`{"type":"connection_init","payload":{"token":"cs_grace"}}`)
		client.want("connection_ack", "")
		client.subscribe("1", "{viewer{name}}")
		if m := client.want("next", "1"); string(m.Payload) != `{"data":{"viewer":{"name":"Grace"}}}` {
			t.Errorf("got %s", m.Payload)
		}
	})
}
