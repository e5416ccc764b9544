package tool

import "encoding/json"

// Completeness is what a write says about itself (RULES G6). The zero value means
// not stated, which a card shows as "approved, check the record".
type Completeness string

// The statements.
const (
	NotStated Completeness = ""
	Complete  Completeness = "complete"
	Partial   Completeness = "partial"
)

// Write is what a successful write did.
type Write struct {
	Target       Record       `json:"target"`
	Kind         string       `json:"kind"` // create, update, move, delete, publish
	Completeness Completeness `json:"completeness,omitempty"`
}

// Result is what a tool answers. The loop bounds it, adds HookFailedAfterWrite and
// records it; a tool never sets that flag.
type Result struct {
	Text    string
	IsError bool
	// Token is a fixed word beside an error text, so that a model can tell errors
	// apart (approval_denied, one_approval_per_turn, …).
	Token string
	Write *Write
	// Report is the structured statement of a process builtin (progress, highlight);
	// the loop records it as an event of its own kind.
	Report *Report

	HookFailedAfterWrite bool
}

// Report is a process builtin's statement (RULES C2).
type Report struct {
	Progress  *Progress
	Highlight *Record
}

// Progress is a position in a process.
type Progress struct {
	Position int  `json:"position"`
	Total    int  `json:"total"`
	Done     bool `json:"done"`
}

// ReportProgress is the tool whose report can end a process: the runtime has to know it
// before the call runs (RULES X8).
const ReportProgress = "report_progress"

// LoadSkill is the tool that brings a skill's instruction into the system message: what
// it does is the runtime's, which holds the run's catalogue, pins and budget (RULES L5).
const LoadSkill = "load_skill"

// ReportsCompletion reports whether a call says that its process is done.
func ReportsCompletion(name string, arguments json.RawMessage) bool {
	if name != ReportProgress {
		return false
	}
	var p Progress
	return json.Unmarshal(arguments, &p) == nil && p.Done
}

// OK is a successful read.
func OK(text string) Result { return Result{Text: text} }

// Fail is an error that the model may read.
func Fail(token, text string) Result { return Result{IsError: true, Token: token, Text: text} }

// Wrote is a successful write. Every builtin states its completeness, which a
// test over all of them asserts.
func Wrote(text, kind string, target Record, completeness Completeness) Result {
	return Result{Text: text, Write: &Write{Target: target, Kind: kind, Completeness: completeness}}
}
