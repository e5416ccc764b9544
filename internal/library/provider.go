package library

import "github.com/google/uuid"

// ProviderKind is the wire format a provider speaks.
type ProviderKind string

// The kinds.
const (
	OpenAICompatible ProviderKind = "openai_compatible"
	Anthropic        ProviderKind = "anthropic"
	Scripted         ProviderKind = "scripted"
)

// TrustZone says where a provider's model runs; it bounds what data class a tool may
// send there (RULES T8).
type TrustZone string

// The zones, from nearest to farthest.
const (
	ZoneLocal          TrustZone = "local"
	ZonePrivateHosted  TrustZone = "private_hosted"
	ZoneEUExternal     TrustZone = "eu_external"
	ZoneGlobalExternal TrustZone = "global_external"
)

// Provider is a configured model endpoint.
type Provider struct {
	ID        uuid.UUID
	Name      string
	Kind      ProviderKind
	BaseURL   string
	APIKey    string // in the clear only in memory; never readable over the API
	TrustZone TrustZone
	Script    string // of the scripted kind: YAML, see docs/scripted-provider.md
}
