package agent

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/guard"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/notify"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// segment is one uninterrupted execution of a run by one worker. Everything it
// writes is guarded by its lease. It belongs to one goroutine; beside it run heartbeat,
// which touches nothing but stop, and the keeping of written.
type segment struct {
	agent *Agent
	id    uuid.UUID
	owner string
	stop  context.CancelCauseFunc

	run           Run
	initiator     actor.Actor
	configuration library.Configuration
	chain         []candidate
	tools         *tool.Registry // the tools there were when the segment began
	offer         offer
	remoteCalls   int
	pins          run.Pins
	held          []heldPin // pins with their texts, as last checked
	catalogue     Catalogue
	notices       []run.Notice
	transcript    []prompt.Message
	nonceKey      []byte
	usage         Consumption
	booked        Consumption // as much of it as the ledger of budgets has
	writes        int         // of the whole run
	gauge         prompt.Gauge
	written       *liveText
	rules         guard.Rules
	approvals     tool.Approvals
	wary          bool            // a guardrail asks for approvals since something it read
	bound         bool            // a guardrail asks for an approval of the present turn's calls
	echoes        map[string]bool // by id: calls of the present turn that the model made with a marker
	round         int
	edited        map[string]*EditedCall // by id: pending calls that a person changed
	shown         map[string]tool.Basis  // by key of a pending call: what its last preview was made from
}

