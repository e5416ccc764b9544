package provider

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
)

func claude(base string) library.Provider {
	return library.Provider{
		ID: uuid.MustParse("0190f000-0000-7000-8000-000000000002"), Name: "lab", Kind: library.Anthropic, BaseURL: base, APIKey: key,
	}
}

// events writes each as an event of its type, as the Messages API does.
func messageEvents(events ...string) http.HandlerFunc {
	var stream strings.Builder
	for _, e := range events {
		var typed struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal([]byte(e), &typed)
		stream.WriteString("event: " + typed.Type + "\ndata: " + e + "\n\n")
	}
	return raw(stream.String())
}

const (
	began     = `{"type":"message_start","message":{"type":"message","role":"assistant","content":[],"usage":{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":1}}}`
	textBlock = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	ended     = `{"type":"message_stop"}`
	ping      = `{"type":"ping"}`
)

func said(text string) string {
	return `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":` + string(quoted(text)) + `}}`
}

func use(index, id, name string) string {
	return `{"type":"content_block_start","index":` + index + `,"content_block":{"type":"tool_use","id":"` + id + `","name":"` + name + `","input":{}}}`
}

func input(index, part string) string {
	return `{"type":"content_block_delta","index":` + index + `,"delta":{"type":"input_json_delta","partial_json":` + string(quoted(part)) + `}}`
}

func stopped(reason string) string {
	return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null},"usage":{"output_tokens":7}}`
}

func TestAnthropicLength(t *testing.T) {
	t.Run("B1 the length that is reported is the one that is sent when nobody names one", func(t *testing.T) {
		server := newFakeServer(t, messageEvents(began, textBlock, said("a"), stopped("end_turn"), ended))
		models, _ := testModels(t, Limits{})
		model := open(t, models, claude(server.URL))
		usual := model.(agent.Capped).UsualTokens()
		for n, c := range []struct{ asked, sent int }{{0, usual}, {77, 77}} {
			request := hello()
			request.MaxTokens = c.asked
			if _, err := model.Turn(t.Context(), request, nil); err != nil {
				t.Fatal(err)
			}
			if got := server.body(t, n)["max_tokens"]; got != float64(c.sent) {
				t.Errorf("asked for %d: %v was sent, not %d", c.asked, got, c.sent)
			}
		}
	})
}

func TestAnthropicAnswers(t *testing.T) {
	usage := agent.Usage{InputTokens: 15, OutputTokens: 7}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    string
		usage   agent.Usage
	}{
		"M1 text arrives in order": {messageEvents(began, textBlock, ping, said("Good "), said("morning"), stopped("end_turn"), ended), "Good morning", usage},
		"M1 calls arrive beside text, in pieces, interleaved": {
			messageEvents(began, textBlock, said("Let me look."), use("1", "a", "get"), use("2", "b", "put"), input("1", `{"i`), input("2", `{"j":2}`), input("1", `":1}`), stopped("tool_use"), ended),
			`Let me look.|a get{"i":1}|b put{"j":2}`, usage,
		},
		"M1 two calls of one tool are two":           {messageEvents(began, use("0", "a", "get"), use("1", "b", "get"), stopped("tool_use"), ended), `|a get{}|b get{}`, usage},
		"M1 a call without input is an empty object": {messageEvents(began, use("0", "a", "list"), input("0", ""), stopped("tool_use"), ended), `|a list{}`, usage},
		"M1 thinking and what is not known are passed over": {
			messageEvents(began, `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`, `{"type":"new_kind","data":1}`,
				`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`,
				`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Yes."}}`, stopped("end_turn"), ended),
			"Yes.", usage,
		},
		"M1 an end without message_stop is an end": {messageEvents(began, textBlock, said("x"), stopped("end_turn")), "x", usage},
		"M1 an answer that is not streamed": {
			status(200, `{"type":"message","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"get","input":{"i":1}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":4}}`),
			`a|t get{"i":1}`,
			agent.Usage{InputTokens: 3, OutputTokens: 4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			models, _ := testModels(t, Limits{})
			var streamed strings.Builder
			turn, err := open(t, models, claude(newFakeServer(t, c.handler).URL)).Turn(t.Context(), hello(), func(delta string) { streamed.WriteString(delta) })
			if err != nil {
				t.Fatal(err)
			}
			if got := written(turn); got != c.want || streamed.String() != turn.Text || turn.Usage != c.usage {
				t.Errorf("got  %s %+v, streamed %q\nwant %s %+v", got, turn.Usage, streamed.String(), c.want, c.usage)
			}
		})
	}
}

