// Package library holds what may instruct a model and who said so: sources, the
// skills that come from them or are written here, approvals and revocations, what a
// configuration offers, and the sync that brings new text in.
//
// Its use cases are the methods of Library, one verb a file. A use case reads,
// judges, and returns what it did as one change.Change with guards on everything
// its judgement rested on; when a guard is lost, it reads and judges again, so that
// what was written was true when it was written. Errors are fault.Error values, refusals
// of the rules *fault.Refused (RULES I7).
//
// A Library keeps nothing between calls but the syncs that run in this process and
// is safe for concurrent use when its fields are.
package library

import (
	"context"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/world"
)

// Accounts is what the room asks internal/access: the settings in force and who a
// user is.
type Accounts interface {
	Values(ctx context.Context) (access.Values, error)
	Actor(ctx context.Context, id uuid.UUID) (actor.Actor, error)
}

// Library is the room's use cases.
type Library struct {
	Store    Store
	Fetcher  Fetcher
	World    world.World
	Accounts Accounts

	// EnterpriseHosts are the hosts beside github.com that a source's URL may name, in
	// lower case (RULES S2).
	EnterpriseHosts []string
	// SyncPulse is how often a sync stores how far it is and looks whether another
	// replica cancelled it; 0 is half a second.
	SyncPulse time.Duration
	// CheckProvider refuses a provider whose settings no client could use; nil accepts all.
	CheckProvider func(Provider) error
	// KnownTool tells the tools that exist; nil knows all.
	KnownTool func(ctx context.Context, name string) (bool, error)

	mu      sync.Mutex
	running map[uuid.UUID]context.CancelFunc // syncs of this process, by source
}

// attempts bounds how often a use case judges again after it lost a race. Of those
// that race for one row somebody wins every time, so that this is also how many of them
// can come at once.
const attempts = 64

// keyedRows is the namespace of the ids of rows that have a natural key, so that
// they can be written without being read first.
var keyedRows = uuid.MustParse("b8b6c5a4-0f3d-4d0e-8f5b-5a1f6d1c2e77")

// holds guards a row without changing it. Writing a guarded column back to itself takes
// the row's lock, so that the guards still hold when the change commits.
func holds(table change.Table, id uuid.UUID, guards ...change.Value) change.Update {
	return change.Update{Table: table, ID: id, If: guards, Set: guards[:1]}
}

// retried applies what judge returns until it is applied, or judge fails or finds
// nothing to change. Judge reads afresh every time it is called.
func (l *Library) retried(ctx context.Context, what string, judge func() (change.Change, error)) error {
	for range attempts {
		c, err := judge()
		if err != nil || changesNothing(c) {
			return err
		}
		out, err := change.One(ctx, l.Store, c)
		if err != nil {
			return err
		}
		if out.Applied {
			return nil
		}
	}
	return fault.New(fault.Unavailable, "Others keep changing %s; try again.", what)
}

func changesNothing(c change.Change) bool {
	return len(c.Updates)+len(c.Deletes)+len(c.Inserts)+len(c.Events)+len(c.Audit) == 0
}

// values reads the settings in force.
func (l *Library) values(ctx context.Context) (access.Values, error) { return l.Accounts.Values(ctx) }

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

func need(by actor.Actor, p actor.Permission) error {
	if err := needSignedIn(by); err != nil {
		return err
	}
	if !by.May(p) {
		return fault.New(fault.Forbidden, "This needs the permission %s.", p)
	}
	return nil
}

const (
	maxName        = 200       // bytes of a title or name
	maxDescription = 8 << 10   // bytes
	maxBody        = 512 << 10 // bytes, as in a skill file
)

// label checks a one-line text that people tell things apart by.
func label(field, text string) (string, error) {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > maxName || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return "", fault.New(fault.BadInput, "%s must be a text of 1 to %d bytes without control characters.", field, maxName)
	}
	return text, nil
}

// prose checks a longer text and gives it LF line ends, which is what a browser's
// form does not send.
func prose(field, text string, limit int) (string, error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	switch {
	case !utf8.ValidString(text):
		return "", fault.New(fault.BadInput, "%s must be valid UTF-8.", field)
	case len(text) > limit:
		return "", fault.New(fault.BadInput, "%s has %d bytes; at most %d are accepted.", field, len(text), limit)
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
		return "", fault.New(fault.BadInput, "%s must not hold control characters other than tab and line feed.", field)
	}
	return text, nil
}

// clip shortens what somebody sent for a message or an audit entry.
func clip(text string, limit int) string {
	text = strings.ToValidUTF8(text, "�")
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return text
}
