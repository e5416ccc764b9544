package graph

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"sync"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
	"github.com/countersign/countersign/internal/world"
)

var (
	admin  = actor.Actor{ID: uuid.MustParse("00000000-0000-7000-8000-000000000001"), Name: "Ada", Kind: actor.Person, Administrator: true}
	person = actor.Actor{ID: uuid.MustParse("00000000-0000-7000-8000-000000000002"), Name: "Per", Kind: actor.Person, Granted: actor.Default}
)

// asking is an operation under way.
type asking struct {
	t       *testing.T
	respond graphql.ResponseHandler
	ctx     context.Context
}

// ask begins an operation as a server does.
func ask(t *testing.T, ctx context.Context, rooms Rooms, by actor.Actor, query string, variables map[string]any) *asking {
	t.Helper()
	if rooms.Log == nil {
		rooms.Log = slog.New(slog.DiscardHandler)
	}
	api := New(rooms)
	exec := executor.New(api.Schema())
	exec.SetErrorPresenter(api.PresentError)
	exec.SetRecoverFunc(api.Recover)
	ctx = graphql.StartOperationTrace(actor.WithActor(ctx, by))
	op, errs := exec.CreateOperationContext(ctx, &graphql.RawParams{Query: query, Variables: variables, ReadTime: graphql.TraceTiming{}})
	if errs != nil {
		response := exec.DispatchError(graphql.WithOperationContext(ctx, op), errs)
		return &asking{t: t, ctx: ctx, respond: graphql.OneShot(response)}
	}
	respond, ctx := exec.DispatchOperation(ctx, op)
	return &asking{t: t, ctx: ctx, respond: respond}
}

// answer is a response as a client reads it.
type answer struct {
	Data   map[string]any
	Errors []struct {
		Message    string
		Path       []any
		Extensions map[string]any
	}
}

// next is the operation's next response; nil when there is none.
func (a *asking) next() *answer {
	a.t.Helper()
	response := a.respond(a.ctx)
	if response == nil {
		return nil
	}
	raw, err := json.Marshal(response)
	if err != nil {
		a.t.Fatal(err)
	}
	var out answer
	if err := json.Unmarshal(raw, &out); err != nil {
		a.t.Fatalf("%v in %s", err, raw)
	}
	return &out
}

// code is the code of the only error.
func (a *answer) code() string {
	if len(a.Errors) != 1 {
		return ""
	}
	code, _ := a.Errors[0].Extensions["code"].(string)
	return code
}

// fakeAgent answers what a test puts into it; what it is not asked for panics.
type fakeAgent struct {
	Agent
	runs       map[uuid.UUID]agent.Run
	events     []run.Event
	failure    error // of Follow, after the events
	panics     bool  // Follow, after the events
	start      func(agent.StartRequest) (agent.Run, error)
	runTask    func(agent.TaskRequest) (agent.Run, error)
	decide     func(agent.Decision) (agent.Run, error)
	endProcess func(uuid.UUID) (agent.Run, error)
	waited     int
	card       *agent.Card
	cardErr    error
}

func (f *fakeAgent) View(_ context.Context, by actor.Actor, id uuid.UUID) (agent.Run, error) {
	r, ok := f.runs[id]
	if !ok || by.IsNobody() {
		return agent.Run{}, fault.New(fault.NotFound, "there is no such run")
	}
	return r, nil
}

func (f *fakeAgent) Start(_ context.Context, _ actor.Actor, r agent.StartRequest) (agent.Run, error) {
	return f.start(r)
}

func (f *fakeAgent) RunTask(_ context.Context, _ actor.Actor, r agent.TaskRequest) (agent.Run, error) {
	return f.runTask(r)
}

func (f *fakeAgent) Decide(_ context.Context, _ actor.Actor, d agent.Decision) (agent.Run, error) {
	return f.decide(d)
}

func (f *fakeAgent) EndProcess(_ context.Context, _ actor.Actor, id uuid.UUID) (agent.Run, error) {
	return f.endProcess(id)
}

func (f *fakeAgent) Wait(_ context.Context, id uuid.UUID) (agent.Run, error) {
	f.waited++
	return f.runs[id], nil
}

func (f *fakeAgent) Card(context.Context, actor.Actor, agent.Run) (*agent.Card, error) {
	return f.card, f.cardErr
}

func (f *fakeAgent) Events(_ context.Context, _ actor.Actor, _ uuid.UUID, after, limit int) ([]run.Event, error) {
	from := min(after+1, len(f.events))
	return f.events[from:min(from+limit, len(f.events))], nil
}

