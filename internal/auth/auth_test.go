package auth_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/auth"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/world"
	"github.com/countersign/countersign/server"
)

var _ server.Authenticator = (*auth.Auth)(nil)

// accounts is a store in memory.
type accounts struct {
	mu       sync.Mutex
	tokens   map[auth.Hash]auth.Credential
	sessions map[auth.Hash]auth.Credential
	codes    map[auth.Hash]auth.Credential
	down     error
}

var administrator = actor.Actor{ID: uuid.UUID{1}, Name: "admin", Kind: actor.Person, Administrator: true}

func newAccounts() *accounts {
	return &accounts{
		tokens: map[auth.Hash]auth.Credential{}, sessions: map[auth.Hash]auth.Credential{}, codes: map[auth.Hash]auth.Credential{},
	}
}

func (a *accounts) find(in map[auth.Hash]auth.Credential, hash auth.Hash) (auth.Credential, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down != nil {
		return auth.Credential{}, a.down
	}
	found, ok := in[hash]
	if !ok {
		return auth.Credential{}, fault.New(fault.NotFound, "no such secret")
	}
	return found, nil
}

func (a *accounts) Token(_ context.Context, hash auth.Hash) (auth.Credential, error) {
	return a.find(a.tokens, hash)
}

func (a *accounts) Session(_ context.Context, hash auth.Hash) (auth.Credential, error) {
	return a.find(a.sessions, hash)
}

func (a *accounts) Administrator(context.Context) (actor.Actor, error) { return administrator, a.down }

func (a *accounts) AddCode(_ context.Context, code auth.Hash, user uuid.UUID, expires time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.codes[code] = auth.Credential{Hash: code, Actor: actor.Actor{ID: user, Kind: actor.Person}, Expires: expires}
	return a.down
}

func (a *accounts) OpenSession(_ context.Context, code auth.Hash, now time.Time, session auth.Hash, expires time.Time) error {
	found, err := a.find(a.codes, code)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.codes, code)
	if !now.Before(found.Expires) {
		return fault.New(fault.NotFound, "no such code")
	}
	a.sessions[session] = auth.Credential{Hash: session, Actor: found.Actor, Expires: expires}
	return nil
}

func (a *accounts) CloseSession(_ context.Context, session auth.Hash) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.sessions, session)
	return a.down
}

// clock is a world whose time the test sets.
type clock struct{ at time.Time }

func (c *clock) world() world.World {
	real := world.Real()
	return world.New(func() time.Time { return c.at }, reader(real.Secret))
}

type reader func(n int) []byte

func (r reader) Read(p []byte) (int, error) { return copy(p, r(len(p))), nil }

func setUp(t *testing.T) (*auth.Auth, *accounts, *clock) {
	t.Helper()
	store, now := newAccounts(), &clock{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	return auth.New(store, now.world(), "the-admin-token"), store, now
}

func wantKind(t *testing.T, err error, kind fault.Kind) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Fatalf("got %v, want a fault of kind %s", err, kind)
	}
}

func TestBearer(t *testing.T) {
	ctx := t.Context()
	user := actor.Actor{ID: uuid.UUID{7}, Kind: actor.ServiceAccount}

	t.Run("I2 a token is the actor it was made for", func(t *testing.T) {
		a, store, now := setUp(t)
		secret, hash := auth.NewSecret(now.world())
		store.tokens[hash] = auth.Credential{Hash: hash, Actor: user}
		who, err := a.Bearer(ctx, secret)
		if err != nil || who.ID != user.ID {
			t.Fatalf("got %v, %v", who, err)
		}
		_, err = a.Session(ctx, secret)
		wantKind(t, err, fault.Unauthenticated)
	})
	t.Run("an unknown, an empty and an expired token are refused in the same words", func(t *testing.T) {
		a, store, now := setUp(t)
		secret, hash := auth.NewSecret(now.world())
		store.tokens[hash] = auth.Credential{Hash: hash, Actor: user, Expires: now.at}
		_, unknown := a.Bearer(ctx, "cs_unknown")
		_, empty := a.Bearer(ctx, "")
		_, expired := a.Bearer(ctx, secret)
		for _, err := range []error{unknown, empty, expired} {
			wantKind(t, err, fault.Unauthenticated)
			if err.Error() != unknown.Error() {
				t.Errorf("%q tells more than %q", err, unknown)
			}
		}
		store.tokens[hash] = auth.Credential{Hash: hash, Actor: user, Expires: now.at.Add(time.Microsecond)}
		if _, err := a.Bearer(ctx, secret); err != nil {
			t.Errorf("a token works until it expires: %v", err)
		}
	})
	t.Run("a store that returns another credential is not believed", func(t *testing.T) {
		a, store, _ := setUp(t)
		store.tokens[auth.HashOf("asked")] = auth.Credential{Hash: auth.HashOf("other"), Actor: user}
		_, err := a.Bearer(ctx, "asked")
		wantKind(t, err, fault.Unauthenticated)
	})
	t.Run("a credential of nobody is refused", func(t *testing.T) {
		a, store, _ := setUp(t)
		store.tokens[auth.HashOf("asked")] = auth.Credential{Hash: auth.HashOf("asked")}
		_, err := a.Bearer(ctx, "asked")
		wantKind(t, err, fault.Unauthenticated)
	})
	t.Run("a store that is down is UNAVAILABLE, and the cause stays in the log", func(t *testing.T) {
		a, store, _ := setUp(t)
		store.down = errors.New("connection refused to db.internal")
		for _, token := range []string{"cs_any", "the-admin-token"} {
			_, err := a.Bearer(ctx, token)
			wantKind(t, err, fault.Unavailable)
			var f *fault.Error
			if !errors.As(err, &f) || strings.Contains(f.Message, "db.internal") {
				t.Errorf("the caller reads %q", f.Message)
			}
		}
	})
	t.Run("I5 the token from the environment is the built-in administrator", func(t *testing.T) {
		a, store, now := setUp(t)
		who, err := a.Bearer(ctx, "the-admin-token")
		if err != nil || !who.Administrator {
			t.Fatalf("got %v, %v", who, err)
		}
		_, err = auth.New(store, now.world(), "").Bearer(ctx, "")
		wantKind(t, err, fault.Unauthenticated)
	})
}