func TestAnthropicFaults(t *testing.T) {
	for name, c := range map[string]struct {
		handler   http.HandlerFunc
		says      string
		status    int
		retryable bool
		requests  int // 1 unless given
	}{
		"M1 a stream cut before its stop reason":     {handler: messageEvents(began, textBlock, said("a")), says: "cut its answer off", retryable: true},
		"M1 a stream cut inside a call":              {handler: messageEvents(began, use("0", "a", "delete"), input("0", `{}`)), says: "cut its answer off", retryable: true},
		"M1 a connection torn down":                  {handler: torn(began, said("a")), says: "cut its answer off", retryable: true},
		"M1 a response without a byte":               {handler: raw(""), says: "cut its answer off", retryable: true, requests: 4},
		"M1 an error in the stream":                  {handler: messageEvents(began, said("a"), `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), says: "reported an error: Overloaded", retryable: true},
		"M1 an error in the stream that is final":    {handler: messageEvents(began, `{"type":"error","error":{"type":"invalid_request_error","message":"too long"}}`), says: "too long"},
		"M1 an error in the stream without its kind": {handler: raw("data: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"gone\"}}\n\n"), says: "gone", retryable: true},
		"M1 a refusal":                               {handler: messageEvents(began, textBlock, said("a"), stopped("refusal"), ended), says: "withheld its answer"},
		"M1 tokens used up before an answer":         {handler: messageEvents(began, stopped("max_tokens"), ended), says: "used up its tokens"},
		"M1 a call without a tool":                   {handler: messageEvents(began, use("0", "a", ""), input("0", `{}`), stopped("tool_use")), says: "without naming a tool", retryable: true},
		"M1 something else than JSON in the stream":  {handler: raw("data: oops\n\n"), says: "no answer: oops", retryable: true},
		"M1 other JSON answered with 200":            {handler: status(200, `{"status":"ok"}`), says: `{"status":"ok"}`, retryable: true},
		"M1 529 is asked again":                      {handler: status(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), says: "Overloaded", status: 529, retryable: true, requests: 4},
		"M1 401 does not repeat what the body says":  {handler: status(401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key `+key+`"}}`), says: "refused its API key (401)", status: 401},
		"M1 400 with the key in its body":            {handler: status(400, `{"type":"error","error":{"type":"invalid_request_error","message":"bad `+key+`"}}`), says: "bad [key]", status: 400},
	} {
		t.Run(name, func(t *testing.T) {
			server := newFakeServer(t, c.handler)
			models, _ := testModels(t, Limits{})
			turn, err := open(t, models, claude(server.URL)).Turn(t.Context(), hello(), nil)
			told := providerError(t, err)
			if !strings.Contains(told.Message, c.says) || told.Status != c.status || told.Retryable != c.retryable {
				t.Errorf("%q status %d retryable %v, want %q %d %v", told.Message, told.Status, told.Retryable, c.says, c.status, c.retryable)
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

func TestAnthropicRequest(t *testing.T) {
	server := newFakeServer(t, messageEvents(began, textBlock, said("x"), stopped("end_turn")))
	models, _ := testModels(t, Limits{})
	request := agent.TurnRequest{
		Model: "m", SubjectID: "not for models",
		Tools: []prompt.Definition{{Name: "get", Description: "Gets.", Schema: json.RawMessage(`{"type":"object"}`)}, {Name: "list"}},
		Messages: []prompt.Message{
			{Role: prompt.System, Text: "Be brief."},
			{Role: prompt.User, Text: "Go."},
			{Role: prompt.Assistant, Calls: []prompt.Call{{ID: "a", Tool: "get", Arguments: json.RawMessage(`{"i":1}`)}, {ID: "b", Tool: "list"}}},
			{Role: prompt.ToolRole, CallID: "a", Text: ""},
			{Role: prompt.ToolRole, CallID: "b", Text: "no", Failed: true},
			{Role: prompt.User, Text: "And?"},
			{Role: prompt.Assistant, Text: " "},
			{Role: prompt.User, Text: "Well?"},
		},
	}
	if _, err := open(t, models, claude(server.URL+"/v1/")).Turn(t.Context(), request, nil); err != nil {
		t.Fatal(err)
	}
	t.Run("M1 the request is as the wire wants it: system apart, roles in turn, every result first, no empty text", func(t *testing.T) {
		var want map[string]any
		if err := json.Unmarshal([]byte(`{
			"model": "m", "max_tokens": 4096, "stream": true, "system": "Be brief.",
			"messages": [
				{"role": "user", "content": [{"type": "text", "text": "Go."}]},
				{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "get", "input": {"i": 1}}, {"type": "tool_use", "id": "b", "name": "list", "input": {}}]},
				{"role": "user", "content": [
					{"type": "tool_result", "tool_use_id": "a", "content": ""}, {"type": "tool_result", "tool_use_id": "b", "content": "no", "is_error": true},
					{"type": "text", "text": "And?"}, {"type": "text", "text": "Well?"}]}],
			"tools": [
				{"name": "get", "description": "Gets.", "input_schema": {"type": "object"}},
				{"name": "list", "input_schema": {"type": "object", "properties": {}}}]
		}`), &want); err != nil {
			t.Fatal(err)
		}
		if got := server.body(t, 0); !reflect.DeepEqual(got, want) {
			t.Errorf("got  %v\nwant %v", got, want)
		}
	})
	t.Run("M1 the key and the version are headers, and nothing else is said of us", func(t *testing.T) {
		r := server.requests[0]
		if r.URL.Path != "/v1/messages" || r.Header.Get("X-Api-Key") != key || r.Header.Get("Anthropic-Version") != "2023-06-01" || r.Header.Get("Authorization") != "" {
			t.Errorf("%s %v", r.URL, r.Header)
		}
	})
	t.Run("M1 a base URL is taken with or without its path", func(t *testing.T) {
		for base, want := range map[string]string{
			"https://host": "https://host/v1/messages", "https://host/v1": "https://host/v1/messages", "https://host/v1/messages/": "https://host/v1/messages",
			"https://host/claude": "https://host/claude/v1/messages", "": "https://api.anthropic.com/v1/messages",
		} {
			if got := open(t, models, claude(base)).(*anthropic).endpoint; got != want {
				t.Errorf("%q is asked at %s", base, got)
			}
		}
	})
}
