package chat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/builtin"
	"github.com/countersign/countersign/internal/chat"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/ingest"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/live"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/skill"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
	"github.com/countersign/countersign/internal/tool"
	"github.com/countersign/countersign/internal/world"
)

// house is conversations with every room they stand on, over a real database, with a model
// that a test writes by hand.
type house struct {
	t       *testing.T
	store   *store.Store
	access  *access.Access
	content *content.Content
	library *library.Library
	agent   *agent.Agent
	chat    *chat.Chat
	model   *fakeModel
	admin   actor.Actor
	config  library.Configuration
	tour    library.Skill
	style   library.Skill
}

var skillFiles = fstest.MapFS{
	"tour/SKILL.md": {Data: []byte("---\nname: Tour\ndescription: d\nprocess: true\n" +
		"allowed-tools: get_page, report_progress, highlight_record, update_element, ask_choice, list_open_points\n---\nGo point by point.\n")},
	"style/SKILL.md": {Data: []byte("---\nname: Style\ndescription: d\n---\nWrite short sentences.\n")},
}

// each runs a test over both databases, with the workers running.
func each(t *testing.T, test func(*house)) {
	t.Helper()
	for _, database := range storetest.URLs {
		t.Run(database.Name, func(t *testing.T) {
			rings := &live.Hub{}
			h := build(t, storetest.OpenAt(t, database.URL(t), store.Options{Bell: rings}), rings)
			h.work()
			test(h)
		})
	}
}

func build(t *testing.T, s *store.Store, rings *live.Hub) *house {
	t.Helper()
	h := &house{t: t, store: s, model: &fakeModel{}}
	w, quiet := world.Real(), slog.New(slog.NewTextHandler(io.Discard, nil))
	host, err := ingest.Memory("acme", "skills", skillFiles)
	h.ok(err)
	h.access = &access.Access{Store: s, World: w}
	h.content = content.New(s, w)
	tools, err := tool.New(builtin.All(h.content, chat.Points{Store: s, Content: h.content})...)
	h.ok(err)
	h.library = &library.Library{Store: s, World: w, Accounts: h.access, Fetcher: ingest.New(host)}
	h.agent = agent.New(agent.Parts{
		Store: s, Skills: h.library, People: h.access, Settings: h.access, Content: h.content,
		Models: models{h.model}, Tools: tool.NewBox(tools, nil), World: w, Bell: rings, SkillID: uuid.UUID.String, Log: quiet,
	})
	h.chat = &chat.Chat{
		Store: s, Runtime: h.agent, Runs: s, Skills: h.library, People: h.access, Settings: h.access, Content: h.content,
		World: w, Bell: rings, Log: quiet,
	}
	h.furnish()
	return h
}

// work lets the workers run until the test ends.
func (h *house) work() {
	ctx, stop := context.WithCancel(context.Background())
	var both sync.WaitGroup
	both.Go(func() { h.agent.Work(ctx) })
	both.Go(func() { h.chat.Work(ctx) })
	h.t.Cleanup(func() { stop(); both.Wait() })
}

