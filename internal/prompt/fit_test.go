package prompt_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign/countersign/internal/prompt"
)

func TestBudget(t *testing.T) {
	for _, c := range []struct{ window, answer, want int }{
		{0, 0, 8192 - 1000 - 246},
		{8192, 0, 8192 - 1000 - 246},
		{128_000, 0, 128_000 - 2560 - 3840},
		{128_000, 4000, 128_000 - 4000 - 3840},
		{1000, 0, 0},
		{-5, -5, 8192 - 1000 - 246},
		{500, 100, 500 - 100 - 15},
	} {
		if got := prompt.Budget(c.window, c.answer); got != c.want {
			t.Errorf("B1 a window of %d with %d for the answer leaves %d, want %d", c.window, c.answer, got, c.want)
		}
	}
}

func TestGauge(t *testing.T) {
	var g prompt.Gauge
	text := func(s string) int { return g.Messages([]prompt.Message{{Role: prompt.User, Text: s}}) }
	t.Run("B5 prose is 3.5 bytes a token, dense text 2.5, and a message 8 tokens more", func(t *testing.T) {
		if got := text(strings.Repeat("green ferns ", 35)); got != 8+120 {
			t.Errorf("420 bytes of prose are %d", got)
		}
		if got := text(strings.Repeat(`{"a":1},`, 50)); got != 8+160 {
			t.Errorf("400 bytes of JSON are %d", got)
		}
		if got := text(strings.Repeat("苔", 100)); got != 8+120 {
			t.Errorf("100 characters of three bytes are %d", got)
		}
	})
	t.Run("B5 a call is 12 tokens more, and tools are charged with their schema", func(t *testing.T) {
		if got := g.Messages([]prompt.Message{{Role: prompt.Assistant, Calls: []prompt.Call{{Tool: "abcde", Arguments: json.RawMessage(`{"x":"y"}x`)}}}}); got != 8+12+6 {
			t.Errorf("got %d", got)
		}
		if got := g.Tools([]prompt.Definition{{Name: "abcde", Schema: json.RawMessage(`{"x":"y"}x`)}}); got != 12+6 {
			t.Errorf("got %d", got)
		}
	})
	t.Run("B5 what the provider counts corrects the estimates upward and never down", func(t *testing.T) {
		long := strings.Repeat("green ferns ", 1000)
		estimated := text(long)
		g = g.Learn(estimated, 2*estimated)
		if got := text(long); got < 2*estimated-2 || got > 2*estimated+2 {
			t.Errorf("%d is still estimated at %d", 2*estimated, got)
		}
		if down := g.Learn(100, 1); down != g {
			t.Errorf("it went down: %+v", down)
		}
		if again := g.Learn(100, 150); again.Factor < 2.9 || again.Factor > 3.1 {
			t.Errorf("corrections add up to %v", again.Factor)
		}
	})
}

// transcripts draws what a run may have said: a system message now and then, the user's,
// and rounds of answers with calls and their results.
func transcripts(t *rapid.T) []prompt.Message {
	text := func(label string) string { return strings.Repeat("word ", rapid.IntRange(0, 60).Draw(t, label)) }
	var out []prompt.Message
	if rapid.Bool().Draw(t, "system") {
		out = append(out, prompt.Message{Role: prompt.System, Text: text("system text")})
	}
	out = append(out, prompt.Message{Role: prompt.User, Text: text("user text")})
	for round := range rapid.IntRange(0, 8).Draw(t, "rounds") {
		answer := prompt.Message{Role: prompt.Assistant, Text: text("answer")}
		for n := range rapid.IntRange(0, 3).Draw(t, "calls") {
			answer.Calls = append(answer.Calls, prompt.Call{ID: fmt.Sprintf("%d/%d", round, n), Tool: "get_page", Arguments: json.RawMessage(`{}`)})
		}
		out = append(out, answer)
		for _, c := range answer.Calls {
			out = append(out, prompt.Message{Role: prompt.ToolRole, CallID: c.ID, Text: text("result")})
		}
		if len(answer.Calls) == 0 && rapid.Bool().Draw(t, "goes on") {
			out = append(out, prompt.Message{Role: prompt.User, Text: text("next")})
		}
	}
	return out
}

func TestFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { // RULES B2, B3
		messages := transcripts(t)
		before := slices.Clone(messages)
		tools := []prompt.Definition{{Name: "get_page", Schema: json.RawMessage(`{"type":"object"}`)}}
		budget := rapid.IntRange(0, 1500).Draw(t, "budget")
		g := prompt.Gauge{Factor: rapid.Float64Range(0, 3).Draw(t, "factor")}
		got, fits := prompt.Fit(messages, tools, budget, g)
		if !reflect.DeepEqual(messages, before) {
			t.Fatal("it changed its input")
		}
		if fits != (got.Tokens <= budget) {
			t.Fatalf("%d of %d tokens, fits=%v", got.Tokens, budget, fits)
		}
		if charged := g.Messages(got.Messages) + g.Tools(tools); charged > got.Tokens+len(messages) || got.Tokens > charged+len(messages) {
			t.Fatalf("B2 %d tokens are sent and %d charged", charged, got.Tokens)
		}
		whole := g.Tools(tools)
		for _, m := range messages {
			whole += g.Messages([]prompt.Message{m})
		}
		if whole <= budget && got.Dropped > 0 {
			t.Fatal("B3 it dropped what fits")
		}
		called := map[string]bool{}
		for _, m := range got.Messages {
			for _, c := range m.Calls {
				called[c.ID] = true
			}
			if m.Role == prompt.ToolRole && !called[m.CallID] {
				t.Fatalf("B3 the result %s has lost its call", m.CallID)
			}
		}
		if !reflect.DeepEqual(got.Messages[len(got.Messages)-1], messages[len(messages)-1]) {
			t.Fatal("B3 the newest turn is not there")
		}
		for i, m := range messages {
			if !reflect.DeepEqual(got.Messages[i], m) {
				t.Fatalf("B3 the message %d of the head is not there", i)
			}
			if m.Role == prompt.User {
				break
			}
		}
	})
}

// composeLimit is what composing 20 sections of 8 KiB and fitting 200 messages may take.
const composeLimit = 2 * time.Millisecond

func BenchmarkComposeAndFit(b *testing.B) {
	body := strings.Repeat("Write short sentences that a guest understands. ", 8<<10/48)
	in := prompt.Input{SystemPrompt: "You help.", NonceKey: make([]byte, 32), FencedBytes: 24_000, Messages: []prompt.Message{{Role: prompt.User, Text: "Go."}}}
	for i := range 20 {
		in.Sections = append(in.Sections, prompt.Section{Name: fmt.Sprint("Section ", i), Body: body})
	}
	var turns []prompt.Message
	for i := range 100 {
		id := fmt.Sprint(i)
		turns = append(turns, prompt.Message{Role: prompt.Assistant, Calls: []prompt.Call{{ID: id, Tool: "get_page", Arguments: json.RawMessage(`{"id":"home"}`)}}},
			prompt.Message{Role: prompt.ToolRole, CallID: id, Text: body[:2000]})
	}
	for b.Loop() {
		messages := append(prompt.Compose(in).Messages, turns...)
		if got, fits := prompt.Fit(messages, nil, 80_000, prompt.Gauge{}); !fits || got.Dropped == 0 {
			b.Fatalf("dropped %d of 100 turns, fits=%v", got.Dropped, fits)
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(composeLimit), "limits/op")
}
