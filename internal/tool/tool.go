// Package tool holds the contract between the loop and the tools: what a tool
// declares, what it is given, what it answers, and which gate lets it through.
// Pure: tools themselves live in internal/builtin and internal/mcp. A Tool must be
// safe for concurrent use.
package tool

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/prompt"
)

// Effect is what running a tool does to the world (RULES G1).
type Effect string

// The effects.
const (
	ReadOnly           Effect = "read_only"
	IdempotentWrite    Effect = "idempotent_write"
	NonIdempotentWrite Effect = "non_idempotent_write"
)

// Writes reports whether the effect changes anything.
func (e Effect) Writes() bool { return e == IdempotentWrite || e == NonIdempotentWrite }

// Group is the name under which a configuration allows several tools at once
// (RULES T7).
type Group string

// The groups of the shipped tools.
const (
	GroupContentRead  Group = "content_read"
	GroupContentWrite Group = "content_write"
	GroupProcess      Group = "process"
	GroupSkills       Group = "skills"
	GroupRemote       Group = "remote"
)

// Groups are the groups there are.
var Groups = []Group{GroupContentRead, GroupContentWrite, GroupProcess, GroupSkills, GroupRemote}

// Spec is what a tool declares about itself, before any call.
type Spec struct {
	prompt.Definition
	Title            string
	Group            Group
	Effect           Effect
	Remote           bool // a tool of an MCP server
	AdminOnly        bool
	RequiresApproval bool // a read that is approval-bound by declaration; writes always are (RULES G2, C6)
	RequiresInput    bool // suspends for input before it runs (RULES R13)
	OffByDefault     bool // off until setToolEnabled
	// Freed says that the operator of a remote tool switched its approval off; it means
	// nothing for any other (RULES C6).
	Freed bool
	// Blocked says why nobody may use a remote tool for now, whatever its switch; empty
	// when nothing is wrong with it (RULES G8).
	Blocked string
	// DataClass is the most sensitive data that the tool's results may hold; the zero
	// value is what editors work on (RULES T8).
	DataClass DataClass
	// TextPlaces is where the arguments of a write hold text that it would write: JSON
	// pointers in which * stands for every member of an object. A person may change that
	// text before they approve the call, and nothing else of it (RULES G7).
	TextPlaces []string
}

// Call is one call as a tool receives it. Actor is the run's initiator: tools act
// under that person's rights (RULES I6). Key is unique to the call for ever:
// a write made under it is made once.
type Call struct {
	Run       uuid.UUID
	Key       string
	Actor     actor.Actor
	Subject   *Record // the record the run works on, if any
	Arguments json.RawMessage
	// Basis is what a preview was made from. A preview notes in it what it read; a write
	// that is given one refuses to change anything else (RULES R12). Nil binds nothing.
	Basis Basis
	// Hooks is where a tool says how the hooks of its writes went. The registry gives
	// it to Execute; it is nil elsewhere.
	Hooks *HookWatch
}

// Basis is the state of content that a preview showed: revisions by record.
type Basis map[Record]int

// Note notes what a preview read; a nil basis notes nothing.
func (b Basis) Note(r Record, revision int) {
	if b != nil {
		b[r] = revision
	}
}

// Record names a record of the content room.
type Record struct {
	Table string `json:"table"`
	ID    string `json:"id"`
}

// Target is what a pending write is about (RULES G7): a record and the fields it
// would set. A move, publish or delete has no fields.
type Target struct {
	Record
	Fields []string `json:"fields"`
}

// Tool is a tool that can be called.
type Tool interface {
	Spec() Spec
	// Execute runs the call. A returned error is a failure of the tool: the model
	// gets a generic error result and never its text (RULES G4). What the model may
	// read about a failure is a Result with IsError.
	Execute(ctx context.Context, call Call) (Result, error)
}

// Previewer is implemented by every tool that writes. Preview says, line by line
// and deterministically, what the call would change: current → proposed
// (RULES G7), under the initiator's rights.
type Previewer interface {
	Preview(ctx context.Context, call Call) ([]string, error)
}

// Targeter is implemented by every tool that writes. PendingTarget is false for a
// call that creates its record.
type Targeter interface {
	PendingTarget(ctx context.Context, call Call) (Target, bool, error)
}

// Asker is implemented by a tool with RequiresInput: the JSON Schema of the input
// that a person gives, made from the call's arguments.
type Asker interface {
	InputSchema(ctx context.Context, call Call) (json.RawMessage, error)
}
