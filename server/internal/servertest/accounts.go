package servertest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
)

// Credentials that Accounts knows from the start.
const (
	Token = "cs_token" // of Ada
	Code  = "cs_code"  // signs Ada in; redeemed as often as one likes
)

// Ada is a person with the default rights.
var Ada = actor.Actor{ID: uuid.UUID{15: 1}, Name: "Ada", Kind: actor.Person, Granted: actor.Default}

// Accounts is a server.Authenticator in memory.
type Accounts struct {
	mu      sync.Mutex
	secrets map[string]actor.Actor
	down    bool
	Asked   atomic.Int64 // look-ups
}

// NewAccounts makes accounts in which Token is Ada's.
func NewAccounts() *Accounts {
	return &Accounts{secrets: map[string]actor.Actor{Token: Ada}}
}

// Set makes secret, as a token or a session, the credential of an actor.
func (a *Accounts) Set(secret string, who actor.Actor) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.secrets[secret] = who
}

// Revoke makes a secret worthless.
func (a *Accounts) Revoke(secret string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.secrets, secret)
}

// SetDown makes look-ups fail, or work again.
func (a *Accounts) SetDown(down bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = down
}

// Bearer is the actor of a token.
func (a *Accounts) Bearer(_ context.Context, token string) (actor.Actor, error) {
	a.Asked.Add(1)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down {
		return actor.Actor{}, fault.New(fault.Unavailable, "the accounts are down")
	}
	who, ok := a.secrets[token]
	if !ok {
		return actor.Actor{}, fault.New(fault.Unauthenticated, "this token is not valid")
	}
	return who, nil
}

// Session is the actor of a session.
func (a *Accounts) Session(ctx context.Context, secret string) (actor.Actor, error) {
	return a.Bearer(ctx, secret)
}

// Redeem opens a session of Ada's for Code.
func (a *Accounts) Redeem(_ context.Context, code string) (string, time.Time, error) {
	if code != Code {
		return "", time.Time{}, fault.New(fault.Unauthenticated, "this sign-in link has expired")
	}
	secret := "cs_session_" + uuid.NewString()
	a.Set(secret, Ada)
	return secret, time.Now().Add(time.Hour), nil
}

// SignOut ends a session.
func (a *Accounts) SignOut(_ context.Context, secret string) error {
	a.Revoke(secret)
	return nil
}

// Present is an error presenter that shows a fault's message and no cause. gqlgen
// hands it a gqlerror whose message is the whole chain's, so the fault inside decides.
func Present(_ context.Context, err error) *gqlerror.Error {
	shown := &gqlerror.Error{}
	if given := (*gqlerror.Error)(nil); errors.As(err, &given) {
		*shown = *given
	}
	var f *fault.Error
	isFault := errors.As(err, &f)
	switch {
	case isFault && f.Kind != fault.Internal:
		shown.Message, shown.Extensions = f.Message, map[string]any{"code": string(f.Kind)}
	case isFault, shown.Message == "":
		shown.Message, shown.Extensions = "internal error", map[string]any{"code": string(fault.Internal)}
	}
	return shown
}

// Recover is a recovery that logs and hides a panic.
func Recover(logger *slog.Logger) func(context.Context, any) error {
	return func(ctx context.Context, p any) error {
		logger.ErrorContext(ctx, "panic", "value", p)
		return fault.New(fault.Internal, "internal error")
	}
}
