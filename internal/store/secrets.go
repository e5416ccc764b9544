package store

import (
	"context"

	"github.com/countersign/countersign/ent/provider"
	"github.com/countersign/countersign/ent/source"
)

// Secrets implements agent.Store. One that cannot be opened is nobody's secret here: it
// was told when its owner needed it.
func (s *Store) Secrets(ctx context.Context) ([]string, error) {
	seals, err := s.seals()
	if err != nil {
		return nil, err
	}
	var out []string
	add := func(at place, sealed string) {
		if text, err := seals.open(at, sealed); err == nil && text != "" {
			out = append(out, text)
		}
	}
	keys, err := s.client.Provider.Query().Where(provider.APIKeyNotNil(), provider.APIKeyNEQ("")).Select(provider.FieldID, provider.FieldAPIKey).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "provider")
	}
	for _, row := range keys {
		add(place{provider.Table, provider.FieldAPIKey, row.ID.String()}, row.APIKey)
	}
	tokens, err := s.client.Source.Query().Where(source.AccessTokenNotNil(), source.AccessTokenNEQ("")).Select(source.FieldID, source.FieldAccessToken).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "source")
	}
	for _, row := range tokens {
		add(place{source.Table, source.FieldAccessToken, row.ID.String()}, row.AccessToken)
	}
	return out, nil
}
