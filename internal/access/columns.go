package access

import (
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
)

// The tables this room changes. Reading goes through Store.
const (
	usersTable    change.Table = "users"
	grantsTable   change.Table = "grants"
	tokensTable   change.Table = "tokens"
	sessionsTable change.Table = "sessions"
	codesTable    change.Table = "sign_in_codes"
	settingsTable change.Table = "settings"
)

var (
	userID      = change.ID(usersTable, "id")
	userName    = change.Text[string](usersTable, "name")
	userKind    = change.Text[actor.Kind](usersTable, "kind")
	userAdmin   = change.Bool(usersTable, "administrator")
	userEnabled = change.Bool(usersTable, "enabled")
	userCreated = change.Time(usersTable, "created_at")

	grantID         = change.ID(grantsTable, "id")
	grantUser       = change.ID(grantsTable, "user_id")
	grantPermission = change.Text[actor.Permission](grantsTable, "permission")

	tokenID      = change.ID(tokensTable, "id")
	tokenUser    = change.ID(tokensTable, "user_id")
	tokenName    = change.Text[string](tokensTable, "name")
	tokenHash    = change.Text[string](tokensTable, "hash")
	tokenCreated = change.Time(tokensTable, "created_at")
	tokenExpires = change.Time(tokensTable, "expires_at")
	tokenRevoked = change.Time(tokensTable, "revoked_at")

	sessionID      = change.ID(sessionsTable, "id")
	sessionUser    = change.ID(sessionsTable, "user_id")
	sessionHash    = change.Text[string](sessionsTable, "hash")
	sessionCreated = change.Time(sessionsTable, "created_at")
	sessionExpires = change.Time(sessionsTable, "expires_at")

	codeID      = change.ID(codesTable, "id")
	codeUser    = change.ID(codesTable, "user_id")
	codeHash    = change.Text[string](codesTable, "hash")
	codeCreated = change.Time(codesTable, "created_at")
	codeExpires = change.Time(codesTable, "expires_at")
	codeUsed    = change.Time(codesTable, "used_at")

	settingID    = change.ID(settingsTable, "id") // settings are keyed by name; ids are theirs to guard by
	settingName  = change.Text[string](settingsTable, "name")
	settingValue = change.Text[string](settingsTable, "value")
)
