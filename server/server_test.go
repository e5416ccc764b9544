package server_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/countersign/countersign/server"
	"github.com/countersign/countersign/server/internal/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what must happen; only a broken test waits for it.
const patience = 20 * time.Second

// house is a server over the test schema.
type house struct {
	t        *testing.T
	schema   *servertest.Schema
	accounts *servertest.Accounts
	server   *server.Server
	log      *logBuffer
}

// logBuffer is a log that a test reads.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func open(t *testing.T, change func(*server.Options)) *house {
	t.Helper()
	h := &house{t: t, schema: &servertest.Schema{}, accounts: servertest.NewAccounts(), log: &logBuffer{}}
	logger := slog.New(slog.NewTextHandler(h.log, nil))
	options := server.Options{
		Schema: h.schema, Authenticator: h.accounts, Logger: logger,
		ErrorPresenter: servertest.Present, Recover: servertest.Recover(logger),
	}
	if change != nil {
		change(&options)
	}
	h.server = server.New(options)
	return h
}

// request is one HTTP request; header entries read "Name: value".
type request struct {
	method, path, body string
	header             []string
}

func (h *house) do(q request) *http.Response {
	h.t.Helper()
	r := httptest.NewRequestWithContext(h.t.Context(), q.method, q.path, strings.NewReader(q.body))
	for _, line := range q.header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	h.server.ServeHTTP(w, r)
	return w.Result()
}

const (
	asAda    = "Authorization: Bearer " + servertest.Token
	json_    = "Content-Type: application/json"
	newType  = "Accept: application/graphql-response+json"
	oldType  = "Accept: application/json"
	streamed = "Accept: text/event-stream"
	csrf     = "X-Countersign-CSRF: 1"
)

// ask posts a query as Ada, with further headers.
func (h *house) ask(query string, header ...string) *http.Response {
	h.t.Helper()
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		h.t.Fatal(err)
	}
	return h.do(request{"POST", "/graphql", string(body), append([]string{asAda, json_}, header...)})
}

func read(t *testing.T, response *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func wantStatus(t *testing.T, response *http.Response, status int) string {
	t.Helper()
	body := read(t, response)
	if response.StatusCode != status {
		t.Fatalf("got status %d, want %d: %s", response.StatusCode, status, body)
	}
	return body
}

// wantCode compares the status, and the code of the answer's first error.
func wantCode(t *testing.T, response *http.Response, status int, code string) {
	t.Helper()
	body := wantStatus(t, response, status)
	var answer struct {
		Errors []struct {
			Message    string
			Extensions struct{ Code string }
		}
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || len(answer.Errors) == 0 {
		t.Fatalf("no GraphQL error: %v in %s", err, body)
	}
	if got := answer.Errors[0]; got.Extensions.Code != code || got.Message == "" {
		t.Fatalf("got %s, want code %s", body, code)
	}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatalf("%s: never", what)
}
