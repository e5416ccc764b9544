package server_test

import (
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/server"
)

func TestPost(t *testing.T) {
	h := open(t, nil)
	t.Run("I2 the resolvers see the actor of the token", func(t *testing.T) {
		body := wantStatus(t, h.ask("{viewer{name}}"), 200)
		if body != `{"data":{"viewer":{"name":"Ada"}}}` {
			t.Errorf("got %s", body)
		}
	})
	for _, c := range []struct{ name, accept, want string }{
		{"nothing", "", "application/json; charset=utf-8"},
		{"anything", "*/*", "application/json; charset=utf-8"},
		{"the newer type", "application/graphql-response+json", "application/graphql-response+json; charset=utf-8"},
		{"both, the newer first", "application/graphql-response+json, application/json;q=0.9", "application/graphql-response+json; charset=utf-8"},
		{"both, the older preferred", "application/graphql-response+json;q=0.5, application/json", "application/json; charset=utf-8"},
		{"what urql sends", "application/graphql-response+json, application/graphql+json, application/json, text/event-stream, multipart/mixed", "application/graphql-response+json; charset=utf-8"},
		{"a stream or JSON", "text/event-stream, application/json", "application/json; charset=utf-8"},
		{"only a stream", "text/event-stream", "text/event-stream; charset=utf-8"},
		{"all but the older type", "application/json;q=0, */*", ""},
		{"a page", "text/html", ""},
		{"nonsense", ";;;,,", ""},
		{"a weight that is none", "application/json;q=7", ""},
	} {
		t.Run("a client that accepts "+c.name, func(t *testing.T) {
			response := h.ask("{greeting}", "Accept: "+c.accept)
			if c.want == "" {
				wantCode(t, response, 406, "BAD_USER_INPUT")
				return
			}
			wantStatus(t, response, 200)
			if got := response.Header.Get("Content-Type"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	for name, c := range map[string]struct {
		body   string
		header []string
		status int
	}{
		"no content type":           {`{"query":"{greeting}"}`, []string{asAda}, 415},
		"a form":                    {`query={greeting}`, []string{asAda, "Content-Type: application/x-www-form-urlencoded"}, 415},
		"another charset":           {`{"query":"{greeting}"}`, []string{asAda, "Content-Type: application/json; charset=utf-16"}, 415},
		"no body":                   {``, []string{asAda, json_}, 400},
		"a batch":                   {`[{"query":"{greeting}"}]`, []string{asAda, json_}, 400},
		"two values":                {`{"query":"{greeting}"} {}`, []string{asAda, json_}, 400},
		"a name in another case":    {`{"QUERY":"{greeting}"}`, []string{asAda, json_}, 400},
		"nesting without end":       {strings.Repeat(`{"variables":`, 20000), []string{asAda, json_}, 400},
		"variables that are a list": {`{"query":"{greeting}","variables":[]}`, []string{asAda, json_}, 400},
	} {
		t.Run("a request with "+name+" is refused", func(t *testing.T) {
			wantCode(t, h.do(request{"POST", "/graphql", c.body, c.header}), c.status, "BAD_USER_INPUT")
		})
	}
	t.Run("a subscription without a stream is refused and says how to subscribe", func(t *testing.T) {
		body := wantStatus(t, h.ask("subscription{ticks}", newType), 400)
		if !strings.Contains(body, "text/event-stream") || !strings.Contains(body, "graphql-transport-ws") || strings.Contains(body, `"data"`) {
			t.Errorf("got %s", body)
		}
	})
	t.Run("@defer is refused", func(t *testing.T) {
		for _, query := range []string{"{...@defer{greeting}}", "{...F@defer} fragment F on Query{greeting}", "{...F} fragment F on Query{viewer{...@defer{name}}}"} {
			wantCode(t, h.ask(query, newType), 400, "BAD_USER_INPUT")
		}
	})
	t.Run("a resolver's error keeps its cause to itself", func(t *testing.T) {
		body := wantStatus(t, h.ask("{fail}", newType), 200)
		if strings.Contains(body, "hunter2") || !strings.Contains(body, `"data":{"fail":null}`) {
			t.Errorf("got %s", body)
		}
	})
	t.Run("other methods are refused and the right ones named", func(t *testing.T) {
		for _, method := range []string{"PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"} {
			response := h.do(request{method: method, path: "/graphql", header: []string{asAda}})
			if wantStatus(t, response, 405); response.Header.Get("Allow") != "GET, POST" {
				t.Errorf("%s: Allow is %q", method, response.Header.Get("Allow"))
			}
		}
	})
}

func TestGet(t *testing.T) {
	h := open(t, nil)
	get := func(query string, more string) request {
		return request{method: "GET", path: "/graphql?query=" + url.QueryEscape(query) + more, header: []string{asAda, newType}}
	}
	t.Run("a query is answered, with variables", func(t *testing.T) {
		body := wantStatus(t, h.do(get("query A($n:String){greeting(name:$n)} query B{viewer{name}}", "&operationName=A&variables="+url.QueryEscape(`{"n":"you"}`))), 200)
		if body != `{"data":{"greeting":"Hello, you!"}}` {
			t.Errorf("got %s", body)
		}
	})
	t.Run("a mutation never runs, in no content type", func(t *testing.T) {
		for _, accept := range []string{newType, oldType} {
			q := get("mutation{count}", "")
			q.header = []string{asAda, accept}
			wantCode(t, h.do(q), 405, "BAD_USER_INPUT")
		}
		wantCode(t, h.do(get("query A{greeting} mutation B{count}", "&operationName=B")), 405, "BAD_USER_INPUT")
		if n := h.schema.Counted.Load(); n != 0 {
			t.Errorf("it ran %d times", n)
		}
	})
	t.Run("a subscription is refused", func(t *testing.T) {
		wantCode(t, h.do(get("subscription{ticks}", "")), 405, "BAD_USER_INPUT")
	})
	t.Run("parameters that cannot be read are refused", func(t *testing.T) {
		wantCode(t, h.do(request{method: "GET", path: "/graphql", header: []string{asAda}}), 400, "BAD_USER_INPUT")
		wantCode(t, h.do(get("{greeting}", "&variables=7")), 400, "BAD_USER_INPUT")
		wantCode(t, h.do(get("{greeting}", "&extensions={")), 400, "BAD_USER_INPUT")
	})
}

func TestLimits(t *testing.T) {
	t.Run("a body over the limit is 413", func(t *testing.T) {
		h := open(t, nil)
		fits := `{"query":"{greeting}","extensions":{"x":"` + strings.Repeat("x", 1<<20-44) + `"}}`
		wantStatus(t, h.do(request{"POST", "/graphql", fits, []string{asAda, json_}}), 200)
		wantCode(t, h.do(request{"POST", "/graphql", fits + "     ", []string{asAda, json_}}), 413, "BAD_USER_INPUT")
	})
	t.Run("a body that does not arrive is 408", func(t *testing.T) {
		h := open(t, func(o *server.Options) { o.BodyTimeout = 20 * time.Millisecond })
		s := httptest.NewServer(h.server)
		defer s.Close()
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = conn.Write([]byte("POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer cs_token\r\nContent-Length: 99\r\n\r\n{"))
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		answer, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") {
			t.Errorf("got %q, %v", answer, err)
		}
	})
	t.Run("a long answer outlives the time for the body", func(t *testing.T) {
		h := open(t, func(o *server.Options) {
			o.BodyTimeout, o.OperationTimeout = 20*time.Millisecond, 200*time.Millisecond
		})
		s := httptest.NewServer(h.server)
		defer s.Close()
		if body := wantStatus(t, post(t, s.URL, "{slow}", oldType), 200); !strings.Contains(body, "too late") {
			t.Errorf("got %s", body)
		}
	})
	t.Run("a document of too many tokens is refused before it is validated", func(t *testing.T) {
		h := open(t, nil)
		body := wantStatus(t, h.ask("{"+strings.Repeat("greeting ", 12_000)+"}", newType), 400)
		if !strings.Contains(body, "token limit") {
			t.Errorf("got %.200s", body)
		}
	})
	t.Run("an operation that is too complex is refused", func(t *testing.T) {
		h := open(t, func(o *server.Options) { o.MaxComplexity = 100 })
		wantStatus(t, h.ask("{viewer{friends(first:50){name}}}", newType), 200)
		wantCode(t, h.ask("{viewer{friends(first:50){friends(first:50){name}}}}", newType), 400, "BAD_USER_INPUT")
	})
	t.Run("fragments that spread each other twice, thirty deep, are refused and not walked", func(t *testing.T) {
		var query strings.Builder
		query.WriteString("{...F0}")
		for i := range 30 {
			fmt.Fprintf(&query, " fragment F%d on Query{...F%d ...F%d}", i, i+1, i+1)
		}
		query.WriteString(" fragment F30 on Query{__typename}")
		wantCode(t, open(t, nil).ask(query.String(), newType), 400, "BAD_USER_INPUT")
	})
	t.Run("a schema that is hidden is hidden by GET and POST, and suggests nothing", func(t *testing.T) {
		h := open(t, func(o *server.Options) { o.HideSchema = true })
		for _, response := range []string{
			wantStatus(t, h.ask("{__schema{types{name}}}"), 200),
			wantStatus(t, h.do(request{method: "GET", path: "/graphql?query=" + url.QueryEscape(`{__type(name:"Viewer"){name}}`)}), 200),
		} {
			if !strings.Contains(response, "introspection disabled") || strings.Contains(response, "Viewer") {
				t.Errorf("got %s", response)
			}
		}
		if body := wantStatus(t, h.ask("{greetin}"), 200); strings.Contains(body, "greeting") {
			t.Errorf("it suggests: %s", body)
		}
		if body := wantStatus(t, open(t, nil).ask("{greetin}"), 200); !strings.Contains(body, "greeting") {
			t.Errorf("where it is not hidden it should suggest: %s", body)
		}
	})
	t.Run("a panic is INTERNAL and logged once", func(t *testing.T) {
		h := open(t, func(o *server.Options) { o.Ready = nil })
		wantCode(t, h.ask("{boom}"), 200, "INTERNAL")
		if n := strings.Count(h.log.String(), "panic"); n != 1 {
			t.Errorf("logged %d times: %s", n, h.log)
		}
	})
	t.Run("a panic outside the resolvers is INTERNAL and logged once", func(t *testing.T) {
		h := open(t, nil)
		h.server = server.New(server.Options{
			Schema: h.schema, Authenticator: panicking{}, ErrorPresenter: h.present, Recover: h.recoverPanic,
		})
		wantCode(t, h.ask("{greeting}"), 500, "INTERNAL")
		if n := strings.Count(h.log.String(), "panic"); n != 1 {
			t.Errorf("logged %d times: %s", n, h.log)
		}
	})
}

func TestNobody(t *testing.T) {
	h := open(t, nil)
	nobody := func(query string) request {
		return request{"POST", "/graphql", `{"query":"` + query + `"}`, []string{json_, newType}}
	}
	t.Run("reads the schema and nothing else", func(t *testing.T) {
		wantStatus(t, h.do(nobody("{__typename __schema{queryType{name}} ...F ...{__typename}} fragment F on Query{__typename}")), 200)
		for _, query := range []string{
			"{viewer{name}}", "{__typename greeting}", "{...{greeting}}", "{...F} fragment F on Query{__typename ...G} fragment G on Query{x:greeting}",
			"mutation{count}", "query A{__typename greeting}",
		} {
			response := h.do(nobody(query))
			wantCode(t, response, 401, "UNAUTHENTICATED")
			if response.Header.Get("WWW-Authenticate") == "" {
				t.Error("the answer names no scheme")
			}
		}
	})
	t.Run("a subscription to the schema is no way in", func(t *testing.T) {
		for _, query := range []string{"subscription{__typename}", "subscription{...F} fragment F on Subscription{__typename}", "subscription{...{__typename}}"} {
			wantCode(t, h.do(nobody(query)), 400, "GRAPHQL_VALIDATION_FAILED")
		}
	})
	for name, header := range map[string]string{
		"a wrong token":  "Authorization: Bearer cs_wrong",
		"another scheme": "Authorization: Basic abc",
		"no token":       "Authorization: Bearer ",
		"a dead session": "Cookie: countersign_session=cs_gone",
	} {
		t.Run("a request with "+name+" is refused, and not taken for nobody's", func(t *testing.T) {
			wantCode(t, h.do(request{"POST", "/graphql", `{"query":"{__typename}"}`, []string{json_, header, csrf}}), 401, "UNAUTHENTICATED")
		})
	}
	t.Run("accounts that are down are UNAVAILABLE", func(t *testing.T) {
		h := open(t, nil)
		h.accounts.SetDown(true)
		wantCode(t, h.ask("{greeting}"), 503, "UNAVAILABLE")
	})
}
