package library

import (
	"context"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/skill"
)

// Entry is one line of the skill menu for people (RULES I1). The name and
// description of a skill that does not instruct are text nobody vouches for.
type Entry struct {
	Offered
	Standing skill.Standing
}

// Catalogue is the menu of skills that a person may start on a configuration: attached
// and effective, in the order of attachment. A process is on it only for a person
// who may approve their own changes (RULES X3), and never while its marker cannot be
// read (RULES S14).
func (l *Library) Catalogue(ctx context.Context, by actor.Actor, configurationID uuid.UUID, processesOnly bool) ([]Entry, error) {
	if _, err := l.FindConfiguration(ctx, by, configurationID); err != nil {
		return nil, err
	}
	t, err := l.Thresholds(ctx)
	if err != nil {
		return nil, err
	}
	offered, err := l.Store.Offered(ctx, configurationID)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for _, o := range offered {
		process := o.Skill.Version.Process
		switch {
		case !o.Effective(t), process == skill.ProcessUnreadable, processesOnly && process != skill.ProcessYes:
		case process == skill.ProcessYes && (!by.IsPerson() || !by.May(actor.RunApproveOwn)):
		default:
			entries = append(entries, Entry{Offered: o, Standing: o.Standing(t)})
		}
	}
	return entries, nil
}

// Offered lists what a configuration offers, in the order of attachment.
func (l *Library) Offered(ctx context.Context, configurationID uuid.UUID) ([]Offered, error) {
	return l.Store.Offered(ctx, configurationID)
}

// OfferedByTask lists what a task offers, in the order of attachment.
func (l *Library) OfferedByTask(ctx context.Context, taskID uuid.UUID) ([]Offered, error) {
	return l.Store.OfferedByTask(ctx, taskID)
}

// Configuration reads a configuration for the runtime, which checks itself who may
// use it.
func (l *Library) Configuration(ctx context.Context, id uuid.UUID) (Configuration, error) {
	return l.Store.Configuration(ctx, id)
}

// Source reads a source for the runtime, without its token.
func (l *Library) Source(ctx context.Context, id uuid.UUID) (Source, error) {
	return l.shown(l.Store.Source(ctx, id))
}

// Provider reads a provider for the runtime, with its key.
func (l *Library) Provider(ctx context.Context, id uuid.UUID) (Provider, error) {
	return l.Store.Provider(ctx, id)
}

// FindConfiguration reads a configuration for somebody who may use it; to anybody
// else it does not exist.
func (l *Library) FindConfiguration(ctx context.Context, by actor.Actor, id uuid.UUID) (Configuration, error) {
	if err := needSignedIn(by); err != nil {
		return Configuration{}, err
	}
	c, err := l.Store.Configuration(ctx, id)
	if err == nil && !c.MayUse(by) {
		return Configuration{}, fault.New(fault.NotFound, "There is no such configuration, or none you may use.")
	}
	return c, err
}
