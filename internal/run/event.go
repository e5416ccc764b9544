package run

import (
	"encoding/json"
	"fmt"
	"time"
)

// EventKind says what a run event tells (API.md, RunEvent.kind).
type EventKind string

// The kinds.
const (
	EventStarted   EventKind = "STARTED"
	EventModelCall EventKind = "MODEL_CALL"
	EventToolCall  EventKind = "TOOL_CALL"
	EventWrite     EventKind = "WRITE"
	EventSuspended EventKind = "SUSPENDED"
	EventEdited    EventKind = "EDITED"
	EventDecision  EventKind = "DECISION"
	EventInput     EventKind = "INPUT"
	EventProgress  EventKind = "PROGRESS"
	EventHighlight EventKind = "HIGHLIGHT"
	EventNotice    EventKind = "NOTICE"
	EventSettled   EventKind = "SETTLED"
)

// Event is one step of a run as it is stored and streamed. The sequence is the
// store's. Data holds counts, names and codes; words stand in Content alone, which
// enters an event from the privacy level redacted up (RULES Y1).
type Event struct {
	Sequence   int
	Kind       EventKind
	Round      int // the model round within the segment, 1-based; 0 outside a round
	DurationMS int
	At         time.Time
	Data       EventData
	Content    *Content // nil when none is kept
	// Unreadable says that content is kept and cannot be decrypted.
	Unreadable bool
}

// EventData is the kinds' fields side by side; a kind uses the ones that its line
// in docs/running.md names and leaves the others zero.
type EventData struct {
	Tool         string `json:"tool,omitempty"`
	Call         int    `json:"call,omitempty"` // 0-based position in the turn
	IsError      bool   `json:"isError,omitempty"`
	Token        string `json:"token,omitempty"`
	Bytes        int    `json:"bytes,omitempty"`
	Calls        int    `json:"calls,omitempty"`
	InputTokens  int    `json:"inputTokens,omitempty"`
	OutputTokens int    `json:"outputTokens,omitempty"`

	// Provider (an id) and Model say who answered, Attempts who was to answer before.
	Provider string    `json:"provider,omitempty"`
	Model    string    `json:"model,omitempty"`
	Attempts []Attempt `json:"attempts,omitempty"`

	Table                string `json:"table,omitempty"`
	RecordID             string `json:"recordId,omitempty"`
	WriteKind            string `json:"writeKind,omitempty"`
	Completeness         string `json:"completeness,omitempty"`
	HookFailedAfterWrite bool   `json:"hookFailedAfterWrite,omitempty"`

	TurnDigest string `json:"turnDigest,omitempty"`
	Status     string `json:"status,omitempty"`
	Outcome    string `json:"outcome,omitempty"`
	Reason     string `json:"reason,omitempty"`

	Approved     *bool  `json:"approved,omitempty"`
	DecidedBy    string `json:"decidedBy,omitempty"`
	DenialReason string `json:"denialReason,omitempty"`
	Edited       bool   `json:"edited,omitempty"` // a person changed the call before it was approved

	Position int  `json:"position,omitempty"`
	Total    int  `json:"total,omitempty"`
	Done     bool `json:"done,omitempty"`

	Code string   `json:"code,omitempty"`
	Args []string `json:"args,omitempty"`

	Content bool `json:"content,omitempty"` // the step's content is kept beside it
}

// Attempt is a model that was to answer a turn and did not (RULES M1).
type Attempt struct {
	Provider string      `json:"provider"` // its id
	Model    string      `json:"model"`
	Code     AttemptCode `json:"code"`
	Status   int         `json:"status,omitempty"` // of HTTP, if there was one
}

// AttemptCode is why a model did not answer.
type AttemptCode string

// The codes.
const (
	AttemptFailed    AttemptCode = "failed"         // after its retries
	AttemptLeftAlone AttemptCode = "left_alone"     // its circuit breaker is open
	AttemptUnusable  AttemptCode = "unusable"       // its provider is gone, or its settings cannot be used
	AttemptTrustZone AttemptCode = "trust_zone"     // its provider may not read what the tools return (RULES T8)
	AttemptTooLong   AttemptCode = "context_window" // what has to be sent does not fit
)

// Encode is the data as the store keeps it.
func (d EventData) Encode() string {
	b, err := json.Marshal(d)
	if err != nil {
		panic(fmt.Sprintf("run: event data: %v", err)) // no field can fail to marshal
	}
	return string(b)
}
