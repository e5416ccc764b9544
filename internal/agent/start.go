package agent

import (
	"context"
	"encoding/json"
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
)

// StartRequest asks for a run.
type StartRequest struct {
	ConfigurationID uuid.UUID
	Messages        []prompt.Message
	Invocation      *Invocation
	Forced          []uuid.UUID // composed like always; an administrator's act (RULES L11, T1)
	AllowedTools    []string    // nil does not narrow (RULES T10)
	MaxIterations   int         // below 1 is none (RULES R9)
}

// asked is a request with the task it carries out; zero when it carries out none.
type asked struct {
	StartRequest
	task uuid.UUID
}

func (r asked) origin() origin {
	return origin{configuration: r.ConfigurationID, task: r.task, invoked: r.Invocation, forced: r.Forced}
}

func (r StartRequest) invoked() *uuid.UUID {
	if r.Invocation == nil {
		return nil
	}
	return &r.Invocation.Skill
}

func (r asked) carriesOut() *uuid.UUID {
	if r.task == uuid.Nil {
		return nil
	}
	return &r.task
}

// audited says on an entry what was asked for.
func (r asked) audited(e audit.Entry, set lineup) audit.Entry {
	e = e.With("configuration", r.ConfigurationID)
	if r.task != uuid.Nil {
		e = e.With("task", r.task)
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

// Start checks the request, fixes the run's pins and allow-list, and stores the run
// as queued; a worker picks it up. What the rules refuse is a fault.Refused, audited
// as RUN_REFUSED, and leaves no run.
func (a *Agent) Start(ctx context.Context, by actor.Actor, req StartRequest) (Run, error) {
	return a.start(ctx, by, asked{StartRequest: req})
}

func (a *Agent) start(ctx context.Context, by actor.Actor, req asked) (Run, error) {
	if err := mayStart(by, req.StartRequest); err != nil {
		return Run{}, err
	}
	configuration, err := a.Skills.Configuration(ctx, req.ConfigurationID)
	if err != nil {
		return Run{}, err
	}
	set, err := a.lineup(ctx, req.origin())
	if err != nil {
		return Run{}, err
	}
	if missing := set.missing(req.Forced); len(missing) > 0 {
		return Run{}, fault.New(fault.NotFound, "a skill in forcedSkillIds does not exist")
	}
	if err := a.mayRun(ctx, by, configuration, set, req.Invocation); err != nil {
		return Run{}, a.auditRefusal(ctx, by, req, set, err)
	}
	r, err := a.queue(ctx, by, req, set)
	if err != nil {
		return Run{}, err
	}
	return a.Store.Run(ctx, r)
}

func mayStart(by actor.Actor, req StartRequest) error {
	size := 0
	for _, m := range req.Messages {
		size += len(m.Text)
	}
	switch {
	case by.IsNobody():
		return fault.New(fault.Unauthenticated, "sign in to start a run")
	case !by.May(actor.RunStart):
		return fault.New(fault.Forbidden, "starting a run needs the permission %s", actor.RunStart)
	case len(req.Forced) > 0 && !by.Administrator:
		return fault.New(fault.Forbidden, "forcing skills onto a run is an administrator's act")
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

// mayRun holds a request against the rules that are asked at start and again at
// pickup: the actor may use the configuration, and the invocation stands (RULES L3, X3).
func (a *Agent) mayRun(ctx context.Context, by actor.Actor, c library.Configuration, set lineup, invoked *Invocation) error {
	if !c.MayUse(by) {
		return fault.Refuse(fault.ConfigurationNotAllowed, "the configuration %q does not name you among its users", c.Name)
	}
	if invoked == nil {
		return nil
	}
	m, known := set.find(invoked.Skill)
	if !known {
		return fault.New(fault.NotFound, "the invoked skill does not exist")
	}
	name := m.Skill.Version.Name
	switch {
	case !m.attached:
		return fault.Refuse(fault.NotAttached, "the skill %q is not attached to the configuration %q", name, c.Name)
	case !m.effective():
		return fault.Refuse(fault.NotEffective, "the skill %q cannot be used: %s", name, ineffective(m))
	}
	if invoked.Subject != nil {
		if _, err := a.Content.Read(ctx, by, invoked.Subject.Table, invoked.Subject.ID); err != nil {
			if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Forbidden) {
				return fault.Refuse(fault.SubjectUnreadable, "you cannot read the record %s %s", invoked.Subject.Table, invoked.Subject.ID)
			}
			return err
		}
	}
	return mayInvoke(by, c, m)
}

// mayInvoke holds the rules that only a process has (RULES X3, S14).
func mayInvoke(by actor.Actor, c library.Configuration, m member) error {
	name := m.Skill.Version.Name
	switch m.Skill.Version.Process {
	case skill.ProcessNo:
		return nil
	case skill.ProcessUnreadable:
		return fault.Refuse(fault.ProcessUnreadable, "the process marker of the skill %q cannot be read", name)
	}
	standing := skill.Stand(m.facts)
	switch {
	case !standing.Instructs:
		return fault.Refuse(fault.NotInstruction, "the process %q may not instruct: %s", name, standingText(standing)).With(standing)
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

// queue stores the run with everything that is fixed at start (RULES T1, T2, P1).
func (a *Agent) queue(ctx context.Context, by actor.Actor, req asked, set lineup) (uuid.UUID, error) {
	composed := set.compose(nil)
	for _, broken := range composed.broken {
		if err := a.Skills.NoteIntegrityFailure(ctx, broken); err != nil {
			return uuid.Nil, err
		}
	}
	held, _, err := a.checkPins(ctx, composed.pins)
	if err != nil {
		return uuid.Nil, err
	}
	request, err := json.Marshal(Request{Messages: req.Messages})
	if err != nil {
		return uuid.Nil, fault.Wrap(fault.Internal, err, "storing the request")
	}
	id, now := a.World.NewID(), a.World.Now()
	row := []change.Value{
		runID.To(id), runStatus.To(run.Queued), runOutcome.To(""), runReason.To(""), runTruncated.To(false),
		runMessage.To(""), runAnswer.To(""), runInitiator.To(by.ID), runConfiguration.To(req.ConfigurationID),
		runInvocation.To(req.Invocation), runInvokedSkill.Maybe(req.invoked()), runTask.Maybe(req.carriesOut()), runForced.To(orEmpty(req.Forced)),
		runAllowList.To(set.allowList(held)), runCallerTools.To(req.AllowedTools),
		runPins.To(composed.pins), runNotices.To(orEmpty(composed.notices)),
		runProgress.To(nil), runHighlight.To(nil), runMaxIterations.To(max(req.MaxIterations, 0)),
		runSuspension.To(0), runTurnDigest.To(""), runRequest.To(string(request)), runState.Null(),
		runLeaseOwner.To(""), runLeaseUntil.Null(), runFence.To(nil), runUsage.To(Usage{}),
		runCreatedAt.To(now), runStartedAt.Null(), runFinishedAt.Null(),
	}
	entry := req.audited(audit.Record(a.World, by, audit.RunStarted).InRun(id), set)
	_, err = change.One(ctx, a.Store, change.Change{
		Inserts: []change.Insert{{Table: runsTable, Row: row}},
		Run:     id,
		Events:  append([]run.Event{{Kind: run.EventStarted, At: now}}, noticeEvents(now, composed.notices)...),
		Audit:   []audit.Entry{entry},
		Ring:    []change.Topic{change.QueueTopic},
	})
	return id, err
}

// auditRefusal records a refused start and gives back what is to be returned.
func (a *Agent) auditRefusal(ctx context.Context, by actor.Actor, req asked, set lineup, refused error) error {
	refusal, ok := fault.AsRefusal(refused)
	if !ok {
		return refused
	}
	entry := req.audited(audit.Record(a.World, by, audit.RunRefused).With("code", refusal.Code), set)
	if _, err := change.One(ctx, a.Store, change.Change{Audit: []audit.Entry{entry}}); err != nil {
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