func (h *house) furnish() {
	ctx := context.Background()
	admin, err := h.access.EnsureBuiltIn(ctx)
	h.ok(err)
	h.admin = admin.Actor()
	for _, c := range []content.Creation{
		{Table: content.PageTable, ID: "home", Fields: map[string]any{"title": "Home"}},
		{Table: content.ElementTable, ID: "hello", ParentID: "home", Fields: map[string]any{"kind": "text", "text": "Helo"}},
		{Table: content.ElementTable, ID: "bye", ParentID: "home", Fields: map[string]any{"kind": "text", "text": "Bey"}},
	} {
		_, err := h.content.Create(ctx, h.admin, c)
		h.ok(err)
	}
	source, err := h.library.CreateSource(ctx, h.admin, library.NewSource{
		Title: "Acme", Type: library.Repo, URL: "https://github.com/acme/skills", TrustLevel: skill.Verified,
	})
	h.ok(err)
	_, err = h.library.Sync(ctx, h.admin, source.ID)
	h.ok(err)
	provider, err := h.library.CreateProvider(ctx, h.admin, library.NewProvider{Name: "Fake", Kind: library.Scripted, Script: "default: none"})
	h.ok(err)
	h.config, err = h.library.CreateConfiguration(ctx, h.admin, library.NewConfiguration{
		Name: "Editors", ProviderID: provider.ID, Model: "m", SystemPrompt: "You help editors.", MaxIterations: 10,
	})
	h.ok(err)
	for _, name := range []string{"update_element", "create_element_draft"} {
		h.ok(h.library.SetToolEnabled(ctx, h.admin, name, true))
	}
	all, err := h.store.SkillsOf(ctx, source.ID)
	h.ok(err)
	for _, s := range all {
		_, err := h.library.Approve(ctx, h.admin, library.ApproveInput{SkillID: s.ID, Digest: string(s.StoredDigest)})
		h.ok(err)
		_, err = h.library.SetSkillEnabled(ctx, h.admin, s.ID, true)
		h.ok(err)
		_, err = h.library.Attach(ctx, h.admin, library.AttachInput{SkillID: s.ID, ConfigurationID: h.config.ID, LoadMode: library.OnDemand})
		h.ok(err)
		if s.Identifier == "tour" {
			h.tour = s
		} else {
			h.style = s
		}
	}
}

