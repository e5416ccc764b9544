package library

import (
	"context"
	"net/url"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
)

// NewProvider is the input of CreateProvider.
type NewProvider struct {
	Name      string
	Kind      ProviderKind
	BaseURL   string
	APIKey    string
	TrustZone TrustZone // empty is the farthest, global_external; local for the scripted kind
	Script    string
}

// CreateProvider adds a model endpoint. Its key is kept sealed and never read back.
// Administrators only; audited.
func (l *Library) CreateProvider(ctx context.Context, by actor.Actor, in NewProvider) (Provider, error) {
	if err := needAdministrator(by); err != nil {
		return Provider{}, err
	}
	p := Provider{
		ID: l.World.NewID(), Name: in.Name, Kind: in.Kind, BaseURL: in.BaseURL, APIKey: in.APIKey, TrustZone: in.TrustZone, Script: in.Script,
	}
	if p.TrustZone == "" {
		p.TrustZone = ZoneGlobalExternal
		if p.Kind == Scripted {
			p.TrustZone = ZoneLocal
		}
	}
	if err := l.checkProvider(&p); err != nil {
		return Provider{}, err
	}
	_, err := change.One(ctx, l.Store, change.Change{
		Inserts: []change.Insert{{Table: providersTable, Row: []change.Value{
			providerID.To(p.ID), providerName.To(p.Name), providerKind.To(p.Kind), providerBaseURL.To(p.BaseURL),
			providerAPIKey.To(p.APIKey), providerZone.To(p.TrustZone), providerScript.To(p.Script), providerCreated.To(l.World.Now()),
		}}},
		Audit: []audit.Entry{providerEntry(audit.Record(l.World, by, audit.ProviderCreated), p)},
	})
	if err != nil {
		return Provider{}, err
	}
	return withoutKey(l.Store.Provider(ctx, p.ID))
}

// ProviderUpdate is the input of UpdateProvider; a nil field stays as it is. A
// provider's kind cannot change.
type ProviderUpdate struct {
	ID        uuid.UUID
	Name      *string
	BaseURL   *string
	APIKey    *string
	TrustZone *TrustZone
	Script    *string
}

// UpdateProvider changes a model endpoint for every run that starts or goes on
// after it. Administrators only; audited.
func (l *Library) UpdateProvider(ctx context.Context, by actor.Actor, in ProviderUpdate) (Provider, error) {
	if err := needAdministrator(by); err != nil {
		return Provider{}, err
	}
	err := l.retried(ctx, "the provider", func() (change.Change, error) {
		was, err := l.Store.Provider(ctx, in.ID)
		if err != nil {
			return change.Change{}, err
		}
		now := was
		set(&now.Name, in.Name)
		set(&now.BaseURL, in.BaseURL)
		set(&now.APIKey, in.APIKey)
		set(&now.TrustZone, in.TrustZone)
		set(&now.Script, in.Script)
		if err := l.checkProvider(&now); err != nil || now == was {
			return change.Change{}, err
		}
		return change.Change{
			Updates: []change.Update{{
				Table: providersTable, ID: was.ID,
				If: []change.Value{providerName.Is(was.Name), providerBaseURL.Is(was.BaseURL), providerZone.Is(was.TrustZone), providerScript.Is(was.Script)},
				Set: []change.Value{
					providerName.To(now.Name), providerBaseURL.To(now.BaseURL), providerAPIKey.To(now.APIKey), providerZone.To(now.TrustZone),
					providerScript.To(now.Script),
				},
			}},
			Audit: []audit.Entry{providerEntry(audit.Record(l.World, by, audit.ProviderUpdated), now).With("keyChanged", now.APIKey != was.APIKey)},
		}, nil
	})
	if err != nil {
		return Provider{}, err
	}
	return withoutKey(l.Store.Provider(ctx, in.ID))
}

// set replaces a field when there is something to replace it with.
func set[T any](field *T, with *T) {
	if with != nil {
		*field = *with
	}
}

func providerEntry(e audit.Entry, p Provider) audit.Entry {
	return e.With("provider", p.ID.String()).With("kind", string(p.Kind)).With("zone", string(p.TrustZone)).With("baseUrl", p.BaseURL)
}

const maxScript = 1 << 20 // bytes

// checkProvider refuses a provider that nothing could talk to.
func (l *Library) checkProvider(p *Provider) (err error) {
	if p.Name, err = label("name", p.Name); err != nil {
		return err
	}
	zones := []TrustZone{ZoneLocal, ZonePrivateHosted, ZoneEUExternal, ZoneGlobalExternal}
	switch {
	case !slices.Contains([]ProviderKind{OpenAICompatible, Anthropic, Scripted}, p.Kind):
		return fault.New(fault.BadInput, "kind must be openai_compatible, anthropic or scripted.")
	case !slices.Contains(zones, p.TrustZone):
		return fault.New(fault.BadInput, "trustZone must be local, private_hosted, eu_external or global_external.")
	case p.Kind == Scripted && p.Script == "":
		return fault.New(fault.BadInput, "script must hold the answers of a scripted provider.")
	case p.Kind == Scripted && (p.BaseURL != "" || p.APIKey != ""):
		return fault.New(fault.BadInput, "baseUrl and apiKey must be left out for a scripted provider: it calls nobody.")
	case p.Kind != Scripted && p.Script != "":
		return fault.New(fault.BadInput, "script is for a scripted provider only.")
	case len(p.Script) > maxScript:
		return fault.New(fault.BadInput, "script has %d bytes; at most %d are accepted.", len(p.Script), maxScript)
	}
	if err := checkKey(p.APIKey); err != nil {
		return err
	}
	if p.Kind != Scripted {
		if err := checkBaseURL(*p); err != nil {
			return err
		}
	}
	if l.CheckProvider != nil {
		return l.CheckProvider(*p)
	}
	return nil
}

func checkKey(key string) error {
	if checkToken(key) != nil {
		return fault.New(fault.BadInput, "apiKey must be at most 1000 visible ASCII characters.")
	}
	return nil
}

// checkBaseURL takes an http or https address. Anthropic's own is used where none
// is given.
func checkBaseURL(p Provider) error {
	if p.BaseURL == "" && p.Kind == Anthropic {
		return nil
	}
	u, err := url.Parse(p.BaseURL)
	if err != nil || len(p.BaseURL) > maxURL || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fault.New(fault.BadInput, "baseUrl must be an http or https address without user, query or fragment, such as https://api.example.org/v1.")
	}
	return nil
}