// heartbeat renews the lease at a third of its length, and stops the segment when
// the lease is gone.
func (s *segment) heartbeat(ctx context.Context) {
	for {
		pause := unreadablePause
		if values, err := s.agent.Settings.Values(ctx); err == nil {
			pause = values.Lease / 3
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if err := s.write(ctx, nil, change.Change{}); errors.Is(err, errLeaseLost) {
			s.stop(errLeaseLost)
			return
		}
	}
}

// unreadablePause is how long a heartbeat waits when it cannot read how long a lease is.
const unreadablePause = 10 * time.Second

// write makes one change of the segment: set and whatever rest holds, guarded by the
// lease, which it renews. It returns errLeaseLost when the run is not this segment's
// any more; then nothing of the change is stored.
func (s *segment) write(ctx context.Context, set []change.Value, rest change.Change) error {
	values, err := s.agent.Settings.Values(ctx)
	if err != nil {
		return err
	}
	until := s.agent.World.Now().Add(values.Lease)
	return s.guardedAt(ctx, values.Privacy, append(set, runLeaseUntil.To(until)), rest)
}

func (s *segment) guarded(ctx context.Context, set []change.Value, rest change.Change) error {
	values, err := s.agent.Settings.Values(ctx)
	if err != nil {
		return err
	}
	return s.guardedAt(ctx, values.Privacy, set, rest)
}

func (s *segment) guardedAt(ctx context.Context, live run.Privacy, set []change.Value, rest change.Change) error {
	rest.Run = s.id
	rest.Updates = append(rest.Updates, change.Update{
		Table: runsTable, ID: s.id,
		If:  []change.Value{runStatus.Is(run.Running), runLeaseOwner.Is(s.owner)},
		Set: set,
	})
	rest.Events = s.agent.keptAt(run.Stricter(s.run.Privacy, live), rest.Events)
	out, err := change.One(ctx, s.agent.Store, notify.Announce(rest, s.agent.World.NewID))
	if err != nil {
		return err
	}
	if !out.Applied {
		return errLeaseLost
	}
	return nil
}

// event makes an event of the current round, now.
func (s *segment) event(kind run.EventKind, data run.EventData) run.Event {
	return run.Event{Kind: kind, Round: s.round, At: s.agent.World.Now(), Data: data}
}

func noticeEvents(at time.Time, notices []run.Notice) []run.Event {
	events := make([]run.Event, len(notices))
	for i, n := range notices {
		events[i] = run.Event{Kind: run.EventNotice, At: at, Data: run.EventData{Code: string(n.Code), Args: n.Args}}
	}
	return events
}

// stopped is an ending that is not an error of the server: it becomes the run's
// reason and message.
type stopped struct {
	reason  run.Reason
	message string
	answer  string
	pins    *run.Pins    // nil keeps the run's
	notices []run.Notice // added to the run's
	events  []run.Event  // stored with the settling, before it
	cause   error        // for the log, if anything beside the message
}

func (s stopped) Error() string { return string(s.reason) + ": " + s.message }

// endingOf reads an ending out of an error: a stop of ours, or a provider that failed.
func endingOf(err error) (stopped, bool) {
	var ending stopped
	if errors.As(err, &ending) {
		return ending, true
	}
	var failed *ProviderError
	if errors.As(err, &failed) {
		return stopped{reason: run.ReasonProviderFailed, message: failed.Message}, true
	}
	if refusal, ok := fault.AsRefusal(err); ok {
		return stopped{reason: run.ReasonPolicyDenied, message: refusal.Message}, true
	}
	return stopped{}, false
}

// settle ends the run (RULES R1, R2): the table of endings says with which status,
// what only a run under way needs is dropped (RULES R16), a fence that still stands
// stays, so that the card can say "check the record" (RULES R7).
func (s *segment) settle(ctx context.Context, e stopped) error {
	a := s.agent
	ending, now := run.Endings[e.reason], a.World.Now()
	e.message = a.Secrets.Redactor().Text(e.message)
	s.notices = append(s.notices, e.notices...)
	set := []change.Value{
		runStatus.To(ending.Status), runOutcome.To(ending.Outcome), runReason.To(e.reason),
		runTruncated.To(ending.Truncated), runMessage.To(e.message), runAnswer.To(e.answer),
		runNotices.To(orEmpty(s.notices)), runUsage.To(s.usage), runTurnDigest.To(""),
		runRequest.Null(), runState.Null(), runLeaseOwner.To(""), runLeaseUntil.Null(), runFinishedAt.To(now),
	}
	if e.pins != nil {
		set = append(set, runPins.To(*e.pins), runInvocation.To(s.run.Invocation.without(s.pins, *e.pins)))
	}
	events := append(e.events, noticeEvents(now, e.notices)...)
	settled, entry := a.ended(s.initiator, s.id, e.reason)
	settled.Round = s.round
	events = append(events, withWords(settled, run.Content{Text: e.answer}))
	for {
		err := s.guarded(ctx, set, change.Change{Deletes: []change.Delete{textGone(s.id)}, Inserts: s.unbooked(), Events: events, Audit: []audit.Entry{entry}})
		if err == nil {
			s.booked = s.usage
		}
		if !fault.Is(err, fault.Unavailable) {
			return err
		}
		a.Log.Warn("a run's end could not be stored; trying again", slog.String("run", s.id.String()), slog.Any("error", err))
		select {
		case <-time.After(settlePause):
		case <-ctx.Done():
			return err
		case <-a.leaving:
			return err
		}
	}
}

// settlePause is how long an ending waits for a database that was gone. Nobody else
// would end the run, so it tries until the server stops.
const settlePause = time.Second

// ended is what every ending of a run leaves behind, whoever brings it about: its last
// event and its audit entry.
func (a *Agent) ended(by actor.Actor, id uuid.UUID, reason run.Reason) (run.Event, audit.Entry) {
	ending := run.Endings[reason]
	event := run.Event{Kind: run.EventSettled, At: a.World.Now(), Data: run.EventData{
		Status: string(ending.Status), Outcome: string(ending.Outcome), Reason: string(reason),
	}}
	return event, audit.Record(a.World, by, audit.RunEnded).InRun(id).With("status", ending.Status).With("reason", reason)
}

// encode is v as the store keeps it, or an internal fault.
func encode(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "storing the run's state")
	}
	return string(b), nil
}
