package run_test

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
)

var (
	read       = run.Call{PlainRead: true}
	write      = run.Call{ApprovalBound: true, Write: true}
	boundRead  = run.Call{ApprovalBound: true}
	question   = run.Call{Input: true}
	freeRemote = run.Call{} // a remote tool whose approval was switched off: no read, not bound
	completion = run.Call{PlainRead: true, Completes: true}
	unoffered  = run.Call{Refused: run.NotOffered, ApprovalBound: true, Write: true}
)

func TestPlanTurn(t *testing.T) {
	tests := []struct {
		name    string
		process bool
		calls   []run.Call
		want    []run.Disposition
		suspend run.Status
	}{
		{
			"G3 an ordinary turn without anything bound runs whole", false,
			[]run.Call{read, freeRemote},
			[]run.Disposition{run.Execute, run.Execute},
			"",
		},
		{
			"G3 an ordinary turn suspends before any call, approval before input", false,
			[]run.Call{read, question, write, boundRead, freeRemote},
			[]run.Disposition{run.AfterDecision, run.InputRefused, run.Pend, run.Pend, run.AfterDecision},
			run.WaitingForApproval,
		},
		{
			"G3 a question suspends when nothing needs approval", false,
			[]run.Call{read, question, question},
			[]run.Disposition{run.AfterDecision, run.Pend, run.OneQuestion},
			run.WaitingForInput,
		},
		{
			"G3 only offered tools count", false,
			[]run.Call{unoffered, read},
			[]run.Disposition{run.NotOffered, run.Execute},
			"",
		},
		{
			"C1 the first approval-bound write is pending, reads run before it", true,
			[]run.Call{boundRead, read, write, write, question, freeRemote, read},
			[]run.Disposition{run.OneApproval, run.Execute, run.Pend, run.OneApproval, run.InputRefused, run.NotExecuted, run.Execute},
			run.WaitingForApproval,
		},
		{
			"C1 without a write the first approval-bound call is pending", true,
			[]run.Call{read, boundRead, boundRead},
			[]run.Disposition{run.Execute, run.Pend, run.OneApproval},
			run.WaitingForApproval,
		},
		{
			"C1 an unoffered write is never the pending call", true,
			[]run.Call{unoffered, boundRead},
			[]run.Disposition{run.NotOffered, run.Pend},
			run.WaitingForApproval,
		},
		{
			"C7 a process question suspends as in an ordinary run", true,
			[]run.Call{read, question},
			[]run.Disposition{run.AfterDecision, run.Pend},
			run.WaitingForInput,
		},
		{
			"X8 a completion report without anything pending runs", true,
			[]run.Call{read, completion},
			[]run.Disposition{run.Execute, run.Execute},
			"",
		},
		{
			"X8 C1 beside a proposal it is an error", true,
			[]run.Call{completion, read, write},
			[]run.Disposition{run.CompletionWaits, run.Execute, run.Pend},
			run.WaitingForApproval,
		},
		{
			"X8 C7 and beside a question", true,
			[]run.Call{question, completion},
			[]run.Disposition{run.Pend, run.CompletionWaits},
			run.WaitingForInput,
		},
		{
			"X8 in an ordinary run it is a read like any other", false,
			[]run.Call{completion, write},
			[]run.Disposition{run.AfterDecision, run.Pend},
			run.WaitingForApproval,
		},
		{
			"X8 a proposal that is refused is none", true,
			[]run.Call{completion, unoffered},
			[]run.Disposition{run.Execute, run.NotOffered},
			"",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			plan := run.PlanTurn(tt.process, tt.calls)
			if !slices.Equal(plan.Calls, tt.want) || plan.Suspend.To != tt.suspend {
				t.Errorf("got %v, waiting %q; want %v, waiting %q", plan.Calls, plan.Suspend.To, tt.want, tt.suspend)
			}
		})
	}
}

func TestPlanTurnProperties(t *testing.T) {
	anyCall := rapid.SampledFrom([]run.Call{read, write, boundRead, question, freeRemote, unoffered, completion})
	rapid.Check(t, func(t *rapid.T) {
		process := rapid.Bool().Draw(t, "process")
		calls := rapid.SliceOfN(anyCall, 1, 8).Draw(t, "calls")
		plan := run.PlanTurn(process, calls)
		pending := 0
		for i, d := range plan.Calls {
			c := calls[i]
			if d == run.Pend {
				pending++
			}
			// C6: whatever a turn holds, a write never runs without having been pending.
			if c.Write && (d == run.Execute || d == run.AfterDecision) {
				t.Fatalf("C6 a write would run undecided: %v → %v", calls, plan.Calls)
			}
			if process && c.Completes && pending+count(plan.Calls[i:], run.Pend) > 0 && d == run.Execute {
				t.Fatalf("X8 a process is reported done while something waits: %v", plan.Calls)
			}
			if c.Refused != "" && d != c.Refused {
				t.Fatalf("G4 a refused call got %v", d)
			}
		}
		if process && pending > 1 {
			t.Fatalf("C1 %d calls pend in a process turn", pending)
		}
		if (pending > 0) != (plan.Suspend.To != "") {
			t.Fatalf("G3 %d calls pend but the run waits for %q", pending, plan.Suspend.To)
		}
	})
}

func count(list []run.Disposition, of run.Disposition) int {
	n := 0
	for _, d := range list {
		if d == of {
			n++
		}
	}
	return n
}

func TestTurnDigest(t *testing.T) {
	call := func(tool, args string) prompt.Call {
		return prompt.Call{ID: "a", Tool: tool, Arguments: json.RawMessage(args)}
	}
	base := run.TurnDigest(1, []prompt.Call{call("x", `{"a":1,"b":[2,3]}`)})
	t.Run("R19 a vector another implementation can check", func(t *testing.T) {
		// SHA-256 over (8-byte big-endian length, bytes) of: countersign/turn/1; the number as
		// 8 bytes; then name and canonical arguments of each call.
		const want = "03222663743a97d01194cb1e8482bb82b34887a5ab1296a9241ef71dfe830e96"
		if base != want {
			t.Errorf("got %s, want %s", base, want)
		}
	})
	t.Run("R19 key order and white space do not matter", func(t *testing.T) {
		if got := run.TurnDigest(1, []prompt.Call{call("x", "{ \"b\": [2, 3],\n\"a\": 1 }")}); got != base {
			t.Error("canonical arguments differ")
		}
	})
	different := map[string]string{
		"the suspension's number": run.TurnDigest(2, []prompt.Call{call("x", `{"a":1,"b":[2,3]}`)}),
		"the tool":                run.TurnDigest(1, []prompt.Call{call("y", `{"a":1,"b":[2,3]}`)}),
		"the order of a list":     run.TurnDigest(1, []prompt.Call{call("x", `{"a":1,"b":[3,2]}`)}),
		"how a number is written": run.TurnDigest(1, []prompt.Call{call("x", `{"a":1.0,"b":[2,3]}`)}),
		"a second call":           run.TurnDigest(1, []prompt.Call{call("x", `{"a":1,"b":[2,3]}`), call("x", `{}`)}),
	}
	for what, digest := range different {
		t.Run("R19 "+what+" matters", func(t *testing.T) {
			if digest == base {
				t.Error("same digest")
			}
		})
	}
}
