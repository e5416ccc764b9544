package access

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
)

// NewToken is the input of CreateToken.
type NewToken struct {
	UserID    uuid.UUID
	Name      string
	ExpiresAt *time.Time // nil never expires
}

// CreateToken makes a bearer token for a user. The secret is returned this once;
// only its hash is kept. Administrators only; audited.
func (a *Access) CreateToken(ctx context.Context, by actor.Actor, in NewToken) (token Token, secret string, err error) {
	if err := needAdministrator(by); err != nil {
		return Token{}, "", err
	}
	name, err := checkName("name", in.Name)
	if err != nil {
		return Token{}, "", err
	}
	now := a.World.Now()
	if in.ExpiresAt != nil && !in.ExpiresAt.After(now) {
		return Token{}, "", fault.New(fault.BadInput, "expiresAt must lie in the future.")
	}
	if _, err := a.Store.User(ctx, in.UserID); err != nil {
		return Token{}, "", err
	}
	secret = a.newSecret()
	token = Token{ID: a.World.NewID(), UserID: in.UserID, Name: name, CreatedAt: now, ExpiresAt: in.ExpiresAt}
	c := change.Change{
		Inserts: []change.Insert{{Table: tokensTable, Row: []change.Value{
			tokenID.To(token.ID), tokenUser.To(token.UserID), tokenName.To(token.Name), tokenHash.To(hashOf(secret)),
			tokenCreated.To(now), tokenExpires.Maybe(in.ExpiresAt), tokenRevoked.Null(),
		}}},
		Audit: []audit.Entry{a.tokenEntry(by, audit.TokenCreated, token)},
	}
	out, err := change.One(ctx, a.Store, c)
	if err != nil {
		return Token{}, "", err
	}
	if !out.Applied {
		return Token{}, "", contended("the tokens")
	}
	token, err = a.Store.Token(ctx, token.ID)
	return token, secret, err
}

// RevokeToken ends a token at once. Its user and administrators may; audited once.
func (a *Access) RevokeToken(ctx context.Context, by actor.Actor, id uuid.UUID) (Token, error) {
	token, err := a.FindToken(ctx, by, id)
	if err != nil {
		return Token{}, err
	}
	c := change.Change{
		Updates: []change.Update{{
			Table: tokensTable, ID: id, If: []change.Value{tokenRevoked.Null()}, Set: []change.Value{tokenRevoked.To(a.World.Now())},
		}},
		Audit: []audit.Entry{a.tokenEntry(by, audit.TokenRevoked, token)},
	}
	// Losing means that it is revoked already.
	if _, err := change.One(ctx, a.Store, c); err != nil {
		return Token{}, err
	}
	return a.Store.Token(ctx, id)
}

func (a *Access) tokenEntry(by actor.Actor, event audit.Event, t Token) audit.Entry {
	return audit.Record(a.World, by, event).With("token", t.ID.String()).With("user", t.UserID.String())
}

// FindToken reads a token: one's own, or anybody's to an administrator.
func (a *Access) FindToken(ctx context.Context, by actor.Actor, id uuid.UUID) (Token, error) {
	if err := needSignedIn(by); err != nil {
		return Token{}, err
	}
	token, err := a.Store.Token(ctx, id)
	if err == nil && !by.Administrator && token.UserID != by.ID {
		return Token{}, fault.New(fault.NotFound, "There is no such token, or none you may see.")
	}
	return token, err
}

// ListTokens pages through the tokens in the order of their ids. Administrators
// only.
func (a *Access) ListTokens(ctx context.Context, by actor.Actor, after uuid.UUID, limit int) ([]Token, error) {
	if err := needAdministrator(by); err != nil {
		return nil, err
	}
	return a.Store.Tokens(ctx, after, limit)
}
