package access

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
)

// The credentials below are what internal/auth works on. Secrets, their lifetimes
// and their comparison are its business; here are hashes, rows, and whose they are.

// Identity is who stands behind a credential, as things are now, and until when.
type Identity struct {
	Actor   actor.Actor
	Expires time.Time // the zero time: never
}

// noCredential says that there is none, it is revoked, or its user is disabled or
// gone; never which of these.
func noCredential() error { return fault.New(fault.NotFound, "There is no such credential.") }

// ByToken is who stands behind a bearer token. It judges revocation, not expiry.
func (a *Access) ByToken(ctx context.Context, hash string) (Identity, error) {
	token, err := a.Store.TokenByHash(ctx, hash)
	if err != nil {
		return Identity{}, err
	}
	if token.RevokedAt != nil {
		return Identity{}, noCredential()
	}
	var expires time.Time
	set(&expires, token.ExpiresAt)
	return a.identity(ctx, token.UserID, expires)
}

// BySession is who stands behind the secret of a browser's session. It does not
// judge expiry.
func (a *Access) BySession(ctx context.Context, hash string) (Identity, error) {
	session, err := a.Store.SessionByHash(ctx, hash)
	if err != nil {
		return Identity{}, err
	}
	return a.identity(ctx, session.UserID, session.ExpiresAt)
}

func (a *Access) identity(ctx context.Context, user uuid.UUID, expires time.Time) (Identity, error) {
	by, err := a.Actor(ctx, user)
	if err == nil && by.IsNobody() {
		err = noCredential()
	}
	return Identity{Actor: by, Expires: expires}, err
}

// Administrator is the built-in administrator.
func (a *Access) Administrator(ctx context.Context) (actor.Actor, error) {
	return a.Actor(ctx, BuiltIn)
}

// AddCode keeps the hash of a one-time sign-in code for a user. It is for whoever
// operates the server: no request reaches it.
func (a *Access) AddCode(ctx context.Context, hash string, user uuid.UUID, expires time.Time) error {
	if _, err := a.Store.User(ctx, user); err != nil {
		return err
	}
	out, err := change.One(ctx, a.Store, change.Change{Inserts: []change.Insert{{Table: codesTable, Row: []change.Value{
		codeID.To(a.World.NewID()), codeUser.To(user), codeHash.To(hash), codeCreated.To(a.World.Now()), codeExpires.To(expires),
		codeUsed.Null(),
	}}}})
	if err == nil && !out.Applied {
		return contended("the sign-in codes")
	}
	return err
}

// OpenSession uses up a code that has not expired at now and keeps a session for its
// user, both or neither. Whoever races for one code, one wins; the others, and whoever
// comes with a code that is used up, expired or of a disabled user, get NotFound.
func (a *Access) OpenSession(ctx context.Context, codeHashed string, now time.Time, sessionHashed string, expires time.Time) error {
	code, err := a.Store.SignInCodeByHash(ctx, codeHashed)
	if err != nil {
		return err
	}
	if code.UsedAt != nil || !now.Before(code.ExpiresAt) {
		return noCredential()
	}
	if _, err := a.identity(ctx, code.UserID, expires); err != nil {
		return err
	}
	out, err := change.One(ctx, a.Store, change.Change{
		Updates: []change.Update{{
			Table: codesTable, ID: code.ID, If: []change.Value{codeUsed.Null()}, Set: []change.Value{codeUsed.To(now)},
		}},
		Inserts: []change.Insert{{Table: sessionsTable, Row: []change.Value{
			sessionID.To(a.World.NewID()), sessionUser.To(code.UserID), sessionHash.To(sessionHashed), sessionCreated.To(now),
			sessionExpires.To(expires),
		}}},
	})
	if err == nil && !out.Applied {
		return noCredential()
	}
	return err
}

// CloseSession forgets a session; one that is gone is no error.
func (a *Access) CloseSession(ctx context.Context, hash string) error {
	session, err := a.Store.SessionByHash(ctx, hash)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = change.One(ctx, a.Store, change.Change{Deletes: []change.Delete{{Table: sessionsTable, ID: session.ID}}})
	return err
}
