package store

import (
	"context"
	"strings"

	"github.com/countersign/countersign/ent/provider"
	"github.com/countersign/countersign/ent/source"
	"github.com/countersign/countersign/internal/guard"
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
	endpoints, err := s.client.NotificationEndpoint.Query().All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "notification endpoint")
	}
	for _, row := range endpoints {
		add(place{"notification_endpoints", "secret", row.ID.String()}, row.Secret)
	}
	far, err := s.farSecrets(ctx)
	return append(out, far...), err
}

// farSecrets are those that MCP servers are given: what their headers say, and the
// variables of their environment that are secrets by name and look. A path or a switch is
// none, and must stay readable in texts.
func (s *Store) farSecrets(ctx context.Context) ([]string, error) {
	ids, err := s.client.MCPServer.Query().IDs(ctx)
	if err != nil {
		return nil, reading(ctx, err, "MCP server")
	}
	var out []string
	for _, id := range ids {
		given, err := s.MCPSecrets(ctx, id)
		if err != nil {
			continue // as above
		}
		for _, value := range given.Headers {
			if scheme, rest, has := strings.Cut(value, " "); has && !strings.Contains(scheme, ":") {
				value = rest
			}
			if len(value) >= shortestHeader {
				out = append(out, value)
			}
		}
		for name, value := range given.Env {
			if guard.Secret(name, value) {
				out = append(out, value)
			}
		}
	}
	return out, nil
}

// shortestHeader is how many bytes a header's value must have to be a secret: a shorter one
// says "1" or "json", and would be taken out of every text.
const shortestHeader = 8
