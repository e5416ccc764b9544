// Package auth turns what a request carries into an actor: an API token, the
// secret of a cookie session, a one-time sign-in code, or the administrator's token from the
// environment. It implements the server's Authenticator over Accounts, the lookups a
// store offers; of a secret, only its SHA-256 ever leaves this package.
//
// It keeps no answer: a token that was revoked is refused at the next question. Safe
// for concurrent use when the Accounts are.
package auth

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/world"
)

const (
	// CodeLifetime is how long a sign-in link works, unless it is used before.
	CodeLifetime = 15 * time.Minute
	// SessionLifetime is how long a cookie session lasts.
	SessionLifetime = 12 * time.Hour
)

// Credential is what a store knows about a secret.
type Credential struct {
	Hash    Hash
	Actor   actor.Actor // with the rights it has now
	Expires time.Time   // the zero time: never
}

// Accounts is what auth asks a store for. Secrets come as hashes. A lookup that finds
// nothing, or finds something revoked or the credential of a user who is disabled, fails with a fault of kind NOT_FOUND;
// expiry is judged here. When the store cannot be asked it says so with any other error.
type Accounts interface {
	// Token finds an API token.
	Token(ctx context.Context, token Hash) (Credential, error)
	// Session finds a cookie session.
	Session(ctx context.Context, session Hash) (Credential, error)
	// Administrator is the built-in administrator.
	Administrator(ctx context.Context) (actor.Actor, error)
	// AddCode keeps a sign-in code for a user.
	AddCode(ctx context.Context, code Hash, user uuid.UUID, expires time.Time) error
	// OpenSession uses up a code that has not expired at now and keeps a session for its
	// user, both or neither. Of two calls with one code, one fails with NOT_FOUND.
	OpenSession(ctx context.Context, code Hash, now time.Time, session Hash, expires time.Time) error
	// CloseSession forgets a session; one that is gone is no error.
	CloseSession(ctx context.Context, session Hash) error
}

// Auth answers who is behind a credential. Make one with New.
type Auth struct {
	accounts Accounts
	world    world.World
	admin    *Hash
}

// New makes an Auth. A token given as adminToken always signs in the built-in
// administrator; "" means that there is none.
func New(accounts Accounts, w world.World, adminToken string) *Auth {
	a := &Auth{accounts: accounts, world: w}
	if adminToken != "" {
		hash := HashOf(adminToken)
		a.admin = &hash
	}
	return a
}

// Bearer is the actor of an API token.
func (a *Auth) Bearer(ctx context.Context, token string) (actor.Actor, error) {
	hash := HashOf(token)
	if a.admin != nil && a.admin.Equal(hash) {
		who, err := a.accounts.Administrator(ctx)
		if err != nil {
			return actor.Actor{}, fault.Wrap(fault.Unavailable, err, "the administrator could not be looked up")
		}
		return who, nil
	}
	found, err := a.accounts.Token(ctx, hash)
	return a.accept(found, hash, err, "this token is not valid")
}

// Session is the actor of a cookie session.
func (a *Auth) Session(ctx context.Context, secret string) (actor.Actor, error) {
	hash := HashOf(secret)
	found, err := a.accounts.Session(ctx, hash)
	return a.accept(found, hash, err, "this session has ended; sign in again")
}

// accept judges what the store found. The message never says whether a credential is
// unknown, expired or revoked.
func (a *Auth) accept(found Credential, asked Hash, err error, refusal string) (actor.Actor, error) {
	switch {
	case fault.Is(err, fault.NotFound):
		return actor.Actor{}, fault.New(fault.Unauthenticated, "%s", refusal)
	case err != nil:
		return actor.Actor{}, fault.Wrap(fault.Unavailable, err, "the credential could not be looked up")
	// The store found it by an index, which compares as it likes; this does not.
	case !found.Hash.Equal(asked), expired(found.Expires, a.world.Now()), found.Actor.IsNobody():
		return actor.Actor{}, fault.New(fault.Unauthenticated, "%s", refusal)
	}
	return found.Actor, nil
}

func expired(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// NewCode makes a one-time sign-in code for a user: the fragment of a sign-in link.
func (a *Auth) NewCode(ctx context.Context, user uuid.UUID) (code string, expires time.Time, err error) {
	code, hash := NewSecret(a.world)
	expires = a.world.Now().Add(CodeLifetime)
	if err := a.accounts.AddCode(ctx, hash, user, expires); err != nil {
		return "", time.Time{}, fault.Wrap(fault.Unavailable, err, "the sign-in code could not be kept")
	}
	return code, expires, nil
}

// Redeem uses up a sign-in code and opens a session.
func (a *Auth) Redeem(ctx context.Context, code string) (secret string, expires time.Time, err error) {
	secret, session := NewSecret(a.world)
	now := a.world.Now()
	expires = now.Add(SessionLifetime)
	err = a.accounts.OpenSession(ctx, HashOf(code), now, session, expires)
	switch {
	case fault.Is(err, fault.NotFound):
		return "", time.Time{}, fault.New(fault.Unauthenticated,
			"this sign-in link was used before or has expired; make a new one with: countersign token link")
	case err != nil:
		return "", time.Time{}, fault.Wrap(fault.Unavailable, err, "the sign-in code could not be redeemed")
	}
	return secret, expires, nil
}

// SignOut ends a session.
func (a *Auth) SignOut(ctx context.Context, secret string) error {
	if err := a.accounts.CloseSession(ctx, HashOf(secret)); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the session could not be ended")
	}
	return nil
}
