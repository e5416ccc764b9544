// Package access holds who there is and what they may do: users, grants, tokens,
// sessions and the settings of the installation. Its use cases return an
// actor.Actor, which the other rooms take as an argument.
package access

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
)

// User is a person or a service account.
type User struct {
	ID            uuid.UUID
	Name          string
	Kind          actor.Kind
	Administrator bool
	Enabled       bool
	Permissions   []actor.Permission // granted, in the order of actor.Permissions
	CreatedAt     time.Time
}

// Actor is the user as an actor. A disabled user is nobody.
func (u User) Actor() actor.Actor {
	if !u.Enabled {
		return actor.Actor{}
	}
	return actor.Actor{ID: u.ID, Name: u.Name, Kind: u.Kind, Administrator: u.Administrator, Granted: u.Permissions}
}

// Token is a bearer token; only its hash is kept.
type Token struct {
	ID        uuid.UUID
	UserID    uuid.UUID
	Name      string
	CreatedAt time.Time
	ExpiresAt *time.Time
	RevokedAt *time.Time
}

// Store is what the room needs kept. Reads return fault.NotFound for what is not
// there. Hashes are the SHA-256 of a secret, in lower-case hex.
type Store interface {
	change.Applier
	User(ctx context.Context, id uuid.UUID) (User, error)
	Users(ctx context.Context, after uuid.UUID, limit int) ([]User, error)
	// TokenByHash, SessionByHash and SignInCodeByHash look a secret up. Expiry and
	// revocation are the use case's to judge.
	TokenByHash(ctx context.Context, hash string) (Token, error)
	Token(ctx context.Context, id uuid.UUID) (Token, error)
	Tokens(ctx context.Context, after uuid.UUID, limit int) ([]Token, error)
	SessionByHash(ctx context.Context, hash string) (Session, error)
	SignInCodeByHash(ctx context.Context, hash string) (SignInCode, error)
	// Settings returns every setting that was ever changed, by name, as its text.
	Settings(ctx context.Context) (map[string]string, error)
}

// Session is a signed-in browser.
type Session struct {
	ID        uuid.UUID
	UserID    uuid.UUID
	ExpiresAt time.Time
}

// SignInCode is a one-time code of a sign-in link.
type SignInCode struct {
	ID        uuid.UUID
	UserID    uuid.UUID
	ExpiresAt time.Time
	UsedAt    *time.Time
}
