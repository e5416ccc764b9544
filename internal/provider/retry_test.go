package provider

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/agent"
)

func TestRetry(t *testing.T) {
	const s = time.Second
	hangUp := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for name, c := range map[string]struct {
		handlers []http.HandlerFunc
		waits    []time.Duration
	}{
		"M1 a good answer is asked for once":             {[]http.HandlerFunc{answerA}, nil},
		"M1 503 is asked again":                          {[]http.HandlerFunc{status(503, ""), answerA}, []time.Duration{375 * time.Millisecond}},
		"M1 waits double and are jittered":               {[]http.HandlerFunc{status(500, ""), status(502, ""), status(529, ""), answerA}, []time.Duration{375 * time.Millisecond, 750 * time.Millisecond, 1500 * time.Millisecond}},
		"M1 429 waits as long as it asks":                {[]http.HandlerFunc{status(429, "", "Retry-After", "7"), answerA}, []time.Duration{7 * s}},
		"M1 503 waits until the date it names":           {[]http.HandlerFunc{status(503, "", "Retry-After", "Wed, 04 Mar 2026 05:06:17 GMT"), answerA}, []time.Duration{10 * s}},
		"M1 a Retry-After shorter than ours is no haste": {[]http.HandlerFunc{status(429, "", "Retry-After", "0"), answerA}, []time.Duration{375 * time.Millisecond}},
		"M1 a Retry-After that is neither is none":       {[]http.HandlerFunc{status(429, "", "Retry-After", "-5 soon"), answerA}, []time.Duration{375 * time.Millisecond}},
		"M1 a connection closed unanswered":              {[]http.HandlerFunc{hangUp, answerA}, []time.Duration{375 * time.Millisecond}},
		"M1 a response without a byte":                   {[]http.HandlerFunc{raw(""), answerA}, []time.Duration{375 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			server := newFakeServer(t, c.handlers...)
			models, waited := testModels(t, Limits{})
			turn, err := open(t, models, compatible(server.URL)).Turn(t.Context(), hello(), nil)
			if err != nil || turn.Text != "a" {
				t.Fatalf("%+v, %v", turn, err)
			}
			if !slices.Equal(waited.took, c.waits) || server.count() != len(c.handlers) {
				t.Errorf("waited %v in %d requests, want %v", waited.took, server.count(), c.waits)
			}
		})
	}
	t.Run("M1 a refused connection is asked again", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		nobody := "http://" + listener.Addr().String()
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		models, waited := testModels(t, Limits{})
		_, err = open(t, models, compatible(nobody)).Turn(t.Context(), hello(), nil)
		told := providerError(t, err)
		if told.Message != `provider "lab" cannot be reached: the connection was refused` || !told.Retryable || told.Status != 0 {
			t.Errorf("%+v", told)
		}
		if len(waited.took) != 3 || strings.Contains(told.Cause.Error(), "completions") {
			t.Errorf("waited %v, cause %v", waited.took, told.Cause)
		}
	})
	t.Run("M1 nothing is asked again once an answer has begun", func(t *testing.T) {
		server := newFakeServer(t, raw("data: "+text("Dear ")+"\n\n"), answerA)
		_, streamed, err := ask(t, server, Limits{})
		providerError(t, err)
		if server.count() != 1 || streamed != "Dear " {
			t.Errorf("%d requests, streamed %q", server.count(), streamed)
		}
	})
}

func TestCallerGoesAway(t *testing.T) {
	t.Run("M1 a cancelled call returns ctx's error and leaves no request behind", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan struct{})
		server := newFakeServer(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "data: "+text("a")+"\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			close(gone)
		})
		models, _ := testModels(t, Limits{})
		_, err := open(t, models, compatible(server.URL)).Turn(ctx, hello(), func(string) { cancel() })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		<-gone
	})
	t.Run("M1 a call cancelled while it waits is not asked again", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		server := newFakeServer(t, status(503, ""))
		models := New(Options{Wait: func(ctx context.Context, d time.Duration) error {
			cancel()
			return wait(ctx, d)
		}})
		defer models.Close()
		_, err := open(t, models, compatible(server.URL)).Turn(ctx, hello(), nil)
		if !errors.Is(err, context.Canceled) || server.count() != 1 {
			t.Errorf("%v after %d requests", err, server.count())
		}
	})
	t.Run("M1 a call that is over before it begins sends nothing", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		server := newFakeServer(t, answerA)
		models, _ := testModels(t, Limits{})
		if _, err := open(t, models, compatible(server.URL)).Turn(ctx, hello(), nil); !errors.Is(err, context.Canceled) || server.count() != 0 {
			t.Errorf("%v after %d requests", err, server.count())
		}
	})
}

