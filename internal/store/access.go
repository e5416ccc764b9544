package store

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign/countersign/ent"
	"github.com/countersign/countersign/ent/grant"
	"github.com/countersign/countersign/ent/session"
	"github.com/countersign/countersign/ent/signincode"
	"github.com/countersign/countersign/ent/token"
	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
)

// User implements access.Store.
func (s *Store) User(ctx context.Context, id uuid.UUID) (access.User, error) {
	row, err := s.client.User.Get(ctx, id)
	if err != nil {
		return access.User{}, reading(ctx, err, "user")
	}
	found, err := s.granted(ctx, []*ent.User{row})
	if err != nil {
		return access.User{}, err
	}
	return found[0], nil
}

// Users implements access.Store.
func (s *Store) Users(ctx context.Context, after uuid.UUID, limit int) ([]access.User, error) {
	rows, err := s.client.User.Query().Where(paged{cursor: after, limit: limit}.on).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "user")
	}
	return s.granted(ctx, rows)
}

// granted adds their permissions to users.
func (s *Store) granted(ctx context.Context, rows []*ent.User) ([]access.User, error) {
	ids := make([]uuid.UUID, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	grants, err := s.client.Grant.Query().Where(grant.UserIDIn(ids...)).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "grant")
	}
	of := map[uuid.UUID][]actor.Permission{}
	for _, g := range grants {
		of[g.UserID] = append(of[g.UserID], actor.Permission(g.Permission))
	}
	users := make([]access.User, len(rows))
	for i, row := range rows {
		slices.SortFunc(of[row.ID], func(a, b actor.Permission) int {
			return slices.Index(actor.Permissions, a) - slices.Index(actor.Permissions, b)
		})
		users[i] = access.User{
			ID: row.ID, Name: row.Name, Kind: actor.Kind(row.Kind), Administrator: row.Administrator,
			Enabled: row.Enabled, Permissions: of[row.ID], CreatedAt: row.CreatedAt.UTC(),
		}
	}
	return users, nil
}

// TokenByHash implements access.Store.
func (s *Store) TokenByHash(ctx context.Context, hash string) (access.Token, error) {
	row, err := s.client.Token.Query().Where(token.Hash(hash)).Only(ctx)
	return one(ctx, "token", row, err, toToken)
}

// Token implements access.Store.
func (s *Store) Token(ctx context.Context, id uuid.UUID) (access.Token, error) {
	row, err := s.client.Token.Get(ctx, id)
	return one(ctx, "token", row, err, toToken)
}

// Tokens implements access.Store.
func (s *Store) Tokens(ctx context.Context, after uuid.UUID, limit int) ([]access.Token, error) {
	rows, err := s.client.Token.Query().Where(paged{cursor: after, limit: limit}.on).All(ctx)
	return all(ctx, "token", rows, err, toToken)
}

func toToken(row *ent.Token) access.Token {
	return access.Token{
		ID: row.ID, UserID: row.UserID, Name: row.Name, CreatedAt: row.CreatedAt.UTC(),
		ExpiresAt: utc(row.ExpiresAt), RevokedAt: utc(row.RevokedAt),
	}
}

// SessionByHash implements access.Store.
func (s *Store) SessionByHash(ctx context.Context, hash string) (access.Session, error) {
	row, err := s.client.Session.Query().Where(session.Hash(hash)).Only(ctx)
	return one(ctx, "session", row, err, func(row *ent.Session) access.Session {
		return access.Session{ID: row.ID, UserID: row.UserID, ExpiresAt: row.ExpiresAt.UTC()}
	})
}

// SignInCodeByHash implements access.Store.
func (s *Store) SignInCodeByHash(ctx context.Context, hash string) (access.SignInCode, error) {
	row, err := s.client.SignInCode.Query().Where(signincode.Hash(hash)).Only(ctx)
	return one(ctx, "sign-in code", row, err, func(row *ent.SignInCode) access.SignInCode {
		return access.SignInCode{ID: row.ID, UserID: row.UserID, ExpiresAt: row.ExpiresAt.UTC(), UsedAt: utc(row.UsedAt)}
	})
}

// Settings implements access.Store.
func (s *Store) Settings(ctx context.Context) (map[string]string, error) {
	rows, err := s.client.Setting.Query().All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "setting")
	}
	settings := make(map[string]string, len(rows))
	for _, row := range rows {
		settings[row.Name] = row.Content
	}
	return settings, nil
}
