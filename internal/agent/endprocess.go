package agent

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/run"
)

// processEnded is how a process ends before its run is done with it: its pin and the
// invocation it came from go, every other pin stays (RULES X8, X9, X10).
type processEnded struct {
	pins       run.Pins
	invocation *Invocation
	notices    []run.Notice // the run's, with the one about this
	entry      audit.Entry
}

func (a *Agent) processEnded(by actor.Actor, r Run, process run.Pin, name string) processEnded {
	rest := r.Pins.Without(process.Skill)
	return processEnded{
		pins: rest, invocation: r.Invocation.without(r.Pins, rest),
		notices: append(slices.Clone(r.Notices), notice(run.NoticeProcessEnded, name)),
		entry: audit.Record(a.World, by, audit.ProcessEnded).InRun(r.ID).
			About(process.Source, process.Skill, string(process.Digest)),
	}
}

func (e processEnded) set() []change.Value {
	return []change.Value{runPins.To(e.pins), runInvocation.To(e.invocation), runNotices.To(e.notices)}
}

func (e processEnded) notice() []run.Notice { return e.notices[len(e.notices)-1:] }

// release lets go of the process with the step that reported its completion: from then
// on the run is an ordinary one (RULES X8). It adds to the change what ends the
// process; the function it returns is called once that is stored.
func (s *segment) release(set *[]change.Value, rest *change.Change) (stored func()) {
	process, held := s.pins.Process()
	if !held {
		return func() {}
	}
	now := s.run
	now.Pins, now.Notices = s.pins, s.notices
	at := slices.IndexFunc(s.held, func(h heldPin) bool { return h.Skill == process.Skill })
	e := s.agent.processEnded(s.initiator, now, process, s.held[at].version.Name)
	e.entry = e.entry.With("reported", true)
	*set = append(*set, e.set()...)
	rest.Events = append(rest.Events, noticeEvents(s.agent.World.Now(), e.notice())...)
	rest.Audit = append(rest.Audit, e.entry)
	return func() { s.pins, s.notices, s.run.Invocation = e.pins, e.notices, e.invocation }
}

// endTries bounds how often EndProcess looks again at a run that keeps changing.
const endTries = 8

// EndProcess ends the process that a run holds: its initiator or an administrator says
// that it is over, whatever the model thinks (RULES X10). A run that waits is withdrawn
// with it. A run without a process stays as it is.
//
// Refusals: NOT_INITIATOR; BUSY while the run is queued or running.
func (a *Agent) EndProcess(ctx context.Context, by actor.Actor, id uuid.UUID) (Run, error) {
	for range endTries {
		r, err := a.View(ctx, by, id)
		if err != nil {
			return Run{}, err
		}
		if by.ID != r.InitiatorID && !by.Administrator {
			return Run{}, fault.Refuse(fault.NotInitiator, "only the person who started the run, or an administrator, ends its process")
		}
		process, held := r.Pins.Process()
		if !held {
			return r, nil
		}
		if !r.Status.Terminal() && !r.Status.Waiting() {
			return Run{}, fault.Refuse(fault.Busy, "the run is %s; wait for it to end or to ask you, or cancel it", r.Status)
		}
		name, err := a.skillName(ctx, process.Skill)
		if err != nil {
			return Run{}, err
		}
		out, err := a.apply(ctx, r.Privacy, a.endingProcess(by, r, a.processEnded(by, r, process, name)))
		if err != nil {
			return Run{}, err
		}
		if out.Applied {
			return a.Store.Run(ctx, id)
		}
	}
	return Run{}, fault.New(fault.Unavailable, "The run keeps changing; try again.")
}

// endingProcess is the change of a run that rests. One that waits is cancelled in the
// same transaction; one that has ended gets no more events, so that the notice stands
// on it alone.
func (a *Agent) endingProcess(by actor.Actor, r Run, e processEnded) change.Change {
	var c change.Change
	if r.Status.Waiting() {
		c = a.cancelling(by, r, run.CancelIfWaiting)
		c.Events = append(noticeEvents(a.World.Now(), e.notice()), c.Events...)
	} else {
		c.Updates = []change.Update{{Table: runsTable, ID: r.ID, If: []change.Value{runStatus.Is(r.Status)}}}
	}
	c.Updates[0].If = append(c.Updates[0].If, runPins.Is(r.Pins))
	c.Updates[0].Set = append(c.Updates[0].Set, e.set()...)
	c.Audit = append([]audit.Entry{e.entry}, c.Audit...)
	return c
}
