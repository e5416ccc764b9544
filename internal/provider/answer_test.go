package provider

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/agent"
)

func TestAnswersAreRead(t *testing.T) {
	a, b := `"index":0,"id":"a"`, `"index":1,"id":"b"`
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    string
		usage   agent.Usage
	}{
		"M1 text arrives in order": {handler: data(text("Good "), text("morning"), finish("stop")), want: "Good morning"},
		"M1 usage comes after the finish reason": {
			handler: data(text("x"), finish("stop"), `{"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":3}}`),
			want:    "x", usage: agent.Usage{InputTokens: 12, OutputTokens: 3},
		},
		"M1 arguments arrive in fragments": {
			handler: data(calls(piece(a, "get", "")), calls(piece(`"index":0`, "", `{"id":`)), calls(piece(`"index":0`, "", `"7"}`)), finish("tool_calls")),
			want:    `|a get{"id":"7"}`,
		},
		"M1 two calls interleaved by index": {
			handler: data(calls(piece(a, "get", `{"i`), piece(b, "put", `{"j`)), calls(piece(`"index":1`, "", `":2}`)), calls(piece(`"index":0`, "", `":1}`)), finish("tool_calls")),
			want:    `|a get{"i":1}|b put{"j":2}`,
		},
		"M1 equal index and other ids are kept apart": {
			handler: data(calls(piece(a, "get", `{"i":1}`)), calls(piece(`"index":0,"id":"b"`, "get", `{"i":2}`)), finish("tool_calls")),
			want:    `|a get{"i":1}|b get{"i":2}`,
		},
		"M1 equal index with fragments is kept apart": {
			handler: data(calls(piece(a, "get", `{"i`)), calls(piece(`"index":0`, "", `":1}`)), calls(piece(`"index":0,"id":"b"`, "get", `{"i`)), calls(piece(`"index":0`, "", `":2}`)), finish("tool_calls")),
			want:    `|a get{"i":1}|b get{"i":2}`,
		},
		"M1 equal index and interleaved ids are kept apart": {
			handler: data(calls(piece(a, "get", `{"i`)), calls(piece(`"index":0,"id":"b"`, "get", `{"i`)), calls(piece(a, "", `":1}`)), calls(piece(`"index":0,"id":"b"`, "", `":2}`)), finish("tool_calls")),
			want:    `|a get{"i":1}|b get{"i":2}`,
		},
		"M1 equal index without ids is kept apart": {
			handler: data(calls(piece(`"index":0`, "get", `{"i":1}`)), calls(piece(`"index":0`, "get", `{"i":2}`)), finish("tool_calls")),
			want:    `|call_1 get{"i":1}|call_2 get{"i":2}`,
		},
		"M1 equal index without ids in one chunk is kept apart": {
			handler: data(calls(piece(`"index":0`, "list", ""), piece(`"index":0`, "list", "")), finish("tool_calls")),
			want:    `|call_1 list{}|call_2 list{}`,
		},
		"M1 missing index is kept apart by id": {
			handler: data(calls(piece(`"id":"a"`, "get", `{"i`)), calls(piece("", "", `":1}`)), calls(piece(`"id":"b"`, "get", `{"i":2}`)), finish("tool_calls")),
			want:    `|a get{"i":1}|b get{"i":2}`,
		},
		"M1 missing index and id are kept apart by name": {
			handler: data(calls(piece("", "get", `{"i":1}`), piece(`"index":null,"id":null`, "put", `{"j":2}`)), finish("tool_calls")),
			want:    `|call_1 get{"i":1}|call_2 put{"j":2}`,
		},
		"M1 a name repeated with every fragment is one call": {
			handler: data(calls(piece(a, "get", `{"i`)), calls(piece(a, "get", `":1}`)), finish("tool_calls")),
			want:    `|a get{"i":1}`,
		},
		"M1 a new id with every fragment is one call": {
			handler: data(calls(piece(a, "get", `{"i`)), calls(piece(`"index":0,"id":"z"`, "", `":1}`)), finish("tool_calls")),
			want:    `|a get{"i":1}`,
		},
		"M1 an id and a name that come late belong to their call": {
			handler: data(calls(piece(`"index":0`, "", "")), calls(piece(`"index":0,"id":"a"`, "", `{"i`)), calls(piece(`"index":0`, "get", `":1}`)), finish("tool_calls")),
			want:    `|a get{"i":1}`,
		},
		"M1 a call sent again as a whole is one call": {
			handler: data(calls(piece(a, "get", `{"i":1}`)), calls(piece(a, "get", `{"i":1}`)), finish("tool_calls")),
			want:    `|a get{"i":1}`,
		},
		"M1 an empty entry is no call": {
			handler: data(calls(piece(a, "get", `{}`)), calls(`{"index":1}`), finish("tool_calls")),
			want:    `|a get{}`,
		},
		"M1 a repeated id is replaced": {
			handler: data(calls(piece(`"index":0,"id":"x"`, "get", `{}`), piece(`"index":1,"id":"x"`, "put", `{}`)), finish("tool_calls")),
			want:    `|x get{}|call_1 put{}`,
		},
		"M1 a made id is none that the provider gives": {
			handler: data(calls(piece(`"index":0`, "get", `{}`), piece(`"index":1,"id":"call_1"`, "put", `{}`)), finish("tool_calls")),
			want:    `|call_2 get{}|call_1 put{}`,
		},
		"M1 an endless id is replaced": {
			handler: data(calls(piece(`"index":0,"id":"`+strings.Repeat("i", 300)+`"`, "get", `{}`)), finish("tool_calls")),
			want:    `|call_1 get{}`,
		},
		"M1 no arguments and null are an empty object": {
			handler: data(calls(piece(a, "get", " "), piece(b, "put", "null")), finish("tool_calls")),
			want:    `|a get{}|b put{}`,
		},
		"M1 arguments sent as an object are read": {
			handler: data(calls(`{"index":0,"id":"a","function":{"name":"get","arguments":{"i":1}}}`), finish("tool_calls")),
			want:    `|a get{"i":1}`,
		},
		"M1 arguments that are no JSON leave as a string, which no schema takes": {
			handler: data(calls(piece(a, "get", `{"i":`)), finish("tool_calls")),
			want:    `|a get"{\"i\":"`,
		},
		"M1 arguments that are no object leave as a string": {
			handler: data(calls(piece(a, "get", `[1]`)), finish("tool_calls")),
			want:    `|a get"[1]"`,
		},
		"M1 two objects in one are no object": {
			handler: data(calls(piece(a, "get", `{}{}`)), finish("tool_calls")),
			want:    `|a get"{}{}"`,
		},
		"M1 CRLF, comments, other fields and a byte order mark": {
			handler: raw("\uFEFF: hi\r\n\r\nretry: 5\r\nid: 3\r\ndata:" + text("a") + "\r\n\r\n: still here\r\ndata: " + finish("stop") + "\r\n\r\ndata: [DONE]\r\n\r\n"),
			want:    "a",
		},
		"M1 lines that end in CR": {handler: raw("data: " + text("a") + "\r\rdata: " + finish("stop") + "\r\r"), want: "a"},
		"M1 an event of several data lines": {
			handler: raw("data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"a\"}}]}\n\ndata: " + finish("stop") + "\n\n"),
			want:    "a",
		},
		"M1 no blank line at the end":                     {handler: raw("data: " + text("a") + "\n\ndata: " + finish("stop")), want: "a"},
		"M1 a stream that breaks after its finish reason": {handler: torn(text("a"), finish("stop")), want: "a"},
		"M1 a character split across writes":              {handler: slowly("data: " + text("naïve — 😀") + "\n\ndata: " + finish("stop") + "\n\n"), want: "naïve — 😀"},
		"M1 content as parts":                             {handler: data(chunk(`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`), finish("stop")), want: "ab"},
		"M1 a refusal is text":                            {handler: data(chunk(`{"content":null,"refusal":"I will not."}`), finish("stop")), want: "I will not."},
		"M1 other choices are not ours":                   {handler: data(text("a"), `{"choices":[{"index":1,"delta":{"content":"b"}}]}`, finish("stop")), want: "a"},
		"M1 an answer cut by its token limit is one":      {handler: data(text("a"), finish("length")), want: "a"},
		"M1 an answer of nothing is one":                  {handler: data(finish("stop")), want: ""},
		"M1 an answer that is not streamed": {
			handler: status(200, `{"choices":[{"index":0,"message":{"role":"assistant","content":"a","tool_calls":[`+piece(`"id":"a"`, "get", "{}")+`,`+piece(`"id":"b"`, "put", "{}")+`]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`, "Content-Type", "application/json"),
			want:    `a|a get{}|b put{}`, usage: agent.Usage{InputTokens: 1, OutputTokens: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			turn, streamed, err := ask(t, newFakeServer(t, c.handler), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if got := written(turn); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if streamed != turn.Text {
				t.Errorf("streamed %q, answered %q", streamed, turn.Text)
			}
			if turn.Usage != c.usage {
				t.Errorf("usage %+v, want %+v", turn.Usage, c.usage)
			}
			for _, call := range turn.Calls {
				if !json.Valid(call.Arguments) {
					t.Errorf("arguments of %s are not JSON: %s", call.Tool, call.Arguments)
				}
			}
		})
	}
}

