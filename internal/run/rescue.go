package run

import "time"

// Lost is a run whose worker is gone: its lease ended and nobody renewed it, or a
// server that shut down gave it back.
type Lost struct {
	Attempts int  // how often its segment was begun again already
	Answered bool // the segment goes on from a person's answer
	// Fence is the write that was begun and of which nothing says how it ended (RULES
	// R7), Wrote the one that was recorded in the segment. Of several the one that can
	// least be repeated.
	Fence, Wrote Write
}

// Write is a write as far as beginning a segment again is concerned.
type Write string

// The kinds of writes.
const (
	NoWrite    Write = "none"
	Repeatable Write = "repeatable" // doing it again changes nothing
	Once       Write = "once"
)

// MaxAttempts is how often a segment is begun again (RULES R8).
const MaxAttempts = 3

// Rescue says what becomes of a lost run: the reason it ends with, or that it goes back
// into the queue, not to be picked up before the wait is over (RULES R8).
//
// A segment that goes on from an answer begins again with that answer, never with what
// the run was asked at first. Once it has begun to write it does not: a person approved
// that write once.
func Rescue(l Lost) (end Reason, wait time.Duration) {
	switch {
	case l.Fence == Once, l.Wrote == Once:
		return ReasonNotRetryable, 0
	case l.Answered && (l.Fence != NoWrite || l.Wrote != NoWrite):
		return ReasonNotRetryable, 0
	case l.Attempts >= MaxAttempts:
		return ReasonRetriesExhausted, 0
	}
	return "", Backoff(l.Attempts)
}

// Backoff is how long a segment that was begun n times again already waits before the
// next: 30 s·2ⁿ, ten minutes at most.
func Backoff(n int) time.Duration {
	const first, longest = 30 * time.Second, 10 * time.Minute
	if n > 5 {
		return longest
	}
	return min(first<<n, longest)
}
