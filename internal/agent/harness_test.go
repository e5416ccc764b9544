package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/budget"
	"github.com/countersign/countersign/internal/builtin"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/ingest"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/live"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/skill"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
	"github.com/countersign/countersign/internal/tool"
	"github.com/countersign/countersign/internal/world"
)

// house is the runtime with every room it stands on, over a real database, with a
// model that a test writes by hand.
type house struct {
	t       *testing.T
	store   *store.Store
	access  *access.Access
	content *content.Content
	library *library.Library
	parts   agent.Parts
	agent   *agent.Agent
	model   *fakeModel
	remote  *remoteTools
	named   *sync.Map // agent.Model by the name of its provider; the others have model
	admin   actor.Actor
	source  library.Source
	config  library.Configuration
	budgets *budget.Room
	drain   func() // stops the worker and waits for its segments
}

// skillFiles is the repository the tests sync: a process, a style, and a reference
// that nobody approves.
var skillFiles = fstest.MapFS{
	"tour/SKILL.md": {Data: []byte("---\nname: Tour\ndescription: d\nprocess: true\n" +
		"allowed-tools: get_page, report_progress, update_element, ask_choice\n---\nGo point by point.\n")},
	"style/SKILL.md":     {Data: []byte("---\nname: Style\ndescription: d\n---\nWrite short sentences.\n")},
	"reference/SKILL.md": {Data: []byte("---\nname: Reference\ndescription: d\n---\nFENCED-REFERENCE-TEXT\n")},
}

// each runs a test over both databases.
func each(t *testing.T, test func(*house)) {
	t.Helper()
	meddled(t, func(s *store.Store) agent.Store { return s }, test)
}

// meddled is each with a store that the test stands in front of.
func meddled(t *testing.T, meddle func(*store.Store) agent.Store, test func(*house)) {
	t.Helper()
	for _, database := range storetest.URLs {
		t.Run(database.Name, func(t *testing.T) {
			rings := &live.Hub{}
			s := storetest.OpenAt(t, database.URL(t), store.Options{Bell: rings})
			test(build(t, s, rings, meddle(s), world.Real()))
		})
	}
}

// twice is each with two replicas: the house's own, and one with connections of its
// own, which works the same queue.
func twice(t *testing.T, test func(h *house, replicas [2]*agent.Agent)) {
	t.Helper()
	for _, database := range storetest.URLs {
		t.Run(database.Name, func(t *testing.T) {
			url, rings := database.URL(t), &live.Hub{}
			first, second := storetest.OpenAt(t, url, store.Options{Bell: rings}), storetest.OpenAt(t, url, store.Options{Bell: rings})
			h := build(t, first, rings, first, world.Real())
			replica := h.second(second, second, nil)
			test(h, [2]*agent.Agent{h.agent, replica})
		})
	}
}

// second is another replica with a store of its own, which writes through applied, and
// models of its own if there are any.
func (h *house) second(s *store.Store, applied agent.Store, models agent.Models) *agent.Agent {
	h.t.Helper()
	other := h.parts
	people := &access.Access{Store: s, World: world.Real()}
	other.Store, other.People, other.Settings, other.Content = applied, people, people, content.New(s, world.Real())
	other.Skills = &library.Library{Store: s, World: world.Real(), Accounts: people}
	if models != nil {
		other.Models = models
	}
	replica := agent.New(other)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); replica.Work(ctx) }()
	h.t.Cleanup(func() { stop(); <-done })
	return replica
}

// build furnishes a house; the runtime writes through applied, which may be a store
// that a test interferes with.
func build(t *testing.T, s *store.Store, rings *live.Hub, applied agent.Store, w world.World) *house {
	t.Helper()
	h := &house{t: t, store: s, model: &fakeModel{}, named: &sync.Map{}, remote: &remoteTools{}}
	host, err := ingest.Memory("acme", "skills", skillFiles)
	h.ok(err)
	h.access = &access.Access{Store: s, World: w}
	h.content = content.New(s, w)
	tools, err := tool.New(builtin.All(h.content, nil)...)
	h.ok(err)
	h.library = &library.Library{Store: s, World: w, Accounts: h.access, Fetcher: ingest.New(host)}
	h.budgets = &budget.Room{Store: s, World: w, Known: func(context.Context, budget.Scope, uuid.UUID) (bool, error) { return true, nil }}
	h.parts = agent.Parts{
		Budgets: h.budgets,
		Store:   applied, Skills: h.library, People: h.access, Settings: h.access, Content: h.content,
		Models: models{h.model, h.named}, Tools: tool.NewBox(tools, h.remote), World: w, Bell: rings, SkillID: skillID, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	h.agent = agent.New(h.parts)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); h.agent.Work(ctx) }()
	h.drain = func() { stop(); <-done }
	t.Cleanup(h.drain)
	h.furnish()
	return h
}

