package access

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
)

// BuiltIn is the id of the administrator every installation has. It is fixed, so
// that every replica means the same one.
var BuiltIn = uuid.MustParse("00000000-0000-7000-8000-000000000001")

// EnsureBuiltIn makes the built-in administrator exist; called at every start, by
// any number of replicas.
func (a *Access) EnsureBuiltIn(ctx context.Context) (User, error) {
	user, err := a.Store.User(ctx, BuiltIn)
	if !fault.Is(err, fault.NotFound) {
		return user, err
	}
	user = User{ID: BuiltIn, Name: "Administrator", Kind: actor.Person, Administrator: true, Enabled: true, CreatedAt: a.World.Now()}
	entry := audit.Record(a.World, actor.Actor{}, audit.UserCreated).With("user", BuiltIn.String()).With("builtIn", true)
	if _, err := change.One(ctx, a.Store, insertUser(user, entry)); err != nil {
		return User{}, err
	}
	return a.Store.User(ctx, BuiltIn) // whoever won, it is there now
}

// NewUser is the input of CreateUser.
type NewUser struct {
	Name          string
	Kind          actor.Kind
	Administrator bool
}

// CreateUser adds a person with the default permissions, an administrator, or a
// service account that may do nothing yet. Administrators only; audited
// (RULES I5).
func (a *Access) CreateUser(ctx context.Context, by actor.Actor, in NewUser) (User, error) {
	if err := needAdministrator(by); err != nil {
		return User{}, err
	}
	name, err := checkName("name", in.Name)
	if err != nil {
		return User{}, err
	}
	user := User{ID: a.World.NewID(), Name: name, Kind: in.Kind, Administrator: in.Administrator, Enabled: true, CreatedAt: a.World.Now()}
	switch {
	case in.Kind != actor.Person && in.Kind != actor.ServiceAccount:
		return User{}, fault.New(fault.BadInput, "kind must be %s or %s.", actor.Person, actor.ServiceAccount)
	case in.Kind == actor.ServiceAccount && in.Administrator:
		return User{}, fault.New(fault.BadInput, "administrator must be false for a service account: an administrator is a person.")
	case in.Kind == actor.Person && !in.Administrator:
		user.Permissions = slices.Clone(actor.Default)
	}
	entry := audit.Record(a.World, by, audit.UserCreated).With("user", user.ID.String()).
		With("kind", string(user.Kind)).With("administrator", user.Administrator)
	if _, err := change.One(ctx, a.Store, insertUser(user, entry)); err != nil {
		return User{}, err
	}
	return a.Store.User(ctx, user.ID)
}

func insertUser(u User, entry audit.Entry) change.Change {
	c := change.Change{Audit: []audit.Entry{entry}, Inserts: []change.Insert{{Table: usersTable, Row: []change.Value{
		userID.To(u.ID), userName.To(u.Name), userKind.To(u.Kind), userAdmin.To(u.Administrator), userEnabled.To(u.Enabled),
		userCreated.To(u.CreatedAt),
	}}}}
	for _, p := range u.Permissions {
		c.Inserts = append(c.Inserts, insertGrant(u.ID, p))
	}
	return c
}

// UserUpdate is the input of UpdateUser; a nil field stays as it is.
type UserUpdate struct {
	ID            uuid.UUID
	Name          *string
	Administrator *bool
	Enabled       *bool
}

// UpdateUser renames, promotes, demotes, disables or enables a user. The built-in
// administrator stays an enabled administrator, so that nobody can lock everybody
// out. Administrators only; audited.
func (a *Access) UpdateUser(ctx context.Context, by actor.Actor, in UserUpdate) (User, error) {
	if err := needAdministrator(by); err != nil {
		return User{}, err
	}
	if in.Name != nil {
		name, err := checkName("name", *in.Name)
		if err != nil {
			return User{}, err
		}
		in.Name = &name
	}
	for range attempts {
		user, err := a.Store.User(ctx, in.ID)
		if err != nil {
			return User{}, err
		}
		if err := in.judge(user); err != nil {
			return User{}, err
		}
		c := in.change(user)
		if len(c.Updates) == 0 {
			return user, nil
		}
		c.Audit = []audit.Entry{in.entry(audit.Record(a.World, by, audit.GrantChanged).With("user", user.ID.String()), user)}
		out, err := change.One(ctx, a.Store, c)
		if err != nil {
			return User{}, err
		}
		if out.Applied {
			return a.Store.User(ctx, user.ID)
		}
	}
	return User{}, contended("the user")
}

