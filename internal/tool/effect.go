package tool

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
	Reads map[string]bool // reads that are approval-bound because someone configured them so
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
	{"it is configured so", func(s Spec, a Approvals) bool { return !EffectOf(s).Writes() && a.Reads[s.Name] }},
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