func (h *house) ok(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// refused holds an error against the refusal that was wanted.
func (h *house) refused(err error, want fault.Code) {
	h.t.Helper()
	if r, ok := fault.AsRefusal(err); !ok || r.Code != want {
		h.t.Errorf("got %v, want the refusal %s", err, want)
	}
}

// plain makes a conversation without a skill.
func (h *house) plain() chat.Conversation {
	h.t.Helper()
	c, err := h.chat.Start(context.Background(), h.admin, chat.NewConversation{ConfigurationID: h.config.ID})
	h.ok(err)
	return c
}

// touring makes a conversation whose first message starts the process on the page.
func (h *house) touring() chat.Conversation {
	h.t.Helper()
	c, err := h.chat.Start(context.Background(), h.admin, chat.NewConversation{
		ConfigurationID: h.config.ID, SkillID: h.tour.ID, Subject: &tool.Record{Table: "page", ID: "home"},
	})
	h.ok(err)
	return c
}

// say sends a message and waits until the turn rests.
func (h *house) say(c chat.Conversation, text string) chat.Conversation {
	h.t.Helper()
	_, err := h.chat.Send(context.Background(), h.admin, chat.Message{Conversation: c.ID, Text: text})
	h.ok(err)
	return h.rests(c)
}

// answer answers the card as it stands and waits until the turn rests.
func (h *house) answer(c chat.Conversation, a agent.Answer) chat.Conversation {
	h.t.Helper()
	_, err := h.chat.Decide(context.Background(), h.admin, chat.Decision{Conversation: c.ID, TurnDigest: c.Card.Turn, Answer: a})
	h.ok(err)
	return h.rests(c)
}

func (h *house) rests(c chat.Conversation) chat.Conversation {
	h.t.Helper()
	now, err := h.chat.Wait(context.Background(), c.ID)
	h.ok(err)
	return now
}

func (h *house) log(c chat.Conversation) []chat.Entry {
	h.t.Helper()
	log, err := h.chat.Entries(context.Background(), h.admin, c.ID, -1, 10000)
	h.ok(err)
	for i, e := range log {
		if e.Sequence != i {
			h.t.Errorf("entry %d has the sequence %d", i, e.Sequence)
		}
	}
	return log
}

// told lists a log as words: its kinds but for changes of state, with codes and texts.
func told(log []chat.Entry) []string {
	var out []string
	for _, e := range log {
		switch e.Kind {
		case chat.KindState:
		case chat.KindMessage, chat.KindAnswer:
			out = append(out, string(e.Kind)+" "+e.Text)
		case chat.KindOutcome, chat.KindNotice:
			out = append(out, string(e.Kind)+" "+e.Data.Code)
		default:
			out = append(out, string(e.Kind))
		}
	}
	return out
}

func (h *house) tells(c chat.Conversation, want ...string) {
	h.t.Helper()
	if got := told(h.log(c)); !slices.Equal(got, want) {
		h.t.Errorf("the log tells\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func (h *house) text(element string) string {
	h.t.Helper()
	r, err := h.content.Read(context.Background(), h.admin, content.ElementTable, element)
	h.ok(err)
	return fmt.Sprint(r.Fields["text"])
}

type models struct{ model *fakeModel }

func (m models) Open(library.Provider) (agent.Model, error) { return m.model, nil }

// fakeModel answers from a list; beyond it "Done.", or what a seed says.
type fakeModel struct {
	random   *rand.Rand
	known    map[uuid.UUID][]string // messages that were acknowledged
	mu       sync.Mutex
	turns    []func(context.Context) (agent.Turn, error)
	requests []agent.TurnRequest
}

func (m *fakeModel) Turn(ctx context.Context, request agent.TurnRequest, _ func(string)) (agent.Turn, error) {
	m.mu.Lock()
	m.requests = append(m.requests, request)
	var turn func(context.Context) (agent.Turn, error)
	if m.random != nil {
		turn = m.made(request)
	}
	if len(m.turns) > 0 {
		turn, m.turns = m.turns[0], m.turns[1:]
	}
	m.mu.Unlock()
	if turn == nil {
		return agent.Turn{Text: "Done."}, nil
	}
	return turn(ctx)
}

// script lets a seed say what is answered from here on.
func (m *fakeModel) script(seed uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.random, m.known = rand.New(rand.NewPCG(seed, 0)), map[uuid.UUID][]string{}
}

// made is a turn by chance: an answer, a proposal, a question, a read or a failure.
func (m *fakeModel) made(agent.TurnRequest) func(context.Context) (agent.Turn, error) {
	n := m.random.IntN(10)
	return func(context.Context) (agent.Turn, error) {
		switch {
		case n < 4:
			return agent.Turn{Text: "Done."}, nil
		case n < 7:
			return agent.Turn{Calls: calls("report_progress", `{"position":1,"total":2}`, "update_element", fixHello)}, nil
		case n < 8:
			return agent.Turn{Calls: calls("get_page", `{"id":"home"}`)}, nil
		case n < 9:
			return agent.Turn{Calls: calls("report_progress", `{"position":2,"total":2,"done":true}`)}, nil
		}
		return agent.Turn{}, &agent.ProviderError{Message: "The model is not there."}
	}
}

func (m *fakeModel) acknowledge(c uuid.UUID, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[c] = append(m.known[c], text)
}

func (m *fakeModel) acknowledged(c uuid.UUID) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known[c]
}

func (m *fakeModel) does(turn func(context.Context) (agent.Turn, error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turns = append(m.turns, turn)
}

// says adds turns that call tools.
func (m *fakeModel) says(turns ...[]prompt.Call) {
	for _, calls := range turns {
		m.does(func(context.Context) (agent.Turn, error) { return agent.Turn{Calls: calls}, nil })
	}
}

func (m *fakeModel) last() agent.TurnRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests[len(m.requests)-1]
}

// calls makes a turn of calls with ids by position.
func calls(pairs ...string) []prompt.Call {
	var out []prompt.Call
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, prompt.Call{ID: fmt.Sprintf("call_%d", i/2), Tool: pairs[i], Arguments: json.RawMessage(pairs[i+1])})
	}
	return out
}

const (
	fixHello = `{"id":"hello","fields":{"text":"Hello"}}`
	fixBye   = `{"id":"bye","fields":{"text":"Bye"}}`
)