// torn writes events and then tears the connection down.
func torn(chunks ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		raw("data: "+strings.Join(chunks, "\n\ndata: ")+"\n\n")(w, r)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// slowly sends a stream byte by byte.
func slowly(stream string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, b := range []byte(stream) {
			_, _ = w.Write([]byte{b})
			w.(http.Flusher).Flush()
		}
	}
}

func TestFaultsAreErrors(t *testing.T) {
	const page = "<html><head><title>502 Bad\nGateway</title></head><body>nginx</body></html>"
	for name, c := range map[string]struct {
		handler   http.HandlerFunc
		limits    Limits
		says      string
		status    int
		retryable bool
		requests  int // 1 unless given
	}{
		"M1 a stream cut before its finish reason":         {handler: raw("data: " + text("a") + "\n\n"), says: "cut its answer off", retryable: true},
		"M1 a stream cut inside an event":                  {handler: raw("data: " + text("a") + "\n\ndata: {\"cho"), says: "cut its answer off", retryable: true},
		"M1 a stream cut inside arguments":                 {handler: raw("data: " + calls(piece(`"index":0,"id":"a"`, "delete", `{}`)) + "\n\n"), says: "cut its answer off", retryable: true},
		"M1 a connection torn down":                        {handler: torn(text("a")), says: "cut its answer off", retryable: true},
		"M1 an end without a finish reason":                {handler: data(text("a")), says: "cut its answer off", retryable: true},
		"M1 a response without a byte":                     {handler: raw(""), says: "cut its answer off", retryable: true, requests: 4},
		"M1 an error in the stream as an object":           {handler: data(text("a"), `{"error":{"message":"overloaded","type":"server_error"}}`), says: "reported an error: overloaded", retryable: true},
		"M1 an error in the stream with a status":          {handler: data(text("a"), `{"error":{"message":"upstream","code":502},"choices":[]}`), says: "upstream", status: 502, retryable: true},
		"M1 an error in the stream as a string":            {handler: data(`{"error":"model crashed"}`), says: "model crashed", retryable: true},
		"M1 an error in the stream that is final":          {handler: data(`{"error":{"message":"too long","type":"invalid_request_error","code":400}}`), says: "too long", status: 400},
		"M1 an error in the stream as an event":            {handler: raw("event: error\ndata: {\"message\":\"gone\"}\n\n"), says: "gone", retryable: true},
		"M1 an error object in the stream":                 {handler: data(`{"object":"error","message":"no memory","code":500}`), says: "no memory", status: 500, retryable: true},
		"M1 an error after the finish reason":              {handler: data(text("a"), finish("stop"), `{"error":"late"}`), says: "late", retryable: true},
		"M1 a finish reason error":                         {handler: data(text("a"), finish("error")), says: "broke its answer off", retryable: true},
		"M1 a withheld answer":                             {handler: data(text("a"), finish("content_filter")), says: "content filter"},
		"M1 tokens used up before an answer":               {handler: data(finish("length")), says: "used up its tokens"},
		"M1 a call without a tool":                         {handler: data(calls(piece(`"index":0,"id":"a"`, "", `{}`)), finish("tool_calls")), says: "without naming a tool", retryable: true},
		"M1 something else than JSON in the stream":        {handler: data(text("a"), `oops`), says: "no answer: oops", retryable: true},
		"M1 an error answered with 200":                    {handler: status(200, `{"error":{"message":"no such model"}}`), says: "no such model", retryable: true},
		"M1 a page answered with 200":                      {handler: status(200, page), says: "502 Bad Gateway", retryable: true},
		"M1 other JSON answered with 200":                  {handler: status(200, `{"status":"ok"}`), says: `{"status":"ok"}`, retryable: true},
		"M1 an endless line":                               {handler: raw("data: " + strings.Repeat("x", 200)), limits: Limits{Line: 100}, says: "a line of more than 100 bytes"},
		"M1 an endless event of short lines":               {handler: raw(strings.Repeat("data: xxxxxxxxx\n", 50)), limits: Limits{Line: 100}, says: "a line of more than 100 bytes"},
		"M1 an endless response":                           {handler: raw(strings.Repeat(": keep-alive\n", 1000)), limits: Limits{Response: 5000}, says: "more than the 5000 bytes a response"},
		"M1 an endless document":                           {handler: status(200, "{"+strings.Repeat(" ", 9000)), limits: Limits{Response: 5000}, says: "more than the 5000 bytes a response"},
		"M1 endless text":                                  {handler: data(text("12345"), text("67890"), finish("stop")), limits: Limits{Answer: 8}, says: "more than the 8 bytes an answer"},
		"M1 endless arguments":                             {handler: data(calls(piece(`"index":0,"id":"a"`, "get", `{"a":"123456"}`)), finish("stop")), limits: Limits{Answer: 8}, says: "more than the 8 bytes an answer"},
		"M1 endless calls":                                 {handler: data(calls(piece(`"id":"a"`, "get", `{}`), piece(`"id":"b"`, "get", `{}`), piece(`"id":"c"`, "get", `{}`))), limits: Limits{Calls: 2}, says: "more than the 2 calls"},
		"M1 endless calls, one a chunk":                    {handler: data(calls(piece(`"id":"a"`, "get", `{}`)), calls(piece(`"id":"b"`, "get", `{}`)), calls(piece(`"id":"c"`, "get", `{}`))), limits: Limits{Calls: 2}, says: "more than the 2 calls"},
		"M1 401 does not repeat what the body says":        {handler: status(401, `{"error":{"message":"Incorrect API key provided: sk-secr***6789"}}`), says: `provider "lab" refused its API key (401)`, status: 401},
		"M1 a body that repeats the key":                   {handler: status(400, `{"error":"bad header Bearer `+key+`"}`), says: "[key]", status: 400},
		"M1 a key where the message is cut":                {handler: status(400, strings.Repeat("x", 350)+key), says: "xxx[key", status: 400},
		"M1 403":                                           {handler: status(403, `{"error":{"message":"not in your region"}}`), says: "not in your region", status: 403},
		"M1 404 names the likely cause":                    {handler: status(404, "404 page not found\n"), says: "/v1 missing?): 404 page not found", status: 404},
		"M1 400 with the error as a string":                {handler: status(400, `{"error":"tools are not supported"}`), says: "answered 400 Bad Request: tools are not supported", status: 400},
		"M1 400 with the error in a list":                  {handler: status(400, `[{"error":{"code":400,"message":"no such field","status":"INVALID_ARGUMENT"}}]`), says: "no such field", status: 400},
		"M1 422 with a detail":                             {handler: status(422, `{"detail":[{"loc":["body"],"msg":"field required"}]}`), says: "field required", status: 422},
		"M1 a status without a body":                       {handler: status(400, ""), says: "(no explanation)", status: 400},
		"M1 a body of control characters is made a line":   {handler: status(400, "a\x00\x1b[31m\nb\xff"), says: "a[31m b", status: 400},
		"M1 a long body is cut":                            {handler: status(400, strings.Repeat("é", 5000)), says: strings.Repeat("é", 300), status: 400},
		"M1 a page is read by its title":                   {handler: status(502, page), says: "502 Bad Gateway", status: 502, retryable: true, requests: 4},
		"M1 501 is not asked again":                        {handler: status(501, "no"), says: "501", status: 501},
		"M1 429 is asked again and may succeed later":      {handler: status(429, `{"error":{"message":"slow down"}}`), says: "limits its rate (429): slow down", status: 429, retryable: true, requests: 4},
		"M1 429 for a used up quota is final":              {handler: status(429, `{"error":{"message":"pay","type":"insufficient_quota","code":"insufficient_quota"}}`), says: "pay", status: 429},
		"M1 a Retry-After too long is not waited for":      {handler: status(429, "later", "Retry-After", "120"), says: "asks to wait 2m0s", status: 429, retryable: true},
		"M1 a Retry-After date too late is not waited for": {handler: status(503, "later", "Retry-After", "Wed, 04 Mar 2026 05:07:07 GMT"), says: "asks to wait 1m0s", status: 503, retryable: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := newFakeServer(t, c.handler)
			turn, _, err := ask(t, server, c.limits)
			told := providerError(t, err)
			if !strings.Contains(told.Message, c.says) || !strings.HasPrefix(told.Message, `provider "lab" `) {
				t.Errorf("message %q, want %q in it", told.Message, c.says)
			}
			if told.Status != c.status || told.Retryable != c.retryable {
				t.Errorf("status %d retryable %v, want %d %v", told.Status, told.Retryable, c.status, c.retryable)
			}
			if turn.Text != "" || turn.Calls != nil {
				t.Errorf("a partial answer came with the error: %+v", turn)
			}
			if want := max(c.requests, 1); server.count() != want {
				t.Errorf("%d requests, want %d", server.count(), want)
			}
		})
	}
}

