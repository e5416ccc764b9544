// Package graph is the API: the schema, described element by element in schema/, and resolvers that read the caller, call one use case and map the
// result. What is decided here is only what the API itself says: ids, cursors, page sizes, enum values, which types a refusal becomes, and what a
// client may read of an error. Rules, permissions and state live in the use cases; types of tables never get here, and no adapter is imported.
//
// Resolvers of one operation run concurrently, and so do operations; nothing here is shared between them but the rooms. A subscription pulls its next
// step only when the last one is taken, so a slow reader costs nothing.
package graph

import (
	"context"
	"iter"
	"log/slog"

	"github.com/99designs/gqlgen/graphql"
	"github.com/google/uuid"

	"github.com/countersign/countersign/graph/generated"
	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/budget"
	"github.com/countersign/countersign/internal/chat"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/notify"
	"github.com/countersign/countersign/internal/once"
	"github.com/countersign/countersign/internal/remote"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// Agent is what the API asks of the runtime; *agent.Agent is one.
type Agent interface {
	Start(ctx context.Context, by actor.Actor, request agent.StartRequest) (agent.Run, error)
	RunTask(ctx context.Context, by actor.Actor, request agent.TaskRequest) (agent.Run, error)
	Wait(ctx context.Context, id uuid.UUID) (agent.Run, error)
	Decide(ctx context.Context, by actor.Actor, decision agent.Decision) (agent.Run, error)
	EditProposal(ctx context.Context, by actor.Actor, edit agent.Edit) (agent.Run, error)
	SubmitInput(ctx context.Context, by actor.Actor, input agent.Input) (agent.Run, error)
	Cancel(ctx context.Context, by actor.Actor, id uuid.UUID) (bool, error)
	CancelIfWaiting(ctx context.Context, by actor.Actor, id uuid.UUID) (won bool, status run.Status, err error)
	EndProcess(ctx context.Context, by actor.Actor, id uuid.UUID) (agent.Run, error)
	View(ctx context.Context, by actor.Actor, id uuid.UUID) (agent.Run, error)
	Card(ctx context.Context, by actor.Actor, r agent.Run) (*agent.Card, error)
	Runs(ctx context.Context, by actor.Actor, filter agent.Filter, page agent.Page) ([]agent.Run, error)
	Inbox(ctx context.Context, by actor.Actor, page agent.Page) ([]agent.Run, error)
	Events(ctx context.Context, by actor.Actor, id uuid.UUID, after, limit int) ([]run.Event, error)
	Explain(ctx context.Context, by actor.Actor, configuration uuid.UUID, of *uuid.UUID) ([]tool.Explained, error)
	Follow(ctx context.Context, by actor.Actor, id uuid.UUID, after int) iter.Seq2[run.Event, error]
	FollowInbox(ctx context.Context, by actor.Actor) iter.Seq2[agent.InboxChange, error]
	FollowText(ctx context.Context, by actor.Actor, id uuid.UUID) iter.Seq2[agent.TextDelta, error]
}

// Rooms are the use cases behind the API.
type Rooms struct {
	Access   *access.Access
	Library  *library.Library
	Content  *content.Content
	Agent    Agent
	Chat     *chat.Chat
	Tools    *tool.Box
	Remote   *remote.Room
	Notify   *notify.Room
	Spending *budget.Room
	Audit    audit.Reader
	Proofs   *audit.Log
	Keys     *once.Keys
	Log      *slog.Logger

	// Bell wakes subscriptions to the audit trail and to syncs; without one they look again now and then.
	Bell agent.Bell
}

// Resolver is the root of the resolvers. It is safe for concurrent use when its rooms are.
type Resolver struct{ Rooms }

// API is what a server needs to answer GraphQL.
type API struct{ resolver *Resolver }

// New makes the API over its rooms.
func New(rooms Rooms) *API { return &API{resolver: &Resolver{rooms}} }

// Schema is what an executor runs.
func (a *API) Schema() graphql.ExecutableSchema {
	return &schema{
		ExecutableSchema: generated.NewExecutableSchema(generated.Config{Resolvers: a.resolver, Complexity: complexity()}),
		resolver:         a.resolver,
	}
}

// caller is who makes the request.
func caller(ctx context.Context) actor.Actor { return actor.ActorFrom(ctx) }
