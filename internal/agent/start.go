package agent

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/skill"
	"github.com/countersign/countersign/internal/tool"
)

// StartRequest asks for a run.
type StartRequest struct {
	ConfigurationID uuid.UUID
	Messages        []prompt.Message
	Invocation      *Invocation
	Predecessor     uuid.UUID   // the run to continue; zero for a first run (RULES P4)
	Forced          []uuid.UUID // composed like always; an administrator's act (RULES L11, T1)
	AllowedTools    []string    // nil does not narrow (RULES T10)
	MaxIterations   int         // below 1 is none (RULES R9)

	// Conversation is the conversation whose turn the run is; zero for any other run. Along,
	// if set, is what becomes true with the run as it begins, or the run is not stored: for
	// the room that keeps conversations.
	Conversation uuid.UUID
	Along        func(Run) change.Change
}

// ErrAlongLost says that a guard of StartRequest.Along did not hold: nothing was stored.
var ErrAlongLost = errors.New("what was to become true with the run did not")

// asked is a request with the task it carries out; zero when it carries out none.
type asked struct {
	StartRequest
	task uuid.UUID
}

// commission is what a run is to do, as the rules ask about it at start and again at
// pickup.
type commission struct {
	set     lineup
	invoked *Invocation
	subject *tool.Record
	held    run.Pins // from the run before; at pickup, what the run holds
}

// starts returns the skill that is started, which one taken over is not (RULES X4).
func (c commission) starts() *Invocation {
	if c.invoked == nil || c.invoked.Derived {
		return nil
	}
	return c.invoked
}

// audited says on an entry what was asked for.
func (r asked) audited(e audit.Entry, set lineup) audit.Entry {
	e = e.With("configuration", r.ConfigurationID)
	if r.task != uuid.Nil {
		e = e.With("task", r.task)
	}
	if r.Predecessor != uuid.Nil {
		e = e.With("predecessor", r.Predecessor)
	}
	if r.Invocation != nil {
		if m, known := set.find(r.Invocation.Skill); known {
			e = e.About(m.Skill.SourceID, m.Skill.ID, string(m.Skill.Version.Digest()))
		}
	}
	return e
}

// requestBytes bounds what a run may be asked: the text of all messages, in bytes.
const requestBytes = 256 << 10

// startTries bounds how often a start is judged anew because what it stands on, such
// as the run before it, changed meanwhile.
const startTries = 8

// Start checks the request, derives what a continuation takes over, fixes the run's
// pins and allow-list, and stores the run as queued; a worker picks it up. What the
// rules refuse is a fault.Refused, audited as RUN_REFUSED, and leaves no run, except
// when an instruction does not hold any more: that run is stored as failed without it
// and returned beside the refusal, so that the next one can continue it (RULES P3).
func (a *Agent) Start(ctx context.Context, by actor.Actor, req StartRequest) (Run, error) {
	return a.start(ctx, by, asked{StartRequest: req})
}

func (a *Agent) start(ctx context.Context, by actor.Actor, req asked) (Run, error) {
	if err := a.learnSecrets(ctx); err != nil {
		return Run{}, err
	}
	req.Messages = a.clean(req.Messages)
	if err := mayStart(by, req.StartRequest); err != nil {
		return Run{}, err
	}
	for range startTries {
		r, stored, err := a.tryStart(ctx, by, req)
		if stored || err != nil {
			return r, err
		}
	}
	return Run{}, fault.New(fault.Unavailable, "What the run would start from keeps changing; try again.")
}

// tryStart judges the request and stores the run, unless the one before it is not any
// more what it was derived from.
func (a *Agent) tryStart(ctx context.Context, by actor.Actor, req asked) (r Run, stored bool, err error) {
	c, work, taken, err := a.judge(ctx, by, req)
	if err != nil {
		return Run{}, false, err
	}
	return a.queue(ctx, by, c, req, work, taken)
}

// CheckStart refuses what Start would refuse, and stores no run: for a skill that is to be
// started with a message that is not there yet. What the rules refuse is audited as
// RUN_REFUSED all the same.
func (a *Agent) CheckStart(ctx context.Context, by actor.Actor, req StartRequest) error {
	req.Messages = []prompt.Message{{Role: prompt.User, Text: "-"}}
	if err := mayStart(by, req); err != nil {
		return err
	}
	_, _, _, err := a.judge(ctx, by, asked{StartRequest: req})
	return err
}

// judge holds a request against the rules of starting; what they refuse is audited.
func (a *Agent) judge(ctx context.Context, by actor.Actor, req asked) (c library.Configuration, work commission, taken inheritance, err error) {
	if c, err = a.Skills.Configuration(ctx, req.ConfigurationID); err != nil {
		return c, work, taken, err
	}
	from, err := a.predecessor(ctx, by, req.Predecessor)
	if err != nil {
		return c, work, taken, a.auditRefusal(ctx, by, req, nil, err)
	}
	if taken, err = a.takeOver(ctx, req, from); err != nil {
		return c, work, taken, err
	}
	invoked, subject, clash := taken.invoke(req.Invocation)
	work = commission{invoked: invoked, subject: subject, held: taken.pins}
	work.set, err = a.lineup(ctx, origin{configuration: req.ConfigurationID, task: req.task, invoked: invoked, forced: req.Forced})
	if err != nil {
		return c, work, taken, err
	}
	if missing := work.set.missing(req.Forced); len(missing) > 0 {
		return c, work, taken, fault.New(fault.NotFound, "a skill in forcedSkillIds does not exist")
	}
	if clash {
		process, _ := taken.pins.Process()
		err = a.processRunning(ctx, process, taken.subject)
	} else {
		err = a.mayRun(ctx, by, c, work)
	}
	if err == nil {
		err = a.affordable(ctx, by.ID, c.ID)
	}
	if err != nil {
		err = a.auditRefusal(ctx, by, req, work.set, err)
	}
	return c, work, taken, err
}

