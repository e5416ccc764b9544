package run_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
)

// story is one run as a small model of its life has it: what rests in it is told apart by
// what it can still do, and not by the tables that are tested.
type story struct {
	t           *rapid.T
	status      run.Status
	reason      run.Reason
	pins        run.Pins
	process     uuid.UUID
	attempts    int
	suspensions int
	answered    bool
	wrote       run.Write
	fence       run.Write
	digests     map[string]bool
}

// move makes a transition if the table lets it start here, and holds the table against
// what the model expects.
func (s *story) move(tr run.Transition, expected bool) bool {
	if tr.Allows(s.status) != expected {
		s.t.Fatalf("R2 %s of a run that is %s: %v", tr.Name, s.status, !expected)
	}
	if expected {
		s.status = tr.To
	}
	return expected
}

func (s *story) open() bool    { return s.reason == "" }
func (s *story) running() bool { return s.open() && s.status == run.Running }
func (s *story) waits() bool {
	return s.open() && s.suspensions > 0 && s.status != run.Running && s.status != run.Queued
}

// end takes the ending of a reason from the table; the run must have moved there.
func (s *story) end(reason run.Reason) {
	s.reason = reason
	if ending := run.Endings[reason]; ending.Status != s.status || !s.status.Terminal() {
		s.t.Fatalf("R1 %s ends in %s, and the run is %s", reason, ending.Status, s.status)
	}
}

func (s *story) begin(answered bool) {
	s.answered, s.wrote, s.fence = answered, run.NoWrite, run.NoWrite
}

func (s *story) pickUp(*rapid.T) {
	if s.move(run.PickUp, s.open() && s.status == run.Queued) {
		s.begin(s.answered)
	}
}

// modelTurn is a turn that needs nobody; it may write.
func (s *story) modelTurn(t *rapid.T) {
	if !s.running() || s.wrote == run.Once {
		return
	}
	s.wrote = rapid.SampledFrom([]run.Write{s.wrote, run.Repeatable, run.Once}).Draw(t, "wrote")
	s.fence = run.NoWrite
}

// write begins a write and never says how it ended.
func (s *story) write(t *rapid.T) {
	if s.running() {
		s.fence = rapid.SampledFrom([]run.Write{run.Repeatable, run.Once}).Draw(t, "fence")
	}
}

func (s *story) suspend(t *rapid.T) {
	tr := rapid.SampledFrom([]run.Transition{run.SuspendForApproval, run.SuspendForInput}).Draw(t, "for")
	if !tr.Segment {
		t.Fatalf("R2 %s needs no lease", tr.Name)
	}
	if s.move(tr, s.running()) {
		s.suspensions++
		digest := run.TurnDigest(s.suspensions, []prompt.Call{{ID: "call_0", Tool: "update_element", Arguments: []byte(`{}`)}})
		if s.digests[digest] {
			t.Fatal("R19 two suspensions with the same calls have one digest")
		}
		s.digests[digest] = true
	}
}

func (s *story) decide(*rapid.T) {
	if s.move(run.Decide, s.waits() && s.status == run.WaitingForApproval) {
		s.attempts = 0
		s.begin(true)
	}
}

func (s *story) input(*rapid.T) {
	if s.move(run.Answer, s.waits() && s.status == run.WaitingForInput) {
		s.attempts = 0
		s.begin(true)
	}
}

func (s *story) cancel(*rapid.T) {
	if s.move(run.Cancel, s.open()) {
		s.end(run.ReasonCancelled)
	}
}

func (s *story) guardedCancel(*rapid.T) {
	if s.move(run.CancelIfWaiting, s.waits()) {
		s.end(run.ReasonCancelled)
	}
}

func (s *story) stopWaiting(*rapid.T) {
	if s.move(run.Stop, s.waits()) {
		s.endProcess(nil)
		s.end(run.ReasonSecondApproverRequired)
	}
}

