package chat

import (
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// Kind says what an entry of the log tells.
type Kind string

// The kinds.
const (
	KindMessage   Kind = "MESSAGE"   // the owner said something
	KindAnswer    Kind = "ANSWER"    // a turn ended with the model's answer
	KindProposal  Kind = "PROPOSAL"  // a card waits for a decision
	KindQuestion  Kind = "QUESTION"  // a question waits for an answer
	KindOutcome   Kind = "OUTCOME"   // what became of a card
	KindNotice    Kind = "NOTICE"    // something the owner should know
	KindProgress  Kind = "PROGRESS"  // how far the process is
	KindHighlight Kind = "HIGHLIGHT" // the record that the process points at
	KindState     Kind = "STATE"     // the status or a field changed
)

// Kinds lists every kind.
var Kinds = []Kind{
	KindMessage, KindAnswer, KindProposal, KindQuestion, KindOutcome, KindNotice, KindProgress, KindHighlight, KindState,
}

// Entry is one entry of a conversation's log. It is never changed.
type Entry struct {
	ID             uuid.UUID
	ConversationID uuid.UUID
	Sequence       int // from 0, without gaps
	Kind           Kind
	Status         Status    // of the conversation once this was appended
	RunID          uuid.UUID // the turn it belongs to; zero for none
	Text           string    // of a message or an answer; encrypted at rest
	Data           Data
	At             time.Time
}

// Data is the kinds' fields side by side; a kind uses some and leaves the others zero.
type Data struct {
	// Replaces is the message whose place this one takes, with all that followed it.
	Replaces uuid.UUID `json:"replaces,omitzero"`

	Writes    int  `json:"writes,omitempty"`    // of an answer: how many calls of its turn wrote
	Unchanged bool `json:"unchanged,omitempty"` // of an answer: its turn could write and wrote nothing (RULES V6)
	Truncated bool `json:"truncated,omitempty"` // of an answer: its turn ended before it was done

	Turn    string       `json:"turn,omitempty"`
	Process bool         `json:"process,omitempty"`
	Tool    string       `json:"tool,omitempty"`
	Target  *tool.Target `json:"target,omitempty"`
	Edited  bool         `json:"edited,omitempty"` // a person changed what was proposed

	Code string   `json:"code,omitempty"` // of an outcome or a notice
	Args []string `json:"args,omitempty"`

	Progress  *tool.Progress `json:"progress,omitempty"`
	Highlight *tool.Record   `json:"highlight,omitempty"`

	Field string `json:"field,omitempty"` // of a state: the field that changed, empty for the status
}

func progressOf(e run.Event) *tool.Progress {
	return &tool.Progress{Position: e.Data.Position, Total: e.Data.Total, Done: e.Data.Done}
}

func highlightOf(e run.Event) *tool.Record {
	return &tool.Record{Table: e.Data.Table, ID: e.Data.RecordID}
}

// thread is the messages and answers that the next turn continues, in order: a message
// that replaces another one stands in its place, and what came after that is gone from
// the thread, not from the log (RULES V2, V5).
func thread(log []Entry) []Entry {
	var out []Entry
	for _, e := range log {
		if e.Kind != KindMessage && e.Kind != KindAnswer {
			continue
		}
		if e.Data.Replaces != uuid.Nil {
			for i, old := range out {
				if old.ID == e.Data.Replaces {
					out = out[:i]
					break
				}
			}
		}
		out = append(out, e)
	}
	return out
}
