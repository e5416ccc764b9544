package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/builtin"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/live"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
	"github.com/countersign/countersign/internal/tool"
	"github.com/countersign/countersign/internal/world"
)

// TestSimulation lets two replicas work on one database while people start, decide,
// answer and cancel runs, instructions are revoked and come back, tools are switched,
// time passes, and replicas die in the middle of any change. All of it follows from one
// seed: the clock, the ids, the model, who does what, and where a replica dies. RULES
// L5, L11, P1, P2, P3, P5, P6, R1, R2, R4, R5, R6, R7, R8, R10, R11, R16, R19, T2, T3.
func TestSimulation(t *testing.T) {
	for seed := range uint64(simulations) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { simulate(t, seed) })
		})
	}
}

// mortal is a store as one replica has it: it dies before or after one of the changes
// it is asked for, and answers nothing from then on.
type mortal struct {
	*store.Store
	dead  atomic.Bool
	armed atomic.Int64 // dies at the change that brings it to zero
	after atomic.Bool  // and then the change was stored, and only the answer is lost
}

func (m *mortal) Apply(ctx context.Context, changes ...change.Change) ([]change.Outcome, error) {
	gone := fault.New(fault.Unavailable, "this replica is dead")
	if m.dead.Load() {
		return nil, gone
	}
	if m.armed.Add(-1) == 0 {
		m.dead.Store(true)
		if m.after.Load() {
			_, _ = m.Store.Apply(ctx, changes...)
		}
		return nil, gone
	}
	return m.Store.Apply(ctx, changes...)
}

// machine is one replica.
type machine struct {
	*mortal
	agent *agent.Agent
	stop  func()
}

// simulation is a house with two replicas and a list of what was promised.
type simulation struct {
	*house
	chance   *rand.Rand
	seed     uint64
	bell     *live.Hub
	replicas []*machine
	people   []actor.Actor
	runs     []uuid.UUID
	decided  map[string]uuid.UUID // turn digests whose decision was acknowledged, by run
	lists    map[uuid.UUID][]string
	texts    atomic.Int64 // no two writes write the same
}

func simulate(t *testing.T, seed uint64) {
	chance := rand.New(rand.NewPCG(seed, 1))
	bell := &live.Hub{}
	s := storetest.OpenAt(t, "sqlite::memory:", store.Options{Bell: bell})
	h := build(t, s, bell, s, world.New(time.Now, rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})))
	h.drain()
	ready(h)
	h.offer("style", library.Always)
	h.approve("style")
	h.resync(map[string]string{"tone": loadable["tone"]})
	h.approve("tone")
	h.offer("tone", library.OnDemand)
	sim := &simulation{house: h, chance: chance, seed: seed, bell: bell, decided: map[string]uuid.UUID{}, lists: map[uuid.UUID][]string{}}
	h.setting("agent.leaseSeconds", "30")
	sim.people = []actor.Actor{h.admin, h.person("Ada", actor.RunApproveOwn), h.person("Bea", actor.RunApprove)}
	sim.replicas = []*machine{sim.boot(), sim.boot()}
	for range 30 {
		sim.step()
		synctest.Wait()
		sim.look()
	}
	sim.calm()
	for _, id := range sim.runs {
		sim.check(id)
	}
	for _, m := range sim.replicas {
		m.stop()
	}
}

// boot starts a replica whose models follow from the seed.
func (s *simulation) boot() *machine { return s.bootWith(seeded{s}) }

func (s *simulation) bootWith(models agent.Models) *machine {
	m := &machine{mortal: &mortal{Store: s.store}}
	records := content.New(m.mortal, s.agent.World)
	tools, err := tool.New(builtin.All(records, nil)...)
	s.ok(err)
	parts := s.agent.Parts
	parts.Store, parts.Content, parts.Tools, parts.Models = m.mortal, records, tool.NewBox(tools, nil), models
	m.agent = agent.New(parts)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); m.agent.Work(ctx) }()
	m.stop = func() { cancel(); <-done }
	return m
}

// steps are what may happen, each with its weight.
var steps = []struct {
	weight int
	do     func(*simulation)
}{
	{6, (*simulation).start},
	{10, (*simulation).decide},
	{3, (*simulation).answer},
	{1, (*simulation).cancel},
	{4, (*simulation).pass},
	{4, (*simulation).die},
	{2, (*simulation).govern},
}

