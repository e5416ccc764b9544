package library

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/skill"
)

// Adopted is what became of one legacy row.
type Adopted struct {
	SkillID    uuid.UUID
	Source     string // its title
	Identifier string
	Digest     skill.Digest // empty when it failed
	// Failures names the checks that failed: body_checksum, frontmatter, name, description,
	// allowed_tools, process, support_status.
	Failures []string
	// Disabled says that the failure switched the skill off; it may have been off before.
	Disabled bool
}

// AdoptLegacy gives every legacy row a digest that nobody had edited since it was
// synced: its body is what its checksum names, and name, description and allowed
// tools are what its stored frontmatter says. A row that fails is disabled, audited
// once for each state it fails in, and left without a digest, until a sync writes it
// anew (RULES D9). It approves nothing, and a second time it changes nothing.
// Administrators only.
func (l *Library) AdoptLegacy(ctx context.Context, by actor.Actor) ([]Adopted, error) {
	if err := needAdministrator(by); err != nil {
		return nil, err
	}
	const page = 100
	var all []Adopted
	for p := (Page{Limit: page}); ; {
		sources, err := l.Store.Sources(ctx, p)
		if err != nil {
			return all, err
		}
		for _, source := range sources {
			p.Cursor = source.ID
			adopted, err := l.adoptFrom(ctx, by, source)
			if all = append(all, adopted...); err != nil {
				return all, err
			}
		}
		if len(sources) < page {
			return all, nil
		}
	}
}

func (l *Library) adoptFrom(ctx context.Context, by actor.Actor, source Source) ([]Adopted, error) {
	skills, err := l.Store.SkillsOf(ctx, source.ID)
	if err != nil || source.Type == Authored {
		return nil, err
	}
	var all []Adopted
	for _, s := range skills {
		if s.StoredDigest != "" {
			continue
		}
		adopted, err := l.adopt(ctx, by, source, s.ID)
		if err != nil {
			return all, err
		}
		if adopted != nil {
			all = append(all, *adopted)
		}
	}
	return all, nil
}

// adopt judges one row as it is now; nil when it is no legacy row any more.
func (l *Library) adopt(ctx context.Context, by actor.Actor, source Source, id uuid.UUID) (*Adopted, error) {
	var result *Adopted
	err := l.retried(ctx, "the skill", func() (change.Change, error) {
		s, err := l.Store.Skill(ctx, id)
		if result = nil; err != nil || s.StoredDigest != "" || s.SourceID != source.ID {
			return change.Change{}, err
		}
		result = &Adopted{SkillID: id, Source: source.Title, Identifier: s.Identifier, Failures: underivable(s)}
		if len(result.Failures) > 0 {
			result.Disabled = s.Enabled
			return l.adoptionFailed(ctx, by, s, result.Failures)
		}
		result.Digest = s.Version.Digest()
		return change.Change{
			Updates: []change.Update{{
				Table: skillsTable, ID: id, If: legacyGuards(s),
				Set: []change.Value{skillDigest.To(result.Digest), skillUpdatedAt.To(l.World.Now())},
			}, holds(sourcesTable, source.ID, sourceType.Is(source.Type))},
			Audit: []audit.Entry{audit.Record(l.World, by, audit.IngestUpdated).About(s.SourceID, id, string(result.Digest)).
				With("identifier", s.Identifier).With("adopted", true)},
		}, nil
	})
	return result, err
}

// legacyGuards hold a row to what it was judged by. The body may be edited meanwhile:
// then the digest is not its, which the integrity check finds (RULES D6).
func legacyGuards(s Skill) []change.Value {
	return []change.Value{
		skillDigest.Is(""), skillBodyChecksum.Is(s.BodyChecksum), skillEnabled.Is(s.Enabled), skillSourceID.Is(s.SourceID),
	}
}

// underivable names what of a row does not follow from what was synced. A frontmatter
// that was repaired vouches for no tools.
func underivable(s Skill) []string {
	var failures []string
	if s.BodyChecksum != skill.BodyChecksum(s.Version.Body) {
		failures = append(failures, "body_checksum")
	}
	file, err := parseFrontmatter(s.Frontmatter)
	if err != nil {
		return append(failures, "frontmatter")
	}
	derived := file.Version
	for _, field := range []struct {
		name string
		same bool
	}{
		{"name", derived.Name == s.Version.Name},
		{"description", derived.Description == s.Version.Description},
		{"allowed_tools", derived.Tools.State == s.Version.Tools.State && slices.Equal(derived.Tools.Items, s.Version.Tools.Items)},
		{"process", derived.Process == s.Version.Process},
		{"support_status", skill.SupportOf(s.Version.Body) == s.Version.Support},
	} {
		if !field.same {
			failures = append(failures, field.name)
		}
	}
	return failures
}

// adoptionFailed disables a row and audits it, once for the state it is in.
func (l *Library) adoptionFailed(ctx context.Context, by actor.Actor, s Skill, failures []string) (change.Change, error) {
	computed := s.Version.Digest()
	seen, err := l.Store.IntegritySeen(ctx, s.ID, "", string(computed))
	if err != nil || (seen && !s.Enabled) {
		return change.Change{}, err
	}
	c := change.Change{
		Updates: []change.Update{{
			Table: skillsTable, ID: s.ID, If: legacyGuards(s), Set: []change.Value{skillEnabled.To(false), skillUpdatedAt.To(l.World.Now())},
		}},
		Audit: []audit.Entry{audit.Record(l.World, by, audit.AdoptionFailed).About(s.SourceID, s.ID, "").
			With("identifier", s.Identifier).With("failed", failures).With("wasEnabled", s.Enabled)},
	}
	if !seen {
		c.Inserts = []change.Insert{{Table: integrityTable, Row: []change.Value{
			integrityID.To(l.World.NewID()), integritySkillID.To(s.ID), integrityStored.To(""), integrityComputed.To(computed),
			integrityAt.To(l.World.Now()),
		}}}
	}
	return c, nil
}
