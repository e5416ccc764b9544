// Package prompt is what the model reads: messages, instruction sections, the
// fenced block, snippets, and how they are put together. It is pure: the same
// input gives the same bytes, and nothing here knows where text came from beyond
// what its caller says. Values may be shared between goroutines as long as nobody
// changes them.
package prompt

import "encoding/json"

// Role says who speaks a message.
type Role string

// The roles, named as the wire formats of the providers name them.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// Message is one message of a transcript. An assistant message may carry calls; a
// tool message answers exactly one of them by CallID, and the order of a valid
// transcript has every call answered before the next assistant message.
type Message struct {
	Role   Role   `json:"role"`
	Text   string `json:"text,omitempty"`
	Calls  []Call `json:"calls,omitempty"`
	CallID string `json:"callId,omitempty"`
	// Failed marks the tool message of a call that ended in an error.
	Failed bool `json:"failed,omitempty"`
}

// Call is the model asking for a tool. ID is unique within its turn; Arguments
// is a JSON object exactly as the model wrote it.
type Call struct {
	ID        string          `json:"id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// Definition is a tool as the model is told of it. Schema is a JSON Schema object
// for the arguments.
type Definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}
