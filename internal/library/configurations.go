package library

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/tool"
)

// NewConfiguration is the input of CreateConfiguration; see Configuration for what
// the fields mean.
type NewConfiguration struct {
	Name                         string
	ProviderID                   uuid.UUID
	Model                        string
	ContextWindow                int
	MaxOutputTokens              int
	Price                        *Price
	Fallbacks                    []Choice
	SystemPrompt                 string
	AllowedToolGroups            []tool.Group // nil allows all
	RequireSecondApprover        bool
	AllowProposalEdits           bool
	SnippetIDs                   []uuid.UUID // in order, each once (RULES N5)
	SnippetsInCallerSystemPrompt bool
	MaxIterations                int // below 1 leaves it to the settings (RULES R9)
	ApprovalExpiryHours          int // below 1 leaves it to the settings
	AllowedUserIDs               []uuid.UUID
}

// CreateConfiguration adds a configuration. Administrators only; audited.
func (l *Library) CreateConfiguration(ctx context.Context, by actor.Actor, in NewConfiguration) (Configuration, error) {
	if err := needAdministrator(by); err != nil {
		return Configuration{}, err
	}
	c := Configuration{
		ID: l.World.NewID(), Name: in.Name, ProviderID: in.ProviderID, Model: in.Model, ContextWindow: in.ContextWindow,
		SystemPrompt: in.SystemPrompt, AllowedToolGroups: in.AllowedToolGroups, RequireSecondApprover: in.RequireSecondApprover,
		SnippetIDs: in.SnippetIDs, SnippetsInCallerSystemPrompt: in.SnippetsInCallerSystemPrompt, MaxIterations: in.MaxIterations,
		AllowedUserIDs: in.AllowedUserIDs, Revision: 1, CreatedAt: l.World.Now(),
		MaxOutputTokens: in.MaxOutputTokens, Price: in.Price, Fallbacks: in.Fallbacks,
		ApprovalExpiryHours: in.ApprovalExpiryHours, AllowProposalEdits: in.AllowProposalEdits,
	}
	if err := l.checkConfiguration(ctx, &c); err != nil {
		return Configuration{}, err
	}
	row := append(configurationColumns(c), configurationID.To(c.ID), configurationRevision.To(1), configurationCreated.To(c.CreatedAt))
	out, err := change.One(ctx, l.Store, change.Change{
		Inserts: []change.Insert{{Table: configurationsTable, Row: row}},
		Audit:   []audit.Entry{configurationEntry(audit.Record(l.World, by, audit.ConfigurationCreated), c)},
	})
	if err != nil {
		return Configuration{}, err
	}
	if !out.Applied {
		return Configuration{}, fault.New(fault.NotFound, "providerId names a provider that is gone.")
	}
	return l.Store.Configuration(ctx, c.ID)
}

func configurationColumns(c Configuration) []change.Value {
	return []change.Value{
		configurationName.To(c.Name), configurationProvider.To(c.ProviderID), configurationModel.To(c.Model),
		configurationWindow.To(c.ContextWindow), configurationPrompt.To(c.SystemPrompt), configurationGroups.To(c.AllowedToolGroups),
		configurationFourEyes.To(c.RequireSecondApprover), configurationEdits.To(c.AllowProposalEdits), configurationSnippets.To(c.SnippetsInCallerSystemPrompt),
		configurationSnippetIDs.To(c.SnippetIDs), configurationMaxRounds.To(c.MaxIterations), configurationUsers.To(c.AllowedUserIDs),
		configurationMaxOutput.To(c.MaxOutputTokens), configurationPrice.To(c.Price), configurationFallbacks.To(c.Fallbacks),
		configurationExpiry.To(c.ApprovalExpiryHours),
	}
}

// ConfigurationUpdate is the input of UpdateConfiguration; a nil field stays as it
// is.
type ConfigurationUpdate struct {
	ID       uuid.UUID
	Revision *int // the revision the edit started from; nil takes what is there

	Name          *string
	ProviderID    *uuid.UUID
	Model         *string
	ContextWindow *int
	SystemPrompt  *string
	// MaxOutputTokens, when set, is the cap of an answer; 0 leaves it to the runtime.
	MaxOutputTokens *int
	// Price, when set, replaces the price; a pointer to nil makes it unknown.
	Price     **Price
	Fallbacks *[]Choice
	// AllowedToolGroups, when set, replaces the groups; a pointer to nil allows all.
	AllowedToolGroups            *[]tool.Group
	RequireSecondApprover        *bool
	AllowProposalEdits           *bool
	SnippetIDs                   *[]uuid.UUID
	SnippetsInCallerSystemPrompt *bool
	MaxIterations                *int
	ApprovalExpiryHours          *int
	AllowedUserIDs               *[]uuid.UUID
}

// StaleConfiguration is the detail of a STALE_REVISION: the configuration as it is
// now.
type StaleConfiguration struct {
	Posted  int
	Current Configuration
}

