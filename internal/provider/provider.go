// Package provider holds the model clients: the OpenAI-compatible one, Anthropic's, and the
// scripted one that demos and tests use. A client turns a transcript into one
// answer and nothing else; what the answer may do is decided elsewhere.
//
// A client is safe for concurrent use and holds no goroutine between calls. Text
// arrives in order on the goroutine that called Turn. A client takes nothing from
// the environment: no key, no header and no proxy, so what a provider is sent is
// what its settings say. It repeats a request only while nothing of an answer has
// arrived. Clients of one provider share a circuit breaker.
package provider

import (
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/sony/gobreaker/v2"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
)

// Limits bound one model call. A zero field takes its default.
type Limits struct {
	Attempts    int           // requests per turn, the first included; 4
	Backoff     time.Duration // before the second request, doubled for each further one; 500 ms
	LongestWait time.Duration // a Retry-After beyond it is not waited for; 30 s
	FirstByte   time.Duration // until the response begins; 5 min, because an answer that is not streamed is written first
	Idle        time.Duration // between two reads of a response; 2 min
	Tail        time.Duration // after the finish reason, for usage and end; 5 s
	Total       time.Duration // a whole response, however lively; 15 min
	Line        int           // bytes of one line of a stream; 1 MiB
	Response    int64         // bytes of a whole response on the wire; 64 MiB
	Answer      int           // bytes of text and arguments together; 4 MiB
	Calls       int           // calls of one answer; 128
	Trip        uint32        // failures in a row after which a provider is left alone; 6
	Rest        time.Duration // for how long; 30 s
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (l Limits) withDefaults() Limits {
	orDefault(&l.Attempts, 4)
	orDefault(&l.Backoff, 500*time.Millisecond)
	orDefault(&l.LongestWait, 30*time.Second)
	orDefault(&l.FirstByte, 5*time.Minute)
	orDefault(&l.Idle, 2*time.Minute)
	orDefault(&l.Tail, 5*time.Second)
	orDefault(&l.Total, 15*time.Minute)
	orDefault(&l.Line, 1<<20)
	orDefault(&l.Response, 64<<20)
	orDefault(&l.Answer, 4<<20)
	orDefault(&l.Calls, 128)
	orDefault(&l.Trip, 6)
	orDefault(&l.Rest, 30*time.Second)
	return l
}

// Options are what a client needs from outside. The zero value is the real world.
type Options struct {
	Limits    Limits
	Transport http.RoundTripper                          // nil: TLS as the system trusts it, no proxy
	Now       func() time.Time                           // reads a Retry-After that is a date
	Wait      func(context.Context, time.Duration) error // between two requests; returns ctx's error
	Random    func() float64                             // jitter, in [0, 1)
}

// Models opens clients. It implements agent.Models.
type Models struct {
	options Options
	http    *http.Client

	mu       sync.Mutex
	breakers map[uuid.UUID]breakerEntry
}

var _ agent.Models = (*Models)(nil)

type breaker = gobreaker.CircuitBreaker[agent.Turn]

// breakerEntry remembers which settings its breaker watched: a provider whose base
// URL or key was corrected starts afresh.
type breakerEntry struct {
	settings [sha256.Size]byte
	breaker  *breaker
}

// New makes the clients' shared part.
func New(options Options) *Models {
	options.Limits = options.Limits.withDefaults()
	if options.Transport == nil {
		options.Transport = newTransport()
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Wait == nil {
		options.Wait = wait
	}
	if options.Random == nil {
		options.Random = rand.Float64
	}
	client := &http.Client{
		Transport: options.Transport,
		// A redirect is an answer, not a direction: following one would carry the
		// transcript, and on the same host the key, to where nobody configured them to go.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &Models{options: options, http: client, breakers: map[uuid.UUID]breakerEntry{}}
}

// newTransport is net/http's without its proxy, which it would read from the
// environment. An operator who needs one names it as the base URL.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// Open makes a client. Settings that cannot be used are fault.BadInput.
func (m *Models) Open(provider library.Provider) (agent.Model, error) {
	switch provider.Kind {
	case library.OpenAICompatible:
		return newOpenAI(m, provider)
	case library.Scripted:
		return newScripted(m, provider)
	case library.Anthropic:
		return newAnthropic(m, provider)
	default:
		return nil, fault.New(fault.BadInput, "provider kind %q is not known", string(provider.Kind))
	}
}

// Close drops the connections that wait to be used again. Clients stay usable.
func (m *Models) Close() { m.http.CloseIdleConnections() }

// breaker returns the one breaker that all clients of a provider share.
func (m *Models) breaker(provider library.Provider) *breaker {
	settings := sha256.Sum256([]byte(provider.BaseURL + "\x00" + provider.APIKey))
	m.mu.Lock()
	defer m.mu.Unlock()
	if entry, ok := m.breakers[provider.ID]; ok && entry.settings == settings {
		return entry.breaker
	}
	made := newBreaker(provider.Name, m.options.Limits)
	m.breakers[provider.ID] = breakerEntry{settings: settings, breaker: made}
	return made
}

// caller is the retry around one provider's attempts.
func (m *Models) caller(name, key string, watched *breaker) caller {
	return caller{
		name: name, key: key, breaker: watched, limits: m.options.Limits,
		wait: m.options.Wait, random: m.options.Random,
	}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
