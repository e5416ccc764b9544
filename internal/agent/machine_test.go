package agent_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/live"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
	"github.com/countersign/countersign/internal/world"
)

// command is one thing that happens. What a field says is taken modulo what there is.
type command struct {
	Do    int
	Run   int
	By    int
	Yes   bool // approve, fit the schema, follow a process
	Stale bool
	Turns []int // of the model, in a run that this starts
}

// play is the machine beside the model of it.
type play struct {
	*simulation
	worker  *machine // nil while there is none
	runs    []*expected
	failure string
}

// commands are what may happen.
var commands = []func(*play, command){
	(*play).doStart, (*play).doStart, (*play).doDecide, (*play).doDecide, (*play).doInput, (*play).doCancel, (*play).doGuarded,
	(*play).doEndProcess, (*play).doContinue, (*play).doPass, (*play).doCrash, (*play).doStop, (*play).doBoot,
}

// TestMachine drives the runtime through commands that rapid makes up, beside a small
// model that says what each of them answers and where every run stands afterwards. RULES
// C6, I5, P5, P6, R1, R2, R4, R5, R8, R10, R11, R13, R19, X5, X8, X10.
func TestMachine(t *testing.T) {
	plan := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) command {
		return command{
			Do: rapid.IntRange(0, len(commands)-1).Draw(t, "do"), Run: rapid.IntRange(0, 5).Draw(t, "run"),
			By: rapid.IntRange(0, 2).Draw(t, "by"), Yes: rapid.Bool().Draw(t, "yes"), Stale: rapid.IntRange(0, 9).Draw(t, "stale") == 9,
			Turns: rapid.SliceOfN(rapid.IntRange(0, turnKinds-1), 0, 5).Draw(t, "turns"),
		}
	}), 4, 16)
	fewer(t, machines)
	rapid.Check(t, func(rt *rapid.T) {
		commands := plan.Draw(rt, "commands")
		failure := ""
		synctest.Test(t, func(t *testing.T) { failure = execute(t, commands) })
		if failure != "" {
			rt.Fatal(failure)
		}
	})
}

// fewer bounds how often rapid plays, unless the command line says how often: every time
// is a house of its own.
func fewer(t *testing.T, checks int) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	if f.Value.String() != f.DefValue {
		return
	}
	if err := f.Value.Set(strconv.Itoa(checks)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
}

// execute plays commands and says what was not as the model has it.
func execute(t *testing.T, plan []command) string {
	bell := &live.Hub{}
	s := storetest.OpenAt(t, "sqlite::memory:", store.Options{Bell: bell})
	h := build(t, s, bell, s, world.New(time.Now, rand.NewChaCha8([32]byte{1})))
	h.drain()
	ready(h)
	h.setting("agent.leaseSeconds", "30")
	p := &play{simulation: &simulation{house: h, bell: bell}}
	p.people = []actor.Actor{h.admin, h.person("Ada"), h.person("Bea", actor.RunApprove)}
	parts := h.parts
	parts.Models = p
	h.parts, h.agent = parts, agent.New(parts)
	p.doBoot(command{})
	for i, c := range plan {
		if p.failure != "" {
			break
		}
		commands[c.Do%len(commands)](p, c)
		synctest.Wait()
		p.compare(fmt.Sprintf("after command %d, %+v", i, c))
	}
	if p.worker != nil {
		p.worker.stop()
	}
	time.Sleep(10 * time.Minute) // what is still executed ends
	return p.failure
}

func (p *play) wrong(format string, args ...any) {
	if p.failure == "" {
		p.failure = fmt.Sprintf(format, args...)
	}
}