func (in UserUpdate) judge(u User) error {
	switch {
	case u.ID == BuiltIn && in.Administrator != nil && !*in.Administrator, u.ID == BuiltIn && in.Enabled != nil && !*in.Enabled:
		return fault.New(fault.BadInput, "id names the built-in administrator, who can be neither demoted nor disabled.")
	case u.Kind == actor.ServiceAccount && in.Administrator != nil && *in.Administrator:
		return fault.New(fault.BadInput, "administrator must be false for a service account: an administrator is a person.")
	}
	return nil
}

func (in UserUpdate) change(u User) change.Change {
	guard := []change.Value{userName.Is(u.Name), userAdmin.Is(u.Administrator), userEnabled.Is(u.Enabled)}
	var set []change.Value
	if in.Name != nil && *in.Name != u.Name {
		set = append(set, userName.To(*in.Name))
	}
	if in.Administrator != nil && *in.Administrator != u.Administrator {
		set = append(set, userAdmin.To(*in.Administrator))
	}
	if in.Enabled != nil && *in.Enabled != u.Enabled {
		set = append(set, userEnabled.To(*in.Enabled))
	}
	if len(set) == 0 {
		return change.Change{}
	}
	return change.Change{Updates: []change.Update{{Table: usersTable, ID: u.ID, If: guard, Set: set}}}
}

func (in UserUpdate) entry(e audit.Entry, u User) audit.Entry {
	if in.Name != nil && *in.Name != u.Name {
		e = e.With("renamed", true)
	}
	if in.Administrator != nil {
		e = e.With("administrator", *in.Administrator)
	}
	if in.Enabled != nil {
		e = e.With("enabled", *in.Enabled)
	}
	return e
}

// GrantPermission gives a user one permission more; a permission already held
// changes nothing. Administrators only; audited (RULES U1).
func (a *Access) GrantPermission(ctx context.Context, by actor.Actor, userID uuid.UUID, p actor.Permission) (User, error) {
	return a.setGrant(ctx, by, userID, p, true)
}

// RevokePermission takes a granted permission back; one that is not held changes
// nothing. Administrators only; audited. An administrator holds every permission
// whatever was granted.
func (a *Access) RevokePermission(ctx context.Context, by actor.Actor, userID uuid.UUID, p actor.Permission) (User, error) {
	return a.setGrant(ctx, by, userID, p, false)
}

func (a *Access) setGrant(ctx context.Context, by actor.Actor, userID uuid.UUID, p actor.Permission, granted bool) (User, error) {
	if err := needAdministrator(by); err != nil {
		return User{}, err
	}
	if !slices.Contains(actor.Permissions, p) {
		return User{}, fault.New(fault.BadInput, "permission must be one of %s.", permissionList())
	}
	user, err := a.Store.User(ctx, userID)
	if err != nil || slices.Contains(user.Permissions, p) == granted {
		return user, err
	}
	c := change.Change{Audit: []audit.Entry{audit.Record(a.World, by, audit.GrantChanged).
		With("user", userID.String()).With("permission", string(p)).With("granted", granted)}}
	if granted {
		c.Inserts = []change.Insert{insertGrant(userID, p)}
	} else {
		c.Deletes = []change.Delete{{Table: grantsTable, ID: grantRow(userID, p)}}
	}
	// Losing means that somebody else granted or took the same; what was asked for is so.
	if _, err := change.One(ctx, a.Store, c); err != nil {
		return User{}, err
	}
	return a.Store.User(ctx, userID)
}

func insertGrant(user uuid.UUID, p actor.Permission) change.Insert {
	return change.Insert{Table: grantsTable, Row: []change.Value{
		grantID.To(grantRow(user, p)), grantUser.To(user), grantPermission.To(p),
	}}
}

// grantRow is the id of a grant's row, which is keyed by user and permission.
func grantRow(user uuid.UUID, p actor.Permission) uuid.UUID {
	return uuid.NewSHA1(keyedRows, []byte("grant "+user.String()+" "+string(p)))
}

func permissionList() string {
	names := make([]string, len(actor.Permissions))
	for i, p := range actor.Permissions {
		names[i] = string(p)
	}
	return strings.Join(names, ", ")
}

// FindUser returns a user: oneself, or anybody to an administrator.
func (a *Access) FindUser(ctx context.Context, by actor.Actor, id uuid.UUID) (User, error) {
	if err := needSignedIn(by); err != nil {
		return User{}, err
	}
	if !by.Administrator && by.ID != id {
		return User{}, fault.New(fault.NotFound, "There is no such user, or none you may see.")
	}
	return a.Store.User(ctx, id)
}

// ListUsers pages through the users in the order of their ids. Administrators only.
func (a *Access) ListUsers(ctx context.Context, by actor.Actor, after uuid.UUID, limit int) ([]User, error) {
	if err := needAdministrator(by); err != nil {
		return nil, err
	}
	return a.Store.Users(ctx, after, limit)
}