// UpdateConfiguration changes a configuration. Who may use it, its tool groups and
// its second approver act at once (RULES I2, I6). Administrators only; audited.
//
// Refusals: STALE_REVISION with a StaleConfiguration.
func (l *Library) UpdateConfiguration(ctx context.Context, by actor.Actor, in ConfigurationUpdate) (Configuration, error) {
	if err := needAdministrator(by); err != nil {
		return Configuration{}, err
	}
	err := l.retried(ctx, "the configuration", func() (change.Change, error) {
		was, err := l.Store.Configuration(ctx, in.ID)
		if err != nil {
			return change.Change{}, err
		}
		if in.Revision != nil && *in.Revision != was.Revision {
			return change.Change{}, fault.Refuse(fault.StaleRevision, "The configuration is at revision %d by now; the edit started from revision %d.",
				was.Revision, *in.Revision).With(StaleConfiguration{Posted: *in.Revision, Current: was})
		}
		now := in.applied(was)
		if err := l.checkConfiguration(ctx, &now); err != nil {
			return change.Change{}, err
		}
		return change.Change{
			Updates: []change.Update{{
				Table: configurationsTable, ID: was.ID, If: []change.Value{configurationRevision.Is(was.Revision)},
				Set: append(configurationColumns(now), configurationRevision.To(was.Revision+1)),
			}},
			Audit: []audit.Entry{configurationEntry(audit.Record(l.World, by, audit.ConfigurationUpdated), now).With("revision", was.Revision+1)},
		}, nil
	})
	if err != nil {
		return Configuration{}, err
	}
	return l.Store.Configuration(ctx, in.ID)
}

func (in ConfigurationUpdate) applied(c Configuration) Configuration {
	set(&c.Name, in.Name)
	set(&c.ProviderID, in.ProviderID)
	set(&c.Model, in.Model)
	set(&c.ContextWindow, in.ContextWindow)
	set(&c.SystemPrompt, in.SystemPrompt)
	set(&c.MaxOutputTokens, in.MaxOutputTokens)
	set(&c.Price, in.Price)
	set(&c.Fallbacks, in.Fallbacks)
	set(&c.AllowedToolGroups, in.AllowedToolGroups)
	set(&c.RequireSecondApprover, in.RequireSecondApprover)
	set(&c.AllowProposalEdits, in.AllowProposalEdits)
	set(&c.SnippetIDs, in.SnippetIDs)
	set(&c.SnippetsInCallerSystemPrompt, in.SnippetsInCallerSystemPrompt)
	set(&c.MaxIterations, in.MaxIterations)
	set(&c.ApprovalExpiryHours, in.ApprovalExpiryHours)
	set(&c.AllowedUserIDs, in.AllowedUserIDs)
	return c
}

func configurationEntry(e audit.Entry, c Configuration) audit.Entry {
	return e.With("configuration", c.ID.String()).With("provider", c.ProviderID.String()).
		With("secondApprover", c.RequireSecondApprover).With("proposalEdits", c.AllowProposalEdits).With("allowedUsers", idTexts(c.AllowedUserIDs)).
		With("snippets", idTexts(c.SnippetIDs)).With("snippetsInCallers", c.SnippetsInCallerSystemPrompt).
		With("fallbacks", chainTexts(c.Fallbacks))
}

// chainTexts names models as the trail does.
func chainTexts(chain []Choice) []string {
	texts := make([]string, len(chain))
	for i, c := range chain {
		texts[i] = c.ProviderID.String() + " " + c.Model
	}
	return texts
}

func idTexts(ids []uuid.UUID) []string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return texts
}

const (
	maxPrompt      = 1 << 20 // bytes
	maxExpiryHours = 87600   // ten years
)

// checkConfiguration refuses a configuration that no run could use.
func (l *Library) checkConfiguration(ctx context.Context, c *Configuration) (err error) {
	if c.Name, err = label("name", c.Name); err != nil {
		return err
	}
	if c.SystemPrompt, err = prose("systemPrompt", c.SystemPrompt, maxPrompt); err != nil {
		return err
	}
	c.MaxIterations = max(c.MaxIterations, 0)
	if c.ApprovalExpiryHours = max(c.ApprovalExpiryHours, 0); c.ApprovalExpiryHours > maxExpiryHours {
		return fault.New(fault.BadInput, "approvalExpiryHours must not be above %d.", maxExpiryHours)
	}
	for _, g := range c.AllowedToolGroups {
		if !slices.Contains(tool.Groups, g) {
			return fault.New(fault.BadInput, "allowedToolGroups must be among content_read, content_write, process, skills and remote; %q is not.", clip(string(g), 60))
		}
	}
	own := c.Chain()[0]
	if err := l.checkModel(ctx, &own); err != nil {
		return err
	}
	c.Model = own.Model
	if err := l.checkChain(ctx, c); err != nil {
		return err
	}
	if err := l.checkSnippets(ctx, c.SnippetIDs); err != nil {
		return err
	}
	for _, id := range c.AllowedUserIDs {
		if _, err := l.Accounts.Actor(ctx, id); err != nil {
			return err
		}
	}
	return nil
}
