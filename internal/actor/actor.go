// Package actor says who acts. An Actor is a value taken from the request and
// handed down as an argument: no room asks who is signed in (RULES I2). It holds
// no store and no secret; two goroutines may share one.
package actor

import (
	"slices"

	"github.com/google/uuid"
)

// Kind tells a person from a service account. An administrator is a person with
// every permission (RULES I5).
type Kind string

// The kinds of actor.
const (
	Person         Kind = "person"
	ServiceAccount Kind = "service_account"
)

// Permission is one thing an actor may be granted.
type Permission string

// The permissions. Administrators hold all of them; a grant gives one to
// somebody else.
const (
	ContentRead    Permission = "content:read"
	ContentEdit    Permission = "content:edit"
	SkillRead      Permission = "skill:read"
	SkillAuthor    Permission = "skill:author"
	SkillApprove   Permission = "skill:approve" // approve and revoke versions (RULES A8)
	RunStart       Permission = "run:start"
	RunRead        Permission = "run:read"        // other people's runs
	RunApprove     Permission = "run:approve"     // other people's ordinary runs (RULES I5)
	RunApproveOwn  Permission = "run:approve_own" // one's own write proposals
	RunCancel      Permission = "run:cancel"      // other people's runs
	SnippetEdit    Permission = "snippet:edit"
	AuditRead      Permission = "audit:read"
	ConversationRW Permission = "conversation:use"
)

// Permissions lists every permission, in the order in which a form shows them.
var Permissions = []Permission{
	ContentRead, ContentEdit, SkillRead, SkillAuthor, SkillApprove, RunStart, RunRead,
	RunApprove, RunApproveOwn, RunCancel, SnippetEdit, AuditRead, ConversationRW,
}

// Default is what a new person holds until an administrator changes it: enough
// to chat, edit and decide one's own proposals, nothing over other people.
var Default = []Permission{
	ContentRead, ContentEdit, SkillRead, RunStart, RunApproveOwn, ConversationRW,
}

// Actor is who makes a request or owns a run. The zero value is nobody and may
// do nothing.
type Actor struct {
	ID            uuid.UUID
	Name          string
	Kind          Kind
	Administrator bool
	Granted       []Permission
}

// May reports whether the actor holds the permission.
func (a Actor) May(p Permission) bool {
	return a.Administrator || slices.Contains(a.Granted, p)
}

// IsPerson reports whether a human being acts: the initiator rules exclude
// service accounts (RULES X3, P5).
func (a Actor) IsPerson() bool { return a.Kind == Person }

// IsNobody reports whether nobody is signed in.
func (a Actor) IsNobody() bool { return a.ID == uuid.Nil }