// skillID is how a model of the tests reads a skill's id.
func skillID(id uuid.UUID) string { return "skl_" + id.String() }

// furnish signs in an administrator and makes a page, a source, a configuration.
func (h *house) furnish() {
	h.t.Helper()
	ctx := context.Background()
	admin, err := h.access.EnsureBuiltIn(ctx)
	h.ok(err)
	h.admin = admin.Actor()
	for _, c := range []content.Creation{
		{Table: content.PageTable, ID: "home", Fields: map[string]any{"title": "Home"}},
		{Table: content.ElementTable, ID: "hello", ParentID: "home", Fields: map[string]any{"kind": "text", "text": "Helo"}},
	} {
		_, err := h.content.Create(ctx, h.admin, c)
		h.ok(err)
	}
	h.source, err = h.library.CreateSource(ctx, h.admin, library.NewSource{
		Title: "Acme", Type: library.Repo, URL: "https://github.com/acme/skills", TrustLevel: skill.Verified,
	})
	h.ok(err)
	_, err = h.library.Sync(ctx, h.admin, h.source.ID)
	h.ok(err)
	provider, err := h.library.CreateProvider(ctx, h.admin, library.NewProvider{
		Name: "Fake", Kind: library.Scripted, Script: "default: none",
	})
	h.ok(err)
	h.config, err = h.library.CreateConfiguration(ctx, h.admin, library.NewConfiguration{
		Name: "Editors", ProviderID: provider.ID, Model: "m", SystemPrompt: "You help editors.", MaxIterations: 10,
	})
	h.ok(err)
	for _, name := range []string{"update_element", "update_page_metadata", "create_element_draft"} {
		h.ok(h.library.SetToolEnabled(ctx, h.admin, name, true))
	}
}

