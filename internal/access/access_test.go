package access_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
	"github.com/countersign/countersign/internal/world"
)

type fixture struct {
	*access.Access
	t       *testing.T
	ctx     context.Context
	kept    *store.Store
	between *interleaved
	at      time.Time
	admin   actor.Actor
}

// onBoth runs behaviours on both databases; each makes as many empty ones as it
// needs.
func onBoth(t *testing.T, behaviours func(t *testing.T, setUp func(*testing.T) *fixture)) {
	t.Helper()
	for _, database := range storetest.URLs {
		t.Run(database.Name, func(t *testing.T) {
			t.Parallel()
			behaviours(t, func(t *testing.T) *fixture {
				t.Helper()
				f := &fixture{t: t, ctx: t.Context(), at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
				f.kept = storetest.OpenAt(t, database.URL(t), store.Options{})
				f.between = &interleaved{Store: f.kept}
				f.Access = &access.Access{Store: f.between, World: world.New(func() time.Time { return f.at }, rand.NewChaCha8([32]byte{2}))}
				user, err := f.EnsureBuiltIn(f.ctx)
				f.ok(err)
				f.admin = user.Actor()
				return f
			})
		})
	}
}

// interleaved lets a test act between what a use case read and what it applies.
type interleaved struct {
	access.Store
	next []func()
}

func (i *interleaved) before(act func()) { i.next = append(i.next, act) }

func (i *interleaved) Apply(ctx context.Context, changes ...change.Change) ([]change.Outcome, error) {
	if len(i.next) > 0 {
		act := i.next[0]
		i.next = i.next[1:]
		act()
	}
	return i.Store.Apply(ctx, changes...)
}

func (f *fixture) ok(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) failed(err error, kind fault.Kind) {
	f.t.Helper()
	if err == nil || !fault.Is(err, kind) {
		f.t.Fatalf("got %v, want an error of kind %s", err, kind)
	}
}

func (f *fixture) user(in access.NewUser) access.User {
	f.t.Helper()
	u, err := f.CreateUser(f.ctx, f.admin, in)
	f.ok(err)
	return u
}

func (f *fixture) audited(event audit.Event) []audit.Entry {
	f.t.Helper()
	entries, err := f.kept.AuditEntries(f.ctx, audit.Filter{Events: []audit.Event{event}}, audit.Page{Limit: 100, OldestFirst: true})
	f.ok(err)
	return entries
}

func ptr[T any](v T) *T { return &v }

func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func TestUsers(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		t.Run("I5 there is one built-in administrator, however often and at once it is ensured", func(t *testing.T) {
			f := setUp(t)
			again, err := f.EnsureBuiltIn(f.ctx)
			f.ok(err)
			by, err := f.Administrator(f.ctx)
			f.ok(err)
			if again.ID != access.BuiltIn || !by.Administrator || !by.IsPerson() || len(f.audited(audit.UserCreated)) != 1 {
				t.Fatalf("%+v", again)
			}
		})
		t.Run("I5 a person starts with the default permissions, a service account with none, an administrator needs none", func(t *testing.T) {
			f := setUp(t)
			person := f.user(access.NewUser{Name: " Ada ", Kind: actor.Person})
			if person.Name != "Ada" || !slices.Equal(person.Permissions, actor.Default) || !person.Enabled {
				t.Fatalf("%+v", person)
			}
			machine := f.user(access.NewUser{Name: "CI", Kind: actor.ServiceAccount})
			if len(machine.Permissions) != 0 || machine.Actor().IsPerson() {
				t.Fatalf("%+v", machine)
			}
			admin := f.user(access.NewUser{Name: "Root", Kind: actor.Person, Administrator: true})
			if !admin.Actor().May(actor.SkillApprove) || len(admin.Permissions) != 0 {
				t.Fatalf("%+v", admin)
			}
		})
		t.Run("I5 an administrator is a person", func(t *testing.T) {
			f := setUp(t)
			_, err := f.CreateUser(f.ctx, f.admin, access.NewUser{Name: "CI", Kind: actor.ServiceAccount, Administrator: true})
			f.failed(err, fault.BadInput)
			machine := f.user(access.NewUser{Name: "CI", Kind: actor.ServiceAccount})
			_, err = f.UpdateUser(f.ctx, f.admin, access.UserUpdate{ID: machine.ID, Administrator: ptr(true)})
			f.failed(err, fault.BadInput)
		})
		t.Run("I2 a grant, a demotion and a disabled user act at once", func(t *testing.T) {
			f := setUp(t)
			u := f.user(access.NewUser{Name: "Ada", Kind: actor.Person})
			may := func(want bool) {
				t.Helper()
				by, err := f.Actor(f.ctx, u.ID)
				f.ok(err)
				if by.May(actor.SkillApprove) != want {
					t.Fatalf("%+v", by)
				}
			}
			may(false)
			_, err := f.GrantPermission(f.ctx, f.admin, u.ID, actor.SkillApprove)
			f.ok(err)
			may(true)
			_, err = f.RevokePermission(f.ctx, f.admin, u.ID, actor.SkillApprove)
			f.ok(err)
			may(false)
			_, err = f.UpdateUser(f.ctx, f.admin, access.UserUpdate{ID: u.ID, Administrator: ptr(true)})
			f.ok(err)
			may(true)
			_, err = f.UpdateUser(f.ctx, f.admin, access.UserUpdate{ID: u.ID, Enabled: ptr(false)})
			f.ok(err)
			may(false)
			if by, _ := f.Actor(f.ctx, u.ID); !by.IsNobody() {
				t.Fatalf("a disabled user is %+v", by)
			}
		})
		t.Run("U1 every grant change is audited, and only changes", func(t *testing.T) {
			f := setUp(t)
			u := f.user(access.NewUser{Name: "Ada", Kind: actor.Person})
			for range 2 {
				got, err := f.GrantPermission(f.ctx, f.admin, u.ID, actor.RunApprove)
				f.ok(err)
				if !slices.Contains(got.Permissions, actor.RunApprove) {
					t.Fatalf("%+v", got)
				}
			}
			for range 2 {
				_, err := f.RevokePermission(f.ctx, f.admin, u.ID, actor.RunApprove)
				f.ok(err)
				_, err = f.UpdateUser(f.ctx, f.admin, access.UserUpdate{ID: u.ID, Name: ptr("Ada L."), Enabled: ptr(false)})
				f.ok(err)
			}
			entries := f.audited(audit.GrantChanged)
			if len(entries) != 3 || entries[0].Actor != f.admin.ID || entries[0].Detail["permission"] != "run:approve" ||
				entries[0].Detail["granted"] != true || entries[1].Detail["granted"] != false || entries[2].Detail["enabled"] != false {
				t.Fatalf("%+v", entries)
			}
		})
		t.Run("two who grant the same at once both find it granted, audited once", func(t *testing.T) {
			f := setUp(t)
			u := f.user(access.NewUser{Name: "Ada", Kind: actor.Person})
			grant := func() access.User {
				got, err := f.GrantPermission(f.ctx, f.admin, u.ID, actor.SkillApprove)
				f.ok(err)
				return got
			}
			f.between.before(func() { grant() })
			if got := grant(); !slices.Contains(got.Permissions, actor.SkillApprove) || len(f.audited(audit.GrantChanged)) != 1 {
				t.Fatalf("%+v", got)
			}
		})
		t.Run("an update that meets another one is judged again", func(t *testing.T) {
			f := setUp(t)
			u := f.user(access.NewUser{Name: "Ada", Kind: actor.Person})
			f.between.before(func() {
				_, err := f.UpdateUser(f.ctx, f.admin, access.UserUpdate{ID: u.ID, Enabled: ptr(false)})
				f.ok(err)
			})
			got, err := f.UpdateUser(f.ctx, f.admin, access.UserUpdate{ID: u.ID, Name: ptr("Grace")})
			f.ok(err)
			if got.Name != "Grace" || got.Enabled {
				t.Fatalf("%+v", got)
			}
		})
		t.Run("nobody can lock everybody out", func(t *testing.T) {
			f := setUp(t)
			_, err := f.UpdateUser(f.ctx, f.admin, access.UserUpdate{ID: access.BuiltIn, Enabled: ptr(false)})
			f.failed(err, fault.BadInput)
			_, err = f.UpdateUser(f.ctx, f.admin, access.UserUpdate{ID: access.BuiltIn, Administrator: ptr(false)})
			f.failed(err, fault.BadInput)
		})
		t.Run("I5 only administrators see and change users; one may see oneself", func(t *testing.T) {
			f := setUp(t)
			ada := f.user(access.NewUser{Name: "Ada", Kind: actor.Person}).Actor()
			_, err := f.CreateUser(f.ctx, ada, access.NewUser{Name: "x", Kind: actor.Person})
			f.failed(err, fault.Forbidden)
			_, err = f.UpdateUser(f.ctx, ada, access.UserUpdate{ID: ada.ID, Administrator: ptr(true)})
			f.failed(err, fault.Forbidden)
			_, err = f.GrantPermission(f.ctx, ada, ada.ID, actor.SkillApprove)
			f.failed(err, fault.Forbidden)
			_, err = f.RevokePermission(f.ctx, ada, access.BuiltIn, actor.SkillApprove)
			f.failed(err, fault.Forbidden)
			_, err = f.ListUsers(f.ctx, ada, uuid.Nil, 10)
			f.failed(err, fault.Forbidden)
			_, err = f.FindUser(f.ctx, ada, access.BuiltIn)
			f.failed(err, fault.NotFound)
			_, err = f.FindUser(f.ctx, ada, ada.ID)
			f.ok(err)
			_, err = f.FindUser(f.ctx, actor.Actor{}, ada.ID)
			f.failed(err, fault.Unauthenticated)
			all, err := f.ListUsers(f.ctx, f.admin, uuid.Nil, 10)
			f.ok(err)
			if len(all) != 2 {
				t.Fatalf("%+v", all)
			}
		})
		t.Run("wrong input names the field", func(t *testing.T) {
			f := setUp(t)
			for field, in := range map[string]access.NewUser{
				"name": {Name: " ", Kind: actor.Person}, "name m": {Name: "a\nb", Kind: actor.Person}, "kind": {Name: "x", Kind: "robot"},
			} {
				_, err := f.CreateUser(f.ctx, f.admin, in)
				f.failed(err, fault.BadInput)
				if !strings.HasPrefix(err.Error(), field) {
					t.Errorf("%q does not begin with %s", err, field)
				}
			}
			_, err := f.GrantPermission(f.ctx, f.admin, access.BuiltIn, "skill:eat")
			f.failed(err, fault.BadInput)
			_, err = f.GrantPermission(f.ctx, f.admin, uuid.Max, actor.SkillApprove)
			f.failed(err, fault.NotFound)
			_, err = f.UpdateUser(f.ctx, f.admin, access.UserUpdate{ID: uuid.Max})
			f.failed(err, fault.NotFound)
		})
	})
}

