package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/countersign/countersign/ent"
	"github.com/countersign/countersign/ent/approval"
	"github.com/countersign/countersign/ent/attachment"
	"github.com/countersign/countersign/ent/predicate"
	"github.com/countersign/countersign/ent/revocation"
	entskill "github.com/countersign/countersign/ent/skill"
	"github.com/countersign/countersign/ent/source"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/skill"
)

// Dossiers implements library.Store.
func (s *Store) Dossiers(ctx context.Context, skillIDs []uuid.UUID) ([]library.Dossier, error) {
	if len(skillIDs) == 0 {
		return nil, nil
	}
	skills, err := s.client.Skill.Query().Where(entskill.IDIn(skillIDs...)).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "skill")
	}
	sourceIDs := make([]uuid.UUID, len(skills))
	for i, row := range skills {
		sourceIDs[i] = row.SourceID
	}
	sources, err := s.client.Source.Query().Where(source.IDIn(sourceIDs...)).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "source")
	}
	dossiers := map[uuid.UUID]*library.Dossier{}
	for _, row := range skills {
		of := &library.Dossier{Skill: toSkill(row)}
		if at := slices.IndexFunc(sources, func(x *ent.Source) bool { return x.ID == row.SourceID }); at >= 0 {
			of.Source = s.toSource(sources[at])
		}
		dossiers[row.ID] = of
	}
	if err := s.marks(ctx, skillIDs, dossiers); err != nil {
		return nil, failed(ctx, err, "read approvals and revocations")
	}
	out := make([]library.Dossier, 0, len(dossiers))
	for _, id := range skillIDs {
		if of, found := dossiers[id]; found {
			out = append(out, *of)
		}
	}
	return out, nil
}

// The columns of an approval, and those of a revocation in their places.
var (
	approvalColumns = []string{
		approval.FieldID, approval.FieldSkillID, approval.FieldDigest, approval.FieldCounter, approval.FieldAt,
		approval.FieldApproverID, approval.FieldComment, approval.FieldSourceID, approval.FieldName,
		approval.FieldDescription, approval.FieldBody, approval.FieldSupportStatus, approval.FieldAllowedTools,
		approval.FieldProcess, approval.FieldTrustLevel, approval.FieldRawDigest, approval.FieldBundleDigest,
		approval.FieldBundle,
	}
	revocationColumns = []string{
		revocation.FieldID, revocation.FieldSkillID, revocation.FieldDigest, revocation.FieldCounter, revocation.FieldAt,
		revocation.FieldActorID, revocation.FieldReason,
	}
)

// mark is a row of either table.
type mark struct {
	id, skill, by uuid.UUID
	digest        string
	counter       int
	at            time.Time
	words         string // comment or reason

	source                                           uuid.NullUUID // NULL for a revocation
	name, description, body, support, tools, process sql.NullString
	trust, raw, bundleDigest, bundle                 sql.NullString
}

// marks reads the approvals and revocations of skills in one query, so that no
// revocation can slip in between two.
func (s *Store) marks(ctx context.Context, ids []uuid.UUID, dossiers map[uuid.UUID]*library.Dossier) error {
	missing := strings.Repeat(", NULL", len(approvalColumns)-len(revocationColumns))
	args := make([]any, 0, 2*len(ids))
	for range 2 {
		for _, id := range ids {
			args = append(args, id)
		}
	}
	statement := "SELECT " + strings.Join(approvalColumns, ", ") + " FROM approvals WHERE skill_id IN (" + s.places(0, len(ids)) + ")" +
		" UNION ALL SELECT " + strings.Join(revocationColumns, ", ") + missing +
		" FROM revocations WHERE skill_id IN (" + s.places(len(ids), len(ids)) + ")"
	err := s.query(ctx, statement, args, func(rows *entsql.Rows) error {
		var m mark
		if err := rows.Scan(&m.id, &m.skill, &m.digest, &m.counter, &m.at, &m.by, &m.words, &m.source, &m.name,
			&m.description, &m.body, &m.support, &m.tools, &m.process, &m.trust, &m.raw, &m.bundleDigest, &m.bundle); err != nil {
			return err
		}
		of, found := dossiers[m.skill]
		switch {
		case !found: // deleted since the skills were read
		case m.source.Valid:
			of.Approvals = append(of.Approvals, m.approval())
		default:
			of.Revocations = append(of.Revocations, m.revocation())
		}
		return nil
	})
	for _, of := range dossiers {
		slices.SortFunc(of.Approvals, func(a, b library.Approval) int { return cmp.Compare(b.Counter, a.Counter) })
		slices.SortFunc(of.Revocations, func(a, b library.Revocation) int { return cmp.Compare(b.Counter, a.Counter) })
	}
	return err
}

