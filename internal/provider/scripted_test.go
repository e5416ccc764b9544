package provider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
)

func scriptOf(source string) library.Provider {
	return library.Provider{ID: uuid.UUID{1}, Name: "demo", Kind: library.Scripted, Script: source}
}

// talk is a transcript: an initial user message, then for each result an assistant
// message with a call and the tool message that answers it.
func talk(results ...prompt.Message) []prompt.Message {
	messages := []prompt.Message{{Role: prompt.System, Text: "s"}, {Role: prompt.User, Text: "go"}}
	for i, result := range results {
		id := fmt.Sprint(i)
		result.Role, result.CallID = prompt.ToolRole, id
		messages = append(messages, prompt.Message{Role: prompt.Assistant, Calls: []prompt.Call{{ID: id, Tool: "t"}}}, result)
	}
	return messages
}

func ok(text string) prompt.Message { return prompt.Message{Text: text} }

func denied(reason string) prompt.Message {
	return prompt.Message{Failed: true, Text: `{"error":"approval_denied","decided_by":"run_owner","reason":"` + reason + `"}`}
}

func TestDocumentedScript(t *testing.T) {
	page, err := os.ReadFile("../../docs/scripted-provider.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	source, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the page has no example")
	}
	record := ok(`{"table":"element","id":"e7","fields":{"header":"Hours"},"tags":["Berlin","open"]}`)
	models, _ := testModels(t, Limits{})
	model := open(t, models, scriptOf(source))
	for name, c := range map[string]struct {
		messages []prompt.Message
		want     string
		usage    agent.Usage
	}{
		"M1 the documented script begins": {talk(), `I will look at the page first.|call_1_1 read_record{"table":"element","id":"e1"}`, agent.Usage{}},
		"M1 it proposes": {
			talk(record), `The header “Hours” can be clearer.|call_2_1 update_element{"id":"e7","fields":{"header":"Opening hours in Berlin"}}`,
			agent.Usage{InputTokens: 420, OutputTokens: 35},
		},
		"M1 it proposes another variant":    {talk(record, denied("variant")), `Then I propose another wording.|call_3_1 update_element{"id":"e1","fields":{"header":"When we are open"}}`, agent.Usage{}},
		"M1 and another":                    {talk(record, denied("variant"), denied("variant")), `Then I propose another wording.|call_4_1 update_element{"id":"e1","fields":{"header":"When we are open"}}`, agent.Usage{}},
		"M1 it skips":                       {talk(record, denied("skip")), "I leave the header as it is.", agent.Usage{}},
		"M1 it tells of an error":           {talk(prompt.Message{Failed: true, Text: `{"error":"gone"}`}), "That did not work: gone", agent.Usage{}},
		"M1 it ends":                        {talk(record, ok("saved")), "The page is done.", agent.Usage{}},
		"M1 a new user message starts anew": {append(talk(record, ok("saved")), prompt.Message{Role: prompt.User, Text: "again"}), `I will look at the page first.|call_1_1 read_record{"table":"element","id":"e1"}`, agent.Usage{}},
	} {
		t.Run(name, func(t *testing.T) {
			request := agent.TurnRequest{Messages: c.messages, SubjectID: "e1"}
			turn, err := model.Turn(t.Context(), request, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := written(turn); got != c.want || turn.Usage != c.usage {
				t.Errorf("got  %s %+v\nwant %s %+v", got, turn.Usage, c.want, c.usage)
			}
			again, err := open(t, New(Options{}), scriptOf(source)).Turn(t.Context(), request, nil)
			if diff := cmp.Diff(turn, again); err != nil || diff != "" {
				t.Errorf("another replica says %v %s", err, diff)
			}
		})
	}
}

