package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tourTurns are the calls of a short tour, turn by turn; beyond them its model says that
// all is done.
var tourTurns = [][]tourCall{
	{{"report_progress", object{"position": 1, "total": 2}}, {"highlight_record", object{"table": "element", "id": "home-hours"}}, rewrite("We are open daily.")},
	{{"report_progress", object{"position": 2, "total": 2}}, rewrite("We are open.")},
	{rewrite("We are open every day.")},
	{rewrite("Come in.")},
	{{"report_progress", object{"position": 2, "total": 2, "done": true}}},
}

type tourCall struct {
	tool      string
	arguments object
}

func rewrite(text string) tourCall {
	return tourCall{"update_element", object{"id": "home-hours", "fields": object{"text": text}}}
}

// tourScript is the tour for the scripted provider.
func tourScript(t *testing.T) string {
	t.Helper()
	var steps []object
	for i, turn := range tourTurns {
		var calls []object
		for _, c := range turn {
			calls = append(calls, object{"tool": c.tool, "arguments": c.arguments})
		}
		steps = append(steps, object{"when": object{"turn": i + 1}, "calls": calls})
	}
	script, err := json.Marshal(object{"steps": steps, "default": object{"text": "All done."}})
	if err != nil {
		t.Fatal(err)
	}
	return string(script) // JSON is YAML
}

// tourModel is the tour as an endpoint that speaks the OpenAI format.
func tourModel(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Messages []struct{ Role string } }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		turn := 0
		for _, m := range asked.Messages {
			if m.Role == "assistant" {
				turn++
			}
		}
		w.Header().Set("Content-Type", "text/event-stream")
		chunk := func(delta object, finish any) {
			body, err := json.Marshal(object{"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}}})
			if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(w, "data: %s\n\n", body)
		}
		defer fmt.Fprint(w, "data: [DONE]\n\n")
		if turn >= len(tourTurns) {
			chunk(object{"content": "All done."}, nil)
			chunk(object{}, "stop")
			return
		}
		for i, c := range tourTurns[turn] {
			arguments, err := json.Marshal(c.arguments)
			if err != nil {
				t.Error(err)
			}
			chunk(object{"tool_calls": []object{{
				"index": i, "id": fmt.Sprintf("call_%d_%d", turn, i), "type": "function",
				"function": object{"name": c.tool, "arguments": string(arguments)},
			}}}, nil)
		}
		chunk(object{}, "tool_calls")
	}))
	t.Cleanup(server.Close)
	return server.URL
}

const conversationUpdates = `subscription($c: ID!, $after: Int) { conversationUpdates(conversationId: $c, after: $after) {
	__typename sequence kind status
	... on MessageEntry { text } ... on AnswerEntry { text writes noChangeMade truncated }
	... on CardEntry { isProcess tool target { table id fields } } ... on OutcomeEntry { outcome tool target { table id fields } args text }
	... on NoticeEntry { code args text } ... on ProgressEntry { position total done } ... on HighlightEntry { record { table id } } ... on StateEntry { field }
} }`

// tour takes the tour with one provider and returns what its two readers were sent; one
// of them comes back after every entry.
func (s *site) tour(t *testing.T, provider object) (whole, rejoined []any) {
	t.Helper()
	source := at(t, s.must(`mutation($n: String!) { createSource(input: {title: $n, type: AUTHORED, trustLevel: FIRST_PARTY}) { source { id } } }`,
		object{"n": provider["name"]}), "createSource", "source", "id")
	made := at(t, s.must(`mutation($i: CreateProviderInput!) { createProvider(input: $i) { provider { id } } }`, object{"i": provider}), "createProvider", "provider", "id")
	configuration := at(t, s.must(`mutation($i: CreateConfigurationInput!) { createConfiguration(input: $i) { configuration { id } } }`,
		object{"i": object{"name": provider["name"], "providerId": made, "model": "m", "maxIterations": 20}}), "createConfiguration", "configuration", "id")
	skill := s.guided("Tour", source, configuration)
	conversation := at(t, s.must(`mutation($i: StartConversationInput!) { startConversation(input: $i) { conversation { id } refusal { message } } }`,
		object{"i": object{"configurationId": configuration, "skillId": skill, "subject": object{"table": "page", "id": "home"}}}), "startConversation", "conversation", "id")
	reader := s.socket(t, s.token, conversationUpdates, object{"c": conversation})

	const shown = `conversation { status pendingDecision { turnDigest answers calls { preview { lines } } } } refusal { code message }`
	now := at(t, s.must(`mutation($c: ID!) { sendMessage(input: {conversationId: $c, text: "Start."}) { `+shown+` } }`, object{"c": conversation}), "sendMessage")
	for _, answer := range []string{"APPLY", "VARIANT", "APPLY", "SKIP"} {
		now = at(t, s.must(`mutation($c: ID!, $d: Digest!, $a: CardAnswer!) { decideProposal(input: {conversationId: $c, turnDigest: $d, answer: $a}) { `+shown+` } }`,
			object{"c": conversation, "d": at(t, now, "conversation", "pendingDecision", "turnDigest"), "a": answer}), "decideProposal")
	}
	if at(t, now, "conversation", "status") != "IDLE" {
		t.Fatalf("%v", now)
	}
	all := at(t, s.must(`query($c: ID!) { node(id: $c) { ... on Conversation { entries(first: 100) { nodes { sequence } } export } } }`, object{"c": conversation}), "node", "entries", "nodes").([]any)
	for range all {
		data, ended := reader.next()
		if ended != "" {
			t.Fatal(ended)
		}
		whole = append(whole, data["conversationUpdates"])
	}
	for len(rejoined) < len(all) { // one entry a connection
		variables := object{"c": conversation}
		if n := len(rejoined); n > 0 {
			variables["after"] = n - 1
		}
		data, ended := s.socket(t, s.token, conversationUpdates, variables).next()
		if ended != "" {
			t.Fatal(ended)
		}
		rejoined = append(rejoined, data["conversationUpdates"])
	}
	return whole, rejoined
}

