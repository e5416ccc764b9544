package guard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// Side says which texts a rule is about.
type Side string

// The sides.
const (
	Input  Side = "input"  // what goes to a model: messages, instructions, fenced text, results
	Output Side = "output" // what comes from it: its text and the arguments of its calls
	Both   Side = "both"
)

// Action is what becomes of a text that a rule matches.
type Action string

// The actions, the mildest first.
const (
	Allow           Action = "allow"            // the rules after it do not count for this text
	Redact          Action = "redact"           // what matches is replaced by a marker with the rule's name
	Retry           Action = "retry"            // the model is asked again
	RequireApproval Action = "require_approval" // calls wait for a person
	Deny            Action = "deny"             // the run ends
)

var (
	sides   = []Side{Input, Output, Both}
	actions = []Action{Allow, Redact, Retry, RequireApproval, Deny}
)

// Rule is a rule of an operator.
type Rule struct {
	Name    string `json:"name"`
	Side    Side   `json:"side"`
	Pattern string `json:"pattern"` // RE2
	Action  Action `json:"action"`

	matches *regexp.Regexp
}

// Rules are rules in the order in which they count. They do not change.
type Rules []Rule

// What a list of rules may be.
const (
	mostRules   = 50
	mostPattern = 1000 // bytes
)

var ruleName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`)

// ParseRules reads a list of rules from JSON; an empty text is none. Its error says which
// rule is wrong, and what about it.
func ParseRules(text string) (Rules, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	var rules Rules
	if err := d.Decode(&rules); err != nil {
		return nil, fmt.Errorf("not a JSON list of rules: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one JSON list")
	}
	if len(rules) > mostRules {
		return nil, fmt.Errorf("%d rules, and %d are the most", len(rules), mostRules)
	}
	for i := range rules {
		if err := rules[i].compile(); err != nil {
			return nil, fmt.Errorf("rule %d (%s): %w", i+1, rules[i].Name, err)
		}
		if slices.ContainsFunc(rules[:i], func(r Rule) bool { return r.Name == rules[i].Name }) {
			return nil, fmt.Errorf("two rules have the name %s", rules[i].Name)
		}
	}
	return rules, nil
}

func (r *Rule) compile() (err error) {
	switch {
	case !ruleName.MatchString(r.Name):
		return fmt.Errorf("the name must be 1 to 40 of a-z, 0-9, - and _")
	case !slices.Contains(sides, r.Side):
		return fmt.Errorf("the side must be input, output or both")
	case !slices.Contains(actions, r.Action):
		return fmt.Errorf("the action must be allow, redact, retry, require_approval or deny")
	case r.Action == Retry && r.Side != Output:
		return fmt.Errorf("only output can be asked for again")
	case len(r.Pattern) > mostPattern:
		return fmt.Errorf("the pattern is longer than %d bytes", mostPattern)
	}
	if r.matches, err = regexp.Compile(r.Pattern); err != nil {
		return err
	}
	if r.matches.MatchString("") {
		return fmt.Errorf("the pattern matches the empty text")
	}
	return nil
}

// On says whether any rule is about a side.
func (rs Rules) On(side Side) bool {
	return slices.ContainsFunc(rs, func(r Rule) bool { return r.on(side) })
}

func (r Rule) on(side Side) bool { return r.Side == Both || r.Side == side }

// Verdict is what rules say of a text: the strongest action among those that matched, and
// the first rule that asked for it. The zero value allows.
type Verdict struct {
	Action Action
	Rule   string
}

// Stronger is the stronger of two verdicts, the first of equals.
func (v Verdict) Stronger(other Verdict) Verdict {
	if slices.Index(actions, other.Action) > slices.Index(actions, v.Action) {
		return other
	}
	return v
}

// Text is a text on a side after the rules that redact, and what the rules say of it as
// it was.
func (rs Rules) Text(side Side, text string) (string, Verdict) {
	var v Verdict
	out := text
	for _, r := range rs {
		if !r.on(side) || !r.matches.MatchString(text) {
			continue
		}
		if r.Action == Allow {
			break
		}
		if r.Action == Redact {
			out = r.matches.ReplaceAllLiteralString(out, Marker(r.Name))
		}
		v = v.Stronger(Verdict{Action: r.Action, Rule: r.Name})
	}
	return out, v
}

// JSON is Text for every string of a JSON text, which stays JSON.
func (rs Rules) JSON(side Side, raw json.RawMessage) (json.RawMessage, Verdict) {
	var all Verdict
	if !json.Valid(raw) {
		text, v := rs.Text(side, string(raw))
		return json.RawMessage(text), v
	}
	out := rewrite(raw, func(_ string, _ bool, text string) string {
		redacted, v := rs.Text(side, text)
		all = all.Stronger(v)
		return redacted
	})
	return out, all
}

// rewrite is a valid JSON text with strings written anew where they become another: as
// is told the name of the member that a string is, or that it is such a name itself.
func rewrite(raw json.RawMessage, as func(member string, isName bool, text string) string) json.RawMessage {
	var out []byte // nil until something differs
	copied, member := 0, ""
	for i := 0; i < len(raw); {
		if bytes.IndexByte([]byte("{[,"), raw[i]) >= 0 {
			member = ""
		}
		if raw[i] != '"' {
			i++
			continue
		}
		end := stringEnd(raw, i)
		var text string
		_ = json.Unmarshal(raw[i:end], &text) // all of it is valid
		name := isName(raw[end:])
		if changed := as(member, name, text); changed != text {
			out = append(append(out, raw[copied:i]...), quoted(changed)...)
			copied = end
		}
		if name {
			member = text
		}
		i = end
	}
	if copied == 0 {
		return raw
	}
	return append(out, raw[copied:]...)
}