func TestStepIsFoundFromMessagesAlone(t *testing.T) {
	assistant := prompt.Message{Role: prompt.Assistant, Text: "x"}
	for name, c := range map[string]struct {
		messages []prompt.Message
		turn     int
		last     result
	}{
		"M1 nothing said":                       {nil, 1, ""},
		"M1 only a user message":                {talk(), 1, ""},
		"M1 a result":                           {talk(ok("x")), 2, resultOK},
		"M1 the last of several results":        {append(talk(ok("x")), prompt.Message{Role: prompt.ToolRole, Failed: true, Text: "no"}), 2, resultError},
		"M1 results before a user message":      {append(talk(ok("x")), prompt.Message{Role: prompt.User}), 1, ""},
		"M1 an answer without calls":            {append(talk(ok("x")), assistant), 3, resultOK},
		"M1 no user message at all":             {[]prompt.Message{assistant, assistant}, 3, ""},
		"M1 variant":                            {talk(ok("x"), denied("variant")), 3, resultVariant},
		"M1 skip":                               {talk(ok("x"), denied("skip")), 3, resultSkip},
		"M1 a denial without reason":            {talk(denied("")), 2, resultError},
		"M1 a denial with a reason unknown":     {talk(denied("bored")), 2, resultError},
		"M1 another error with that reason":     {talk(prompt.Message{Failed: true, Text: `{"error":"gone","reason":"skip"}`}), 2, resultError},
		"M1 a record that tells of a denial":    {talk(ok(`[{"error":"approval_denied","reason":"skip"}]`)), 2, resultOK},
		"M1 an empty result is a result":        {talk(ok("")), 2, resultOK},
		"M1 a read that found an error is none": {talk(ok(`{"error":"log line"}`)), 2, resultOK},
	} {
		t.Run(name, func(t *testing.T) {
			if got := positionOf(c.messages); got.turn != c.turn || got.last != c.last {
				t.Errorf("turn %d last %q, want %d %q", got.turn, got.last, c.turn, c.last)
			}
		})
	}
}