func TestTourOverTheAPI(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		scripted, again := s.tour(t, object{"name": "Scripted", "kind": "SCRIPTED", "script": tourScript(t)})
		t.Run("V6 the entries of a conversation come once and in order, to a reader that comes back too", func(t *testing.T) {
			for i, e := range scripted {
				if e.(object)["sequence"] != float64(i) {
					t.Fatalf("entry %d is %v", i, e)
				}
			}
			if diff := cmp.Diff(scripted, again); diff != "" {
				t.Error(diff)
			}
		})
		t.Run("C5 V6 a tour tells what became of each card", func(t *testing.T) {
			var outcomes []string
			for _, e := range scripted {
				if o, is := e.(object)["outcome"]; is {
					outcomes = append(outcomes, o.(string))
				}
			}
			if !slices.Equal(outcomes, []string{"APPLIED", "VARIANT", "APPLIED", "SKIPPED"}) {
				t.Errorf("%v", outcomes)
			}
		})
		t.Run("O4 what was skipped is an open point", func(t *testing.T) {
			open := at(t, s.in(t).must(`query { openPoints { nodes { skill { name } subject { id } target { id fields } skippedBy { name } times } } }`, nil), "openPoints", "nodes").([]any)
			if len(open) != 1 || at(t, open[0], "target", "id") != "home-hours" || at(t, open[0], "skill", "name") != "Tour" {
				t.Errorf("%v", open)
			}
		})
		t.Run("M1 the same tour through an OpenAI-compatible endpoint is the same stream", func(t *testing.T) {
			s := s.in(t)
			s.must(`mutation { updateRecord(input: {table: "element", id: "home-hours", fields: {text: "Open."}, revision: `+
				fmt.Sprint(at(t, s.must(`{ record(table: "element", id: "home-hours") { revision } }`, nil), "record", "revision"))+`}) { record { id } refusal { message } } }`, nil)
			remote, _ := s.tour(t, object{"name": "Remote", "kind": "OPENAI_COMPATIBLE", "trustZone": "LOCAL", "baseUrl": tourModel(t)})
			if diff := cmp.Diff(withoutOpenPoints(scripted), withoutOpenPoints(remote)); diff != "" {
				t.Error(diff)
			}
		})
	})
}

// withoutOpenPoints is a stream without what earlier tours left, its numbers, and the
// status beside an entry, which says how far the run was when the entry was appended.
func withoutOpenPoints(entries []any) (out []any) {
	for _, e := range entries {
		e := e.(object)
		if code, _ := e["code"].(string); strings.HasPrefix(code, "OPEN_POINTS") {
			continue
		}
		plain := object{}
		for name, value := range e {
			if name != "sequence" && (name != "status" || e["kind"] == "STATE") {
				plain[name] = value
			}
		}
		out = append(out, plain)
	}
	return out
}

func TestInboxUpdates(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		provider := at(t, s.must(`mutation($i: CreateProviderInput!) { createProvider(input: $i) { provider { id } } }`,
			object{"i": object{"name": "W", "kind": "SCRIPTED", "script": writing}}), "createProvider", "provider", "id")
		configuration := at(t, s.must(`mutation($i: CreateConfigurationInput!) { createConfiguration(input: $i) { configuration { id } } }`,
			object{"i": object{"name": "W", "providerId": provider, "model": "m"}}), "createConfiguration", "configuration", "id")
		start := func() any {
			return at(t, s.must(`mutation($c: ID!) { startRun(input: {configurationId: $c, prompt: "Go."}) { run { id pendingDecision { turnDigest } } } }`, object{"c": configuration}), "startRun", "run")
		}
		first := start()
		reader := s.socket(t, s.token, `subscription { inboxUpdates { kind runId run { status } } }`, nil)
		expect := func(kind string, id any) {
			t.Helper()
			data, ended := reader.next()
			if got, _ := data["inboxUpdates"].(object); ended != "" || got["kind"] != kind || got["runId"] != id {
				t.Fatalf("%v %s, want %s of %v", data, ended, kind, id)
			}
		}
		expect("WAITS", at(t, first, "id"))
		second := start()
		expect("WAITS", at(t, second, "id"))
		s.must(`mutation($i: DecideRunInput!) { decideRun(input: $i) { run { status } refusal { code } } }`,
			object{"i": object{"runId": at(t, first, "id"), "turnDigest": at(t, first, "pendingDecision", "turnDigest"), "decision": "DENY"}})
		expect("LEFT", at(t, first, "id"))
	})
}
