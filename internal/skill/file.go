package skill

import "fmt"

// File is a skill file that could be read.
type File struct {
	Version  Version
	Status   ParseStatus
	Repairs  []Repair  // what was repaired; empty when the status is ok
	Findings []Finding // advisory: nothing here refuses the file

	Frontmatter  string // text between the fences, LF line ends, before any repair
	RawDigest    string // over all frontmatter text and the body, see RawDigest
	VersionLabel string // the author's label (`metadata.version`), which means nothing here
	Licence      string // the frontmatter's licence
}

// ParseStatus says how a file came to be read.
type ParseStatus string

const (
	ParseOK       ParseStatus = "ok"
	ParseRepaired ParseStatus = "repaired" // loaded and flagged; whatever would grant something counts as unreadable
)

// RepairCode says what kind of repair was needed.
type RepairCode string

const (
	RepairQuotedValue RepairCode = "quoted_value"       // a value that is no YAML was read as text
	RepairSurrogates  RepairCode = "decoded_surrogates" // escapes of UTF-16 surrogate pairs became the characters they stand for
)

// Repair is one thing the parser put right to read a file.
type Repair struct {
	Code    RepairCode
	Key     string // the key whose value was quoted; empty for surrogates
	Line    int    // 1-based, in the file
	Message string
}

// RejectionCode says why a file cannot be loaded.
type RejectionCode string

const (
	RejectInvalidUTF8          RejectionCode = "invalid_utf8"
	RejectControlCharacter     RejectionCode = "control_character"
	RejectNoFrontmatter        RejectionCode = "no_frontmatter"
	RejectFrontmatterNotFirst  RejectionCode = "frontmatter_not_first"
	RejectFrontmatterNotClosed RejectionCode = "frontmatter_not_closed"
	RejectFrontmatterTooLarge  RejectionCode = "frontmatter_too_large"
	RejectBodyTooLarge         RejectionCode = "body_too_large"
	RejectNotYAML              RejectionCode = "not_yaml"
	RejectNotMapping           RejectionCode = "not_a_mapping"
	RejectDuplicateKey         RejectionCode = "duplicate_key"
	RejectAliasOrAnchor        RejectionCode = "alias_or_anchor"
	RejectExplicitTag          RejectionCode = "explicit_tag"
	RejectComplexKey           RejectionCode = "complex_key"
	RejectSeveralDocuments     RejectionCode = "several_documents"
	RejectTooDeep              RejectionCode = "too_deep"
	RejectTooManyNodes         RejectionCode = "too_many_nodes"
	RejectNameMissing          RejectionCode = "name_missing"
	RejectDescriptionMissing   RejectionCode = "description_missing"
)

// Rejection is the error of Parse: why a file cannot be loaded, where, and what its author can do about it.
type Rejection struct {
	Code   RejectionCode
	Reason string // a sentence for people
	Line   int    // 1-based; 0 when unknown
	Offset int    // 0-based byte offset in the file as read; -1 when unknown
	Hint   string // what to change; empty when the reason says it
}

func (r *Rejection) Error() string {
	switch {
	case r.Offset >= 0:
		return fmt.Sprintf("%s (line %d, byte %d)", r.Reason, r.Line, r.Offset)
	case r.Line > 0:
		return fmt.Sprintf("%s (line %d)", r.Reason, r.Line)
	}
	return r.Reason
}

// reject builds a rejection that is known by its line only.
func reject(code RejectionCode, line int, reason, hint string) *Rejection {
	return &Rejection{Code: code, Reason: reason, Line: line, Offset: -1, Hint: hint}
}

// Severity orders findings for a reviewer. Findings are advisory; a high one only keeps a new skill from starting enabled (RULES S9).
type Severity string

const (
	SeverityInfo    Severity = "info"
	SeverityWarning Severity = "warning"
	SeverityHigh    Severity = "high"
)

// Finding is something a reviewer should see before deciding.
type Finding struct {
	Rule     string // which check found it, stable
	Severity Severity
	Message  string
	Excerpt  string // the text it is about, shortened
	Line     int    // 1-based, in the file; 0 when it is about the whole
}
