package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// key is what no message may ever hold.
const key = "sk-secret-0123456789"

// fakeServer speaks the wire format: it answers every request with the next of its
// handlers, the last one again and again, and keeps what it was sent.
type fakeServer struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	bodies   [][]byte
}

func newFakeServer(t *testing.T, handlers ...http.HandlerFunc) *fakeServer {
	t.Helper()
	f := &fakeServer{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read the request: %v", err)
		}
		f.mu.Lock()
		f.requests, f.bodies = append(f.requests, r), append(f.bodies, body)
		handler := handlers[min(len(f.requests), len(handlers))-1]
		f.mu.Unlock()
		handler(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *fakeServer) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.requests)
}

// body decodes the body of the n-th request, from 0.
func (f *fakeServer) body(t *testing.T, n int) map[string]any {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	var out map[string]any
	if err := json.Unmarshal(f.bodies[n], &out); err != nil {
		t.Fatalf("request %d is not JSON: %v", n, err)
	}
	return out
}

// raw writes a stream exactly as given.
func raw(stream string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, stream)
	}
}

// data writes each chunk as an event, then [DONE].
func data(chunks ...string) http.HandlerFunc {
	return raw("data: " + strings.Join(append(chunks, "[DONE]"), "\n\ndata: ") + "\n\n")
}

// status answers with a status, a body and headers given as pairs.
func status(code int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// chunk wraps a delta.
func chunk(delta string) string { return `{"choices":[{"index":0,"delta":` + delta + `}]}` }

func text(s string) string { return chunk(`{"content":` + string(quoted(s)) + `}`) }

// calls is a chunk with fragments of calls.
func calls(fragments ...string) string {
	return chunk(`{"tool_calls":[` + strings.Join(fragments, ",") + `]}`)
}

// piece is a fragment: members such as `"index":0,"id":"a"`, a name and arguments.
func piece(members, name, arguments string) string {
	function := `"arguments":` + string(quoted(arguments))
	if name != "" {
		function = `"name":"` + name + `",` + function
	}
	if members != "" {
		members += ","
	}
	return `{` + members + `"function":{` + function + `}}`
}

func finish(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

// pauses records what a client would have waited, and waits for nothing.
type pauses struct {
	mu   sync.Mutex
	took []time.Duration
}

func (p *pauses) wait(ctx context.Context, d time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took = append(p.took, d)
	return ctx.Err()
}

// today is the clock of the tests.
func today() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) }

// testModels is a client factory in which nothing waits.
func testModels(t *testing.T, limits Limits) (*Models, *pauses) {
	t.Helper()
	waited := &pauses{}
	models := New(Options{Limits: limits, Now: today, Wait: waited.wait, Random: func() float64 { return 0.5 }})
	t.Cleanup(models.Close)
	return models, waited
}

func open(t *testing.T, models *Models, provider library.Provider) agent.Model {
	t.Helper()
	model, err := models.Open(provider)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return model
}

func compatible(base string) library.Provider {
	return library.Provider{
		ID: uuid.MustParse("0190f000-0000-7000-8000-000000000001"), Name: "lab",
		Kind: library.OpenAICompatible, BaseURL: base, APIKey: key,
	}
}

func hello() agent.TurnRequest {
	return agent.TurnRequest{Model: "m", Messages: []prompt.Message{{Role: prompt.User, Text: "hello"}}}
}

// ask takes one turn against a server with the given limits.
func ask(t *testing.T, server *fakeServer, limits Limits) (agent.Turn, string, error) {
	t.Helper()
	models, _ := testModels(t, limits)
	var streamed strings.Builder
	turn, err := open(t, models, compatible(server.URL)).Turn(t.Context(), hello(), func(delta string) { streamed.WriteString(delta) })
	return turn, streamed.String(), err
}

// providerError fails the test unless err is one that may be shown.
func providerError(t *testing.T, err error) *agent.ProviderError {
	t.Helper()
	var told *agent.ProviderError
	if !errors.As(err, &told) {
		t.Fatalf("want a *agent.ProviderError, got %T: %v", err, err)
	}
	if strings.Contains(told.Message, key) || strings.Contains(told.Message, "Bearer") {
		t.Fatalf("the message holds the key: %s", told.Message)
	}
	return told
}

// written is a turn in one line, for tables: text, then calls.
func written(turn agent.Turn) string {
	var out bytes.Buffer
	out.WriteString(turn.Text)
	for _, call := range turn.Calls {
		fmt.Fprintf(&out, "|%s %s%s", call.ID, call.Tool, call.Arguments)
	}
	return out.String()
}

// newTLSServer has a certificate that no system trusts.
func newTLSServer(t *testing.T) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it will complain of the handshake
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}
