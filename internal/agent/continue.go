package agent

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// ErrUnreadable is in the chain of what Store.Run returns for a row that is there and
// cannot be read.
var ErrUnreadable = errors.New("the run's row cannot be read")

// OpenPredecessor is the detail of a PREDECESSOR_OPEN refusal: a run that waits can be
// withdrawn by its guarded cancel, one that is queued or running has to end.
type OpenPredecessor struct{ Status run.Status }

// ProcessRunning is the detail of a PROCESS_RUNNING refusal: the process that is held.
type ProcessRunning struct {
	Pin     run.Pin
	Subject *tool.Record // what it works on, if anything
}

// inheritance is what a run takes over from the one it continues (RULES P4). All of it
// comes from that run's row: no request can bring any of it along. Zero for a first
// run.
type inheritance struct {
	from       *Run
	pins       run.Pins
	invocation *Invocation
	subject    *tool.Record
	notices    []run.Notice
}

// predecessor reads the run that a request continues, nil when it names none, and
// refuses what may not be continued by this actor or not yet (RULES P5, P6, P7).
func (a *Agent) predecessor(ctx context.Context, by actor.Actor, id uuid.UUID) (*Run, error) {
	if id == uuid.Nil {
		return nil, nil
	}
	if !by.IsPerson() {
		return nil, fault.Refuse(fault.ServiceAccount, "a service account cannot continue a run: the conversation is a person's")
	}
	r, err := a.Store.Run(ctx, id)
	switch {
	case fault.Is(err, fault.NotFound), errors.Is(err, ErrUnreadable), err == nil && !maySee(by, r):
		return nil, fault.Refuse(fault.PredecessorMissing, "the run before is gone or cannot be read; start a new conversation")
	case err != nil:
		return nil, err
	case by.ID != r.InitiatorID && !by.Administrator:
		return nil, fault.Refuse(fault.NotInitiator, "only the person who started a run, or an administrator, continues it")
	}
	if _, held := r.Pins.Process(); held && !r.Status.Terminal() {
		return nil, fault.Refuse(fault.PredecessorOpen,
			"the run before follows a process and has not ended, it is %s: decide or cancel it first", r.Status).
			With(OpenPredecessor{Status: r.Status})
	}
	return &r, nil
}

// takeOver derives what a continuation begins with (RULES P4, P8): the pins that its
// configuration still offers, with a notice for each of the others, the invocation
// unless it ended with its pin (RULES X9), and the subject.
func (a *Agent) takeOver(ctx context.Context, req asked, from *Run) (inheritance, error) {
	if from == nil {
		return inheritance{}, nil
	}
	set, err := a.attached(ctx, origin{configuration: req.ConfigurationID})
	if err != nil {
		return inheritance{}, err
	}
	attached := func(id uuid.UUID) bool { _, found := set.find(id); return found }
	forced := func(id uuid.UUID) bool { return slices.Contains(req.Forced, id) }
	same := from.ConfigurationID == req.ConfigurationID
	kept, dropped := from.Pins.Derive(same, func(id uuid.UUID) bool { return attached(id) || forced(id) })
	for i, pin := range kept {
		kept[i].Forced = pin.Forced || pin.Way != run.WayForced && forced(pin.Skill)
	}
	out := inheritance{from: from, pins: kept}
	if out.notices, err = a.droppedNotices(ctx, dropped, same); err != nil {
		return inheritance{}, err
	}
	if i := from.Invocation; i != nil && same && !i.Ended {
		_, was := from.Pins.Of(i.Skill)
		_, is := kept.Of(i.Skill)
		if is || !was && attached(i.Skill) {
			out.invocation = &Invocation{Skill: i.Skill, Subject: i.Subject, Derived: true}
			out.subject = i.Subject
		}
	}
	if _, held := kept.Process(); held {
		out.subject = from.Subject
	}
	return out, nil
}

func (a *Agent) droppedNotices(ctx context.Context, dropped run.Pins, sameConfiguration bool) ([]run.Notice, error) {
	code := run.NoticePinConfiguration
	if sameConfiguration {
		code = run.NoticePinDetached
	}
	var notices []run.Notice
	for _, pin := range dropped {
		name, err := a.skillName(ctx, pin.Skill)
		if err != nil {
			return nil, err
		}
		notices = append(notices, notice(code, name))
	}
	return notices, nil
}

// skillName is how a skill is called now, its id when it is gone.
func (a *Agent) skillName(ctx context.Context, id uuid.UUID) (string, error) {
	dossiers, err := a.Skills.Dossiers(ctx, []uuid.UUID{id})
	if err != nil || len(dossiers) == 0 {
		return id.String(), err
	}
	return dossiers[0].Skill.Version.Name, nil
}

// invoke says what a run invokes and works on, given what it takes over and what was
// asked for. Asking for a skill that a pin already names starts nothing (RULES X4).
// While a process is held its subject stays: clash reports that another was asked for
// (RULES P12).
func (t inheritance) invoke(asked *Invocation) (invoked *Invocation, subject *tool.Record, clash bool) {
	if asked == nil {
		return t.invocation, t.subject, false
	}
	process, running := t.pins.Process()
	if running && asked.Subject != nil && (t.subject == nil || *t.subject != *asked.Subject) {
		return nil, nil, true
	}
	invoked = &Invocation{Skill: asked.Skill, Subject: asked.Subject}
	_, invoked.Derived = t.pins.Of(asked.Skill)
	switch {
	case running && asked.Skill == process.Skill, !running && invoked.Derived && asked.Subject == nil:
		invoked.Subject = t.subject
	}
	if running {
		return invoked, t.subject, false
	}
	return invoked, invoked.Subject, false
}

// processRunning refuses for a process that is held, by its name.
func (a *Agent) processRunning(ctx context.Context, held run.Pin, subject *tool.Record) error {
	name, err := a.skillName(ctx, held.Skill)
	if err != nil {
		return err
	}
	on := ""
	if subject != nil {
		on = " on " + subject.Table + " " + subject.ID
	}
	return fault.Refuse(fault.ProcessRunning, "the process %q is running%s; end it before you start another or name another subject", name, on).
		With(ProcessRunning{Pin: held, Subject: subject})
}
