// Package mcp talks to MCP servers: programs on this machine over their input and output,
// and servers at an address over streamable HTTP, both through the official SDK. It
// implements remote.Connector.
//
// What a server sends is bounded here before anything reads it; what it asks of us
// (sampling, roots, elicitation) is not offered. A program gets the variables that were
// listed for it and a minimal PATH, and nothing of this process's environment. There is
// one session for each server in a process, opened by the first call that needs it and
// closed when it was idle, when it broke, when its server was imported anew, and by Close.
// A Connector is safe for concurrent use; calls of one session run side by side.
package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/google/uuid"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign/countersign/internal/remote"
)

// Options are what the operator decides.
type Options struct {
	// NoPrograms refuses servers over stdio: an administrator could start any program on
	// this machine through one.
	NoPrograms bool
	// Networks are private networks in which servers may lie.
	Networks []netip.Prefix
	// OpenTimeout bounds connecting and listing, CallTimeout one call; 0 is 30 and 60
	// seconds. IdleTimeout closes a session that nobody used; 0 is ten minutes.
	OpenTimeout, CallTimeout, IdleTimeout time.Duration
	Version                               string // of this server, told to others
	Log                                   *slog.Logger
}

// Connector talks to servers.
type Connector struct {
	options Options

	mu       sync.Mutex
	closed   bool
	sessions map[uuid.UUID]*session
}

// New makes a connector that has no session yet.
func New(o Options) *Connector {
	defaults := func(d *time.Duration, otherwise time.Duration) {
		if *d == 0 {
			*d = otherwise
		}
	}
	defaults(&o.OpenTimeout, 30*time.Second)
	defaults(&o.CallTimeout, 60*time.Second)
	defaults(&o.IdleTimeout, 10*time.Minute)
	if o.Version == "" {
		o.Version = "0"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Connector{options: o, sessions: map[uuid.UUID]*session{}}
}

var _ remote.Connector = (*Connector)(nil)

// Check implements remote.Connector.
func (c *Connector) Check(to remote.Reach) error {
	if to.Transport == remote.Stdio {
		return c.checkProgram()
	}
	return checkAddress(to.URL)
}

// Probe implements remote.Connector.
func (c *Connector) Probe(ctx context.Context, to remote.Reach) ([]remote.Definition, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.OpenTimeout)
	defer cancel()
	s, err := c.connect(ctx, to)
	if err != nil {
		return nil, err
	}
	defer s.close()
	return list(ctx, s.ClientSession)
}

// List implements remote.Connector. A kept session that broke is opened again once:
// listing can be repeated.
func (c *Connector) List(ctx context.Context, to remote.Reach) ([]remote.Definition, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.OpenTimeout)
	defer cancel()
	var err error
	for range 2 {
		var s *session
		if s, err = c.session(ctx, to); err != nil {
			return nil, err
		}
		var listed []remote.Definition
		if listed, err = list(ctx, s.client.ClientSession); err == nil || ctx.Err() != nil {
			return listed, err
		}
		c.drop(s)
	}
	return nil, err
}

// Call implements remote.Connector.
func (c *Connector) Call(ctx context.Context, to remote.Reach, name string, arguments json.RawMessage) (remote.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.CallTimeout)
	defer cancel()
	s, err := c.session(ctx, to)
	if err != nil {
		return remote.Answer{}, fmt.Errorf("%w: %w", remote.ErrNotSent, err)
	}
	result, err := s.client.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		if !answered(err) && ctx.Err() == nil { // who gives up a call does not end the others' session
			c.drop(s)
		}
		return remote.Answer{}, fmt.Errorf("calling %s: %w", name, err)
	}
	if result.NeedsInput() {
		return remote.Answer{}, fmt.Errorf("calling %s: the server asks for input, which is not offered", name)
	}
	return remote.Answer{Text: textOf(result), IsError: result.IsError}, nil
}

// list reads every page of a server's tools.
func list(ctx context.Context, s *sdk.ClientSession) ([]remote.Definition, error) {
	var out []remote.Definition
	params := &sdk.ListToolsParams{}
	for range maxPages {
		page, err := s.ListTools(ctx, params)
		if err != nil {
			return nil, fmt.Errorf("listing its tools: %w", err)
		}
		for _, t := range page.Tools {
			schema, err := json.Marshal(t.InputSchema)
			if err != nil {
				return nil, fmt.Errorf("reading the input schema of %s: %w", t.Name, err)
			}
			out = append(out, remote.Definition{Name: t.Name, Description: t.Description, Schema: schema})
		}
		if page.NextCursor == "" {
			return out, nil
		}
		params = &sdk.ListToolsParams{Cursor: page.NextCursor}
	}
	return nil, errors.New("it lists its tools on pages without end")
}

// maxPages bounds how many pages of tools are read.
const maxPages = 50

// connection is an open session with what it is over.
type connection struct {
	*sdk.ClientSession
	release func()
}

// close ends it. What the server thinks of that does not matter.
func (c *connection) close() {
	_ = c.ClientSession.Close()
	c.release()
}

// connect opens a session.
func (c *Connector) connect(ctx context.Context, to remote.Reach) (*connection, error) {
	if to.Transport == remote.StreamableHTTP {
		transport, release, err := c.address(to)
		if err != nil {
			return nil, err
		}
		s, err := c.open(ctx, transport)
		if err != nil {
			release()
			return nil, err
		}
		return &connection{s, release}, nil
	}
	p, err := c.program(to)
	if err != nil {
		return nil, err
	}
	s, err := c.open(ctx, p)
	if err != nil {
		_ = p.Close()
		return nil, p.explain(err)
	}
	return &connection{s, func() { _ = p.Close() }}, nil
}

func (c *Connector) open(ctx context.Context, over sdk.Transport) (*sdk.ClientSession, error) {
	client := sdk.NewClient(&sdk.Implementation{Name: "countersign", Version: c.options.Version}, &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
	})
	client.AddSendingMiddleware(alwaysFresh)
	return client.Connect(ctx, over, nil)
}

// alwaysFresh lets no server say how long its list of tools may be kept: a changed
// definition would stay unseen for as long.
func alwaysFresh(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		result, err := next(ctx, method, r)
		if listed, is := result.(*sdk.ListToolsResult); is && listed != nil {
			listed.TTLMs = 0
		}
		return result, err
	}
}