func TestTextIsStreamedAsItArrives(t *testing.T) {
	t.Run("M1 a delta is passed on before the next is sent", func(t *testing.T) {
		seen := make(chan struct{})
		server := newFakeServer(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "data: "+text("one ")+"\n\n")
			w.(http.Flusher).Flush()
			<-seen
			_, _ = io.WriteString(w, "data: "+text("two")+"\n\ndata: "+finish("stop")+"\n\n")
		})
		models, _ := testModels(t, Limits{})
		var deltas []string
		_, err := open(t, models, compatible(server.URL)).Turn(t.Context(), hello(), func(delta string) {
			if deltas = append(deltas, delta); len(deltas) == 1 {
				close(seen)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(deltas, []string{"one ", "two"}) {
			t.Errorf("deltas %q", deltas)
		}
	})
	t.Run("M1 nobody needs to listen", func(t *testing.T) {
		models, _ := testModels(t, Limits{})
		server := newFakeServer(t, data(text("a"), finish("stop")))
		turn, err := open(t, models, compatible(server.URL)).Turn(t.Context(), hello(), nil)
		if err != nil || turn.Text != "a" {
			t.Errorf("%+v, %v", turn, err)
		}
	})
}

// FuzzStream: whatever a provider sends, the client answers or fails, and what
// leaves it keeps the promises of agent.Turn.
func FuzzStream(f *testing.F) {
	f.Add("data: " + text("a") + "\n\ndata: " + finish("stop") + "\n\n")
	f.Add("data: " + calls(piece(`"index":0`, "get", `{`), piece("", "", `}`)) + "\r\n\r\ndata:[DONE]")
	f.Add(`{"choices":[{"message":{"content":["x"]}}]}`)
	f.Add("event: error\ndata: [[[{\"error\":{}}]]]\n\n")
	f.Add("event: message_start\ndata: " + began + "\n\ndata: " + use("0", "a", "get") + "\n\ndata: " + stopped("tool_use") + "\n\n")
	f.Fuzz(func(t *testing.T, stream string) {
		for _, format := range []func(*answer, []byte) *failure{(*answer).addCompletion, (*answer).addMessageEvent} {
			readsOrFails(t, stream, format)
		}
	})
}

func readsOrFails(t *testing.T, stream string, format func(*answer, []byte) *failure) {
	watch := newWatch(t.Context(), Limits{}.withDefaults())
	defer watch.stop()
	a := &answer{limits: Limits{}.withDefaults(), add: format}
	if a.read(watch.over(io.NopCloser(strings.NewReader(stream)))) != nil {
		return
	}
	turn, failed := a.turn()
	if failed != nil {
		return
	}
	ids := map[string]bool{}
	for _, call := range turn.Calls {
		if call.ID == "" || ids[call.ID] || call.Tool == "" || !json.Valid(call.Arguments) {
			t.Fatalf("bad call %+v", call)
		}
		ids[call.ID] = true
	}
}
