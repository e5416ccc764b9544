package store

import (
	"context"

	"github.com/google/uuid"

	"github.com/countersign/countersign/ent"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/tool"
)

// secret opens a sealed column whose secret the caller is about to use. One that
// cannot be opened is an error: to go on without it would be to go on as somebody
// else.
func (s *Store) secret(at place, sealed string) (string, error) {
	seals, err := s.seals()
	if err != nil {
		return "", err
	}
	text, err := seals.open(at, sealed)
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "the secret in %s.%s cannot be read", at.table, at.column)
	}
	return text, nil
}

// Provider implements library.Store.
func (s *Store) Provider(ctx context.Context, id uuid.UUID) (library.Provider, error) {
	row, err := s.client.Provider.Get(ctx, id)
	if err != nil {
		return library.Provider{}, reading(ctx, err, "provider")
	}
	provider := toProvider(row)
	provider.APIKey, err = s.secret(place{"providers", "api_key", row.ID.String()}, row.APIKey)
	return provider, err
}

// Providers implements library.Store.
func (s *Store) Providers(ctx context.Context, page library.Page) ([]library.Provider, error) {
	p := paged{page.Cursor, page.Limit, page.Backward, false}
	rows, err := s.client.Provider.Query().Where(p.on).All(ctx)
	return all(ctx, "provider", in(p, rows), err, toProvider)
}

// toProvider leaves the API key out: only Provider, which a run begins with, opens
// it.
func toProvider(row *ent.Provider) library.Provider {
	return library.Provider{
		ID: row.ID, Name: row.Name, Kind: library.ProviderKind(row.Kind), BaseURL: row.BaseURL,
		TrustZone: library.TrustZone(row.TrustZone), Script: row.Script,
	}
}

// Configuration implements library.Store.
func (s *Store) Configuration(ctx context.Context, id uuid.UUID) (library.Configuration, error) {
	row, err := s.client.Configuration.Get(ctx, id)
	if err != nil {
		return library.Configuration{}, reading(ctx, err, "configuration")
	}
	return toConfiguration(row)
}

// Configurations implements library.Store.
func (s *Store) Configurations(ctx context.Context, page library.Page) ([]library.Configuration, error) {
	p := paged{page.Cursor, page.Limit, page.Backward, false}
	rows, err := s.client.Configuration.Query().Where(p.on).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "configuration")
	}
	out := make([]library.Configuration, len(rows))
	for i, row := range in(p, rows) {
		if out[i], err = toConfiguration(row); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// toConfiguration maps a row. Lists that cannot be read are an error: their zero
// values allow everything, or leave instructions out.
func toConfiguration(row *ent.Configuration) (library.Configuration, error) {
	groups, err := decoded[[]tool.Group](row.AllowedToolGroups)
	if err != nil {
		return library.Configuration{}, fault.Wrap(fault.Internal, err, "the tool groups of configuration %s cannot be read", row.ID)
	}
	users, err := decoded[[]uuid.UUID](row.AllowedUserIds)
	if err != nil {
		return library.Configuration{}, fault.Wrap(fault.Internal, err, "the users of configuration %s cannot be read", row.ID)
	}
	snippets, err := decoded[[]uuid.UUID](row.SnippetIds)
	if err != nil {
		return library.Configuration{}, fault.Wrap(fault.Internal, err, "the snippets of configuration %s cannot be read", row.ID)
	}
	price, err := decoded[*library.Price](row.Price)
	if err != nil {
		return library.Configuration{}, fault.Wrap(fault.Internal, err, "the price of configuration %s cannot be read", row.ID)
	}
	fallbacks, err := decoded[[]library.Choice](row.Fallbacks)
	if err != nil {
		return library.Configuration{}, fault.Wrap(fault.Internal, err, "the fallbacks of configuration %s cannot be read", row.ID)
	}
	return library.Configuration{
		MaxOutputTokens: row.MaxOutputTokens, Price: price, Fallbacks: fallbacks,
		ID: row.ID, Name: row.Name, ProviderID: row.ProviderID, Model: row.Model, ContextWindow: row.ContextWindow,
		SystemPrompt: row.SystemPrompt, AllowedToolGroups: groups, RequireSecondApprover: row.RequireSecondApprover,
		SnippetIDs: snippets, SnippetsInCallerSystemPrompt: row.SnippetsInCallerSystemMessage, MaxIterations: row.MaxIterations,
		ApprovalExpiryHours: row.ApprovalExpiryHours, AllowProposalEdits: row.AllowProposalEdits,
		AllowedUserIDs: users, Revision: row.Revision, Arrangement: row.Arrangement, CreatedAt: row.CreatedAt.UTC(),
	}, nil
}

// ToolSwitches implements library.Store.
func (s *Store) ToolSwitches(ctx context.Context) (map[string]bool, error) {
	rows, err := s.client.ToolSwitch.Query().All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "tool switch")
	}
	switches := make(map[string]bool, len(rows))
	for _, row := range rows {
		switches[row.Name] = row.Enabled
	}
	return switches, nil
}

// GroupSwitches implements library.Store.
func (s *Store) GroupSwitches(ctx context.Context) (map[tool.Group]bool, error) {
	rows, err := s.client.ToolGroupSwitch.Query().All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "tool group switch")
	}
	switches := make(map[tool.Group]bool, len(rows))
	for _, row := range rows {
		switches[tool.Group(row.Name)] = row.Enabled
	}
	return switches, nil
}
