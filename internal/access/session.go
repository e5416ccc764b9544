package access

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
)

const (
	codeLifetime    = 15 * time.Minute
	sessionLifetime = 12 * time.Hour
	codePrefix      = "csl_"
	sessionPrefix   = "css_"
)

// CreateSignInCode makes the one-time code of a sign-in link for a user, valid for
// 15 minutes. It is for whoever operates the server: no request reaches it.
func (a *Access) CreateSignInCode(ctx context.Context, userID uuid.UUID) (code string, expires time.Time, err error) {
	if _, err := a.Store.User(ctx, userID); err != nil {
		return "", time.Time{}, err
	}
	code, now := a.newSecret(codePrefix), a.World.Now()
	expires = now.Add(codeLifetime)
	err = a.insert(ctx, change.Insert{Table: codesTable, Row: []change.Value{
		codeID.To(a.World.NewID()), codeUser.To(userID), codeHash.To(hashOf(code)), codeCreated.To(now), codeExpires.To(expires),
		codeUsed.Null(),
	}})
	return code, expires, err
}

// SignIn turns a one-time code into a session. A code works once, whoever races
// for it, and not after it expired.
func (a *Access) SignIn(ctx context.Context, code string) (secret string, session Session, err error) {
	refused := fault.New(fault.Unauthenticated, "The sign-in link is used up or has expired; ask for a new one (countersign token link).")
	kept, err := a.Store.SignInCodeByHash(ctx, hashOf(code))
	if fault.Is(err, fault.NotFound) {
		return "", Session{}, refused
	}
	if err != nil {
		return "", Session{}, err
	}
	now := a.World.Now()
	if kept.UsedAt != nil || !now.Before(kept.ExpiresAt) {
		return "", Session{}, refused
	}
	if _, err := a.live(ctx, kept.UserID, refused); err != nil {
		return "", Session{}, err
	}
	secret, session, row := a.newSession(kept.UserID, now)
	out, err := change.One(ctx, a.Store, change.Change{
		Updates: []change.Update{{
			Table: codesTable, ID: kept.ID, If: []change.Value{codeUsed.Null()}, Set: []change.Value{codeUsed.To(now)},
		}},
		Inserts: []change.Insert{row},
	})
	if err != nil {
		return "", Session{}, err
	}
	if !out.Applied {
		return "", Session{}, refused
	}
	return secret, session, nil
}

// OpenSession starts a session for a user whom somebody else vouched for, such as
// an OpenID provider.
func (a *Access) OpenSession(ctx context.Context, userID uuid.UUID) (secret string, session Session, err error) {
	secret, session, row := a.newSession(userID, a.World.Now())
	return secret, session, a.insert(ctx, row)
}

func (a *Access) newSession(userID uuid.UUID, now time.Time) (secret string, session Session, row change.Insert) {
	secret = a.newSecret(sessionPrefix)
	session = Session{ID: a.World.NewID(), UserID: userID, ExpiresAt: now.Add(sessionLifetime)}
	return secret, session, change.Insert{Table: sessionsTable, Row: []change.Value{
		sessionID.To(session.ID), sessionUser.To(userID), sessionHash.To(hashOf(secret)), sessionCreated.To(now),
		sessionExpires.To(session.ExpiresAt),
	}}
}

// SessionActor is the actor behind a session's secret, as things are now.
func (a *Access) SessionActor(ctx context.Context, secret string) (actor.Actor, Session, error) {
	refused := fault.New(fault.Unauthenticated, "The session has ended; sign in again.")
	session, err := a.Store.SessionByHash(ctx, hashOf(secret))
	if fault.Is(err, fault.NotFound) {
		return actor.Actor{}, Session{}, refused
	}
	if err != nil {
		return actor.Actor{}, Session{}, err
	}
	if !a.World.Now().Before(session.ExpiresAt) {
		return actor.Actor{}, Session{}, refused
	}
	by, err := a.live(ctx, session.UserID, refused)
	return by, session, err
}

// SignOut ends a session. One that is gone already stays so.
func (a *Access) SignOut(ctx context.Context, secret string) error {
	session, err := a.Store.SessionByHash(ctx, hashOf(secret))
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = change.One(ctx, a.Store, change.Change{Deletes: []change.Delete{{Table: sessionsTable, ID: session.ID}}})
	return err
}

func (a *Access) insert(ctx context.Context, row change.Insert) error {
	out, err := change.One(ctx, a.Store, change.Change{Inserts: []change.Insert{row}})
	if err == nil && !out.Applied {
		return contended("the table")
	}
	return err
}