func (m mark) approval() library.Approval {
	return library.Approval{
		ID: m.id, SkillID: m.skill, SourceID: m.source.UUID, Digest: skill.Digest(m.digest), Counter: m.counter,
		Version:    version(m.name.String, m.description.String, m.body.String, m.support.String, m.tools.String, m.process.String),
		TrustLevel: skill.TrustLevel(m.trust.String), RawDigest: m.raw.String, BundleDigest: m.bundleDigest.String,
		Bundle: lenient[[]skill.BundleFile](m.bundle.String), ApproverID: m.by, Comment: m.words, At: m.at.UTC(),
	}
}

func (m mark) revocation() library.Revocation {
	return library.Revocation{
		ID: m.id, SkillID: m.skill, Digest: skill.Digest(m.digest), Counter: m.counter, Reason: m.words,
		ActorID: m.by, At: m.at.UTC(),
	}
}

// Offered implements library.Store.
func (s *Store) Offered(ctx context.Context, configurationID uuid.UUID) ([]library.Offered, error) {
	return s.offered(ctx, attachment.ConfigurationID(configurationID))
}

// OfferedByTask implements library.Store.
func (s *Store) OfferedByTask(ctx context.Context, taskID uuid.UUID) ([]library.Offered, error) {
	return s.offered(ctx, attachment.TaskID(taskID))
}

func (s *Store) offered(ctx context.Context, by predicate.Attachment) ([]library.Offered, error) {
	rows, err := s.client.Attachment.Query().Where(by).
		Order(attachment.ByPosition(), attachment.ByID()).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "attachment")
	}
	ids := make([]uuid.UUID, len(rows))
	for i, row := range rows {
		ids[i] = row.SkillID
	}
	dossiers, err := s.Dossiers(ctx, ids)
	if err != nil {
		return nil, err
	}
	var offered []library.Offered
	for _, row := range rows {
		at := slices.IndexFunc(dossiers, func(d library.Dossier) bool { return d.Skill.ID == row.SkillID })
		if at >= 0 {
			offered = append(offered, library.Offered{Attachment: toAttachment(row), Dossier: dossiers[at]})
		}
	}
	return offered, nil
}

// Attachment implements library.Store.
func (s *Store) Attachment(ctx context.Context, id uuid.UUID) (library.Attachment, error) {
	row, err := s.client.Attachment.Get(ctx, id)
	return one(ctx, "attachment", row, err, toAttachment)
}

func toAttachment(row *ent.Attachment) library.Attachment {
	return library.Attachment{
		ID: row.ID, SkillID: row.SkillID, ConfigurationID: known(row.ConfigurationID), TaskID: known(row.TaskID),
		LoadMode: library.LoadMode(row.LoadMode), Position: row.Position, CreatedAt: row.CreatedAt.UTC(),
	}
}

// Approval implements library.Store.
func (s *Store) Approval(ctx context.Context, id uuid.UUID) (library.Approval, error) {
	row, err := s.client.Approval.Get(ctx, id)
	return one(ctx, "approval", row, err, func(row *ent.Approval) library.Approval {
		return library.Approval{
			ID: row.ID, SkillID: row.SkillID, SourceID: row.SourceID, Digest: skill.Digest(row.Digest), Counter: row.Counter,
			Version:    version(row.Name, row.Description, row.Body, row.SupportStatus, row.AllowedTools, row.Process),
			TrustLevel: skill.TrustLevel(row.TrustLevel), RawDigest: row.RawDigest, BundleDigest: row.BundleDigest,
			Bundle: lenient[[]skill.BundleFile](row.Bundle), ApproverID: row.ApproverID, Comment: row.Comment, At: row.At.UTC(),
		}
	})
}

// Revocation implements library.Store.
func (s *Store) Revocation(ctx context.Context, id uuid.UUID) (library.Revocation, error) {
	row, err := s.client.Revocation.Get(ctx, id)
	return one(ctx, "revocation", row, err, func(row *ent.Revocation) library.Revocation {
		return library.Revocation{
			ID: row.ID, SkillID: row.SkillID, Digest: skill.Digest(row.Digest), Counter: row.Counter, Reason: row.Reason,
			ActorID: row.ActorID, At: row.At.UTC(),
		}
	})
}