// compare holds every run against the model of it.
func (p *play) compare(when string) {
	for n, want := range p.runs {
		r := p.row(want.id)
		_, process := r.Pins.Process()
		switch {
		case r.Status != want.status, r.Reason != want.reason, process != want.process, r.Suspension != want.suspensions:
			p.wrong("%s: run %d is %s %s (process %v, %d suspensions), not %s %s (%v, %d): %s",
				when, n, r.Status, r.Reason, process, r.Suspension, want.status, want.reason, want.process, want.suspensions, r.Message)
		case p.text(element(n)) != want.text:
			p.wrong("%s: run %d left %q, not %q", when, n, p.text(element(n)), want.text)
		}
		settled := 0
		for _, e := range p.events(want.id) {
			if e.Kind == run.EventSettled {
				settled++
			}
		}
		if (settled == 1) != want.status.Terminal() || settled > 1 {
			p.wrong("%s: R2 run %d settled %d times", when, n, settled)
		}
	}
}

func element(n int) string { return fmt.Sprintf("e%d", n) }

// pick is the run that a command is about, nil when there is none, and who gives it.
func (p *play) pick(c command) (e *expected, by int) {
	if len(p.runs) == 0 {
		return nil, c.By
	}
	return p.runs[c.Run%len(p.runs)], c.By
}

// hands is the runtime that people talk to.
func (p *play) hands() *agent.Agent {
	if p.worker != nil {
		return p.worker.agent
	}
	return p.agent
}

// answer holds what a command answered against what it should have.
func (p *play) answer(c command, want string, err error) bool {
	got := "ok"
	if refusal, refused := fault.AsRefusal(err); refused {
		got = string(refusal.Code)
	} else if err != nil {
		got = string(fault.KindOf(err))
	}
	if got != want {
		p.wrong("%+v was answered %s (%v), not %s", c, got, err, want)
	}
	return want == "ok"
}

func (p *play) doStart(c command) { p.begin(c, nil) }

func (p *play) doContinue(c command) {
	if before, _ := p.pick(c); before != nil {
		p.begin(c, before)
	}
}

func (p *play) begin(c command, before *expected) {
	n := len(p.runs)
	if n == 8 {
		return
	}
	ctx := context.Background()
	e := &expected{owner: c.By, turns: c.Turns, status: run.Queued, process: c.Yes && before == nil, text: "Helo"}
	want, req := "ok", p.plain()
	if e.process {
		req = p.tour()
	}
	if before != nil {
		req.Predecessor, e.process = before.id, before.process
		switch {
		case !before.seenBy(c.By):
			want = "PREDECESSOR_MISSING"
		case !before.ruledBy(c.By):
			want = "NOT_INITIATOR"
		case before.process && !before.status.Terminal():
			want = "PREDECESSOR_OPEN"
		}
	}
	if want == "ok" {
		p.runs = append(p.runs, e)
		_, err := p.content.Create(ctx, p.admin, content.Creation{Table: content.ElementTable, ID: element(n), ParentID: "home", Fields: map[string]any{"kind": "text", "text": "Helo"}})
		p.ok(err)
	}
	req.Messages[0].Text = fmt.Sprintf("run %d", n)
	r, err := p.hands().Start(ctx, p.people[c.By], req)
	if p.answer(c, want, err) {
		e.id = r.ID
		if p.worker != nil {
			e.begin(true, false, false)
		}
	}
}

func (p *play) doDecide(c command) {
	e, by := p.pick(c)
	if e == nil {
		return
	}
	digest := p.row(e.id).TurnDigest
	want := "ok"
	switch {
	case !e.seenBy(by):
		want = "NOT_FOUND"
	case e.status != run.WaitingForApproval:
		want = "NOT_WAITING"
	case c.Stale:
		want, digest = "STALE_TURN", strings.Repeat("0", 64)
	case e.process && by != e.owner:
		want = "NOT_INITIATOR"
	}
	_, err := p.hands().Decide(context.Background(), p.people[by], agent.Decision{Run: e.id, TurnDigest: digest, Approve: c.Yes})
	if p.answer(c, want, err) {
		if c.Yes {
			e.text = fmt.Sprint(e.turn - 1)
		}
		e.begin(p.worker != nil, true, c.Yes)
	}
}

