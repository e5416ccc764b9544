package library

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
)

// Task is one prompt that is run for one answer, with the skills attached to it
// (RULES I4). There is nothing to it beyond that: no steps, no state.
type Task struct {
	ID              uuid.UUID
	Name            string
	ConfigurationID uuid.UUID
	Prompt          string
	Arrangement     int // counts the changes of what it offers
	CreatedAt       time.Time
}

// NewTask is the input of CreateTask.
type NewTask struct {
	Name            string
	ConfigurationID uuid.UUID
	Prompt          string
}

const maxTaskPrompt = 128 << 10 // bytes; half of what a run takes, so that there is room for its input

// CreateTask adds a task to a configuration. Administrators only; audited as a change
// of its configuration.
func (l *Library) CreateTask(ctx context.Context, by actor.Actor, in NewTask) (Task, error) {
	if err := needAdministrator(by); err != nil {
		return Task{}, err
	}
	name, err := label("name", in.Name)
	if err != nil {
		return Task{}, err
	}
	prompt, err := prose("prompt", in.Prompt, maxTaskPrompt)
	if err != nil {
		return Task{}, err
	}
	if prompt = strings.TrimSpace(prompt); prompt == "" {
		return Task{}, fault.New(fault.BadInput, "prompt must not be empty.")
	}
	c, err := l.Store.Configuration(ctx, in.ConfigurationID)
	if err != nil {
		return Task{}, err
	}
	id := l.World.NewID()
	_, err = change.One(ctx, l.Store, change.Change{
		Inserts: []change.Insert{{Table: tasksTable, Row: []change.Value{
			taskID.To(id), taskName.To(name), taskConfiguration.To(c.ID), taskPrompt.To(prompt), taskCreatedAt.To(l.World.Now()),
		}}},
		Audit: []audit.Entry{configurationEntry(audit.Record(l.World, by, audit.ConfigurationUpdated), c).With("addedTask", id.String())},
	})
	if err != nil {
		return Task{}, err
	}
	return l.Store.Task(ctx, id)
}

// Task reads a task for the runtime, which checks itself who may run it.
func (l *Library) Task(ctx context.Context, id uuid.UUID) (Task, error) { return l.Store.Task(ctx, id) }

// FindTask reads a task for somebody who may use its configuration; to anybody else it
// does not exist.
func (l *Library) FindTask(ctx context.Context, by actor.Actor, id uuid.UUID) (Task, error) {
	if err := needSignedIn(by); err != nil {
		return Task{}, err
	}
	t, err := l.Store.Task(ctx, id)
	if err != nil {
		return Task{}, err
	}
	c, err := l.Store.Configuration(ctx, t.ConfigurationID)
	if err == nil && !c.MayUse(by) {
		return Task{}, fault.New(fault.NotFound, "There is no such task, or none you may run.")
	}
	return t, err
}

// ListTasks pages through the tasks that somebody may run.
func (l *Library) ListTasks(ctx context.Context, by actor.Actor, page Page) ([]Task, error) {
	if err := needSignedIn(by); err != nil {
		return nil, err
	}
	usable := map[uuid.UUID]bool{}
	return filtered(page, func(p Page) ([]Task, error) { return l.Store.Tasks(ctx, p) },
		func(t Task) uuid.UUID { return t.ID },
		func(tasks []Task) ([]Task, error) {
			for _, t := range tasks {
				if _, known := usable[t.ConfigurationID]; known {
					continue
				}
				c, err := l.Store.Configuration(ctx, t.ConfigurationID)
				if err != nil {
					return nil, err
				}
				usable[c.ID] = c.MayUse(by)
			}
			return slices.DeleteFunc(tasks, func(t Task) bool { return !usable[t.ConfigurationID] }), nil
		})
}
