package library

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/skill"
)

// AttachInput offers a skill on a configuration or on a task: one of the two ids is
// zero.
type AttachInput struct {
	SkillID         uuid.UUID
	ConfigurationID uuid.UUID
	TaskID          uuid.UUID
	LoadMode        LoadMode // empty is on_demand on a configuration, always on a task
}

// attachment is the attachment that the input asks for, as far as the input says.
func (in AttachInput) attachment() (Attachment, error) {
	if (in.ConfigurationID == uuid.Nil) == (in.TaskID == uuid.Nil) {
		return Attachment{}, fault.New(fault.BadInput, "give either configurationId or taskId: a skill is attached to one of them.")
	}
	a := Attachment{SkillID: in.SkillID, ConfigurationID: in.ConfigurationID, TaskID: in.TaskID, LoadMode: in.LoadMode}
	switch {
	case in.LoadMode != "":
	case in.TaskID != uuid.Nil:
		a.LoadMode = Always
	default:
		a.LoadMode = OnDemand
	}
	return a, checkMode(a.LoadMode)
}

// Attach offers a skill on a configuration or a task, after those that are there
// (RULES L1, I4). Administrators only; audited.
//
// Refusals: ALREADY_ATTACHED; PROCESS_NOT_ALWAYS when a process would be loaded
// always (RULES X1), which is how a task loads everything; TASK_ALWAYS_ONLY for
// on_demand on a task.
func (l *Library) Attach(ctx context.Context, by actor.Actor, in AttachInput) (Offered, error) {
	if err := needAdministrator(by); err != nil {
		return Offered{}, err
	}
	a, err := in.attachment()
	if err != nil {
		return Offered{}, err
	}
	a.ID, a.CreatedAt = l.World.NewID(), l.World.Now()
	var d Dossier
	err = l.retried(ctx, "the attachments", func() (c change.Change, err error) {
		c, d, err = l.placedLast(ctx, by, &a)
		return c, err
	})
	return Offered{Attachment: a, Dossier: d}, err
}

// placedLast is the change that attaches a skill after those that are there now, whose
// place it gives the attachment.
func (l *Library) placedLast(ctx context.Context, by actor.Actor, a *Attachment) (change.Change, Dossier, error) {
	offered, arranged, err := l.offeredWhere(ctx, *a)
	if err != nil {
		return change.Change{}, Dossier{}, err
	}
	d, err := l.dossier(ctx, a.SkillID)
	if err != nil {
		return change.Change{}, Dossier{}, err
	}
	if err := modeAllowed(d.Skill, a.TaskID, a.LoadMode); err != nil {
		return change.Change{}, Dossier{}, err
	}
	a.Position = 1
	for _, o := range offered {
		if o.Skill.ID == a.SkillID {
			return change.Change{}, Dossier{}, fault.Refuse(fault.AlreadyAttached, "The skill %q is already attached there.", d.Skill.Version.Name).
				With(o.Attachment)
		}
		a.Position = max(a.Position, o.Attachment.Position+1)
	}
	c := l.attachment(by, *a, d.Skill)
	c.Updates = append(c.Updates, arranged)
	return c, d, nil
}

// offeredWhere lists what the attachment's configuration or task, which must exist,
// offers. A change of it must hold the update that comes with the list: of two that
// were made from the same list one loses, so that no two attachments share a place.
func (l *Library) offeredWhere(ctx context.Context, a Attachment) ([]Offered, change.Update, error) {
	if a.TaskID != uuid.Nil {
		t, err := l.Store.Task(ctx, a.TaskID)
		if err != nil {
			return nil, change.Update{}, err
		}
		offered, err := l.Store.OfferedByTask(ctx, t.ID)
		return offered, rearranges(tasksTable, t.ID, taskArranged, t.Arrangement), err
	}
	c, err := l.Store.Configuration(ctx, a.ConfigurationID)
	if err != nil {
		return nil, change.Update{}, err
	}
	offered, err := l.Store.Offered(ctx, c.ID)
	return offered, rearranges(configurationsTable, c.ID, configurationArranged, c.Arrangement), err
}

func rearranges(table change.Table, id uuid.UUID, count change.Column[int], was int) change.Update {
	return change.Update{Table: table, ID: id, If: []change.Value{count.Is(was)}, Set: []change.Value{count.To(was + 1)}}
}

func (l *Library) attachment(by actor.Actor, a Attachment, s Skill) change.Change {
	return change.Change{
		Updates: []change.Update{holds(skillsTable, s.ID, skillEnabled.Is(s.Enabled), skillProcess.Is(s.Version.Process))},
		Inserts: []change.Insert{{Table: attachmentsTable, Row: []change.Value{
			attachmentID.To(a.ID), attachmentSkillID.To(a.SkillID), attachmentConfID.Maybe(orNone(a.ConfigurationID)),
			attachmentTaskID.Maybe(orNone(a.TaskID)), attachmentMode.To(a.LoadMode), attachmentPosition.To(a.Position), attachmentCreated.To(a.CreatedAt),
		}}},
		Audit: []audit.Entry{l.attachmentEntry(by, audit.SkillAttached, a, s).With("mode", string(a.LoadMode)).With("position", a.Position)},
	}
}

func (l *Library) attachmentEntry(by actor.Actor, event audit.Event, a Attachment, s Skill) audit.Entry {
	e := audit.Record(l.World, by, event).About(s.SourceID, s.ID, string(s.Version.Digest())).With("attachment", a.ID.String())
	if a.TaskID != uuid.Nil {
		return e.With("task", a.TaskID.String())
	}
	return e.With("configuration", a.ConfigurationID.String())
}

// orNone is nil for the zero id, which says that there is none.
func orNone(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}