func (s *simulation) step() {
	total := 0
	for _, one := range steps {
		total += one.weight
	}
	at := s.chance.IntN(total)
	for _, one := range steps {
		if at -= one.weight; at < 0 {
			one.do(s)
			return
		}
	}
}

func (s *simulation) any() *machine           { return s.replicas[s.chance.IntN(len(s.replicas))] }
func (s *simulation) somebody() actor.Actor   { return s.people[s.chance.IntN(len(s.people))] }
func (s *simulation) maybe(percent int) bool  { return s.chance.IntN(100) < percent }
func (s *simulation) past() (uuid.UUID, bool) { return pickOne(s.chance, s.runs) }

func pickOne[T any](chance *rand.Rand, from []T) (one T, ok bool) {
	if len(from) == 0 {
		return one, false
	}
	return from[chance.IntN(len(from))], true
}

// start starts a run: an ordinary one or a tour, alone or after another.
func (s *simulation) start() {
	req := s.plain()
	if s.maybe(50) {
		req = s.tour()
	}
	if before, ok := s.past(); ok && s.maybe(30) {
		req.Predecessor = before
	}
	r, err := s.any().agent.Start(context.Background(), s.somebody(), req)
	if r.ID != uuid.Nil { // also one that was stored as stopped
		s.runs = append(s.runs, r.ID)
	}
	s.expected(err)
}

// expected fails the test for what no step may run into: refusals, permissions and dead
// replicas are part of the game.
func (s *simulation) expected(err error) {
	s.t.Helper()
	if _, refused := fault.AsRefusal(err); err == nil || refused || fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Forbidden) || fault.Is(err, fault.NotFound) {
		return
	}
	s.t.Fatalf("seed %d: %v", s.seed, err)
}

func (s *simulation) waiting(status run.Status) []agent.Run {
	var out []agent.Run
	for _, id := range s.runs {
		if r := s.row(id); r.Status == status {
			out = append(out, r)
		}
	}
	return out
}

// decide answers a card, now and then an old one, now and then by two at once.
func (s *simulation) decide() {
	r, ok := pickOne(s.chance, s.waiting(run.WaitingForApproval))
	if !ok {
		return
	}
	d := agent.Decision{Run: r.ID, TurnDigest: r.TurnDigest, Approve: s.maybe(70)}
	if !d.Approve && s.maybe(50) {
		d.Reason = agent.Variant
	}
	if s.maybe(10) {
		d.TurnDigest = strings.Repeat("0", 64)
	}
	deciders := 1 + s.chance.IntN(2)
	answers := make(chan error, deciders)
	for range deciders {
		by, where := s.somebody(), s.any()
		go func() {
			_, err := where.agent.Decide(context.Background(), by, d)
			answers <- err
		}()
	}
	for range deciders {
		err := <-answers
		s.expected(err)
		if err == nil {
			s.decided[d.TurnDigest] = r.ID
		}
	}
}

func (s *simulation) answer() {
	if r, ok := pickOne(s.chance, s.waiting(run.WaitingForInput)); ok {
		_, err := s.any().agent.SubmitInput(context.Background(), s.somebody(), agent.Input{
			Run: r.ID, TurnDigest: r.TurnDigest, Values: json.RawMessage(`{"choice":"yes"}`),
		})
		s.expected(err)
	}
}

func (s *simulation) cancel() {
	if id, ok := s.past(); ok {
		_, err := s.any().agent.Cancel(context.Background(), s.somebody(), id)
		s.expected(err)
	}
}

// pass lets time pass: enough for nothing, for a wait in the queue, or for a lease.
func (s *simulation) pass() {
	time.Sleep([]time.Duration{time.Second, 10 * time.Second, 35 * time.Second, 2 * time.Minute}[s.chance.IntN(4)])
}

// die arms a replica to die at one of its next changes, and replaces one that is dead.
func (s *simulation) die() {
	for i, m := range s.replicas {
		if m.dead.Load() {
			go m.stop()
			s.replicas[i] = s.boot()
			return
		}
	}
	m := s.any()
	m.after.Store(s.maybe(50))
	m.armed.Store(int64(1 + s.chance.IntN(6)))
}

