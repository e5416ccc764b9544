package main

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/auth"
)

// accounts lets internal/auth look credentials up in internal/access, which keeps
// hashes as text.
type accounts struct{ *access.Access }

func (a accounts) Token(ctx context.Context, token auth.Hash) (auth.Credential, error) {
	found, err := a.ByToken(ctx, text(token))
	return auth.Credential{Hash: token, Actor: found.Actor, Expires: found.Expires}, err
}

func (a accounts) Session(ctx context.Context, session auth.Hash) (auth.Credential, error) {
	found, err := a.BySession(ctx, text(session))
	return auth.Credential{Hash: session, Actor: found.Actor, Expires: found.Expires}, err
}

func (a accounts) AddCode(ctx context.Context, code auth.Hash, user uuid.UUID, expires time.Time) error {
	return a.Access.AddCode(ctx, text(code), user, expires)
}

func (a accounts) OpenSession(ctx context.Context, code auth.Hash, now time.Time, session auth.Hash, expires time.Time) error {
	return a.Access.OpenSession(ctx, text(code), now, text(session), expires)
}

func (a accounts) CloseSession(ctx context.Context, session auth.Hash) error {
	return a.Access.CloseSession(ctx, text(session))
}

func text(h auth.Hash) string { return hex.EncodeToString(h[:]) }