func checkMode(mode LoadMode) error {
	if mode != Always && mode != OnDemand {
		return fault.New(fault.BadInput, "loadMode must be always or on_demand.")
	}
	return nil
}

// modeAllowed refuses to load a process always, and what may be one (RULES X1, S14),
// and to load anything on demand for a task, which is one prompt with one answer
// (RULES I4).
func modeAllowed(s Skill, taskID uuid.UUID, mode LoadMode) error {
	if taskID != uuid.Nil {
		if s.Version.Process != skill.ProcessNo {
			return fault.Refuse(fault.ProcessNotAlways, "The skill %q is a process, or may be one: it guides a conversation, and a task has none.", s.Version.Name)
		}
		if mode == OnDemand {
			return fault.Refuse(fault.TaskAlwaysOnly, "A task is one prompt with one answer: its skills are attached always.")
		}
		return nil
	}
	if mode == Always && s.Version.Process != skill.ProcessNo {
		return fault.Refuse(fault.ProcessNotAlways, "The skill %q is a process, or may be one: it is started explicitly and attached on_demand.", s.Version.Name)
	}
	return nil
}

// Detach takes a skill off a configuration or task. Administrators only; audited.
func (l *Library) Detach(ctx context.Context, by actor.Actor, attachmentID uuid.UUID) error {
	if err := needAdministrator(by); err != nil {
		return err
	}
	a, err := l.Store.Attachment(ctx, attachmentID)
	if err != nil {
		return err
	}
	s, err := l.Store.Skill(ctx, a.SkillID)
	if err != nil {
		return err
	}
	out, err := change.One(ctx, l.Store, change.Change{
		Deletes: []change.Delete{{Table: attachmentsTable, ID: attachmentID}},
		Audit:   []audit.Entry{l.attachmentEntry(by, audit.SkillDetached, a, s)},
	})
	if err == nil && !out.Applied {
		return fault.New(fault.NotFound, "There is no such attachment.")
	}
	return err
}

// AttachmentUpdate is the input of UpdateAttachment; a nil field stays as it is.
type AttachmentUpdate struct {
	ID       uuid.UUID
	LoadMode *LoadMode
	// Place moves the attachment to that place in the order of its configuration or task,
	// counted from 1; beyond the end is the end.
	Place *int
}

// UpdateAttachment changes how an attached skill is loaded, or its place in the
// order. Administrators only; audited when it changes.
//
// Refusals: PROCESS_NOT_ALWAYS, TASK_ALWAYS_ONLY.
func (l *Library) UpdateAttachment(ctx context.Context, by actor.Actor, in AttachmentUpdate) (Offered, error) {
	if err := needAdministrator(by); err != nil {
		return Offered{}, err
	}
	if in.LoadMode != nil {
		if err := checkMode(*in.LoadMode); err != nil {
			return Offered{}, err
		}
	}
	if in.Place != nil && *in.Place < 1 {
		return Offered{}, fault.New(fault.BadInput, "position must be 1 or more.")
	}
	var result Offered
	err := l.retried(ctx, "the attachments", func() (change.Change, error) {
		a, err := l.Store.Attachment(ctx, in.ID)
		if err != nil {
			return change.Change{}, err
		}
		offered, arranged, err := l.offeredWhere(ctx, a)
		if err != nil {
			return change.Change{}, err
		}
		at := slices.IndexFunc(offered, func(o Offered) bool { return o.Attachment.ID == in.ID })
		if at < 0 {
			return change.Change{}, fault.New(fault.NotFound, "There is no such attachment.")
		}
		if in.LoadMode != nil {
			if err := modeAllowed(offered[at].Skill, a.TaskID, *in.LoadMode); err != nil {
				return change.Change{}, err
			}
		}
		var c change.Change
		c, result = l.rearranged(by, offered, at, in)
		if len(c.Updates) > 0 {
			c.Updates = append(c.Updates, arranged)
		}
		return c, nil
	})
	return result, err
}

// rearranged is the change of an attachment's mode and of every position that its
// new place moves.
func (l *Library) rearranged(by actor.Actor, offered []Offered, at int, in AttachmentUpdate) (change.Change, Offered) {
	now := offered[at]
	if in.LoadMode != nil {
		now.Attachment.LoadMode = *in.LoadMode
	}
	order := offered
	if in.Place != nil {
		order = slices.Delete(slices.Clone(offered), at, at+1)
		order = slices.Insert(order, min(*in.Place-1, len(order)), offered[at])
	}
	var c change.Change
	for i, o := range order {
		was, position, mode := o.Attachment, o.Attachment.Position, o.Attachment.LoadMode
		if in.Place != nil {
			position = i + 1
		}
		if was.ID == in.ID {
			mode, now.Attachment.Position = now.Attachment.LoadMode, position
		}
		if position == was.Position && mode == was.LoadMode {
			continue
		}
		c.Updates = append(c.Updates, change.Update{
			Table: attachmentsTable, ID: was.ID,
			If:  []change.Value{attachmentPosition.Is(was.Position), attachmentMode.Is(was.LoadMode)},
			Set: []change.Value{attachmentPosition.To(position), attachmentMode.To(mode)},
		})
	}
	if len(c.Updates) > 0 {
		s := now.Skill
		c.Updates = append(c.Updates, holds(skillsTable, s.ID, skillEnabled.Is(s.Enabled), skillProcess.Is(s.Version.Process)))
		c.Audit = []audit.Entry{l.attachmentEntry(by, audit.AttachmentUpdated, now.Attachment, s).
			With("mode", string(now.Attachment.LoadMode)).With("position", now.Attachment.Position)}
	}
	return c, now
}
