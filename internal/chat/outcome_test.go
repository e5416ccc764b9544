package chat

import (
	"testing"

	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// want is C5 in other words than the code: what a person is told.
func want(toolOK bool, write *run.EventData, end run.Event) Outcome {
	switch {
	case !toolOK:
		return NotApplied
	case write != nil && write.HookFailedAfterWrite:
		return CheckRecord
	case write != nil && write.Completeness == string(tool.Complete):
		return Applied
	case write != nil && write.Completeness == "":
		return CheckRecord
	case write == nil && end.Kind == run.EventSettled &&
		(end.Data.Outcome == "cancelled" || end.Data.Outcome == "lease_lost" || end.Data.Outcome == "failed"):
		return CheckRecord
	}
	return NotApplied
}

func TestOutcome(t *testing.T) {
	yes, no := true, false
	decision := run.Event{Kind: run.EventDecision, Data: run.EventData{Approved: &yes}}
	var ends []run.Event
	for _, o := range []run.Outcome{
		run.OutcomeCompleted, run.OutcomeFailed, run.OutcomeCancelled, run.OutcomeLeaseLost, run.OutcomeSuspendFailed,
		run.OutcomeGuardrailBlocked,
	} {
		ends = append(ends, run.Event{Kind: run.EventSettled, Data: run.EventData{Outcome: string(o)}})
	}
	ends = append(ends, run.Event{Kind: run.EventSuspended})
	var writes []*run.EventData
	for _, c := range []tool.Completeness{tool.Complete, tool.Partial, tool.NotStated} {
		for _, hook := range []bool{false, true} {
			writes = append(writes, &run.EventData{Completeness: string(c), HookFailedAfterWrite: hook})
		}
	}
	cells := 0
	t.Run("C5 every combination of tool step, write step, completeness, hook flag and ending is exactly one state", func(t *testing.T) {
		for _, toolOK := range []bool{true, false} {
			for _, write := range append(writes, nil) {
				if !toolOK && write != nil {
					continue // an error carries no write (RULES G5)
				}
				for _, end := range ends {
					segment := []run.Event{decision, {Kind: run.EventToolCall, Data: run.EventData{IsError: !toolOK}}}
					if write != nil {
						segment = append(segment, run.Event{Kind: run.EventWrite, Data: *write})
					}
					segment = append(segment, run.Event{Kind: run.EventModelCall}, run.Event{Kind: run.EventToolCall, Data: run.EventData{Call: 1}}, end)
					got, told := outcome(segment, false)
					if expected := want(toolOK, write, end); !told || got != expected {
						t.Errorf("tool ok %t, write %+v, end %s %s: %s, want %s", toolOK, write, end.Kind, end.Data.Outcome, got, expected)
					}
					cells++
				}
			}
		}
	})
	if cells != 8*len(ends) {
		t.Errorf("%d cells", cells)
	}
	t.Run("C5 without a tool step it is discarded, unless a write was fenced, and no state when it waits again", func(t *testing.T) {
		for _, end := range ends {
			for _, fenced := range []bool{false, true} {
				got, told := outcome([]run.Event{decision, {Kind: run.EventNotice}, end}, fenced)
				expected := Discarded
				switch {
				case end.Kind == run.EventSuspended:
					expected = ""
				case fenced:
					expected = CheckRecord
				}
				if !told || got != expected {
					t.Errorf("end %s, fenced %t: %q, want %q", end.Kind, fenced, got, expected)
				}
			}
		}
	})
	t.Run("C5 it is not told before the segment tells", func(t *testing.T) {
		for _, segment := range [][]run.Event{
			{decision},
			{decision, {Kind: run.EventNotice}},
			{decision, {Kind: run.EventToolCall}},
			{decision, {Kind: run.EventToolCall}, {Kind: run.EventModelCall}},
		} {
			if got, told := outcome(segment, true); told {
				t.Errorf("%v is %q already", segment, got)
			}
		}
	})
	t.Run("R14 a denial is what its reason says", func(t *testing.T) {
		for reason, expected := range map[string]Outcome{"variant": AskedVariant, "skip": Skipped, "": Denied} {
			denied := run.Event{Kind: run.EventDecision, Data: run.EventData{Approved: &no, DenialReason: reason}}
			got, told := outcome([]run.Event{denied, {Kind: run.EventToolCall, Data: run.EventData{IsError: true, Token: "approval_denied"}}}, false)
			if !told || got != expected {
				t.Errorf("%q is %q", reason, got)
			}
		}
	})
}

func TestArrives(t *testing.T) {
	// V3 V4 V9: what becomes of a message, by what it finds; ordinary, process.
	golden := map[Status][2]Move{
		Idle:             {Begin, Begin},
		Failed:           {Begin, Begin},
		Queued:           {Busy, Busy},
		Processing:       {Busy, Busy},
		AwaitingApproval: {Leave, Withdraw},
		AwaitingInput:    {Leave, Withdraw},
	}
	for _, status := range Statuses {
		for i, process := range []bool{false, true} {
			if got := Arrives(Arrival{Status: status, Process: process}); got != golden[status][i] {
				t.Errorf("V4 a message while %s (process %t): %s, want %s", status, process, got, golden[status][i])
			}
			if got := Arrives(Arrival{Status: status, Process: process, Archived: true}); got != Closed {
				t.Errorf("a message to an archived conversation: %s", got)
			}
		}
	}
	if len(golden) != len(Statuses) {
		t.Error("the table misses a status")
	}
}