func mayStart(by actor.Actor, req StartRequest) error {
	size := 0
	for _, m := range req.Messages {
		size += len(m.Text)
	}
	if by.IsNobody() {
		return fault.New(fault.Unauthenticated, "sign in to start a run")
	}
	if err := entitled(by, req.Forced); err != nil {
		return err
	}
	switch {
	case len(req.Messages) == 0:
		return fault.New(fault.BadInput, "give the run a prompt or messages")
	case size > requestBytes:
		return fault.New(fault.BadInput, "the messages hold %d bytes; a run takes at most %d", size, requestBytes)
	case req.Messages[len(req.Messages)-1].Role != prompt.User:
		return fault.New(fault.BadInput, "the last message must be the user's")
	case strings.TrimSpace(req.Messages[len(req.Messages)-1].Text) == "":
		return fault.New(fault.BadInput, "the prompt is empty; say what the run is to do")
	}
	return nil
}

// entitled is what a person must be allowed for a run of theirs, at start and again at
// pickup (RULES I2).
func entitled(by actor.Actor, forced []uuid.UUID) error {
	switch {
	case !by.May(actor.RunStart):
		return fault.New(fault.Forbidden, "starting a run needs the permission %s", actor.RunStart)
	case len(forced) > 0 && !by.Administrator:
		return fault.New(fault.Forbidden, "forcing skills onto a run is an administrator's act")
	}
	return nil
}

// mayRun holds a request against the rules that are asked at start and again at
// pickup: the actor may use the configuration, what is started stands, and the subject
// can be read (RULES L3, X3, P10). What is taken over was started once and is not asked
// about again.
func (a *Agent) mayRun(ctx context.Context, by actor.Actor, c library.Configuration, work commission) error {
	if !c.MayUse(by) {
		return fault.Refuse(fault.ConfigurationNotAllowed, "the configuration %q does not name you among its users", c.Name)
	}
	started, m := work.starts(), member{}
	if started != nil {
		var known bool
		if m, known = work.set.find(started.Skill); !known {
			return fault.New(fault.NotFound, "the invoked skill does not exist")
		}
		name := m.Skill.Version.Name
		switch {
		case !m.attached:
			return fault.Refuse(fault.NotAttached, "the skill %q is not attached to the configuration %q", name, c.Name)
		case !m.effective():
			return fault.Refuse(fault.NotEffective, "the skill %q cannot be used: %s", name, ineffective(m))
		}
	}
	if err := a.subjectReadable(ctx, by, work.subject); err != nil || started == nil {
		return err
	}
	return a.mayInvoke(ctx, by, c, m, work)
}

func (a *Agent) subjectReadable(ctx context.Context, by actor.Actor, subject *tool.Record) error {
	if subject == nil {
		return nil
	}
	_, err := a.Content.Read(ctx, by, subject.Table, subject.ID)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Forbidden) {
		return fault.Refuse(fault.SubjectUnreadable, "you cannot read the record %s %s", subject.Table, subject.ID)
	}
	return err
}

// mayInvoke holds the rules that only a process has (RULES X3, S14).
func (a *Agent) mayInvoke(ctx context.Context, by actor.Actor, c library.Configuration, m member, work commission) error {
	name := m.Skill.Version.Name
	switch m.Skill.Version.Process {
	case skill.ProcessNo:
		return nil
	case skill.ProcessUnreadable:
		return fault.Refuse(fault.ProcessUnreadable, "the process marker of the skill %q cannot be read", name)
	}
	if standing := skill.Stand(m.facts); !standing.Instructs {
		return fault.Refuse(fault.NotInstruction, "the process %q may not instruct: %s", name, standingText(standing)).With(standing)
	}
	if process, held := work.held.Process(); held && process.Skill != m.Skill.ID {
		return a.processRunning(ctx, process, work.subject)
	}
	switch {
	case c.RequireSecondApprover:
		return fault.Refuse(fault.SecondApproverRequired,
			"the configuration %q has requireSecondApprover set, and a process is decided by its initiator alone", c.Name)
	case !by.IsPerson():
		return fault.Refuse(fault.ServiceAccount, "a service account cannot start the process %q: nobody could answer its cards", name)
	}
	return nil
}

func ineffective(m member) string {
	switch {
	case m.Skill.Orphaned:
		return "its source no longer contains it"
	case !m.Skill.Enabled:
		return "it is disabled"
	default:
		return "its trust level is below skills.minTrustLevel"
	}
}

// auditRefusal records a refused start and gives back what is to be returned.
func (a *Agent) auditRefusal(ctx context.Context, by actor.Actor, req asked, set lineup, refused error) error {
	refusal, ok := fault.AsRefusal(refused)
	if !ok {
		return refused
	}
	entry := req.audited(audit.Record(a.World, by, audit.RunRefused).With("code", refusal.Code), set)
	if _, err := change.One(ctx, a.Store, change.Change{Audit: []audit.Entry{entry}, Refused: refusal}); err != nil {
		return err
	}
	return refused
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return slices.Clone(list)
}
