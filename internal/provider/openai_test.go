package provider

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
)

var answerA = data(text("a"), finish("stop"))

func TestRequestOnTheWire(t *testing.T) {
	request := agent.TurnRequest{
		Model: "small", MaxTokens: 99, SubjectID: "not for models",
		Tools: []prompt.Definition{
			{Name: "get", Description: "reads <one>", Schema: json.RawMessage(`{"type":"object","required":["id"]}`)},
			{Name: "list"},
		},
		Messages: []prompt.Message{
			{Role: prompt.System, Text: "be brief"},
			{Role: prompt.User, Text: "a < b & c"},
			{Role: prompt.Assistant, Calls: []prompt.Call{
				{ID: "x", Tool: "get", Arguments: json.RawMessage(`{"id": "7"}`)},
				{ID: "y", Tool: "get", Arguments: receivedArguments(`{"id":`)},
				{ID: "z", Tool: "list"},
			}},
			{Role: prompt.ToolRole, CallID: "x"},
			{Role: prompt.ToolRole, CallID: "y", Text: "no object", Failed: true},
			{Role: prompt.ToolRole, CallID: "z", Text: "[]"},
			{Role: prompt.Assistant, Text: "done"},
		},
	}
	server := newFakeServer(t, answerA)
	models, _ := testModels(t, Limits{})
	if _, err := open(t, models, compatible(server.URL+"/v1/")).Turn(t.Context(), request, nil); err != nil {
		t.Fatal(err)
	}
	call := func(id, name, arguments string) any {
		return map[string]any{"id": id, "type": "function", "function": map[string]any{"name": name, "arguments": arguments}}
	}
	want := map[string]any{
		"model": "small", "stream": true, "stream_options": map[string]any{"include_usage": true}, "max_tokens": 99.0,
		"tools": []any{
			map[string]any{"type": "function", "function": map[string]any{
				"name": "get", "description": "reads <one>", "parameters": map[string]any{"type": "object", "required": []any{"id"}},
			}},
			map[string]any{"type": "function", "function": map[string]any{
				"name": "list", "parameters": map[string]any{"type": "object", "properties": map[string]any{}},
			}},
		},
		"messages": []any{
			map[string]any{"role": "system", "content": "be brief"},
			map[string]any{"role": "user", "content": "a < b & c"},
			map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{
				call("x", "get", `{"id": "7"}`), call("y", "get", `{"unreadable_arguments":"{\"id\":"}`), call("z", "list", `{}`),
			}},
			map[string]any{"role": "tool", "tool_call_id": "x", "content": ""},
			map[string]any{"role": "tool", "tool_call_id": "y", "content": "no object"},
			map[string]any{"role": "tool", "tool_call_id": "z", "content": "[]"},
			map[string]any{"role": "assistant", "content": "done"},
		},
	}
	t.Run("M1 messages, calls, empty results, tools, limit and usage are sent as such", func(t *testing.T) {
		if diff := cmp.Diff(want, server.body(t, 0)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("M1 the key is sent to the path as given", func(t *testing.T) {
		sent := server.requests[0]
		if sent.URL.Path != "/v1/chat/completions" || sent.Header.Get("Authorization") != "Bearer "+key {
			t.Errorf("%s, %q", sent.URL.Path, sent.Header.Get("Authorization"))
		}
	})
	t.Run("M1 OpenAI itself is sent its newer name of the limit", func(t *testing.T) {
		body, err := encode(agent.TurnRequest{MaxTokens: 7}, true)
		if err != nil || !strings.Contains(string(body), `"max_completion_tokens":7`) || strings.Contains(string(body), `"max_tokens"`) {
			t.Errorf("%s, %v", body, err)
		}
		model := open(t, models, compatible("https://api.openai.com/v1")).(*openAI)
		if !model.completionTokens {
			t.Error("api.openai.com is not recognised")
		}
	})
	t.Run("M1 a schema that is not JSON is an error before anything is sent", func(t *testing.T) {
		broken := hello()
		broken.Tools = []prompt.Definition{{Name: "x", Schema: json.RawMessage(`{`)}}
		_, err := open(t, models, compatible(server.URL)).Turn(t.Context(), broken, nil)
		providerError(t, err)
		if server.count() != 1 {
			t.Errorf("%d requests", server.count())
		}
	})
}

func TestEnvironmentIsNotRead(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(name, "http://from-the-environment.invalid")
	}
	t.Run("M1 no header comes from the environment", func(t *testing.T) {
		server := newFakeServer(t, answerA)
		models, _ := testModels(t, Limits{})
		provider := compatible(server.URL)
		provider.APIKey = ""
		if _, err := open(t, models, provider).Turn(t.Context(), hello(), nil); err != nil {
			t.Fatal(err)
		}
		want := http.Header{
			"Accept": {"text/event-stream, application/json"}, "Accept-Encoding": {"gzip"}, "Content-Type": {"application/json"}, "User-Agent": {"countersign"},
		}
		got := server.requests[0].Header.Clone()
		got.Del("Content-Length")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("M1 no proxy comes from the environment", func(t *testing.T) {
		if newTransport().Proxy != nil {
			t.Error("the transport asks for a proxy")
		}
	})
	t.Run("M1 a missing key is said so", func(t *testing.T) {
		server := newFakeServer(t, status(401, "who are you"))
		models, _ := testModels(t, Limits{})
		provider := compatible(server.URL)
		provider.APIKey = ""
		_, err := open(t, models, provider).Turn(t.Context(), hello(), nil)
		if told := providerError(t, err); told.Message != `provider "lab" wants an API key, and none is set (401)` {
			t.Error(told.Message)
		}
	})
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	for _, code := range []int{301, 302, 303, 307, 308} {
		t.Run("M1 the key goes nowhere else: "+http.StatusText(code), func(t *testing.T) {
			elsewhere := newFakeServer(t, answerA)
			server := newFakeServer(t, status(code, "", "Location", elsewhere.URL+"/secret-path"))
			_, _, err := ask(t, server, Limits{})
			told := providerError(t, err)
			if told.Status != code || told.Retryable || !strings.Contains(told.Message, elsewhere.URL) || strings.Contains(told.Message, "secret-path") {
				t.Errorf("%+v", told)
			}
			if elsewhere.count() != 0 || server.count() != 1 {
				t.Errorf("%d requests elsewhere, %d here", elsewhere.count(), server.count())
			}
		})
	}
}

func TestBaseURL(t *testing.T) {
	for base, want := range map[string]string{
		"https://host":                           "https://host/chat/completions",
		"https://host/":                          "https://host/chat/completions",
		"https://host/v1":                        "https://host/v1/chat/completions",
		" http://host:8080/v1/ ":                 "http://host:8080/v1/chat/completions",
		"https://host/a/b/openai/v1//":           "https://host/a/b/openai/v1/chat/completions",
		"https://host/v1/chat/completions":       "https://host/v1/chat/completions",
		"https://host/deployments/x?version=1":   "https://host/deployments/x/chat/completions?version=1",
		"http://[::1]:11434/v1":                  "http://[::1]:11434/v1/chat/completions",
		"":                                       "",
		"host/v1":                                "",
		"localhost:8080":                         "",
		"ftp://host":                             "",
		"https://":                               "",
		"https://:443/v1":                        "",
		"https://user:" + key + "@host/v1":       "",
		"https://host/v1#here":                   "",
		"https://ho st/" + key:                   "",
		"https://host/%zz?api-key=" + key:        "",
		"file:///etc/passwd":                     "",
		"unix:///var/run/model.sock:/v1/" + "x/": "",
	} {
		t.Run("M1 base URL "+strings.ReplaceAll(base, "/", "∕"), func(t *testing.T) {
			models, _ := testModels(t, Limits{})
			model, err := models.Open(compatible(base))
			if want == "" {
				if !fault.Is(err, fault.BadInput) || strings.Contains(err.Error(), key) || model != nil {
					t.Errorf("%v, %v", model, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := model.(*openAI).endpoint; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	models, _ := testModels(t, Limits{})
	for name, c := range map[string]struct {
		change func(*library.Provider)
		says   string
	}{
		"M1 a key too short to be one":    {func(p *library.Provider) { p.APIKey = "a" }, "the API key is too short"},
		"M1 a kind that is none":          {func(p *library.Provider) { p.Kind = "magic" }, `provider kind "magic" is not known`},
		"M1 a key with a line break":      {func(p *library.Provider) { p.APIKey = "sk-a\nX-Evil: 1" }, "the API key holds a character"},
		"M1 a key that is not ASCII":      {func(p *library.Provider) { p.APIKey = "sk-ü" }, "the API key holds a character"},
		"M1 a script that does not parse": {func(p *library.Provider) { p.Kind, p.Script = library.Scripted, "steps: 1" }, "script line 1: steps is not a list"},
	} {
		t.Run(name, func(t *testing.T) {
			provider := compatible("https://host/v1")
			c.change(&provider)
			model, err := models.Open(provider)
			if !fault.Is(err, fault.BadInput) || !strings.Contains(err.Error(), c.says) || model != nil {
				t.Errorf("%v, %v", model, err)
			}
		})
	}
}

func TestScannerAgreesWithJSON(t *testing.T) {
	t.Run("M1 an object is closed where it ends, however it is cut", func(t *testing.T) {
		object := `{"a":"}\"{","b":[{"c":"\\"}],"d":{}}`
		for at := range len(object) + 1 {
			var s scanner
			s.read(object[:at])
			if s.closed != (at == len(object)) {
				t.Fatalf("closed %v after %q", s.closed, object[:at])
			}
			if s.read(object[at:]); !s.closed {
				t.Fatalf("not closed when cut at %d", at)
			}
		}
	})
}

func TestUntrustedCertificate(t *testing.T) {
	t.Run("M1 a certificate nobody vouches for is an error, asked once", func(t *testing.T) {
		server := newTLSServer(t)
		models, waited := testModels(t, Limits{})
		_, err := open(t, models, compatible(server)).Turn(t.Context(), hello(), nil)
		told := providerError(t, err)
		if told.Retryable || !strings.Contains(told.Message, "certificate is not trusted") || len(waited.took) != 0 {
			t.Errorf("%+v after %v", told, waited.took)
		}
		if told.Cause == nil || errors.Is(told.Cause, io.EOF) {
			t.Errorf("cause %v", told.Cause)
		}
	})
}

func TestUnreachable(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"M1 a host that is not known":   {&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "model.test"}}, "its host name is not known"},
		"M1 a connection reset":         {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, "closed the connection without an answer"},
		"M1 a connection that hangs":    {&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, "took too long to connect"},
		"M1 anything else":              {errors.New("malformed HTTP response of http://10.0.0.1/" + key), `provider "lab" cannot be reached`},
		"M1 an error that says the URL": {&url.Error{Op: "Post", URL: "http://model.test/?code=secret", Err: io.EOF}, "closed the connection"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			models := New(Options{
				Wait: (&pauses{}).wait,
				Transport: roundTrip(func(*http.Request) (*http.Response, error) {
					asked++
					return nil, c.err
				}),
			})
			_, err := open(t, models, compatible("http://model.test/?code=secret")).Turn(t.Context(), hello(), nil)
			told := providerError(t, err)
			if !strings.Contains(told.Message, c.says) || strings.Contains(told.Message, "10.0.0.1") || !told.Retryable || asked != 4 {
				t.Errorf("%+v after %d requests", told, asked)
			}
			if strings.Contains(told.Cause.Error(), "code=secret") {
				t.Errorf("the cause holds the URL: %v", told.Cause)
			}
		})
	}
}
