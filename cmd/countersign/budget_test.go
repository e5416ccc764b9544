package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// RULES M1: a budget over the API: set, used up, told, refused as data, and gone.
func TestBudgetsOverTheAPI(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		provider := at(t, s.must(`mutation { createProvider(input: {name: "S", kind: SCRIPTED, script: "default: {text: Done., usage: {inputTokens: 40, outputTokens: 2}}"}) { provider { id } } }`, nil), "createProvider", "provider", "id")
		configuration := at(t, s.must(`mutation($i: CreateConfigurationInput!) { createConfiguration(input: $i) { configuration { id } } }`,
			object{"i": object{"name": "Limited", "providerId": provider, "model": "m"}}), "createConfiguration", "configuration", "id")
		const start = `mutation($c: ID!) { startRun(input: {configurationId: $c, prompt: "Go."}) { run { status } refusal {
			code message ... on BudgetExhaustedRefusal { scope period tokens requests used { requests inputTokens outputTokens } resetsAt } } } }`
		set := at(t, s.must(`mutation($i: SetBudgetInput!) { setBudget(input: $i) { budget { id scope configuration { id } user { id } used { requests } exhausted } } }`,
			object{"i": object{"scope": "CONFIGURATION", "configurationId": configuration, "tokens": 84}}), "setBudget", "budget")
		if at(t, set, "configuration", "id") != configuration || at(t, set, "user") != nil || at(t, set, "exhausted") != false {
			t.Errorf("%v", set)
		}
		for range 2 {
			if run := at(t, s.must(start, object{"c": configuration}), "startRun"); at(t, run, "run", "status") != "COMPLETED" {
				t.Errorf("%v", run)
			}
		}
		refusal := at(t, s.must(start, object{"c": configuration}), "startRun", "refusal")
		if at(t, refusal, "code") != "BUDGET_EXHAUSTED" || at(t, refusal, "used", "inputTokens") != 80.0 || at(t, refusal, "tokens") != 84.0 || at(t, refusal, "requests") != nil {
			t.Errorf("%v", refusal)
		}
		listed := at(t, s.must(`{ budgets { nodes { id exhausted used { requests outputTokens } } } }`, nil), "budgets", "nodes").([]any)
		if len(listed) != 1 || at(t, listed[0], "exhausted") != true || at(t, listed[0], "used", "requests") != 2.0 {
			t.Errorf("%v", listed)
		}
		for _, wrong := range []object{
			{"scope": "USER", "tokens": 1},
			{"scope": "EVERY_USER", "configurationId": configuration, "tokens": 1},
			{"scope": "EVERY_USER"},
			{"scope": "EVERY_USER", "tokens": 0},
			{"scope": "EVERY_USER", "cost": -1},
		} {
			if a := s.ask(`mutation($i: SetBudgetInput!) { setBudget(input: $i) { budget { id } } }`, object{"i": wrong}); a.code() != "BAD_USER_INPUT" {
				t.Errorf("%v: %s", wrong, a.Raw)
			}
		}
		response, err := http.Get(s.url + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		metrics, err := io.ReadAll(response.Body)
		for _, line := range []string{
			`countersign_model_turns_total{outcome="answered"} 2`, `countersign_model_tokens_total{direction="input"} 80`,
			`countersign_model_requests_total 2`, `countersign_model_fallbacks_total 0`, `countersign_budget_refusals_total 1`,
		} {
			if err != nil || !strings.Contains(string(metrics), line+"\n") {
				t.Errorf("no %s in /metrics (%v)", line, err)
			}
		}
		if gone := at(t, s.must(`mutation($b: ID!) { deleteBudget(input: {budgetId: $b}) { deletedId } }`, object{"b": at(t, set, "id")}), "deleteBudget", "deletedId"); gone != at(t, set, "id") {
			t.Errorf("%v", gone)
		}
		if run := at(t, s.must(start, object{"c": configuration}), "startRun"); at(t, run, "run", "status") != "COMPLETED" {
			t.Errorf("%v", run)
		}
	})
}