func (f *fakeAgent) Follow(_ context.Context, _ actor.Actor, _ uuid.UUID, after int) iter.Seq2[run.Event, error] {
	return func(yield func(run.Event, error) bool) {
		for _, e := range f.events[min(after+1, len(f.events)):] {
			if !yield(e, nil) {
				return
			}
		}
		if f.panics {
			panic("nil map")
		}
		if f.failure != nil {
			yield(run.Event{}, f.failure)
		}
	}
}

func (f *fakeAgent) FollowInbox(context.Context, actor.Actor) iter.Seq2[agent.InboxChange, error] {
	return func(func(agent.InboxChange, error) bool) {}
}

func (f *fakeAgent) FollowText(context.Context, actor.Actor, uuid.UUID) iter.Seq2[agent.TextDelta, error] {
	return func(yield func(agent.TextDelta, error) bool) {
		for _, d := range []agent.TextDelta{{Round: 2, Text: "👋"}, {Round: 2, Offset: 2, Text: "!"}} {
			if !yield(d, nil) {
				return
			}
		}
		if f.failure != nil {
			yield(agent.TextDelta{}, f.failure)
		}
	}
}

// fakeLibrary is a store of skills that counts how often it is read; what it is not asked for panics.
type fakeLibrary struct {
	library.Store
	dossiers []library.Dossier

	mu     sync.Mutex
	reads  int
	source library.Source
}

func (f *fakeLibrary) Source(context.Context, uuid.UUID) (library.Source, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.source, nil
}

func (f *fakeLibrary) set(s library.SyncStatus, p library.Progress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.source.SyncStatus, f.source.Progress = s, p
}

func (f *fakeLibrary) count() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
}

func (f *fakeLibrary) Skills(_ context.Context, _ library.SkillFilter, p library.Page) ([]library.Skill, error) {
	f.count()
	var out []library.Skill
	for _, d := range f.dossiers {
		if len(out) < p.Limit && d.Skill.ID.String() > p.Cursor.String() {
			out = append(out, d.Skill)
		}
	}
	return out, nil
}

func (f *fakeLibrary) Dossiers(_ context.Context, ids []uuid.UUID) ([]library.Dossier, error) {
	f.count()
	var out []library.Dossier
	for _, id := range ids {
		for _, d := range f.dossiers {
			if d.Skill.ID == id {
				out = append(out, d)
			}
		}
	}
	return out, nil
}

func (f *fakeLibrary) Values(context.Context) (access.Values, error) {
	f.count()
	return access.Values{MinTrustLevel: "untrusted", InstructionTrustLevel: "verified", SkillMaxBytes: 24000}, nil
}

func (f *fakeLibrary) Actor(context.Context, uuid.UUID) (actor.Actor, error) { return person, nil }

func (f *fakeLibrary) library() *library.Library {
	return &library.Library{Store: f, Accounts: f, World: world.Real()}
}

// fakeTrail is a trail of entries, oldest first.
type fakeTrail struct {
	audit.Reader
	mu      sync.Mutex
	entries []audit.Entry
}

func (f *fakeTrail) AuditSize(context.Context) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int64(len(f.entries)), nil
}

func (f *fakeTrail) AuditEntries(_ context.Context, filter audit.Filter, p audit.Page) ([]audit.Entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []audit.Entry
	for i := range f.entries {
		e := f.entries[i]
		if !p.OldestFirst {
			e = f.entries[len(f.entries)-1-i]
		}
		beyond := p.Beyond == nil || (p.OldestFirst && e.Index > *p.Beyond) || (!p.OldestFirst && e.Index < *p.Beyond)
		if beyond && len(out) < p.Limit && (filter.Skill == uuid.Nil || filter.Skill == e.Skill) {
			out = append(out, e)
		}
	}
	return out, nil
}

// fakePeople is who there is.
type fakePeople struct {
	access.Store
	users map[uuid.UUID]access.User
}

func (f fakePeople) User(_ context.Context, id uuid.UUID) (access.User, error) {
	u, ok := f.users[id]
	if !ok {
		return access.User{}, fault.New(fault.NotFound, "no such user")
	}
	return u, nil
}

func people() *access.Access {
	return &access.Access{Store: fakePeople{users: map[uuid.UUID]access.User{
		admin.ID:  {ID: admin.ID, Name: admin.Name, Kind: admin.Kind, Administrator: true, Enabled: true},
		person.ID: {ID: person.ID, Name: person.Name, Kind: person.Kind, Enabled: true, Permissions: actor.Default},
	}}}
}

func noTools(t *testing.T) *tool.Box {
	t.Helper()
	r, err := tool.New()
	if err != nil {
		t.Fatal(err)
	}
	return tool.NewBox(r, nil)
}