// govern changes what instructs, and what may be called.
func (s *simulation) govern() {
	ctx := context.Background()
	switch s.chance.IntN(4) {
	case 0:
		sk := s.skill([]string{"tour", "style", "tone"}[s.chance.IntN(3)])
		_, err := s.library.Revoke(ctx, s.admin, library.RevokeInput{SkillID: sk.ID, Digest: string(sk.StoredDigest), Reason: "r"})
		s.expected(err)
	case 1:
		s.approve("tour")
		s.approve("style")
		s.approve("tone")
	default:
		s.ok(s.library.SetToolEnabled(ctx, s.admin, "update_element", s.maybe(70)))
	}
}

// look holds what must be true at every moment.
func (s *simulation) look() {
	s.t.Helper()
	for _, id := range s.runs {
		r := s.row(id)
		list, seen := s.lists[id]
		if seen && !shrunk(list, r.SkillAllowList) {
			s.t.Fatalf("seed %d: T3 the list of %s went from %v to %v", s.seed, id, list, r.SkillAllowList)
		}
		s.lists[id] = r.SkillAllowList
		if r.Status.Waiting() {
			state, err := s.store.State(context.Background(), id)
			if err != nil || run.TurnDigest(state.Suspension, state.Calls()) != r.TurnDigest || r.LeaseOwner != "" {
				s.t.Fatalf("seed %d: R4 %s waits and cannot go on: %v, %+v", s.seed, id, err, r)
			}
		}
	}
}

func shrunk(from, to []string) bool {
	return from == nil || to != nil && !slices.ContainsFunc(to, func(name string) bool { return !slices.Contains(from, name) })
}

// calm repairs everything and lets every run come to its end.
func (s *simulation) calm() {
	s.t.Helper()
	for i, m := range s.replicas {
		m.armed.Store(0)
		if m.dead.Load() {
			go m.stop()
			s.replicas[i] = s.boot()
		}
	}
	for range 30 {
		time.Sleep(time.Minute)
		synctest.Wait()
		s.look()
		open := 0
		for _, id := range s.runs {
			switch r := s.row(id); r.Status {
			case run.WaitingForApproval, run.WaitingForInput:
				open++
				won, err := s.replicas[0].agent.Cancel(context.Background(), s.admin, id)
				if s.maybe(50) { // whoever cancels a run that waits wins, and nobody decides it afterwards
					_, err = s.replicas[1].agent.Decide(context.Background(), s.admin, agent.Decision{Run: id, TurnDigest: r.TurnDigest, Approve: true})
				}
				if !won {
					s.t.Fatalf("seed %d: R10 %s could not be cancelled", s.seed, id)
				}
				s.expected(err)
			case run.Queued, run.Running:
				open++
			}
		}
		if open == 0 {
			return
		}
	}
	for _, id := range s.runs {
		if r := s.row(id); !r.Status.Terminal() {
			s.t.Fatalf("seed %d: R8 %s never ends: %+v", s.seed, id, r)
		}
	}
}

