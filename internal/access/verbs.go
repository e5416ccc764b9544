package access

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/world"
)

// Access is the room's use cases. It keeps nothing between calls and is safe for
// concurrent use when its fields are; File is not changed after the start.
type Access struct {
	Store Store
	World world.World
	// File holds the settings of the configuration file, by name, below what was set
	// while the server ran (RULES I8).
	File map[string]string
}

// attempts bounds how often a use case judges again after it lost a race.
const attempts = 8

// keyedRows is the namespace of the ids of rows that have a natural key, so that
// they can be written without being read first.
var keyedRows = uuid.MustParse("6a1b0a52-5f0e-4c51-9d0b-3a2f1c7e9d40")

// Actor is the user as an actor, as things are now: permissions, and nobody when
// the user is disabled. A user who does not exist is NotFound (RULES I2).
func (a *Access) Actor(ctx context.Context, id uuid.UUID) (actor.Actor, error) {
	user, err := a.Store.User(ctx, id)
	if err != nil {
		return actor.Actor{}, err
	}
	return user.Actor(), nil
}

func needSignedIn(by actor.Actor) error {
	if by.IsNobody() {
		return fault.New(fault.Unauthenticated, "Sign in first.")
	}
	return nil
}

func needAdministrator(by actor.Actor) error {
	if err := needSignedIn(by); err != nil {
		return err
	}
	if !by.Administrator {
		return fault.New(fault.Forbidden, "Only an administrator may do this.")
	}
	return nil
}

func contended(what string) error {
	return fault.New(fault.Unavailable, "Others keep changing %s; try again.", what)
}

// maxName is how long a name of a user or token may be, in bytes.
const maxName = 200

func checkName(field, text string) (string, error) {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > maxName || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return "", fault.New(fault.BadInput, "%s must be a text of 1 to %d bytes without control characters.", field, maxName)
	}
	return text, nil
}

// clip shortens what somebody sent for a message.
func clip(text string) string {
	text = strings.ToValidUTF8(text, "�")
	if runes := []rune(text); len(runes) > 60 {
		return string(runes[:60]) + "…"
	}
	return text
}

// set replaces a value when there is something to replace it with.
func set[T any](value *T, with *T) {
	if with != nil {
		*value = *with
	}
}

// newSecret makes a bearer token. The prefix tells scanners and people what they
// found.
func (a *Access) newSecret() string { return "cs_" + secretText.EncodeToString(a.World.Secret(25)) }

// secretText survives being read out and typed in.
var secretText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// hashOf is what is kept of a secret. A secret is 200 random bits, so a plain hash
// cannot be searched and needs no salt.
func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
