package tool

import (
	"fmt"
	"regexp"
	"strings"
)

// EffectOf is the effect that a declaration amounts to (RULES G1): a remote tool
// always counts as a write that must not be repeated, whatever it says of itself;
// a shipped tool that declares nothing is a read.
func EffectOf(s Spec) Effect {
	switch {
	case s.Remote:
		return NonIdempotentWrite
	case s.Effect == "":
		return ReadOnly
	default:
		return s.Effect
	}
}

// DeclaredWrite reports whether a shipped tool declares a write: what C1, C4 and
// R14 call a write, and what no switch frees from approval (RULES C6).
func DeclaredWrite(s Spec) bool { return !s.Remote && EffectOf(s).Writes() }

// Approvals are an operator's choices on what needs an approval, by tool name.
type Approvals struct {
	Reads    map[string]bool // reads that are approval-bound because someone configured them so
	AllReads bool            // every read is
}

// toolName is what a tool can be called.
var toolName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,127}$`)

// ParseApprovals reads a list of tool names, separated by commas; * is every read and none no
// tool at all.
func ParseApprovals(list string) (Approvals, error) {
	out := Approvals{Reads: map[string]bool{}}
	for name := range strings.SplitSeq(list, ",") {
		switch name = strings.TrimSpace(name); {
		case name == "", name == "none":
		case name == "*":
			out.AllReads = true
		case !toolName.MatchString(name):
			return Approvals{}, fmt.Errorf("%q is no tool's name", name)
		default:
			out.Reads[name] = true
		}
	}
	return out, nil
}

// read reports whether a call waits because somebody configured it so. A tool that asks a
// person is never bound beside that: one pause carries one answer.
func (a Approvals) read(s Spec) bool {
	return !EffectOf(s).Writes() && !s.RequiresInput && (a.AllReads || a.Reads[s.Name])
}

// approvalRules is G2, one reason a line. The order does not matter: any of them
// binds.
var approvalRules = []struct {
	why   string
	binds func(Spec, Approvals) bool
}{
	{"it is declared so", func(s Spec, _ Approvals) bool { return s.RequiresApproval }},
	{"it is remote", func(s Spec, _ Approvals) bool { return s.Remote && !s.Freed }},
	{"it writes", func(s Spec, _ Approvals) bool { return DeclaredWrite(s) }},
	{"it is configured so", func(s Spec, a Approvals) bool { return a.read(s) }},
}

// ApprovalBound reports whether a call of the tool waits for a person (RULES G2).
// Nothing in a lifts it from a shipped tool that writes (RULES C6).
func ApprovalBound(s Spec, a Approvals) bool {
	for _, rule := range approvalRules {
		if rule.binds(s, a) {
			return true
		}
	}
	return false
}
