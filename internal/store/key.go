package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/ent/idempotencykey"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/once"
)

// IdempotencyKey implements once.Store.
func (s *Store) IdempotencyKey(ctx context.Context, id uuid.UUID) (once.Row, error) {
	row, err := s.client.IdempotencyKey.Get(ctx, id)
	if err != nil {
		return once.Row{}, reading(ctx, err, "idempotency key")
	}
	out := once.Row{
		ID: row.ID, Status: once.Status(row.Status), Holder: row.Holder, LeaseUntil: utc(row.LeaseUntil), ExpiresAt: row.ExpiresAt.UTC(),
	}
	opened := map[string]string{}
	for column, sealed := range map[string]string{
		idempotencykey.FieldInput: row.Input, idempotencykey.FieldEffect: row.Effect, idempotencykey.FieldAnswer: row.Answer,
	} {
		if opened[column], err = s.secret(place{idempotencykey.Table, column, id.String()}, sealed); err != nil {
			return once.Row{}, fault.Wrap(fault.Internal, err, "an idempotency key's %s cannot be read", column)
		}
	}
	out.Input = opened[idempotencykey.FieldInput]
	if out.Effect, err = decoded[change.Effect](opened[idempotencykey.FieldEffect]); err != nil {
		return once.Row{}, fault.Wrap(fault.Internal, err, "an idempotency key's effect cannot be read")
	}
	if answer := opened[idempotencykey.FieldAnswer]; answer != "" {
		out.Answer = json.RawMessage(answer)
	}
	return out, nil
}

// ExpiredKeys implements once.Store.
func (s *Store) ExpiredKeys(ctx context.Context, at time.Time, limit int) ([]uuid.UUID, error) {
	ids, err := s.client.IdempotencyKey.Query().Where(idempotencykey.ExpiresAtLT(stored(at))).
		Order(idempotencykey.ByExpiresAt()).Limit(limit).IDs(ctx)
	return ids, failed(ctx, err, "read the expired idempotency keys")
}
