package skill

import (
	"regexp"
	"slices"
	"strings"
)

// Version is everything of a skill that the model or the tool list reads (RULES D1). Nothing else changes its digest.
type Version struct {
	Name        string
	Description string
	Body        string
	Support     SupportStatus
	Tools       Tools
	Process     Process
}

// SupportStatus says whether a skill works without the files it was published with.
type SupportStatus string

const (
	SupportFull    SupportStatus = "full"
	SupportPartial SupportStatus = "partial" // the body names bundled files, which are not available here
)

// Process says whether a skill guides a whole conversation (RULES S14).
type Process string

const (
	ProcessNo         Process = "no"
	ProcessYes        Process = "yes"
	ProcessUnreadable Process = "unreadable" // declared, but neither true nor false: treated like a process and startable by nobody
)

// ToolsState says how a skill declared its tools.
type ToolsState string

const (
	ToolsUndeclared ToolsState = "undeclared" // no declaration: null, imposes nothing
	ToolsDeclared   ToolsState = "declared"   // possibly empty, which allows no tool
	ToolsUnreadable ToolsState = "unreadable" // a declaration that grants nothing
)

// Tools is a skill's `allowed-tools` declaration. The zero value counts as unreadable, so that a forgotten field never lifts a restriction.
type Tools struct {
	State ToolsState
	Items []string // byte-sorted and distinct; set only when declared
}

// NoTools is the absence of a declaration.
func NoTools() Tools { return Tools{State: ToolsUndeclared} }

// DeclareTools is a declaration of exactly these tools; without any it is the empty declaration, which allows none.
func DeclareTools(items ...string) Tools {
	sorted := slices.Clone(items)
	slices.Sort(sorted)
	return Tools{State: ToolsDeclared, Items: slices.Compact(sorted)}
}

// UnreadableTools is a declaration nobody can read: it counts as declared and grants nothing.
func UnreadableTools() Tools { return Tools{State: ToolsUnreadable} }

// Declares tells whether the skill declared anything, readable or not. One declaration is enough to restrict a run (RULES T1).
func (t Tools) Declares() bool { return t.State != ToolsUndeclared }

// Grants is what the declaration adds to an allow-list: its items when it is readable, otherwise nothing.
func (t Tools) Grants() []string {
	if t.State != ToolsDeclared {
		return nil
	}
	return slices.Clone(t.Items)
}

// bundledPath matches a path under one of the folders a skill may ship. What follows the slash must begin a name or a placeholder for one: the bare
// folder names nothing that could be missing.
var bundledPath = regexp.MustCompile(`(?:^|[^A-Za-z0-9_-])(?:references|scripts|assets)/(?:[\pL\pN_*<{$\[%@~-]|\.[\pL\pN_])`)

// NamesBundledFile tells whether a line of a body names a path under references/, scripts/ or assets/ (RULES D1, L10). A web address that happens to
// contain such a folder does not count.
func NamesBundledFile(line string) bool {
	if !strings.Contains(line, "references/") && !strings.Contains(line, "scripts/") && !strings.Contains(line, "assets/") {
		return false
	}
	seen, inWebAddress := 0, false
	for _, match := range bundledPath.FindAllStringIndex(line, -1) {
		between := line[seen : match[0]+1]
		if wordStart := strings.LastIndexAny(between, " \t\"'`<>()[]{}|"); wordStart >= 0 {
			between, inWebAddress = between[wordStart:], false
		}
		if inWebAddress = inWebAddress || strings.Contains(between, "://"); !inWebAddress {
			return true
		}
		seen = match[0] + 1
	}
	return false
}

// SupportOf derives the support status from the body alone (RULES D1).
func SupportOf(body string) SupportStatus {
	for line := range strings.Lines(body) {
		if NamesBundledFile(line) {
			return SupportPartial
		}
	}
	return SupportFull
}