// settle ends a segment by itself, for any reason that one may have.
func (s *story) settle(t *rapid.T) {
	reasons := []run.Reason{run.ReasonCompleted, run.ReasonMaxIterations, run.ReasonContextTruncated, run.ReasonProviderFailed, run.ReasonPolicyDenied, run.ReasonSuspendFailed, run.ReasonInstructionWithdrawn}
	reason := rapid.SampledFrom(reasons).Draw(t, "reason")
	tr := run.Complete
	if run.Endings[reason].Status == run.Failed {
		tr = run.Fail
	}
	if s.move(tr, s.running()) {
		s.end(reason)
	}
}

// rescue is what becomes of a run whose worker is gone.
func (s *story) rescue(t *rapid.T) {
	if !s.running() {
		return
	}
	lost := run.Lost{Attempts: s.attempts, Answered: s.answered, Fence: s.fence, Wrote: s.wrote}
	reason, wait := run.Rescue(lost)
	begun := s.fence != run.NoWrite || s.wrote != run.NoWrite
	twice := s.fence == run.Once || s.wrote == run.Once || (s.answered && begun)
	switch {
	case (reason == run.ReasonNotRetryable) != twice:
		t.Fatalf("R8 %+v ends with %q", lost, reason)
	case reason == "" && (wait < 30*time.Second || wait > 10*time.Minute):
		t.Fatalf("R8 %+v waits for %s", lost, wait)
	case reason != "":
		s.move(run.Abandon, true)
		s.end(reason)
		if ending := run.Endings[reason]; ending.Outcome != run.OutcomeLeaseLost {
			t.Fatalf("R1 %s says %s", reason, ending.Outcome)
		}
		return
	}
	s.attempts++
	s.move(run.Requeue, true)
}

func (s *story) endProcess(*rapid.T) {
	before := len(s.pins)
	_, held := s.pins.Process()
	s.pins = s.pins.Without(s.process)
	if _, still := s.pins.Process(); still || (before-len(s.pins) == 1) != held {
		s.t.Fatalf("X10 %d pins, then %v", before, s.pins)
	}
}

// goOn is the next run of the lineage.
func (s *story) goOn(*rapid.T) {
	_, process := s.pins.Process()
	if s.open() && process {
		return // RULES P6
	}
	s.status, s.reason, s.attempts, s.suspensions = run.Queued, "", 0, 0
	s.answered, s.digests = false, map[string]bool{}
}

func (s *story) check(t *rapid.T) {
	switch {
	case s.status.Terminal() == s.open():
		t.Fatalf("R1 %s, for %q", s.status, s.reason)
	case s.attempts > run.MaxAttempts:
		t.Fatalf("R8 it was begun again %d times", s.attempts)
	case len(s.digests) != s.suspensions:
		t.Fatalf("R19 %d suspensions, %d digests", s.suspensions, len(s.digests))
	case s.status.Waiting() != s.waits():
		t.Fatalf("R1 it is %s after %d suspensions", s.status, s.suspensions)
	}
	if !slices.Contains(run.Statuses, s.status) {
		t.Fatalf("R1 %q is no status", s.status)
	}
}

// TestStory lets rapid make up the lives of runs and their lineages. RULES P6, R1, R2,
// R8, R19, X10.
func TestStory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		process, style := uuid.New(), uuid.New()
		s := &story{t: t, status: run.Queued, process: process, digests: map[string]bool{}, pins: run.Pins{
			{Skill: process, Source: uuid.New(), Digest: "1:aa", Way: run.WayInvoked, Process: true},
			{Skill: style, Source: uuid.New(), Digest: "1:bb", Way: run.WayAlways},
		}}
		t.Repeat(map[string]func(*rapid.T){
			"pick up": s.pickUp, "model turn": s.modelTurn, "write": s.write, "suspend": s.suspend, "decide": s.decide, "input": s.input,
			"cancel": s.cancel, "guarded cancel": s.guardedCancel, "stop": s.stopWaiting, "settle": s.settle, "rescue": s.rescue,
			"end process": s.endProcess, "continue": s.goOn, "": s.check,
		})
	})
}
