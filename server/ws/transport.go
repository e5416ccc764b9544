// Package ws speaks graphql-transport-ws, the WebSocket protocol of the
// graphql-ws client, over gorilla/websocket. It is the only room that imports
// gorilla. What may enter: gqlgen's executor, actors, and the JSON of server/internal/wire;
// no route, no cookie and no database: who a client is comes from a function.
//
// Concurrency: a connection has one goroutine that reads, one that keeps it alive
// and checked, and one for each operation. An operation pulls its next response only when the previous one was
// written, so a client that reads slowly holds its own operations back and nobody
// else's; one that stops reading is dropped after the write timeout. All goroutines of a
// connection have ended when Do returns.
package ws

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/gorilla/websocket"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/server/internal/wire"
)

// Subprotocol is the one this package speaks. The older protocol, confusingly
// named graphql-ws, is refused.
const Subprotocol = "graphql-transport-ws"

// Options configure a Transport. Authenticate and Recovered are required; every
// other zero value stands for its default.
type Options struct {
	// Authenticate says who is behind a connection: by the token from
	// connection_init or, where it is empty, by the header or cookie of the upgrade
	// request. It is asked again while the connection lives. Nobody, without an error, means that no credential was given.
	Authenticate func(ctx context.Context, upgrade *http.Request, token string) (actor.Actor, error)
	// Recovered logs a panic and says what the client is told of it.
	Recovered func(ctx context.Context, panicked any) *gqlerror.Error
	// Origins are the origins, such as https://example.org, whose pages may connect
	// besides the server's own.
	Origins []string

	MaxMessageBytes int64 // a longer message closes the connection; 1 MiB
	MaxOperations   int   // open operations a connection; 100

	InitTimeout      time.Duration // from the upgrade to connection_init; 5 s
	WriteTimeout     time.Duration // for one frame; 10 s
	PingInterval     time.Duration // a silent peer is dropped after two and a half of them; 20 s
	RecheckInterval  time.Duration // how often rights are looked up again; 3 s
	CloseTimeout     time.Duration // how long a close waits for the peer's answer; 2 s
	OperationTimeout time.Duration // for a query or a mutation; 2 min

	// Connections and Subscriptions, if set, are told when one opens (1) or ends (-1).
	Connections, Subscriptions func(delta float64)
}

func (o Options) withDefaults() Options {
	fill(&o.MaxMessageBytes, 1<<20)
	fill(&o.MaxOperations, 100)
	fill(&o.InitTimeout, 5*time.Second)
	fill(&o.WriteTimeout, 10*time.Second)
	fill(&o.PingInterval, 20*time.Second)
	fill(&o.RecheckInterval, 3*time.Second)
	fill(&o.CloseTimeout, 2*time.Second)
	fill(&o.OperationTimeout, 2*time.Minute)
	nothing := func(float64) {}
	if o.Connections == nil {
		o.Connections = nothing
	}
	if o.Subscriptions == nil {
		o.Subscriptions = nothing
	}
	return o
}

func fill[T comparable](value *T, standard T) {
	var zero T
	if *value == zero {
		*value = standard
	}
}

// Transport is a graphql.Transport. It is safe for concurrent use.
type Transport struct {
	options  Options
	upgrader websocket.Upgrader

	mu       sync.Mutex
	open     map[*conn]struct{}
	draining bool
	ended    sync.WaitGroup // one for each open connection
}

var _ graphql.Transport = (*Transport)(nil)

// New makes a transport.
func New(options Options) *Transport {
	t := &Transport{options: options.withDefaults(), open: map[*conn]struct{}{}}
	t.upgrader = websocket.Upgrader{
		HandshakeTimeout: t.options.WriteTimeout,
		// Buffers come from a pool while a frame is written: an idle connection
		// keeps only the small one it reads with.
		ReadBufferSize:  1 << 10,
		WriteBufferSize: 4 << 10,
		WriteBufferPool: &sync.Pool{},
		Subprotocols:    []string{Subprotocol},
		CheckOrigin:     t.originAllowed,
		Error: func(w http.ResponseWriter, _ *http.Request, status int, reason error) {
			refuse(w, status, fault.BadInput, reason.Error())
		},
	}
	return t
}

// Supports reports whether the request asks for a WebSocket.
func (t *Transport) Supports(r *http.Request) bool { return websocket.IsWebSocketUpgrade(r) }

// Do upgrades the request and serves the connection until it ends.
func (t *Transport) Do(w http.ResponseWriter, r *http.Request, exec graphql.GraphExecutor) {
	if !t.originAllowed(r) {
		refuse(w, http.StatusForbidden, fault.Forbidden, "this origin may not open a WebSocket here")
		return
	}
	if !slices.Contains(websocket.Subprotocols(r), Subprotocol) {
		refuse(w, http.StatusBadRequest, fault.BadInput,
			"the only WebSocket subprotocol here is "+Subprotocol+" (of the graphql-ws client); the legacy graphql-ws protocol is not spoken")
		return
	}
	if t.isDraining() {
		refuse(w, http.StatusServiceUnavailable, fault.Unavailable, "the server is shutting down")
		return
	}
	socket, err := t.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // the upgrader has answered
	}
	c := newConn(t, socket, r, exec)
	if !t.enter(c) {
		c.close(websocket.CloseServiceRestart, "Service restart")
		c.hangUp()
		return
	}
	defer t.leave(c)
	c.serve()
}

func (t *Transport) originAllowed(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true // not a browser: no page of somebody else can be behind it
	}
	if slices.Contains(t.options.Origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// refuse answers an upgrade that is not going to happen with a GraphQL error.
func refuse(w http.ResponseWriter, status int, kind fault.Kind, message string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	body, err := wire.AppendResponse(nil, wire.Failure(wire.Error(kind, "%s", message)))
	if err == nil {
		_, _ = w.Write(body)
	}
}