// roundTrip is a transport without a network, for tests on a fake clock.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// feed is a response whose body is written over time; it breaks, as a connection
// does, when its request is cancelled.
func feed(write func(io.Writer)) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		reader, writer := io.Pipe()
		stop := context.AfterFunc(r.Context(), func() { writer.CloseWithError(r.Context().Err()) })
		go func() {
			defer stop()
			write(writer)
			writer.Close()
		}()
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: reader, Request: r}, nil
	}
}

// every writes a line again and again until nobody reads.
func every(d time.Duration, line string) func(io.Writer) {
	return func(w io.Writer) {
		for {
			time.Sleep(d)
			if _, err := io.WriteString(w, line); err != nil {
				return
			}
		}
	}
}

// TestTime runs on a fake clock: no wall time passes.
func TestTime(t *testing.T) {
	event := func(chunk string) string { return "data: " + chunk + "\n\n" }
	for name, c := range map[string]struct {
		transport http.RoundTripper
		onText    time.Duration // how long the reader of the text takes
		says      string        // of the error; "" for the answer "a"
		after     time.Duration
	}{
		"M1 a provider that never begins": {
			transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}),
			says: "did not begin to answer within 5m0s", after: 5 * time.Minute,
		},
		"M1 a stream that falls silent": {
			transport: feed(func(w io.Writer) {
				_, _ = io.WriteString(w, event(text("a")))
				time.Sleep(time.Hour)
			}),
			says: "fell silent", after: 2 * time.Minute,
		},
		"M1 a stream of nothing but comments": {transport: feed(every(time.Minute, ": wait\n\n")), says: "did not finish within 15m0s", after: 15 * time.Minute},
		"M1 a slow stream that goes on is an answer": {
			transport: feed(func(w io.Writer) {
				for _, line := range []string{": wait\n\n", event(text("a")), event(finish("stop")), "data: [DONE]\n\n"} {
					_, _ = io.WriteString(w, line)
					time.Sleep(4 * time.Second)
				}
			}),
			after: 12 * time.Second,
		},
		"M1 a stream left open after its finish reason is an answer": {
			transport: feed(func(w io.Writer) {
				_, _ = io.WriteString(w, event(text("a"))+event(finish("stop")))
				time.Sleep(time.Hour)
			}),
			after: 5 * time.Second,
		},
		"M1 a slow reader of the text is not the provider's silence": {
			transport: feed(func(w io.Writer) { _, _ = io.WriteString(w, event(text("a"))+event(finish("stop"))) }),
			onText:    10 * time.Minute, after: 10 * time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				models := New(Options{Transport: c.transport})
				turn, err := open(t, models, compatible("http://model.test")).Turn(t.Context(), hello(), func(string) { time.Sleep(c.onText) })
				took := time.Since(began)
				switch {
				case c.says == "" && (err != nil || turn.Text != "a"):
					t.Errorf("%+v, %v", turn, err)
				case c.says != "":
					if told := providerError(t, err); !strings.Contains(told.Message, c.says) || !told.Retryable {
						t.Errorf("%+v", told)
					}
				}
				if took != c.after {
					t.Errorf("took %s of the fake clock, want %s", took, c.after)
				}
				time.Sleep(2 * time.Hour) // whatever sleeps ends, so that the bubble can
			})
		})
	}
	t.Run("M1 a deadline of the caller's is ctx's error", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			models := New(Options{Transport: feed(every(time.Minute, ": wait\n\n"))})
			if _, err := open(t, models, compatible("http://model.test")).Turn(ctx, hello(), nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			time.Sleep(2 * time.Hour)
		})
	})
}