func TestTokens(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		t.Run("U1 a token's secret is shown once, its hash is kept, its making and end are audited", func(t *testing.T) {
			f := setUp(t)
			ada := f.user(access.NewUser{Name: "Ada", Kind: actor.Person})
			token, secret, err := f.CreateToken(f.ctx, f.admin, access.NewToken{UserID: ada.ID, Name: "laptop", ExpiresAt: ptr(f.at.Add(time.Hour))})
			f.ok(err)
			if !strings.HasPrefix(secret, "cs_") || len(secret) < 40 {
				t.Fatalf("secret %q", secret)
			}
			who, err := f.ByToken(f.ctx, hash(secret))
			f.ok(err)
			if who.Actor.ID != ada.ID || !who.Expires.Equal(f.at.Add(time.Hour)) {
				t.Fatalf("%+v", who)
			}
			for range 2 {
				token, err = f.RevokeToken(f.ctx, f.admin, token.ID)
				f.ok(err)
			}
			_, err = f.ByToken(f.ctx, hash(secret))
			f.failed(err, fault.NotFound)
			made, ended := f.audited(audit.TokenCreated), f.audited(audit.TokenRevoked)
			if len(made) != 1 || len(ended) != 1 || made[0].Detail["user"] != ada.ID.String() || token.RevokedAt == nil {
				t.Fatalf("%+v %+v", made, ended)
			}
			if strings.Contains(fmt.Sprint(made, ended), secret) || strings.Contains(fmt.Sprint(made, ended), hash(secret)) {
				t.Fatal("the secret is in the trail")
			}
		})
		t.Run("a disabled user's token is no credential, and is one again when the user is enabled", func(t *testing.T) {
			f := setUp(t)
			ada := f.user(access.NewUser{Name: "Ada", Kind: actor.Person})
			_, secret, err := f.CreateToken(f.ctx, f.admin, access.NewToken{UserID: ada.ID, Name: "laptop"})
			f.ok(err)
			for _, enabled := range []bool{false, true} {
				_, err = f.UpdateUser(f.ctx, f.admin, access.UserUpdate{ID: ada.ID, Enabled: &enabled})
				f.ok(err)
				who, err := f.ByToken(f.ctx, hash(secret))
				if enabled != (err == nil) || enabled && !who.Expires.IsZero() {
					t.Fatalf("%+v %v", who, err)
				}
			}
		})
		t.Run("tokens are made and listed by administrators; one may revoke one's own", func(t *testing.T) {
			f := setUp(t)
			ada, bob := f.user(access.NewUser{Name: "Ada", Kind: actor.Person}), f.user(access.NewUser{Name: "Bob", Kind: actor.Person})
			_, _, err := f.CreateToken(f.ctx, ada.Actor(), access.NewToken{UserID: ada.ID, Name: "x"})
			f.failed(err, fault.Forbidden)
			token, _, err := f.CreateToken(f.ctx, f.admin, access.NewToken{UserID: ada.ID, Name: "x"})
			f.ok(err)
			_, err = f.RevokeToken(f.ctx, bob.Actor(), token.ID)
			f.failed(err, fault.NotFound)
			_, err = f.ListTokens(f.ctx, ada.Actor(), uuid.Nil, 5)
			f.failed(err, fault.Forbidden)
			_, err = f.RevokeToken(f.ctx, ada.Actor(), token.ID)
			f.ok(err)
			all, err := f.ListTokens(f.ctx, f.admin, uuid.Nil, 5)
			f.ok(err)
			if len(all) != 1 || all[0].RevokedAt == nil {
				t.Fatalf("%+v", all)
			}
		})
		t.Run("wrong input names the field", func(t *testing.T) {
			f := setUp(t)
			for want, in := range map[string]access.NewToken{
				"name":      {UserID: access.BuiltIn},
				"expiresAt": {UserID: access.BuiltIn, Name: "x", ExpiresAt: &f.at},
			} {
				_, _, err := f.CreateToken(f.ctx, f.admin, in)
				f.failed(err, fault.BadInput)
				if !strings.HasPrefix(err.Error(), want) {
					t.Errorf("%q does not begin with %s", err, want)
				}
			}
			_, _, err := f.CreateToken(f.ctx, f.admin, access.NewToken{UserID: uuid.Max, Name: "x"})
			f.failed(err, fault.NotFound)
			_, err = f.RevokeToken(f.ctx, f.admin, uuid.Max)
			f.failed(err, fault.NotFound)
		})
	})
}