func TestSignIn(t *testing.T) {
	ctx := t.Context()
	user := uuid.UUID{9}

	t.Run("a code opens one session, once", func(t *testing.T) {
		a, _, _ := setUp(t)
		code, _, err := a.NewCode(ctx, user)
		if err != nil {
			t.Fatal(err)
		}
		secret, _, err := a.Redeem(ctx, code)
		if err != nil {
			t.Fatal(err)
		}
		who, err := a.Session(ctx, secret)
		if err != nil || who.ID != user {
			t.Fatalf("got %v, %v", who, err)
		}
		_, _, err = a.Redeem(ctx, code)
		wantKind(t, err, fault.Unauthenticated)
		_, err = a.Bearer(ctx, secret)
		wantKind(t, err, fault.Unauthenticated)
	})
	t.Run("a code works for fifteen minutes", func(t *testing.T) {
		a, _, now := setUp(t)
		code, expires, err := a.NewCode(ctx, user)
		if err != nil || expires.Sub(now.at) != 15*time.Minute {
			t.Fatalf("expires %v, %v", expires, err)
		}
		now.at = expires
		_, _, err = a.Redeem(ctx, code)
		wantKind(t, err, fault.Unauthenticated)
	})
	t.Run("a session ends by itself and at sign-out", func(t *testing.T) {
		a, _, now := setUp(t)
		open := func() (string, time.Time) {
			code, _, err := a.NewCode(ctx, user)
			if err != nil {
				t.Fatal(err)
			}
			secret, expires, err := a.Redeem(ctx, code)
			if err != nil {
				t.Fatal(err)
			}
			return secret, expires
		}
		secret, expires := open()
		now.at = expires
		_, err := a.Session(ctx, secret)
		wantKind(t, err, fault.Unauthenticated)
		secret, _ = open()
		for range 2 {
			if err := a.SignOut(ctx, secret); err != nil {
				t.Fatal(err)
			}
		}
		_, err = a.Session(ctx, secret)
		wantKind(t, err, fault.Unauthenticated)
	})
	t.Run("a store that is down is UNAVAILABLE", func(t *testing.T) {
		a, store, _ := setUp(t)
		store.down = errors.New("down")
		_, _, err := a.NewCode(ctx, user)
		wantKind(t, err, fault.Unavailable)
		_, _, err = a.Redeem(ctx, "code")
		wantKind(t, err, fault.Unavailable)
		wantKind(t, a.SignOut(ctx, "secret"), fault.Unavailable)
	})
}

func TestSecret(t *testing.T) {
	t.Run("a secret starts with cs_ and never repeats", func(t *testing.T) {
		one, hash := auth.NewSecret(world.Real())
		two, _ := auth.NewSecret(world.Real())
		if !strings.HasPrefix(one, "cs_") || len(one) != 43 || one == two {
			t.Errorf("got %q and %q", one, two)
		}
		if !hash.Equal(auth.HashOf(one)) || hash.Equal(auth.HashOf(two)) {
			t.Error("the hash is not the secret's")
		}
	})
}
