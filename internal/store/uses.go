package store

import (
	"context"
	"slices"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/countersign/countersign/ent/approval"
	"github.com/countersign/countersign/ent/attachment"
	"github.com/countersign/countersign/ent/revocation"
	entskill "github.com/countersign/countersign/ent/skill"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/run"
)

// UsesOf implements library.Store.
func (s *Store) UsesOf(ctx context.Context, sourceID uuid.UUID, limit int) ([]library.Use, error) {
	var uses []library.Use
	add := func(kind library.UseKind, id, skillID uuid.UUID) {
		uses = append(uses, library.Use{Kind: kind, ID: id, SkillID: skillID})
	}
	ofSource := func(q *entsql.Selector) {
		skills := entsql.Dialect(s.dialect).Select(entskill.FieldID).From(entsql.Table(entskill.Table)).
			Where(entsql.EQ(entskill.FieldSourceID, sourceID))
		q.Where(entsql.In(q.C("skill_id"), skills))
	}
	approvals, err := s.client.Approval.Query().Where(approval.Or(approval.SourceID(sourceID), ofSource)).
		Order(approval.ByID()).Limit(limit).Select(approval.FieldID, approval.FieldSkillID).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "approval")
	}
	for _, row := range approvals {
		add(library.UsedByApproval, row.ID, row.SkillID)
	}
	attachments, err := s.client.Attachment.Query().Where(ofSource).Order(attachment.ByID()).Limit(limit).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "attachment")
	}
	for _, row := range attachments {
		add(library.UsedByAttachment, row.ID, row.SkillID)
	}
	revocations, err := s.client.Revocation.Query().Where(ofSource).Order(revocation.ByID()).Limit(limit).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "revocation")
	}
	for _, row := range revocations {
		add(library.UsedByRevocation, row.ID, row.SkillID)
	}
	skills, err := s.client.Skill.Query().Where(entskill.SourceID(sourceID)).IDs(ctx)
	if err != nil {
		return nil, reading(ctx, err, "skill")
	}
	err = s.openPins(ctx, func(id uuid.UUID, pin run.Pin) {
		if slices.Contains(skills, pin.Skill) {
			add(library.UsedByRun, id, pin.Skill)
		}
	})
	return uses[:min(limit, len(uses))], err
}