func TestSessions(t *testing.T) {
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		code, session := hash("code"), hash("session")
		t.Run("a code opens one session, until somebody signs out", func(t *testing.T) {
			f := setUp(t)
			f.ok(f.AddCode(f.ctx, code, access.BuiltIn, f.at.Add(15*time.Minute)))
			f.ok(f.OpenSession(f.ctx, code, f.at, session, f.at.Add(time.Hour)))
			who, err := f.BySession(f.ctx, session)
			f.ok(err)
			if who.Actor.ID != access.BuiltIn || !who.Expires.Equal(f.at.Add(time.Hour)) {
				t.Fatalf("%+v", who)
			}
			f.failed(f.OpenSession(f.ctx, code, f.at, hash("second"), f.at.Add(time.Hour)), fault.NotFound)
			_, err = f.BySession(f.ctx, hash("second"))
			f.failed(err, fault.NotFound)
			f.ok(f.CloseSession(f.ctx, session))
			f.ok(f.CloseSession(f.ctx, session))
			_, err = f.BySession(f.ctx, session)
			f.failed(err, fault.NotFound)
		})
		t.Run("of two who use one code at once one gets in", func(t *testing.T) {
			f := setUp(t)
			f.ok(f.AddCode(f.ctx, code, access.BuiltIn, f.at.Add(15*time.Minute)))
			f.between.before(func() { f.ok(f.OpenSession(f.ctx, code, f.at, hash("first"), f.at.Add(time.Hour))) })
			f.failed(f.OpenSession(f.ctx, code, f.at, session, f.at.Add(time.Hour)), fault.NotFound)
			_, err := f.BySession(f.ctx, session)
			f.failed(err, fault.NotFound)
			_, err = f.BySession(f.ctx, hash("first"))
			f.ok(err)
		})
		t.Run("an expired code, an unknown one and a disabled user's open nothing", func(t *testing.T) {
			f := setUp(t)
			ada := f.user(access.NewUser{Name: "Ada", Kind: actor.Person})
			f.ok(f.AddCode(f.ctx, code, ada.ID, f.at.Add(15*time.Minute)))
			f.failed(f.OpenSession(f.ctx, code, f.at.Add(15*time.Minute), session, f.at.Add(time.Hour)), fault.NotFound)
			f.failed(f.OpenSession(f.ctx, hash("unknown"), f.at, session, f.at.Add(time.Hour)), fault.NotFound)
			_, err := f.UpdateUser(f.ctx, f.admin, access.UserUpdate{ID: ada.ID, Enabled: ptr(false)})
			f.ok(err)
			f.failed(f.OpenSession(f.ctx, code, f.at, session, f.at.Add(time.Hour)), fault.NotFound)
			f.failed(f.AddCode(f.ctx, hash("other"), uuid.Max, f.at), fault.NotFound)
		})
	})
}
