package chat

import "github.com/countersign/countersign/internal/run"

// Status is where a conversation stands (RULES V1).
type Status string

// The statuses.
const (
	Idle             Status = "idle"
	Queued           Status = "queued"     // a turn is on its way to the runtime
	Processing       Status = "processing" // a turn is executed, or an answer is on its way
	AwaitingApproval Status = "awaiting_approval"
	AwaitingInput    Status = "awaiting_input"
	Failed           Status = "failed" // the last turn failed; it can be retried
)

// Statuses lists every status.
var Statuses = []Status{Idle, Queued, Processing, AwaitingApproval, AwaitingInput, Failed}

// Rests reports whether no turn is under way.
func (s Status) Rests() bool { return s == Idle || s == Failed }

// Waits reports whether a turn waits for the owner.
func (s Status) Waits() bool { return s == AwaitingApproval || s == AwaitingInput }

// ofRun is what a run's status makes of its conversation's.
var ofRun = map[run.Status]Status{
	run.Queued: Processing, run.Running: Processing,
	run.WaitingForApproval: AwaitingApproval, run.WaitingForInput: AwaitingInput,
	run.Completed: Idle, run.Cancelled: Idle, run.Failed: Failed,
}

// Move is what becomes of a message that arrives.
type Move string

// The moves.
const (
	Begin    Move = "begin"    // a turn begins
	Leave    Move = "leave"    // a turn begins; the run that waits stays in the inbox (RULES V4)
	Withdraw Move = "withdraw" // the process run that waits is withdrawn, then a turn begins (RULES V3)
	Busy     Move = "busy"     // refused, or queued for the next turn if the message says so (RULES V4)
	Closed   Move = "closed"   // refused: the conversation is archived
)

// Arrival is what a message finds.
type Arrival struct {
	Status   Status
	Process  bool // the run of the turn holds a process
	Archived bool
}

// Arrives says what becomes of a message. An answer that is undelivered keeps the
// conversation in Processing, so that it is BUSY before anything is cancelled (RULES V4, V9).
func Arrives(a Arrival) Move {
	switch {
	case a.Archived:
		return Closed
	case a.Status.Rests():
		return Begin
	case a.Status.Waits() && a.Process:
		return Withdraw
	case a.Status.Waits():
		return Leave
	default:
		return Busy
	}
}
