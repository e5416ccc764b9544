package agent

import (
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/run"
)

// pickedUp is what a worker executes of a run that was queued: its beginning, or the
// answer that a worker before died with.
func (s *segment) pickedUp(ctx context.Context) error {
	r, err := s.agent.Store.Run(ctx, s.id)
	if err != nil {
		return err
	}
	if r.Suspension == 0 {
		return s.begin(ctx)
	}
	state, err := s.agent.Store.State(ctx, s.id)
	if err != nil {
		return err
	}
	if state.Given == nil {
		return fault.New(fault.Internal, "a run was queued with a question that nobody answered")
	}
	return s.resume(ctx, state)
}

// begin is the first segment of a run: everything that was checked at start is
// checked again as the initiator that there is now (RULES I2, L3), then the prompt is
// composed and the loop goes.
func (s *segment) begin(ctx context.Context) error {
	a := s.agent
	if err := s.load(ctx); err != nil {
		return err
	}
	request, err := a.Store.Request(ctx, s.id)
	if err != nil {
		return err
	}
	set, err := a.lineup(ctx, s.run.origin())
	if err != nil {
		return err
	}
	err = entitled(s.initiator, s.run.Forced)
	if err == nil {
		err = a.mayRun(ctx, s.initiator, s.configuration, commission{set: set, invoked: s.run.invoked(), subject: s.run.Subject, held: s.pins})
	}
	if err != nil {
		return s.notPickedUp(ctx, err)
	}
	known := s.pins
	sorted := set.compose(known)
	s.pins = sorted.pins // also what was approved since the start: every section is pinned (RULES P1)
	held, err := s.holdPins(ctx)
	if err != nil {
		return err
	}
	s.nonceKey = a.World.Secret(32)
	opened, err := a.open(ctx, opening{
		initiator: s.initiator, configuration: s.configuration, messages: request.Messages,
		tools: s.tools, set: set, sorted: sorted, held: held, known: known, continues: s.run.PredecessorID != uuid.Nil,
		list: s.skillList(set, held), callerList: s.run.CallerTools, nonceKey: s.nonceKey, budget: s.chain[0].budget(),
	})
	if err != nil {
		return err
	}
	if stop, refused := opened.tooLarge(); refused {
		return stop
	}
	if err := s.takeOffer(ctx, opened.offer); err != nil {
		return err
	}
	if err := s.beginWith(ctx, opened, sorted.broken); err != nil {
		return err
	}
	if err := s.judgeInput(ctx); err != nil {
		return err
	}
	return s.loop(ctx)
}

// notPickedUp is how a run ends that may not be executed any more. It prefers the
// message of a failed pin over the refusal that the same change of mind causes at the
// invocation's check: both are true, and the pin's names the ending the rules ask for
// (RULES P3). A skill that was to be started was not: nothing goes on from its pin.
func (s *segment) notPickedUp(ctx context.Context, refused error) error {
	message := ""
	var failed *fault.Error
	if refusal, is := fault.AsRefusal(refused); is {
		message = refusal.Message
	} else if errors.As(refused, &failed) && (failed.Kind == fault.Forbidden || failed.Kind == fault.NotFound) {
		message = failed.Message
	} else {
		return refused
	}
	if _, err := s.holdPins(ctx); err != nil {
		return err
	}
	ending := stopped{reason: run.ReasonPolicyDenied, message: message}
	if i := s.run.invoked(); i != nil && !i.Derived {
		rest := s.pins.Without(i.Skill)
		ending.pins = &rest
	}
	return ending
}

// load reads the run and who and what it works with, as they are now.
func (s *segment) load(ctx context.Context) error {
	a := s.agent
	err := a.learnSecrets(ctx)
	if err != nil {
		return err
	}
	if err := s.loadRules(ctx); err != nil {
		return err
	}
	if s.run, err = a.Store.Run(ctx, s.id); err != nil {
		return err
	}
	s.pins, s.notices, s.usage, s.booked, s.writes = s.run.Pins, s.run.Notices, s.run.Usage, s.run.Usage, s.run.Writes
	if s.tools, err = a.Tools.Now(ctx); err != nil {
		return err
	}
	if s.initiator, err = a.People.Actor(ctx, s.run.InitiatorID); err != nil {
		return err
	}
	if s.initiator.IsNobody() {
		return stopped{reason: run.ReasonPolicyDenied, message: "the person who started the run may not act any more"}
	}
	if s.configuration, err = a.Skills.Configuration(ctx, s.run.ConfigurationID); err != nil {
		return goneOr(err, "the run's configuration does not exist any more")
	}
	s.chain, err = a.chain(ctx, s.configuration)
	return err
}

func goneOr(err error, message string) error {
	if fault.Is(err, fault.NotFound) {
		return stopped{reason: run.ReasonPolicyDenied, message: message}
	}
	return err
}

// holdPins holds the pins of the segment's run.
func (s *segment) holdPins(ctx context.Context) ([]heldPin, error) {
	held, err := s.agent.hold(ctx, s.pins, s.configuration)
	s.held = held
	return held, err
}

// hold checks the pins of a run and the four-eyes rule that belongs to that check
// (RULES P2, X7), at start, pickup, resume and continuation. A failing pin stops the
// run, which keeps the others: the error is a stopped (RULES P3).
func (a *Agent) hold(ctx context.Context, pins run.Pins, c library.Configuration) ([]heldPin, error) {
	held, failed, err := a.checkPins(ctx, pins)
	if err != nil {
		return nil, err
	}
	stop, rest := stopped{}, pinsWithout(pins, failed)
	if process, is := rest.Process(); is && c.RequireSecondApprover {
		rest = rest.Without(process.Skill)
		stop.reason, stop.message = run.ReasonSecondApproverRequired, secondApproverMessage(c.Name)
		stop.notices = []run.Notice{notice(run.NoticeSecondApprover)}
	}
	if len(failed) > 0 { // both at once: one stop takes all that does not hold along
		message, notices := withdrawn(failed)
		stop.reason, stop.message = run.ReasonInstructionWithdrawn, message
		stop.notices = append(notices, stop.notices...)
	}
	if stop.reason != "" {
		stop.pins = &rest
		return nil, stop
	}
	return held, nil
}

func secondApproverMessage(configuration string) string {
	return "the configuration " + configuration + " now has requireSecondApprover set, and a process is decided by its initiator alone"
}

// beginWith takes the first messages. What is worth a notice in them is stored before
// the model is asked.
func (s *segment) beginWith(ctx context.Context, o opened, broken []library.Dossier) error {
	s.transcript, s.catalogue = s.agent.clean(o.messages), o.catalogue
	s.held, s.pins = o.held, pinsOf(o.held)
	fresh := slices.DeleteFunc(o.notices, func(n run.Notice) bool {
		return slices.ContainsFunc(s.notices, func(known run.Notice) bool { return sameNotice(known, n) })
	})
	for _, d := range broken {
		if err := s.agent.Skills.NoteIntegrityFailure(ctx, d); err != nil {
			return err
		}
	}
	s.notices = append(s.notices, fresh...)
	return s.write(ctx, []change.Value{runNotices.To(orEmpty(s.notices)), runPins.To(s.pins)},
		change.Change{Events: noticeEvents(s.agent.World.Now(), fresh)})
}
