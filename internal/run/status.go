// Package run holds the machines of a run as tables: its status, why it ended, its
// pins, its pending turn, its allow-list, and what a process turn may do. It is
// pure: a transition is a value that says where it may start and where it leads,
// and whoever stores it does so with one conditional statement (RULES R2).
package run

import "slices"

// Status is where a run stands (RULES R1).
type Status string

// The statuses.
const (
	Queued             Status = "queued"
	Running            Status = "running"
	WaitingForApproval Status = "waiting_for_approval"
	WaitingForInput    Status = "waiting_for_input"
	Completed          Status = "completed"
	Failed             Status = "failed"
	Cancelled          Status = "cancelled"
)

// Statuses lists every status in the order of a run's life.
var Statuses = []Status{Queued, Running, WaitingForApproval, WaitingForInput, Completed, Failed, Cancelled}

// Terminal reports whether a run in this status never changes again.
func (s Status) Terminal() bool { return s == Completed || s == Failed || s == Cancelled }

// Waiting reports whether the run waits for a person.
func (s Status) Waiting() bool { return s == WaitingForApproval || s == WaitingForInput }

// Transition is one edge of the run machine: from any of From to To. Segment says
// that only the worker that holds the run's lease may make it.
type Transition struct {
	Name    string
	From    []Status
	To      Status
	Segment bool
}

// The transitions. The diagram in docs/running.md is drawn from this table.
var (
	PickUp             = Transition{Name: "pick up", From: []Status{Queued}, To: Running}
	Requeue            = Transition{Name: "requeue", From: []Status{Running}, To: Queued}
	Abandon            = Transition{Name: "abandon", From: []Status{Running}, To: Failed}
	SuspendForApproval = Transition{Name: "suspend for approval", From: []Status{Running}, To: WaitingForApproval, Segment: true}
	SuspendForInput    = Transition{Name: "suspend for input", From: []Status{Running}, To: WaitingForInput, Segment: true}
	Decide             = Transition{Name: "decide", From: []Status{WaitingForApproval}, To: Running}
	Answer             = Transition{Name: "answer", From: []Status{WaitingForInput}, To: Running}
	Edit               = Transition{Name: "edit the proposal", From: []Status{WaitingForApproval}, To: WaitingForApproval}
	Complete           = Transition{Name: "complete", From: []Status{Running}, To: Completed, Segment: true}
	Fail               = Transition{Name: "fail", From: []Status{Running}, To: Failed, Segment: true}
	Stop               = Transition{Name: "stop while waiting", From: []Status{WaitingForApproval, WaitingForInput}, To: Failed}
	Cancel             = Transition{Name: "cancel", From: []Status{Queued, Running, WaitingForApproval, WaitingForInput}, To: Cancelled}
	CancelIfWaiting    = Transition{Name: "cancel if waiting", From: []Status{WaitingForApproval, WaitingForInput}, To: Cancelled}
)

// Transitions lists every edge.
var Transitions = []Transition{
	PickUp, Requeue, Abandon, SuspendForApproval, SuspendForInput, Decide, Answer, Edit, Complete, Fail, Stop, Cancel, CancelIfWaiting,
}

// Allows reports whether the transition may start from a status.
func (t Transition) Allows(from Status) bool { return slices.Contains(t.From, from) }
