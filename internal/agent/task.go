package agent

import (
	"context"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/prompt"
)

// TaskRequest asks for a run of a task.
type TaskRequest struct {
	TaskID        uuid.UUID
	Input         string   // what the task is to be done on; empty leaves its prompt alone
	AllowedTools  []string // nil does not narrow (RULES T10)
	MaxIterations int      // below 1 is none (RULES R9)
}

// RunTask starts an ordinary run of a task's configuration, with the task's prompt and
// the input as its one message, and the task's skills beside the configuration's
// (RULES I4, T1). It refuses what Start refuses.
func (a *Agent) RunTask(ctx context.Context, by actor.Actor, req TaskRequest) (Run, error) {
	if by.IsNobody() { // whether there is such a task is nobody's to know
		return Run{}, fault.New(fault.Unauthenticated, "sign in to run a task")
	}
	task, err := a.Skills.Task(ctx, req.TaskID)
	if err != nil {
		return Run{}, err
	}
	text := task.Prompt
	if req.Input != "" {
		text += "\n\n" + req.Input
	}
	return a.start(ctx, by, asked{task: task.ID, StartRequest: StartRequest{
		ConfigurationID: task.ConfigurationID, Messages: []prompt.Message{{Role: prompt.User, Text: text}},
		AllowedTools: req.AllowedTools, MaxIterations: req.MaxIterations,
	}})
}
