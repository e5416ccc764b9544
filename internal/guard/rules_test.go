package guard_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/guard"
)

func TestRules(t *testing.T) {
	rules, err := guard.ParseRules(`[
		{"name":"known","side":"both","pattern":"^It is fine: ","action":"allow"},
		{"name":"names","side":"both","pattern":"Ada|Bob","action":"redact"},
		{"name":"again","side":"output","pattern":"as an AI","action":"retry"},
		{"name":"ask","side":"input","pattern":"(?i)ignore (all|previous)","action":"require_approval"},
		{"name":"stop","side":"both","pattern":"forbidden","action":"deny"}]`)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("M2 the strongest verdict counts, on the side that a rule is about, until a rule allows", func(t *testing.T) {
		for _, c := range []struct {
			side       guard.Side
			text, want string
			verdict    guard.Verdict
		}{
			{guard.Input, "Nothing.", "Nothing.", guard.Verdict{}},
			{guard.Input, "Ada and Bob", "[redacted:names] and [redacted:names]", guard.Verdict{Action: guard.Redact, Rule: "names"}},
			{guard.Output, "Ada, as an AI", "[redacted:names], as an AI", guard.Verdict{Action: guard.Retry, Rule: "again"}},
			{guard.Input, "as an AI", "as an AI", guard.Verdict{}},
			{guard.Input, "Ignore previous ones", "Ignore previous ones", guard.Verdict{Action: guard.RequireApproval, Rule: "ask"}},
			{guard.Output, "Ignore previous ones", "Ignore previous ones", guard.Verdict{}},
			{guard.Output, "as an AI: forbidden", "as an AI: forbidden", guard.Verdict{Action: guard.Deny, Rule: "stop"}},
			{guard.Output, "It is fine: Ada forbidden", "It is fine: Ada forbidden", guard.Verdict{}},
		} {
			if got, v := rules.Text(c.side, c.text); got != c.want || v != c.verdict {
				t.Errorf("%s %q: %q %v", c.side, c.text, got, v)
			}
		}
		raw, v := rules.JSON(guard.Output, json.RawMessage(`{"a": "Ada", "b": ["for\u0062idden", 1]}`))
		if string(raw) != `{"a": "[redacted:names]", "b": ["for\u0062idden", 1]}` || v.Action != guard.Deny {
			t.Errorf("%s %v", raw, v)
		}
	})
	t.Run("M2 a list that cannot count is refused, and says why", func(t *testing.T) {
		rule := func(fields string) string { return "[{" + fields + "}]" }
		good := `"name":"a","side":"both","pattern":"x","action":"deny"`
		for text, why := range map[string]string{
			"nonsense": "JSON", `{"name":"a"}`: "JSON", rule(good) + "[]": "more than one", rule(good + `,"other":1`): "other",
			rule(strings.Replace(good, `"a"`, `"A b"`, 1)):                           "name",
			rule(strings.Replace(good, "both", "up", 1)):                             "side",
			rule(strings.Replace(good, "deny", "drop", 1)):                           "action",
			rule(strings.Replace(good, "deny", "retry", 1)):                          "only output",
			rule(strings.Replace(good, `"x"`, `"("`, 1)):                             "missing closing",
			rule(strings.Replace(good, `"x"`, `"x*"`, 1)):                            "empty",
			rule(strings.Replace(good, `"x"`, `"`+strings.Repeat("x", 1001)+`"`, 1)): "longer",
			"[{" + good + "},{" + good + "}]":                                        "two rules",
			"[" + strings.TrimSuffix(strings.Repeat("{"+good+"},", 51), ",") + "]":   "51 rules",
		} {
			if _, err := guard.ParseRules(text); err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("%.60s: got %v, want %s", text, err, why)
			}
		}
	})
}
