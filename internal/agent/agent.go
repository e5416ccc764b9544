package agent

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/guard"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/tool"
	"github.com/countersign/countersign/internal/world"
)

// Skills is what the runtime reads of the library.
type Skills interface {
	Configuration(ctx context.Context, id uuid.UUID) (library.Configuration, error)
	Provider(ctx context.Context, id uuid.UUID) (library.Provider, error)
	Source(ctx context.Context, id uuid.UUID) (library.Source, error)
	Task(ctx context.Context, id uuid.UUID) (library.Task, error)
	// Snippets gives a configuration's snippets in their order.
	Snippets(ctx context.Context, c library.Configuration) ([]library.Snippet, error)
	Offered(ctx context.Context, configurationID uuid.UUID) ([]library.Offered, error)
	OfferedByTask(ctx context.Context, taskID uuid.UUID) ([]library.Offered, error)
	Dossiers(ctx context.Context, skillIDs []uuid.UUID) ([]library.Dossier, error)
	Thresholds(ctx context.Context) (library.Thresholds, error)
	ToolSwitches(ctx context.Context) (map[string]bool, error)
	GroupSwitches(ctx context.Context) (map[tool.Group]bool, error)
	// NoteIntegrityFailure audits a failed integrity check once (RULES D6).
	NoteIntegrityFailure(ctx context.Context, d library.Dossier) error
}

// People gives the actor that a user is right now: disabled users are nobody.
type People interface {
	Actor(ctx context.Context, id uuid.UUID) (actor.Actor, error)
}

// Settings gives the settings that are in force now: an administrator may change them
// while the server runs (RULES I8).
type Settings interface {
	Values(ctx context.Context) (access.Values, error)
}

// Bell wakes whoever waits for a topic. A wake-up says only "look again".
type Bell interface {
	// Listen returns a channel that gets a value after each ring of any of the topics,
	// folded while nobody reads, and the function that ends the listening.
	Listen(topics ...change.Topic) (<-chan struct{}, func())
}

// Parts is what a runtime is made of.
type Parts struct {
	Store    Store
	Skills   Skills
	People   People
	Settings Settings
	Content  content.Reader
	Models   Models
	Tools    *tool.Box
	Budgets  Budgets // nil limits nothing
	Meter    Meter   // nil counts nothing
	World    world.World
	Bell     Bell
	// SkillID is how clients write a skill's id, and how a model reads it in a catalogue.
	SkillID func(uuid.UUID) string
	Log     *slog.Logger
	Secrets *guard.Current // what no text may hold; nil knows the shapes of secrets, and those of the installation
}

// Budgets says whether a user's runs with a configuration may ask a model.
type Budgets interface {
	// Check refuses with BUDGET_EXHAUSTED when they may not.
	Check(ctx context.Context, user, configuration uuid.UUID) error
}

// Meter counts what happens, for whoever watches the installation. It is called from many
// goroutines.
type Meter interface {
	// Asked is told of every turn that models were asked for: what it used, and how many of
	// them had to be passed over before one answered.
	Asked(used Consumption, passed int, failed bool)
	// OutOfBudget is told when a budget does not allow a start or a call.
	OutOfBudget()
}

// Agent is the runtime. Its methods are safe for concurrent use.
type Agent struct {
	Parts

	mu       sync.Mutex
	segments map[uuid.UUID]executing // what this process executes now, by run
	busy     sync.WaitGroup

	// unreadable are lost runs that were reported already; it belongs to Work.
	unreadable map[uuid.UUID]bool

	told    atomic.Int64  // when Secrets was last told, in nanoseconds
	leaving chan struct{} // closed once this process picks nothing up any more
	leave   func()
}

// executing is a segment under way. A run whose segment has parked it may be decided,
// and executed again, before that segment's goroutine has ended: the owner tells them apart.
type executing struct {
	owner string
	stop  context.CancelCauseFunc
}

// New makes a runtime. It executes nothing until Work is called.
func New(parts Parts) *Agent {
	if parts.Secrets == nil {
		parts.Secrets = &guard.Current{}
	}
	leaving := make(chan struct{})
	return &Agent{
		Parts: parts, segments: map[uuid.UUID]executing{}, unreadable: map[uuid.UUID]bool{},
		leaving: leaving, leave: sync.OnceFunc(func() { close(leaving) }),
	}
}

// Wait returns the run once it has settled or waits for a person, or as it stands
// after server.runWait. A caller that goes away cancels nothing.
func (a *Agent) Wait(ctx context.Context, id uuid.UUID) (Run, error) {
	values, err := a.Settings.Values(ctx)
	if err != nil {
		return Run{}, err
	}
	patience := time.NewTimer(values.RunWait)
	defer patience.Stop()
	rings, stop := a.Bell.Listen(change.RunTopic(id))
	defer stop()
	heal := time.NewTicker(healEvery)
	defer heal.Stop()
	for {
		r, err := a.Store.Run(ctx, id)
		if err != nil || r.Status.Terminal() || r.Status.Waiting() {
			return r, err
		}
		select {
		case <-rings:
		case <-heal.C:
		case <-patience.C:
			return r, nil
		case <-ctx.Done():
			return r, ctx.Err()
		}
	}
}

// healEvery is how often a waiter looks without being rung: a lost wake-up costs
// this much time and nothing else.
const healEvery = 2 * time.Second

// errLeaseLost ends a segment that no longer owns its run: it writes nothing more
// (RULES R6).
var errLeaseLost = fault.New(fault.Internal, "the lease on the run was lost")

// errShutdown is the cause of a segment's context once this process gives it up.
var errShutdown = fault.New(fault.Internal, "the server shuts down")

// errCancelled is the cause of a segment's context once its run was cancelled.
var errCancelled = fault.New(fault.Internal, "the run was cancelled")
