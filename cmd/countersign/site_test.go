package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/store/storetest"
)

// asCommand makes this test binary behave as the command it tests, so that tests can
// start real processes without building the program a second time.
const asCommand = "COUNTERSIGN_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// testToken signs the built-in administrator in to every site.
const testToken = "cs_quickstart_test_token"

// site is a server of this package, as a client sees it.
type site struct {
	t     testing.TB
	url   string
	token string
	code  string          // signs in once
	stop  func()          // ends the server and waits for it
	ctx   context.Context // of its requests; nil is the test's
}

// in is the site as a subtest uses it.
func (s *site) in(t *testing.T) *site {
	used := *s
	used.t = t
	return &used
}

// greet reads what a starting server says.
func (s *site) greet(out io.Reader) {
	s.t.Helper()
	said := bufio.NewScanner(out)
	for s.code == "" && said.Scan() {
		line := said.Text()
		if _, address, found := strings.Cut(line, " is ready at "); found {
			s.url = address
		}
		if _, token, found := strings.Cut(line, "Administrator token (shown once): "); found {
			s.token = token
		}
		if _, code, found := strings.Cut(line, "/sign-in#"); found {
			s.code = code // the last thing it says
		}
	}
	if s.url == "" || s.code == "" {
		s.t.Fatal("the server did not say where it is and how to sign in")
	}
	go io.Copy(io.Discard, out)
}

// demoAt is the configuration of a demo on a database, on any free port. It logs
// nothing, because what goes wrong in a test was asked for.
func demoAt(database string) config {
	return config{
		Addr: "127.0.0.1:0", DatabaseURL: database, AdminToken: testToken, EncryptionKey: storetest.Key.String(), Demo: "on", Migrate: "on",
		LogLevel: slog.LevelError + 1,
	}
}

// startSite serves until the test ends, or until stop.
func startSite(t testing.TB, c config) *site {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, says := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := serve(ctx, c, says)
		says.CloseWithError(io.EOF)
		ended <- err
	}()
	s := &site{t: t, token: testToken}
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	}
	t.Cleanup(s.stop)
	s.greet(out)
	return s
}

// each starts a demo on either database.
func each(t *testing.T, test func(t *testing.T, s *site)) {
	for _, database := range storetest.URLs {
		t.Run(database.Name, func(t *testing.T) { test(t, startSite(t, demoAt(database.URL(t)))) })
	}
}

// object is a JSON object.
type object = map[string]any

// answer is a response to an operation.
type answer struct {
	Status int    `json:"-"`
	Raw    string `json:"-"`
	Data   object `json:"data"`
	Errors []struct {
		Message    string `json:"message"`
		Extensions struct {
			Code string `json:"code"`
		} `json:"extensions"`
	} `json:"errors"`
}

// code is that of the only error there is.
func (a answer) code() string {
	if len(a.Errors) != 1 {
		return ""
	}
	return a.Errors[0].Extensions.Code
}

// post sends a body as it is.
func (s *site) post(body []byte, accept string) *http.Response {
	s.t.Helper()
	response, err := s.try(body, accept)
	if err != nil {
		s.t.Fatal(err)
	}
	return response
}

func (s *site) try(body []byte, accept string) (*http.Response, error) {
	ctx := s.ctx
	if ctx == nil {
		ctx = s.t.Context()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/graphql", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", accept)
	request.Header.Set("Authorization", "Bearer "+s.token)
	return http.DefaultClient.Do(request)
}

// send sends a body as it is and reads the answer.
func (s *site) send(body []byte) answer {
	s.t.Helper()
	response := s.post(body, "application/graphql-response+json")
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	a := answer{Status: response.StatusCode, Raw: string(raw)}
	if err := json.Unmarshal(raw, &a); err != nil {
		s.t.Fatalf("the answer is not JSON: %v\n%s", err, raw)
	}
	return a
}

// ask runs an operation.
func (s *site) ask(query string, variables object) answer {
	s.t.Helper()
	return s.send(operation(s.t, query, variables))
}

// must runs an operation that has no errors, and returns its data.
func (s *site) must(query string, variables object) object {
	s.t.Helper()
	a := s.ask(query, variables)
	if len(a.Errors) > 0 {
		s.t.Fatalf("%s\n%s", query, a.Raw)
	}
	return a.Data
}

func operation(t testing.TB, query string, variables object) []byte {
	t.Helper()
	body, err := json.Marshal(object{"query": query, "variables": variables})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// stream is a subscription as server-sent events, in distinct connections mode.
type stream struct {
	t     testing.TB
	body  io.ReadCloser
	lines *bufio.Scanner
}

// subscribe opens a stream, until the test ends.
func (s *site) subscribe(body []byte) *stream {
	s.t.Helper()
	opened, err := s.follow(body)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { opened.body.Close() })
	return opened
}

// follow opens a stream that may break; whoever opened it closes its body.
func (s *site) follow(body []byte) (*stream, error) {
	response, err := s.try(body, "text/event-stream")
	if err != nil {
		return nil, err
	}
	if kind := response.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		return nil, errors.Join(fmt.Errorf("the answer to a subscription is %s, %s", response.Status, kind), response.Body.Close())
	}
	return &stream{t: s.t, body: response.Body, lines: bufio.NewScanner(response.Body)}, nil
}

// next waits for an event. It returns false when the subscription has completed.
func (s *stream) next() (answer, bool) {
	s.t.Helper()
	a, more, err := s.event()
	if err != nil {
		s.t.Fatal(err)
	}
	return a, more
}

// event is next on a stream that may break.
func (s *stream) event() (a answer, more bool, err error) {
	event := ""
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case name == "event":
			event = value
		case event == "complete":
			return answer{}, false, nil
		case name == "data" && event == "next":
			if err := json.Unmarshal([]byte(value), &a); err != nil {
				return answer{}, false, fmt.Errorf("an event is not JSON: %w\n%s", err, value)
			}
			return a, true, nil
		}
	}
	return answer{}, false, fmt.Errorf("the stream broke off: %w", cmp.Or(s.lines.Err(), io.ErrUnexpectedEOF))
}