func (p *play) doInput(c command) {
	e, by := p.pick(c)
	if e == nil {
		return
	}
	values := json.RawMessage(`{"choice":"yes"}`)
	if !c.Yes {
		values = json.RawMessage(`{"choice":"perhaps"}`)
	}
	digest := p.row(e.id).TurnDigest
	want := "ok"
	switch {
	case !e.seenBy(by):
		want = "NOT_FOUND"
	case e.status != run.WaitingForInput:
		want = "NOT_WAITING"
	case e.process && by != e.owner:
		want = "NOT_INITIATOR"
	case c.Stale:
		want, digest = "STALE_TURN", strings.Repeat("0", 64)
	case !c.Yes:
		want = "INPUT_INVALID"
	}
	_, err := p.hands().SubmitInput(context.Background(), p.people[by], agent.Input{Run: e.id, TurnDigest: digest, Values: values})
	if p.answer(c, want, err) {
		e.begin(p.worker != nil, true, false)
	}
}

func (p *play) doCancel(c command) {
	e, by := p.pick(c)
	if e == nil {
		return
	}
	won, err := p.hands().Cancel(context.Background(), p.people[by], e.id)
	p.cancelled(c, e, won, err, !e.status.Terminal())
}

func (p *play) doGuarded(c command) {
	e, by := p.pick(c)
	if e == nil {
		return
	}
	won, _, err := p.hands().CancelIfWaiting(context.Background(), p.people[by], e.id)
	p.cancelled(c, e, won, err, e.status.Waiting())
}

func (p *play) cancelled(c command, e *expected, won bool, err error, open bool) {
	want := "ok"
	switch {
	case !e.seenBy(c.By):
		want = "NOT_FOUND"
	case !e.ruledBy(c.By):
		want = "FORBIDDEN"
	}
	if !p.answer(c, want, err) {
		return
	}
	if won != open {
		p.wrong("%+v won: %v, on a run that is %s", c, won, e.status)
	}
	if open {
		e.status, e.reason = run.Cancelled, run.ReasonCancelled
	}
}

func (p *play) doEndProcess(c command) {
	e, by := p.pick(c)
	if e == nil {
		return
	}
	want := "ok"
	switch {
	case !e.seenBy(by):
		want = "NOT_FOUND"
	case !e.ruledBy(by):
		want = "NOT_INITIATOR"
	case e.process && !e.status.Terminal() && !e.status.Waiting():
		want = "BUSY"
	}
	_, err := p.hands().EndProcess(context.Background(), p.people[by], e.id)
	if !p.answer(c, want, err) || !e.process {
		return
	}
	e.process = false
	if e.status.Waiting() {
		e.status, e.reason = run.Cancelled, run.ReasonCancelled
	}
}

// rest is long enough for every lease, every wait in the queue and every slow model.
const rest = 12 * time.Minute

// doPass lets time pass.
func (p *play) doPass(command) {
	time.Sleep(rest)
	for _, e := range p.runs {
		if e.status == run.Running {
			e.goOn(true)
		}
	}
}

// doCrash lets the worker die in the middle of everything, and another take over.
func (p *play) doCrash(command) {
	if p.worker == nil {
		return
	}
	p.worker.dead.Store(true)
	go p.worker.stop()
	p.worker = p.bootWith(p)
	time.Sleep(rest)
	for _, e := range p.runs {
		if e.lose() {
			e.begin(true, e.answered, e.wrote)
		}
		if e.status == run.Running {
			e.goOn(true)
		}
	}
}

// doStop shuts the worker down: it gives back what it does not finish.
func (p *play) doStop(command) {
	if p.worker == nil {
		return
	}
	p.worker.stop()
	p.worker = nil
	for _, e := range p.runs {
		e.lose()
	}
}

// doBoot starts a worker where there is none; it picks up what is queued.
func (p *play) doBoot(command) {
	if p.worker != nil {
		return
	}
	p.worker = p.bootWith(p)
	for _, e := range p.runs {
		if e.status == run.Queued {
			e.begin(true, e.answered, e.wrote)
		}
	}
}
