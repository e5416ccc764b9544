// Package remote holds what is known of other servers' tools: which servers there are,
// the definitions that were pinned when they were imported, who reviewed them, and what
// became of them since. Its use cases are the methods of Room, one verb a file; Tools
// gives the runtime what may be called, each tool bound to its pinned definition
// (RULES G1, G8).
//
// What a server says of itself enters only through judge, which bounds it, and reaches a
// model only as it was pinned. Sessions with servers are internal/mcp's, behind Connector.
// A Room keeps nothing between calls and is safe for concurrent use when its fields are.
package remote

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/world"
)

// Transport is how a server is reached.
type Transport string

// The transports.
const (
	Stdio          Transport = "stdio"           // a program on this machine, over its input and output
	StreamableHTTP Transport = "streamable_http" // a server at an address
)

// Server is a server whose tools were imported. Its secrets are not in it.
type Server struct {
	ID          uuid.UUID
	Name        string
	Transport   Transport
	Command     string
	Args        []string
	EnvNames    []string
	URL         string
	HeaderNames []string
	Enabled     bool
	Class       Class
	Rejected    []Rejected
	Revision    int // raised by every import
	CreatedAt   time.Time
	ImportedAt  time.Time
}

// Secrets are what a server is reached with and nobody reads back.
type Secrets struct {
	Env     map[string]string
	Headers map[string]string
}

// Reach is a server with everything that is needed to reach it.
type Reach struct {
	Server
	Secrets
}

// Definition is what a model is told of a tool.
type Definition struct {
	Name        string // as the server calls it
	Description string
	Schema      json.RawMessage
}

// Status is how a tool's pinned definition stands to its server's present one.
type Status string

// The states.
const (
	Pinned  Status = "pinned"  // the server has this definition
	Drifted Status = "drifted" // it has another one, which nobody reviewed
	Gone    Status = "gone"    // it has the tool no more
)

// Tool is an imported tool.
type Tool struct {
	ID         uuid.UUID
	ServerID   uuid.UUID
	ServerName string
	Definition        // as pinned
	Digest     string // of the pinned definition
	Status     Status
	Found      *Definition // the server's present definition; nil unless drifted
	// FoundDigest is of Found; empty when there is none.
	FoundDigest      string
	ApprovalRequired bool
	ReviewerID       uuid.UUID
	ReviewedAt       time.Time
}

// FullName is what models, switches and skills call the tool (RULES S5).
func (t Tool) FullName() string { return FullName(t.ServerName, t.Name) }

// Rejected is a tool that a server has and that could not be imported.
type Rejected struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Answer is what a server answered to a call.
type Answer struct {
	Text    string
	IsError bool // the tool says that it failed
}

// ErrNotSent is in the chain of a call's error when the server never got it.
var ErrNotSent = errors.New("the call was not sent")

// Connector talks to servers. It keeps at most one session for each in this process and
// opens it when it is needed; another revision of a server is another session.
type Connector interface {
	// Check refuses a server that this process may not reach at all.
	Check(Reach) error
	// Probe lists the tools of a server in a session of its own, which it closes.
	Probe(ctx context.Context, to Reach) ([]Definition, error)
	// List lists them in the kept session.
	List(ctx context.Context, to Reach) ([]Definition, error)
	// Call calls a tool. Its error is ErrNotSent when nothing can have happened.
	Call(ctx context.Context, to Reach, name string, arguments json.RawMessage) (Answer, error)
	// Forget closes the session with a server.
	Forget(server uuid.UUID)
}

// Store is what the room needs kept. Every read returns fault.NotFound for what is not
// there.
type Store interface {
	change.Applier

	MCPServer(ctx context.Context, id uuid.UUID) (Server, error)
	MCPServerNamed(ctx context.Context, name string) (Server, error)
	// MCPServers pages through servers in the order of their creation ids.
	MCPServers(ctx context.Context, page library.Page) ([]Server, error)
	MCPSecrets(ctx context.Context, id uuid.UUID) (Secrets, error)
	// MCPTools lists the tools of these servers, of all when none is named, by server and
	// name.
	MCPTools(ctx context.Context, servers ...uuid.UUID) ([]Tool, error)
	// SwitchesOf lists the rows of the switches that were set for these tools.
	SwitchesOf(ctx context.Context, names []string) ([]uuid.UUID, error)
}

// Room is the use cases.
type Room struct {
	Store     Store
	Connector Connector
	World     world.World
	Log       *slog.Logger
}

const (
	maxServers = 50
	attempts   = 16 // how often a use case judges again after it lost a race
)

// allServers is the one page that holds every server there can be.
var allServers = library.Page{Limit: maxServers + 1}

func needAdministrator(by actor.Actor) error {
	switch {
	case by.IsNobody():
		return fault.New(fault.Unauthenticated, "Sign in first.")
	case !by.Administrator:
		return fault.New(fault.Forbidden, "Only an administrator may do this.")
	}
	return nil
}

// Find reads a server; administrators only.
func (r *Room) Find(ctx context.Context, by actor.Actor, id uuid.UUID) (Server, error) {
	if err := needAdministrator(by); err != nil {
		return Server{}, err
	}
	return r.Store.MCPServer(ctx, id)
}

// List pages through the servers; administrators only.
func (r *Room) List(ctx context.Context, by actor.Actor, page library.Page) ([]Server, error) {
	if err := needAdministrator(by); err != nil {
		return nil, err
	}
	return r.Store.MCPServers(ctx, page)
}

// ToolsOf lists the tools of a server by name; administrators only.
func (r *Room) ToolsOf(ctx context.Context, by actor.Actor, server uuid.UUID) ([]Tool, error) {
	if err := needAdministrator(by); err != nil {
		return nil, err
	}
	return r.Store.MCPTools(ctx, server)
}

// ToolNamed reads a tool by its full name; administrators only.
func (r *Room) ToolNamed(ctx context.Context, by actor.Actor, full string) (Tool, error) {
	if err := needAdministrator(by); err != nil {
		return Tool{}, err
	}
	server, name, ok := splitName(full)
	if ok {
		s, err := r.Store.MCPServerNamed(ctx, server)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return Tool{}, err
		}
		if err == nil {
			tools, err := r.Store.MCPTools(ctx, s.ID)
			if err != nil {
				return Tool{}, err
			}
			for _, t := range tools {
				if t.Name == name {
					return t, nil
				}
			}
		}
	}
	return Tool{}, fault.New(fault.NotFound, "There is no remote tool %q; its name is mcp__<server>__<tool>.", clip(full))
}
