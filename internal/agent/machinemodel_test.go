package agent_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
)

// The turns that a model of the machine takes; beyond its list it answers.
const (
	turnAnswer = iota
	turnRead
	turnWrite
	turnAsk
	turnDone // reports that the process is done
	turnSlow // takes a minute, and then reads
	turnFail
	turnKinds
)

// expected is a run as the small model has it.
type expected struct {
	id          uuid.UUID
	owner       int
	turns       []int
	status      run.Status
	reason      run.Reason
	process     bool
	worker      bool // the worker executes it, and not the runtime that took its answer
	turn        int  // how often its model has answered
	from        int  // what turn was at the beginning of the segment
	suspensions int
	answered    bool // the segment goes on from an answer
	wrote       bool // and has written
	text        string
}

// Open gives every provider the model of the machine.
func (p *play) Open(library.Provider) (agent.Model, error) { return p, nil }

// Turn answers as the run that asks was made to, by how often it has asked.
func (p *play) Turn(ctx context.Context, request agent.TurnRequest, _ func(string)) (agent.Turn, error) {
	n, turn := 0, 0
	for _, m := range request.Messages {
		if m.Role == prompt.User {
			if at := strings.LastIndex(m.Text, "run "); at >= 0 {
				_, _ = fmt.Sscanf(m.Text[at:], "run %d", &n)
			}
		}
		if m.Role == prompt.Assistant {
			turn++
		}
	}
	switch kind := p.runs[n].kind(turn); kind {
	case turnSlow:
		select {
		case <-time.After(time.Minute):
		case <-ctx.Done():
			return agent.Turn{}, ctx.Err()
		}
		return agent.Turn{Calls: calls("get_page", `{"id":"home"}`)}, nil
	case turnRead:
		return agent.Turn{Calls: calls("get_page", `{"id":"home"}`)}, nil
	case turnWrite:
		return agent.Turn{Calls: calls("update_element", fmt.Sprintf(`{"id":%q,"fields":{"text":"%d"}}`, element(n), turn))}, nil
	case turnAsk:
		return agent.Turn{Calls: calls("ask_choice", `{"question":"Go on?","options":["yes","no"]}`)}, nil
	case turnDone:
		return agent.Turn{Calls: calls("report_progress", `{"position":1,"total":1,"done":true}`)}, nil
	case turnFail:
		return agent.Turn{}, &agent.ProviderError{Message: "overloaded", Status: 503}
	}
	return agent.Turn{Text: "Done."}, nil
}

// kind is what the model does in a turn.
func (e *expected) kind(turn int) int {
	if turn >= len(e.turns) {
		return turnAnswer
	}
	return e.turns[turn]
}

// goOn is a segment of the small model, until the run rests or its model is slow. A
// minute that has passed lets it through slow turns.
func (e *expected) goOn(passed bool) {
	e.status = run.Running
	for {
		switch e.kind(e.turn) {
		case turnAnswer:
			e.status, e.reason = run.Completed, run.ReasonCompleted
			return
		case turnFail:
			e.status, e.reason = run.Failed, run.ReasonProviderFailed
			return
		case turnSlow:
			if !passed {
				return
			}
		case turnDone:
			e.process = false
		case turnWrite:
			e.status = run.WaitingForApproval
		case turnAsk:
			e.status = run.WaitingForInput
		}
		e.turn++
		if e.status.Waiting() {
			e.suspensions++
			return
		}
	}
}

// begin is a segment from where the run stands.
func (e *expected) begin(worker, answered, wrote bool) {
	e.worker, e.from, e.answered, e.wrote = worker, e.turn, answered, wrote
	e.goOn(false)
}

// lose is what becomes of a run whose worker is gone: a segment that wrote with an answer
// is over, any other begins again (RULES R8).
func (e *expected) lose() bool {
	if e.status != run.Running || !e.worker {
		return false
	}
	if e.answered && e.wrote {
		e.status, e.reason = run.Failed, run.ReasonNotRetryable
		return false
	}
	e.status, e.turn = run.Queued, e.from
	return true
}

// The people: an administrator, Ada with the rights of a new person, and Bea, who decides
// other people's runs too.
func (e *expected) seenBy(by int) bool  { return by == e.owner || by != 1 }
func (e *expected) ruledBy(by int) bool { return by == e.owner || by == 0 }