// check holds a run that has ended against the rules and against what was promised.
func (s *simulation) check(id uuid.UUID) {
	s.t.Helper()
	r, events := s.row(id), s.events(id)
	count, approvedCalls, pending := map[run.EventKind]int{}, 0, 0
	for _, e := range events {
		count[e.Kind]++
		switch {
		case e.Kind == run.EventSuspended:
			pending = e.Data.Calls
		case e.Kind == run.EventDecision && *e.Data.Approved:
			approvedCalls += pending
		}
	}
	trail := map[audit.Event]int{}
	for _, e := range s.trail(id) {
		trail[e]++
	}
	written := 0
	history, err := s.content.History(context.Background(), s.admin, "element", "hello")
	s.ok(err)
	for _, revision := range history {
		if revision.Run == id {
			written++
		}
	}
	ending, known := run.Endings[r.Reason]
	_, requestErr := s.store.Request(context.Background(), id)
	_, stateErr := s.store.State(context.Background(), id)
	for _, wrong := range []struct {
		is   bool
		what string
	}{
		{!known || ending.Status != r.Status || ending.Outcome != r.Outcome || ending.Truncated != r.Truncated, "R1 its ending is not its reason's"},
		{count[run.EventSettled] != 1 || events[len(events)-1].Kind != run.EventSettled, "R2 it did not settle once, and last"},
		{trail[audit.RunEnded] != 1, "R2 its end has no entry"},
		{count[run.EventStarted] > 1 || count[run.EventStarted] != trail[audit.RunStarted], "R2 its start has no entry"},
		{count[run.EventDecision]+count[run.EventInput] != trail[audit.RunDecided], "R15 a decision has no entry"},
		{count[run.EventWrite] != trail[audit.WriteExecuted], "U1 a write has no entry"},
		{count[run.EventWrite] > written, "G6 a write step stands for nothing"},
		{written > count[run.EventWrite] && r.Fence == nil, "R7 it wrote, and nothing says so or to check the record"},
		{written > count[run.EventWrite]+1, "R7 it wrote more than its steps and its fence say"},
		{written > approvedCalls, "C6 it wrote more than was approved"},
		{!fault.Is(requestErr, fault.NotFound) || !fault.Is(stateErr, fault.NotFound), "R16 what it was asked is still kept"},
		{r.LeaseOwner != "" || r.LeaseUntil != nil || r.TurnDigest != "", "R1 it is still held"},
	} {
		if wrong.is {
			s.t.Errorf("seed %d: %s: %s\n%v %v written %d, approved %d\n%+v", s.seed, id, wrong.what, kinds(events), trail, written, approvedCalls, r)
		}
	}
	for digest, of := range s.decided {
		if of == id && !slices.ContainsFunc(events, func(e run.Event) bool { return e.Kind == run.EventDecision && e.Data.TurnDigest == digest }) {
			s.t.Errorf("seed %d: R15 %s forgot a decision that was acknowledged", s.seed, id)
		}
	}
}

// seeded gives every provider a model whose answer follows from the seed and from what
// it is asked, whichever replica asks.
type seeded struct{ *simulation }

func (m seeded) Open(library.Provider) (agent.Model, error) { return m, nil }

func (m seeded) Turn(ctx context.Context, request agent.TurnRequest, _ func(string)) (agent.Turn, error) {
	sum := fnv.New64a()
	fmt.Fprint(sum, m.seed, len(request.Messages), request.Messages[len(request.Messages)-1].Text)
	chance := rand.New(rand.NewPCG(sum.Sum64(), 2))
	select {
	case <-time.After(time.Duration(chance.IntN(20)) * time.Second): // a model takes its time
	case <-ctx.Done():
		return agent.Turn{}, ctx.Err()
	}
	loaded := false
	for _, message := range request.Messages {
		loaded = loaded || message.Role == prompt.ToolRole && message.Text == "loaded"
	}
	if loaded && strings.Count(request.Messages[0].Text, "TONE-TEXT") != 1 {
		m.t.Errorf("seed %d: L5 a model was told that something is loaded, and reads %q", m.seed, request.Messages[0].Text)
	}
	write := func() []string {
		return []string{"update_element", fmt.Sprintf(`{"id":"hello","fields":{"text":"%d"}}`, m.texts.Add(1))}
	}
	turns := [][]string{
		nil, nil,
		{"get_page", `{"id":"home"}`},
		write(), write(), append(write(), write()...),
		append([]string{"get_page", `{"id":"home"}`}, write()...),
		{"ask_choice", `{"question":"Go on?","options":["yes","no"]}`},
		m.load("tone"), append(m.load("tone"), write()...),
		{"no_such_tool", `{}`},
		{"update_element", `{"id":"gone","fields":{"text":"x"}}`},
		{"report_progress", `{"position":1,"total":1,"done":true}`},
	}
	said := turns[chance.IntN(len(turns))]
	if said == nil {
		return agent.Turn{Text: "Done."}, nil
	}
	if chance.IntN(20) == 0 {
		return agent.Turn{}, &agent.ProviderError{Message: "overloaded", Status: 503}
	}
	return agent.Turn{Calls: calls(said...), Usage: agent.Usage{InputTokens: 10, OutputTokens: 1}}, nil
}
