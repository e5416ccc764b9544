package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/gorilla/websocket"

	"github.com/countersign/countersign/internal/pgtest"
)

// slowModel is a model endpoint that streams what the test types, in one answer, until the
// channel is closed.
func slowModel(t *testing.T) (url string, types chan<- string) {
	t.Helper()
	typed := make(chan string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		chunk := func(delta object, finish any) {
			body, err := json.Marshal(object{"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}}})
			if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(w, "data: %s\n\n", body)
			w.(http.Flusher).Flush()
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			select {
			case text, more := <-typed:
				if !more {
					chunk(object{}, "stop")
					fmt.Fprint(w, "data: [DONE]\n\n")
					return
				}
				chunk(object{"content": text}, nil)
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, typed
}

// socket is a client of graphql-transport-ws with one subscription.
type socket struct {
	t    *testing.T
	conn *websocket.Conn
}

func (s *site) socket(t *testing.T, token, query string, variables object) *socket {
	t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{"graphql-transport-ws"}}
	conn, _, err := dialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+"/graphql", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c := &socket{t, conn}
	c.write(object{"type": "connection_init", "payload": object{"Authorization": "Bearer " + token}})
	c.write(object{"type": "subscribe", "id": "s", "payload": object{"query": query, "variables": variables}})
	return c
}

func (c *socket) write(message object) {
	c.t.Helper()
	if err := c.conn.WriteJSON(message); err != nil {
		c.t.Fatal(err)
	}
}

// next is what comes of the subscription: its data, or how it ended.
func (c *socket) next() (data object, ended string) {
	c.t.Helper()
	for {
		if err := c.conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			c.t.Fatal(err)
		}
		var m struct {
			Type    string
			Payload json.RawMessage
		}
		if err := c.conn.ReadJSON(&m); err != nil {
			return nil, err.Error()
		}
		switch m.Type {
		case "next":
			var a answer
			if err := json.Unmarshal(m.Payload, &a); err != nil {
				c.t.Fatal(err)
			}
			if a.code() != "" {
				return nil, a.code()
			}
			return a.Data, ""
		case "error":
			return nil, string(m.Payload)
		case "complete":
			return nil, "complete"
		case "ping":
			c.write(object{"type": "pong"})
		}
	}
}

const runText = `subscription($run: ID!) { runText(runId: $run) { round offset text } }`

// reads puts the deltas together until they are the text it waits for.
func (c *socket) reads(so *string, want string) {
	c.t.Helper()
	for *so != want {
		data, ended := c.next()
		if ended != "" {
			c.t.Fatalf("it ended with %s after %q, before %q", ended, *so, want)
		}
		delta := data["runText"].(object)
		if length := len(utf16.Encode([]rune(*so))); int(delta["offset"].(float64)) != length || delta["round"] != 1.0 {
			c.t.Fatalf("%v after %d units", delta, length)
		}
		*so += delta["text"].(string)
	}
}

// TestRunText (RULES M1) follows a model's text over WebSockets while it is written, from the
// replica that does not execute the run, too.
func TestRunText(t *testing.T) {
	database := pgtest.Schema(t)
	replicas := []*site{startSite(t, demoAt(database)), startSite(t, demoAt(database))}
	admin := func(query string, variables object, path ...any) any {
		t.Helper()
		return at(t, replicas[0].must(query, variables), path...)
	}
	url, types := slowModel(t)
	provider := admin(`mutation($u: String!) { createProvider(input: {name: "Slow", kind: OPENAI_COMPATIBLE, trustZone: LOCAL, baseUrl: $u}) { provider { id } } }`,
		object{"u": url}, "createProvider", "provider", "id")
	configuration := admin(`mutation($p: ID!) { createConfiguration(input: {name: "Slow", providerId: $p, model: "m"}) { configuration { id } } }`,
		object{"p": provider}, "createConfiguration", "configuration", "id")
	watcher := admin(`mutation { createUser(input: {name: "Watcher", kind: PERSON}) { user { id } } }`, nil, "createUser", "user", "id")
	grant := func(mutation string) {
		t.Helper()
		admin(`mutation($u: ID!) { `+mutation+`(input: {userId: $u, permission: RUN_READ}) { user { id } } }`, object{"u": watcher})
	}
	token := admin(`mutation($u: ID!) { createToken(input: {userId: $u, name: "t"}) { secret } }`, object{"u": watcher}, "createToken", "secret").(string)
	run := admin(`mutation($c: ID!) { startRun(input: {configurationId: $c, prompt: "Go.", background: true}) { run { id } } }`,
		object{"c": configuration}, "startRun", "run", "id")

	t.Run("I2 a run that the viewer may not see is NOT_FOUND", func(t *testing.T) {
		if _, ended := replicas[0].socket(t, token, runText, object{"run": run}).next(); ended != "NOT_FOUND" && !strings.Contains(ended, "NOT_FOUND") {
			t.Errorf("got %s", ended)
		}
	})
	grant("grantPermission")
	first, second := replicas[0].socket(t, testToken, runText, object{"run": run}), replicas[1].socket(t, testToken, runText, object{"run": run})
	allowed := replicas[1].socket(t, token, runText, object{"run": run})
	var one, other, its string
	types <- "Grüße 👋🏽 "
	first.reads(&one, "Grüße 👋🏽 ")
	second.reads(&other, "Grüße 👋🏽 ")
	allowed.reads(&its, "Grüße 👋🏽 ")
	t.Run("a right that is revoked ends the subscription", func(t *testing.T) {
		grant("revokePermission")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { // the text goes on meanwhile, as it does in life
			for ctx.Err() == nil {
				select {
				case types <- ".":
				case <-ctx.Done():
				}
				time.Sleep(20 * time.Millisecond)
			}
		}()
		for {
			if _, ended := allowed.next(); ended != "" {
				if ended == "complete" {
					t.Error("it completed as if the run had ended")
				}
				return
			}
		}
	})
	types <- "🎉 and the end"
	close(types)
	t.Run("M1 the text comes once and in order at every replica, and then the end", func(t *testing.T) {
		var answer string
		for answer == "" {
			answer, _ = at(t, replicas[0].must(`query($id: ID!) { node(id: $id) { ... on Run { answer } } }`, object{"id": run}), "node", "answer").(string)
		}
		if !strings.HasSuffix(answer, "🎉 and the end") {
			t.Fatalf("%q", answer)
		}
		first.reads(&one, answer)
		second.reads(&other, answer)
		for _, c := range []*socket{first, second} {
			if data, ended := c.next(); ended != "complete" {
				t.Errorf("got %v %s", data, ended)
			}
		}
	})
}