func (h *house) ok(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// skill finds a synced skill by its folder.
func (h *house) skill(folder string) library.Skill {
	h.t.Helper()
	all, err := h.store.SkillsOf(context.Background(), h.source.ID)
	h.ok(err)
	for _, s := range all {
		if s.Identifier == folder {
			return s
		}
	}
	h.t.Fatalf("no skill %s among %d", folder, len(all))
	return library.Skill{}
}

func (h *house) approve(folder string) library.Skill {
	h.t.Helper()
	s := h.skill(folder)
	_, err := h.library.Approve(context.Background(), h.admin, library.ApproveInput{SkillID: s.ID, Digest: string(s.StoredDigest)})
	h.ok(err)
	return s
}

func (h *house) offer(folder string, mode library.LoadMode) library.Offered {
	h.t.Helper()
	s := h.skill(folder)
	_, err := h.library.SetSkillEnabled(context.Background(), h.admin, s.ID, true)
	h.ok(err)
	o, err := h.library.Attach(context.Background(), h.admin, library.AttachInput{SkillID: s.ID, ConfigurationID: h.config.ID, LoadMode: mode})
	h.ok(err)
	return o
}

// person makes somebody with the permissions of a new person and those given.
func (h *house) person(name string, extra ...actor.Permission) actor.Actor {
	h.t.Helper()
	ctx := context.Background()
	u, err := h.access.CreateUser(ctx, h.admin, access.NewUser{Name: name, Kind: actor.Person})
	h.ok(err)
	for _, p := range extra {
		_, err := h.access.GrantPermission(ctx, h.admin, u.ID, p)
		h.ok(err)
	}
	a, err := h.access.Actor(ctx, u.ID)
	h.ok(err)
	return a
}

// tour is a request that invokes the process on the page.
func (h *house) tour() agent.StartRequest {
	return agent.StartRequest{
		ConfigurationID: h.config.ID,
		Messages:        []prompt.Message{{Role: prompt.User, Text: "Go."}},
		Invocation:      &agent.Invocation{Skill: h.skill("tour").ID, Subject: &tool.Record{Table: "page", ID: "home"}},
	}
}

func (h *house) plain() agent.StartRequest {
	return agent.StartRequest{ConfigurationID: h.config.ID, Messages: []prompt.Message{{Role: prompt.User, Text: "Go."}}}
}

// start starts a run and waits until it rests.
func (h *house) start(by actor.Actor, req agent.StartRequest) agent.Run {
	h.t.Helper()
	r, err := h.agent.Start(context.Background(), by, req)
	h.ok(err)
	return h.settled(r.ID)
}

func (h *house) settled(id uuid.UUID) agent.Run {
	h.t.Helper()
	r, err := h.agent.Wait(context.Background(), id)
	h.ok(err)
	return r
}

// decide takes a decision on the card as it stands and waits until the run rests.
func (h *house) decide(by actor.Actor, r agent.Run, approve bool, reason agent.Answer) agent.Run {
	h.t.Helper()
	_, err := h.agent.Decide(context.Background(), by, agent.Decision{Run: r.ID, TurnDigest: r.TurnDigest, Approve: approve, Reason: reason})
	h.ok(err)
	return h.settled(r.ID)
}

func (h *house) text(element string) string {
	h.t.Helper()
	r, err := h.content.Read(context.Background(), h.admin, content.ElementTable, element)
	h.ok(err)
	return fmt.Sprint(r.Fields["text"])
}

func (h *house) events(id uuid.UUID) []run.Event {
	h.t.Helper()
	events, err := h.store.Events(context.Background(), id, -1, 1000)
	h.ok(err)
	for i, e := range events {
		if e.Sequence != i {
			h.t.Errorf("R5 event %d has the sequence %d", i, e.Sequence)
		}
	}
	return events
}

func kinds(events []run.Event) []run.EventKind {
	out := make([]run.EventKind, len(events))
	for i, e := range events {
		out[i] = e.Kind
	}
	return out
}

// trail lists what was audited of a run, oldest first.
func (h *house) trail(id uuid.UUID) []audit.Event {
	h.t.Helper()
	entries, err := h.store.AuditEntries(context.Background(), audit.Filter{Run: id}, audit.Page{Limit: 1000, OldestFirst: true})
	h.ok(err)
	out := make([]audit.Event, len(entries))
	for i, e := range entries {
		out[i] = e.Event
	}
	return out
}

// models gives every provider the same fake, but for those that a test names.
type models struct {
	model *fakeModel
	named *sync.Map
}

func (m models) Open(p library.Provider) (agent.Model, error) {
	if named, is := m.named.Load(p.Name); is {
		return named.(agent.Model), nil
	}
	return m.model, nil
}

// fakeModel answers from a list, one turn after the other, and remembers what it was
// asked. Beyond its list it answers "Done.".
type fakeModel struct {
	mu       sync.Mutex
	turns    []func(context.Context) (agent.Turn, error)
	requests []agent.TurnRequest
}

func (m *fakeModel) Turn(ctx context.Context, request agent.TurnRequest, onText func(string)) (agent.Turn, error) {
	m.mu.Lock()
	n := len(m.requests)
	m.requests = append(m.requests, request)
	var turn func(context.Context) (agent.Turn, error)
	if n < len(m.turns) {
		turn = m.turns[n]
	}
	m.mu.Unlock()
	if turn == nil {
		return agent.Turn{Text: "Done."}, nil
	}
	return turn(context.WithValue(ctx, writing{}, onText))
}

// writing is under which a turn finds what takes its text while it is written.
type writing struct{}

func write(ctx context.Context, delta string) { ctx.Value(writing{}).(func(string))(delta) }

// says adds turns that call tools: to the list, or from here on where it has ended.
func (m *fakeModel) says(turns ...[]prompt.Call) {
	for _, calls := range turns {
		m.does(func(context.Context) (agent.Turn, error) { return agent.Turn{Calls: calls}, nil })
	}
}

func (m *fakeModel) does(turn func(context.Context) (agent.Turn, error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.turns) < len(m.requests) {
		m.turns = append(m.turns, nil) // what was answered beyond the list
	}
	m.turns = append(m.turns, turn)
}

func (m *fakeModel) asked(n int) agent.TurnRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests[n]
}

func (m *fakeModel) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.requests)
}

// calls makes a turn of calls with ids by position.
func calls(pairs ...string) []prompt.Call {
	var out []prompt.Call
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, prompt.Call{ID: fmt.Sprintf("call_%d", i/2), Tool: pairs[i], Arguments: json.RawMessage(pairs[i+1])})
	}
	return out
}

// fix is the write that the tests propose.
const fix = `{"id":"hello","fields":{"text":"Hello"}}`
