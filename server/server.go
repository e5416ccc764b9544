// Package server is the HTTP side of Countersign: routes, GraphQL's transports,
// limits, sign-in, health, metrics and the embedded console, over any gqlgen
// schema. It decides who a request comes from (through the Authenticator) and hands the
// actor to the resolvers in the context; it knows no use case and no table.
//
// A Server is safe for concurrent use. Nothing a client sends holds more than its
// own connection: bodies, documents, complexity, time and open operations are limited, and a
// stream pulls its next event only when the last one is written.
package server

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/server/ws"
)

// Authenticator finds out who is behind a credential. Every method returns a
// fault of kind UNAUTHENTICATED for a credential that is unknown, expired or
// revoked, without saying which, and UNAVAILABLE when it cannot look it up.
// Answers are never older than a second: streams ask again to notice a revoked right.
type Authenticator interface {
	// Bearer is the actor of an API token.
	Bearer(ctx context.Context, token string) (actor.Actor, error)
	// Session is the actor of a cookie session.
	Session(ctx context.Context, secret string) (actor.Actor, error)
	// Redeem uses up a one-time sign-in code and opens a session.
	Redeem(ctx context.Context, code string) (secret string, expires time.Time, err error)
	// SignOut ends a session; one that is already gone is no error.
	SignOut(ctx context.Context, secret string) error
}

// Options configure a Server. Schema, Authenticator, ErrorPresenter and Recover
// are required; every other zero value stands for its default.
type Options struct {
	Schema         graphql.ExecutableSchema
	Authenticator  Authenticator
	ErrorPresenter graphql.ErrorPresenterFunc
	// Recover turns a panic into an error and is the one place that logs it.
	Recover graphql.RecoverFunc

	// Ready says why the server cannot do its work; no reason means that it can.
	Ready    func(ctx context.Context) []string
	Logger   *slog.Logger
	Registry *prometheus.Registry // what /metrics shows; a new one

	// Origins, such as https://chat.example.org, may use the API from their pages
	// with a bearer token. The server's own origin always may.
	Origins []string
	// TrustedProxies are the addresses whose X-Forwarded-For and
	// X-Forwarded-Proto are believed.
	TrustedProxies []netip.Prefix

	HideSchema        bool // no introspection, and no suggestions in error messages
	MaxBodyBytes      int64
	MaxTokens         int // of a GraphQL document; validation is quadratic in them: 1,000 take 0.2 s at worst, 4,000 took 2.6 s
	MaxComplexity     int
	MaxOperations     int           // open operations a WebSocket
	OperationTimeout  time.Duration // for a query or a mutation
	BodyTimeout       time.Duration // for reading a request's body
	WriteTimeout      time.Duration // for one answer, event or frame
	InitTimeout       time.Duration // for a WebSocket's connection_init
	KeepAliveInterval time.Duration // between pings on an idle stream
	RecheckInterval   time.Duration // how often a stream's rights are looked up again
	DrainTimeout      time.Duration // for requests under way at shutdown
}

func (o Options) withDefaults() Options {
	if o.Ready == nil {
		o.Ready = func(context.Context) []string { return nil }
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	fill(&o.MaxBodyBytes, 1<<20)
	fill(&o.MaxTokens, 1000)
	fill(&o.MaxComplexity, 10_000)
	fill(&o.MaxOperations, 100)
	fill(&o.OperationTimeout, 2*time.Minute)
	fill(&o.BodyTimeout, 30*time.Second)
	fill(&o.WriteTimeout, 20*time.Second)
	fill(&o.InitTimeout, 5*time.Second)
	fill(&o.KeepAliveInterval, 15*time.Second)
	fill(&o.RecheckInterval, 3*time.Second)
	fill(&o.DrainTimeout, 20*time.Second)
	return o
}

func fill[T comparable](value *T, standard T) {
	var zero T
	if *value == zero {
		*value = standard
	}
}

// Server answers HTTP. Make one with New.
type Server struct {
	options     Options
	executor    *executor.Executor
	sockets     *ws.Transport
	transports  []graphql.Transport
	metrics     *metrics
	attempts    *attempts
	crossOrigin *http.CrossOriginProtection
	handler     http.Handler

	drainOnce sync.Once
	draining  chan struct{} // closed when the server shuts down
}

// New makes a server. It panics where a required option is missing: that is a
// mistake in the wiring, which no caller could handle.
func New(options Options) *Server {
	if options.Schema == nil || options.Authenticator == nil || options.ErrorPresenter == nil || options.Recover == nil {
		panic("server.New: Schema, Authenticator, ErrorPresenter and Recover are required")
	}
	options = options.withDefaults()
	s := &Server{
		options:     options,
		metrics:     newMetrics(options.Registry),
		attempts:    newAttempts(),
		crossOrigin: http.NewCrossOriginProtection(),
		draining:    make(chan struct{}),
	}
	s.executor = executor.New(options.Schema)
	s.executor.SetParserTokenLimit(options.MaxTokens)
	s.executor.SetDisableSuggestion(options.HideSchema)
	s.executor.SetQueryCache(newQueryCache())
	s.executor.SetErrorPresenter(options.ErrorPresenter)
	s.executor.SetRecoverFunc(options.Recover)
	s.executor.Use(policy{schema: options.Schema, hideSchema: options.HideSchema, maxComplexity: options.MaxComplexity})
	s.executor.Use(s.metrics)
	s.sockets = ws.New(ws.Options{
		Authenticate:     s.connected,
		Recovered:        s.recovered,
		Origins:          options.Origins,
		MaxMessageBytes:  options.MaxBodyBytes,
		MaxOperations:    options.MaxOperations,
		InitTimeout:      options.InitTimeout,
		WriteTimeout:     options.WriteTimeout,
		PingInterval:     options.KeepAliveInterval,
		RecheckInterval:  options.RecheckInterval,
		OperationTimeout: options.OperationTimeout,
		Connections:      s.metrics.sockets.Add,
		Subscriptions:    s.metrics.subscriptions.Add,
	})
	s.transports = []graphql.Transport{s.sockets, post{s}, get{s}}
	s.handler = s.routes()
	return s
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }
