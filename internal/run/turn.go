package run

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"

	"github.com/countersign/countersign/internal/prompt"
)

// Call is what a turn's plan needs to know of one call.
type Call struct {
	// Refused is empty for a call that may go ahead, else why it may not, whatever else
	// the turn holds: NotOffered, InvalidArguments or MarkerWritten. Only calls that may go ahead count.
	Refused       Disposition
	ApprovalBound bool // RULES G2
	Write         bool // a builtin's declared write (RULES C1)
	Input         bool // suspends for input
	PlainRead     bool // a builtin read that needs no approval
	Completes     bool // reports that the process is done (RULES X8)
}

// Disposition is what happens to one call of a turn.
type Disposition string

// The dispositions. The error ones are the tokens of RULES C1.
const (
	Execute          Disposition = "execute"     // runs now, in turn order
	Pend             Disposition = "pend"        // waits for a person
	AfterDecision    Disposition = "after"       // runs when the pending calls have run
	NotOffered       Disposition = "not_offered" // RULES G4
	InvalidArguments Disposition = "invalid_arguments"
	OneApproval      Disposition = "one_approval_per_turn"
	InputRefused     Disposition = "input_refused_beside_approval"
	NotExecuted      Disposition = "not_executed_while_proposal_waits"
	OneQuestion      Disposition = "one_question_per_turn"
	RemoteLimit      Disposition = "remote_calls_used_up" // RULES G8
	MarkerWritten    Disposition = "redacted_text"        // RULES M2
	CompletionWaits  Disposition = "report_completion_after_decision"
)

// Plan is what a turn comes to: what happens to each call, and what the run waits
// for afterwards. Suspend is the zero Transition when it does not wait.
type Plan struct {
	Calls   []Disposition
	Suspend Transition
}

// PlanTurn decides a whole turn before anything of it runs. Outside a process run the
// turn suspends before any call, approval before input (RULES G3); a process run has
// one pending call, its plain reads run before the card (RULES C1, C7), and it is not
// done while something waits (RULES X8).
func PlanTurn(process bool, calls []Call) Plan {
	plan := Plan{Calls: make([]Disposition, len(calls))}
	switch {
	case anyOf(calls, func(c Call) bool { return c.ApprovalBound }):
		plan.Suspend = SuspendForApproval
	case anyOf(calls, func(c Call) bool { return c.Input }):
		plan.Suspend = SuspendForInput
	}
	pending := pendingCall(process, plan.Suspend, calls)
	for i, c := range calls {
		plan.Calls[i] = dispose(process, plan.Suspend, c, i == pending)
	}
	return plan
}

// pendingCall is the one call a process card or a question is about: the first
// approval-bound write, else the first approval-bound call (RULES C1); the first question.
func pendingCall(process bool, suspend Transition, calls []Call) int {
	switch {
	case suspend.To == WaitingForInput:
		return first(calls, func(c Call) bool { return c.Input })
	case suspend.To == WaitingForApproval && process:
		if i := first(calls, func(c Call) bool { return c.ApprovalBound && c.Write }); i >= 0 {
			return i
		}
		return first(calls, func(c Call) bool { return c.ApprovalBound })
	}
	return -1
}

func dispose(process bool, suspend Transition, c Call, pending bool) Disposition {
	switch {
	case c.Refused != "":
		return c.Refused
	case pending:
		return Pend
	case process && suspend.To != "" && c.Completes:
		return CompletionWaits
	case suspend.To == WaitingForApproval:
		return besideProposal(process, c)
	case suspend.To == WaitingForInput && c.Input:
		return OneQuestion
	case suspend.To == WaitingForInput:
		return AfterDecision
	default:
		return Execute
	}
}

func besideProposal(process bool, c Call) Disposition {
	switch {
	case c.Input:
		return InputRefused
	case c.ApprovalBound && process:
		return OneApproval
	case c.ApprovalBound:
		return Pend
	case process && c.PlainRead:
		return Execute
	case process:
		return NotExecuted
	default:
		return AfterDecision
	}
}

func anyOf(calls []Call, is func(Call) bool) bool { return first(calls, is) >= 0 }

func first(calls []Call, is func(Call) bool) int {
	for i, c := range calls {
		if c.Refused == "" && is(c) {
			return i
		}
	}
	return -1
}

// TurnDigest names what one decision covers: the pending calls in order, with their
// canonical arguments, and the number of the suspension, so that an answer to an
// earlier card never decides a later one (RULES R19). Lower-case hex, 64 digits.
func TurnDigest(suspension int, calls []prompt.Call) string {
	h := sha256.New()
	writeField(h.Write, []byte("countersign/turn/1"))
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], uint64(suspension))
	writeField(h.Write, number[:])
	for _, c := range calls {
		writeField(h.Write, []byte(c.Tool))
		writeField(h.Write, CanonicalJSON(c.Arguments))
	}
	return hex.EncodeToString(h.Sum(nil))
}

func writeField(write func([]byte) (int, error), field []byte) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(field)))
	_, _ = write(length[:])
	_, _ = write(field)
}

// CanonicalJSON is the same object with its keys sorted and its white space gone;
// numbers stay as written. What is not JSON stays as it is.
func CanonicalJSON(raw json.RawMessage) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return raw
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return raw
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
