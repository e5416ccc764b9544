package store

import (
	"context"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/countersign/countersign/ent"
	"github.com/countersign/countersign/ent/integrityfailure"
	"github.com/countersign/countersign/ent/predicate"
	entskill "github.com/countersign/countersign/ent/skill"
	"github.com/countersign/countersign/ent/skillrevision"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/skill"
)

// Source implements library.Store.
func (s *Store) Source(ctx context.Context, id uuid.UUID) (library.Source, error) {
	row, err := s.client.Source.Get(ctx, id)
	if err != nil {
		return library.Source{}, reading(ctx, err, "source")
	}
	source := s.toSource(row)
	source.AccessToken, err = s.secret(place{"sources", "access_token", row.ID.String()}, row.AccessToken)
	return source, err
}

// Sources implements library.Store.
func (s *Store) Sources(ctx context.Context, page library.Page) ([]library.Source, error) {
	p := paged{page.Cursor, page.Limit, page.Backward, false}
	rows, err := s.client.Source.Query().Where(p.on).All(ctx)
	return all(ctx, "source", in(p, rows), err, s.toSource)
}

// toSource leaves the access token out: only Source, which a sync begins with,
// opens it.
func (s *Store) toSource(row *ent.Source) library.Source {
	return library.Source{
		ID: row.ID, Title: row.Title, Type: library.SourceType(row.Type), URL: row.URL, Ref: row.Ref,
		PinnedCommit: row.PinnedCommit, TrustLevel: skill.TrustLevel(row.TrustLevel),
		ExpectedFingerprint: row.ExpectedFingerprint, Enabled: row.Enabled,
		SyncStatus: library.SyncStatus(row.SyncStatus), SyncError: row.SyncError, LastSyncedAt: utc(row.LastSyncedAt),
		HeadCommit: row.HeadCommit, Progress: library.Progress{Seen: row.FilesSeen, Done: row.FilesDone, Errors: row.FilesFailed},
		LeaseOwner: row.LeaseOwner, LeaseUntil: utc(row.LeaseUntil),
		HasToken: row.AccessToken != "", CreatedAt: row.CreatedAt.UTC(),
	}
}

// Skill implements library.Store.
func (s *Store) Skill(ctx context.Context, id uuid.UUID) (library.Skill, error) {
	row, err := s.client.Skill.Get(ctx, id)
	return one(ctx, "skill", row, err, toSkill)
}

// SkillsOf implements library.Store.
func (s *Store) SkillsOf(ctx context.Context, sourceID uuid.UUID) ([]library.Skill, error) {
	rows, err := s.client.Skill.Query().Where(entskill.SourceID(sourceID)).Order(entskill.ByIdentifier()).All(ctx)
	return all(ctx, "skill", rows, err, toSkill)
}

// Skills implements library.Store.
func (s *Store) Skills(ctx context.Context, filter library.SkillFilter, page library.Page) ([]library.Skill, error) {
	p := paged{page.Cursor, page.Limit, page.Backward, false}
	rows, err := s.client.Skill.Query().Where(append(skillConditions(filter), p.on)...).All(ctx)
	return all(ctx, "skill", in(p, rows), err, toSkill)
}

func skillConditions(filter library.SkillFilter) []predicate.Skill {
	var conditions []predicate.Skill
	if filter.SourceID != nil {
		conditions = append(conditions, entskill.SourceID(*filter.SourceID))
	}
	if filter.Enabled != nil {
		conditions = append(conditions, entskill.Enabled(*filter.Enabled))
	}
	if filter.Orphaned != nil {
		conditions = append(conditions, entskill.Orphaned(*filter.Orphaned))
	}
	if filter.Process != nil {
		is := entskill.Process(string(skill.ProcessYes))
		if !*filter.Process {
			is = entskill.Not(is)
		}
		conditions = append(conditions, is)
	}
	if filter.Search != "" {
		conditions = append(conditions, entskill.Or(entskill.NameContainsFold(filter.Search),
			entskill.DescriptionContainsFold(filter.Search), entskill.IdentifierContainsFold(filter.Search)))
	}
	return conditions
}

// toSkill maps a row. What cannot be read in its JSON is left at the zero value,
// whose digest is another: the integrity check (RULES D6) then keeps the skill from
// instructing, and one damaged row spoils no list.
func toSkill(row *ent.Skill) library.Skill {
	return library.Skill{
		ID: row.ID, SourceID: row.SourceID, Identifier: row.Identifier,
		Version:      version(row.Name, row.Description, row.Body, row.SupportStatus, row.AllowedTools, row.Process),
		StoredDigest: skill.Digest(row.Digest), BodyChecksum: row.BodyChecksum, RawDigest: row.RawDigest,
		BundleDigest: row.BundleDigest, Bundle: lenient[[]skill.BundleFile](row.Bundle), Frontmatter: row.Frontmatter,
		ParseStatus: skill.ParseStatus(row.ParseStatus), Findings: lenient[[]skill.Finding](row.Findings),
		Enabled: row.Enabled, Orphaned: row.Orphaned, TrustLevel: skill.TrustLevel(row.TrustLevel),
		Counter: row.Counter, Origin: row.OriginCounter, Revision: row.Revision, CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
	}
}

func version(name, description, body, support, tools, process string) skill.Version {
	return skill.Version{
		Name: name, Description: description, Body: body, Support: skill.SupportStatus(support),
		Tools: lenient[skill.Tools](tools), Process: skill.Process(process),
	}
}

// Revisions implements library.Store.
func (s *Store) Revisions(ctx context.Context, skillID uuid.UUID) ([]library.Revision, error) {
	rows, err := s.client.SkillRevision.Query().Where(skillrevision.SkillID(skillID)).
		Order(skillrevision.ByRevision(entsql.OrderDesc())).All(ctx)
	return all(ctx, "revision", rows, err, func(row *ent.SkillRevision) library.Revision {
		return library.Revision{
			ID: row.ID, SkillID: row.SkillID, Number: row.Revision, AuthorID: row.AuthorID, At: row.At.UTC(),
			Version: version(row.Name, row.Description, row.Body, string(skill.SupportOf(row.Body)), row.AllowedTools, row.Process),
		}
	})
}

// IntegritySeen implements library.Store.
func (s *Store) IntegritySeen(ctx context.Context, skillID uuid.UUID, stored, computed string) (bool, error) {
	seen, err := s.client.IntegrityFailure.Query().Where(integrityfailure.SkillID(skillID),
		integrityfailure.Stored(stored), integrityfailure.Computed(computed)).Exist(ctx)
	return seen, failed(ctx, err, "read the integrity failures")
}