func TestScriptedTurns(t *testing.T) {
	const items = `{"items":[{"id":"a"},{"id":12345678901234567890}],"n":1.50,"b":true,"z":null,"o":{"k":"<v>"},"t":"x\"y"}`
	for name, c := range map[string]struct {
		script   string
		messages []prompt.Message
		want     string // or, of an error, what it says
		fails    bool
	}{
		"M1 steps without when follow each other: first":  {"steps: [{text: one}, {text: two}]", talk(), "one", false},
		"M1 steps without when follow each other: second": {"steps: [{text: one}, {text: two}]", talk(ok("")), "two", false},
		"M1 steps without when end":                       {"steps: [{text: one}]", talk(ok("")), "has no step for turn 2 after the result ok, and no default", true},
		"M1 the first fitting step answers":               {"steps: [{when: {last: ok}, text: a}, {when: {turn: 2}, text: b}]", talk(ok("")), "a", false},
		"M1 turn and last must both hold":                 {"steps: [{when: {turn: 3, last: ok}, text: a}]\ndefault: {text: d}", talk(ok("")), "d", false},
		"M1 last fits nothing at first":                   {"steps: [{when: {last: ok}, text: a}]", talk(), "has no step for turn 1 after no result", true},
		"M1 a default can call":                           {"default: {calls: [{tool: list}]}", talk(), "|call_1_1 list{}", false},
		"M1 an empty text is an answer":                   {`default: ""`, talk(), "", false},
		"M1 two calls":                                    {"default: {calls: [{tool: a}, {tool: b, arguments: {x: 1}}]}", talk(), `|call_1_1 a{}|call_1_2 b{"x":1}`, false},
		"M1 YAML becomes JSON in its order":               {"default: {calls: [{tool: a, arguments: {z: 0x10, a: [1.5, true, null, no, 2026-01-02, \"7\"], m: {}, l: []}}]}", talk(), `|call_1_1 a{"z":16,"a":[1.5,true,null,"no","2026-01-02","7"],"m":{},"l":[]}`, false},
		"M1 arguments are filled in":                      {"default: {calls: [{tool: a, arguments: {x: [\"<${subject.id}>\"], \"${y}\": \"${last.t}\"}}]}", talk(ok(items)), `|call_2_1 a{"x":["<e1>"],"${y}":"x\"y"}`, false},
		"M1 lists by index, both ways":                    {"default: '${last.items.0.id} ${last.items[1].id}'", talk(ok(items)), "a 12345678901234567890", false},
		"M1 what is no string is written as JSON":         {"default: '${last.n} ${last.b} ${last.z} ${last.o}'", talk(ok(items)), `1.50 true null {"k":"<v>"}`, false},
		"M1 the whole result":                             {"default: 'it says ${last}.'", talk(ok("no JSON")), "it says no JSON.", false},
		"M1 a list as the result":                         {"default: '${last[1].a}'", talk(ok(`[1,{"a":"b"}]`)), "b", false},
		"M1 dollars are kept":                             {"default: '$5 $${subject.id} $$ ${subject.id}$'", talk(), "$5 ${subject.id} $$ e1$", false},
		"M1 what is filled in is not filled in again":     {"default: '${last}'", talk(ok("${subject.id}")), "${subject.id}", false},
		"M1 a path that leads nowhere":                    {"default:\n  text: '${last.items.2.id}'", talk(ok(items)), `cannot take the step in line 2: ${last.items.2.id}: the last result has no "2" there`, true},
		"M1 a path into text":                             {"default: '${last.t.u}'", talk(ok(items)), `has no "u" there`, true},
		"M1 a path into what is no JSON":                  {"default: '${last.t}'", talk(ok("{} {}")), "the last result is not JSON", true},
		"M1 a result that is not there":                   {"default: '${last}'", talk(), "no tool has answered yet", true},
		"M1 arguments that cannot be filled in":           {"default: {calls: [{tool: a, arguments: {x: [{y: '${last.q}'}]}}]}", talk(ok("{}")), `has no "q" there`, true},
	} {
		t.Run(name, func(t *testing.T) {
			models, _ := testModels(t, Limits{})
			turn, err := open(t, models, scriptOf(c.script)).Turn(t.Context(), agent.TurnRequest{Messages: c.messages, SubjectID: "e1"}, nil)
			if c.fails {
				if told := providerError(t, err); !strings.Contains(told.Message, c.want) || told.Retryable {
					t.Errorf("%+v, want %q", told, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := written(turn); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	t.Run("M1 a run without a subject", func(t *testing.T) {
		models, _ := testModels(t, Limits{})
		_, err := open(t, models, scriptOf("default: '${subject.id}'")).Turn(t.Context(), hello(), nil)
		if told := providerError(t, err); !strings.Contains(told.Message, "works on no subject") {
			t.Error(told)
		}
	})
}

func TestScriptedStream(t *testing.T) {
	for name, c := range map[string]struct {
		script  string
		deltas  []string
		status  int
		fails   bool
		retried int
	}{
		"M1 text arrives word by word":               {"default: \"One  two\\nthree. \"", []string{"One  ", "two\n", "three. "}, 0, false, 0},
		"M1 a cut after the text":                    {"default: {text: a b, cut: true}", []string{"a ", "b"}, 0, true, 0},
		"M1 a cut after some words":                  {"default: {text: a b c, cut: 2}", []string{"a ", "b "}, 0, true, 0},
		"M1 a cut before the first word":             {"default: {text: a b c, cut: 0}", nil, 0, true, 0},
		"M1 a cut of calls alone":                    {"default: {calls: [{tool: x}], cut: true}", nil, 0, true, 0},
		"M1 no cut":                                  {"default: {text: a, cut: false}", []string{"a"}, 0, false, 0},
		"M1 a failure that passes":                   {"default: {text: a, fail: {status: 503, times: 2}}", []string{"a"}, 0, false, 2},
		"M1 a failure that outlasts the client":      {"default: {text: a, fail: {status: 503, times: 4}}", nil, 503, true, 3},
		"M1 a failure that stays":                    {"default: {fail: {status: 429}}", nil, 429, true, 3},
		"M1 a failure that is not asked again about": {"default: {text: a, fail: {status: 400, times: 1}}", nil, 400, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			models, waited := testModels(t, Limits{})
			model := open(t, models, scriptOf(c.script))
			for range 8 { // no turn learns from the one before: no counter, no breaker
				waited.took = nil
				var deltas []string
				_, err := model.Turn(t.Context(), hello(), func(delta string) { deltas = append(deltas, delta) })
				if !slices.Equal(deltas, c.deltas) || len(waited.took) != c.retried {
					t.Fatalf("deltas %q after %d waits", deltas, len(waited.took))
				}
				switch {
				case !c.fails && err != nil:
					t.Fatal(err)
				case c.fails:
					if told := providerError(t, err); told.Status != c.status || told.Retryable != (c.status != 400) {
						t.Fatalf("%+v", told)
					}
				}
			}
		})
	}
	t.Run("M1 a cancelled turn stops between two words", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		models, _ := testModels(t, Limits{})
		var deltas int
		_, err := open(t, models, scriptOf("default: a b c")).Turn(ctx, hello(), func(string) { deltas++; cancel() })
		if !errors.Is(err, context.Canceled) || deltas != 1 {
			t.Errorf("%v after %d deltas", err, deltas)
		}
	})
}

func TestScriptsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ script, says string }{
		"M1 nothing":                    {"", "the script is empty"},
		"M1 only a comment":             {"# later", "the script is empty"},
		"M1 not YAML":                   {"steps:\n  - [", "the script is not YAML: line"},
		"M1 not a mapping":              {"- a", "line 1: a script is not a mapping"},
		"M1 two documents":              {"default: a\n---\ndefault: b", "more than one document"},
		"M1 too long":                   {"default: " + strings.Repeat("a", longestScript), "longer than 262144 bytes"},
		"M1 no steps":                   {"steps: []", "line 1: the script has neither steps nor a default"},
		"M1 an unknown key":             {"default: a\nstep: []", `line 2: "step" is not known in a script; known are default, steps`},
		"M1 an unknown key of a step":   {"steps:\n  - text: a\n    txt: b", `line 3: "txt" is not known in a step; known are calls, cut, fail, text, usage, when`},
		"M1 an unknown key of when":     {"steps:\n  - when: {round: 1}\n    text: a", `line 2: "round" is not known in when; known are last, turn`},
		"M1 an unknown key of a call":   {"default:\n  calls:\n    - {name: a}", `line 3: "name" is not known in a call`},
		"M1 an unknown key of fail":     {"default:\n  fail: {code: 1}", `line 2: "code" is not known in fail`},
		"M1 an unknown key of usage":    {"default:\n  text: a\n  usage: {tokens: 1}", `line 3: "tokens" is not known in usage`},
		"M1 when in the default":        {"default:\n  text: a\n  when: {turn: 1}", `line 3: "when" is not known in a step; known are calls, cut, fail, text, usage`},
		"M1 a key given twice":          {"default:\n  text: a\n  text: b", `line 3: "text" is given twice`},
		"M1 an argument given twice":    {"default:\n  calls:\n    - tool: a\n      arguments:\n        x: 1\n        x: 2", `line 6: "x" is given twice`},
		"M1 a step that does nothing":   {"steps:\n  - when: {turn: 1}", "line 2: the step does nothing"},
		"M1 a step that is text":        {"steps:\n  - hello", "line 2: a step is not a mapping"},
		"M1 an empty when":              {"steps:\n  - text: a\n    when: {}", "line 3: when names neither turn nor last"},
		"M1 turn 0":                     {"steps:\n  - text: a\n    when: {turn: 0}", `line 3: "0" is not a whole number from 1`},
		"M1 turn as text":               {"steps:\n  - text: a\n    when: {turn: one}", `line 3: "one" is not a whole number from 1`},
		"M1 an unknown last":            {"steps:\n  - text: a\n    when: {last: denied}", `line 3: last is "denied"; it can be ok, error, variant or skip`},
		"M1 a text that is none":        {"default:\n  text: [a]", "line 2: a text is missing here"},
		"M1 a text left out":            {"default:\n  text:", "line 2: a text is missing here"},
		"M1 calls that are no list":     {"default:\n  calls: {tool: a}", "line 2: calls is not a list"},
		"M1 a call without a tool":      {"default:\n  calls:\n    - arguments: {}", "line 3: the call names no tool"},
		"M1 arguments as a list":        {"default:\n  calls:\n    - {tool: a, arguments: []}", "line 3: arguments is not a mapping"},
		"M1 an alias":                   {"default:\n  calls:\n    - {tool: a, arguments: {x: &x [1], y: *x}}", "line 3: aliases (*name) are not read"},
		"M1 a merge key":                {"default:\n  calls:\n    - {tool: a, arguments: {<<: {x: 1}}}", "line 3: a key is not plain text"},
		"M1 a number JSON lacks":        {"default:\n  calls:\n    - {tool: a, arguments: {x: .inf}}", `line 3: ".inf" has no place in JSON`},
		"M1 a tag JSON lacks":           {"default:\n  calls:\n    - {tool: a, arguments: {x: !!binary aGk=}}", "line 3: the tag !!binary has no place in JSON"},
		"M1 a value too deep":           {"default:\n  calls:\n    - {tool: a, arguments: {x: " + strings.Repeat("[", 70) + strings.Repeat("]", 70) + "}}", "line 3: the value is nested deeper than 64"},
		"M1 a failure without status":   {"default:\n  fail: {times: 1}", "line 2: fail names no status"},
		"M1 a failure with 200":         {"default:\n  fail: {status: 200}", `line 2: "200" is not a whole number from 400 to 599`},
		"M1 a failure of no times":      {"default:\n  fail: {status: 500, times: 0}", `line 2: "0" is not a whole number from 1`},
		"M1 a cut that is none":         {"default:\n  text: a\n  cut: soon", "line 3: cut is neither true, false nor a number"},
		"M1 a negative cut":             {"default:\n  text: a\n  cut: -1", `line 3: "-1" is not a whole number from 0`},
		"M1 usage below zero":           {"default:\n  text: a\n  usage: {inputTokens: -1}", `line 3: "-1" is not a whole number`},
		"M1 an unknown placeholder":     {"steps:\n  - text: hello\n  - text: 'a ${user.name}'", "line 3: ${user.name} is not known; known are ${subject.id}, ${last} and ${last.<path>}"},
		"M1 a placeholder in arguments": {"default:\n  calls:\n    - tool: a\n      arguments:\n        x: '${subject}'", "line 5: ${subject} is not known"},
		"M1 a placeholder left open":    {"default:\n  text: 'a ${last.b'", "line 2: ${ is never closed"},
		"M1 an empty path":              {"default: '${last..a}'", "line 1: ${last..a} is not known"},
		"M1 a path with a blank":        {"default: '${last.a b}'", "line 1: ${last.a b} is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Options{}).Open(scriptOf(c.script))
			if !fault.Is(err, fault.BadInput) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

// FuzzScript: a script is refused or answers, and what it answers is a valid turn.
func FuzzScript(f *testing.F) {
	f.Add("steps: [{when: {turn: 1}, text: a, calls: [{tool: t, arguments: {x: ['${last.a}']}}]}]\ndefault: b", `{"a":1}`)
	f.Add("default: {text: '$${${last[0]}', cut: 1, fail: {status: 500, times: 1}}", `[[]]`)
	f.Fuzz(func(t *testing.T, source, result string) {
		models := New(Options{Wait: func(context.Context, time.Duration) error { return nil }})
		model, err := models.Open(scriptOf(source))
		if err != nil {
			if !fault.Is(err, fault.BadInput) {
				t.Fatalf("refused as %v", err)
			}
			return
		}
		var streamed strings.Builder
		turn, err := model.Turn(t.Context(), agent.TurnRequest{Messages: talk(ok(result)), SubjectID: "s"}, func(delta string) { streamed.WriteString(delta) })
		if err != nil {
			providerError(t, err)
			return
		}
		if streamed.String() != turn.Text {
			t.Fatalf("streamed %q, answered %q", streamed.String(), turn.Text)
		}
		for _, call := range turn.Calls {
			if call.Tool == "" || string(receivedArguments(string(call.Arguments))) != string(call.Arguments) {
				t.Fatalf("bad call %+v: %s", call, call.Arguments)
			}
		}
	})
}