// answers is a transport that gives one status after another and counts.
type answers struct {
	statuses []int
	asked    int
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	code := a.statuses[min(a.asked, len(a.statuses)-1)]
	a.asked++
	body := "data: " + text("a") + "\n\ndata: " + finish("stop") + "\n\n"
	if code != 200 {
		body = "no"
	}
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func TestBreaker(t *testing.T) {
	limits := Limits{Attempts: 1, Trip: 3}
	inBubble := func(name string, statuses []int, test func(t *testing.T, models *Models, wire *answers)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wire := &answers{statuses: statuses}
				test(t, New(Options{Limits: limits, Transport: wire}), wire)
			})
		})
	}
	try := func(t *testing.T, models *Models, provider string) error {
		t.Helper()
		_, err := open(t, models, compatible(provider)).Turn(t.Context(), hello(), nil)
		return err
	}
	inBubble("M1 a provider that fails in a row is left alone, then tried again", []int{500, 502, 503, 500, 200}, func(t *testing.T, models *Models, wire *answers) {
		for range 3 {
			providerError(t, try(t, models, "http://model.test"))
		}
		told := providerError(t, try(t, models, "http://model.test"))
		if wire.asked != 3 || !told.Retryable || !strings.Contains(told.Message, "left alone for up to 30s") {
			t.Fatalf("asked %d times: %+v", wire.asked, told)
		}
		time.Sleep(31 * time.Second)
		if told := providerError(t, try(t, models, "http://model.test")); told.Status != 500 || wire.asked != 4 {
			t.Fatalf("the trial met %+v", told)
		}
		time.Sleep(31 * time.Second)
		for range 2 {
			if err := try(t, models, "http://model.test"); err != nil {
				t.Fatal(err)
			}
		}
	})
	inBubble("M1 refusals and rate limits do not open it", []int{429, 429, 429, 429, 400, 401, 404, 200}, func(t *testing.T, models *Models, _ *answers) {
		for range 7 {
			providerError(t, try(t, models, "http://model.test"))
		}
		if err := try(t, models, "http://model.test"); err != nil {
			t.Fatal(err)
		}
	})
	inBubble("M1 corrected settings and other providers start afresh", []int{500, 500, 500, 200}, func(t *testing.T, models *Models, wire *answers) {
		for range 4 {
			providerError(t, try(t, models, "http://model.test"))
		}
		other := compatible("http://model.test")
		other.ID = uuid.MustParse("0190f000-0000-7000-8000-000000000002")
		if _, err := open(t, models, other).Turn(t.Context(), hello(), nil); err != nil {
			t.Error(err)
		}
		if err := try(t, models, "http://model.test/v1"); err != nil || wire.asked != 5 {
			t.Errorf("%v after %d requests", err, wire.asked)
		}
	})
	t.Run("M1 a turn whose own attempts open it says what they met", func(t *testing.T) {
		models, _ := testModels(t, Limits{Trip: 2})
		server := newFakeServer(t, status(503, "out of memory"))
		_, err := open(t, models, compatible(server.URL)).Turn(t.Context(), hello(), nil)
		if told := providerError(t, err); told.Status != 503 || server.count() != 2 {
			t.Errorf("%+v after %d requests", told, server.count())
		}
	})
}

// TestOneClientManyTurns is for the race detector, and shows that answers do not mix.
func TestOneClientManyTurns(t *testing.T) {
	t.Run("M1 a client is safe for concurrent use", func(t *testing.T) {
		server := newFakeServer(t, answerA)
		models, _ := testModels(t, Limits{})
		model := open(t, models, compatible(server.URL))
		results := make(chan error, 16)
		for range cap(results) {
			go func() {
				var streamed string
				turn, err := model.Turn(t.Context(), hello(), func(delta string) { streamed += delta })
				if err == nil && (turn.Text != "a" || streamed != "a") {
					err = &agent.ProviderError{Message: "mixed: " + turn.Text + streamed}
				}
				results <- err
			}()
		}
		for range cap(results) {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
	})
}
