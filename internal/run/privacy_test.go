package run_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
)

// kinds are all kinds of events, in the order of a run.
var kinds = []run.EventKind{
	run.EventStarted, run.EventModelCall, run.EventToolCall, run.EventWrite, run.EventSuspended, run.EventDecision,
	run.EventInput, run.EventProgress, run.EventHighlight, run.EventNotice, run.EventSettled,
}

// talkative is an event with everything in it that an event can hold.
func talkative(kind run.EventKind) run.Event {
	return run.Event{Kind: kind, DurationMS: 7, Data: run.EventData{Tool: "t", Bytes: 3, Table: "page", RecordID: "home"}, Content: &run.Content{
		Messages: []prompt.Message{{Role: prompt.User, Text: "my SECRET is a canary"}}, Text: "SECRET " + strings.Repeat("ä", 600),
		Arguments: json.RawMessage(`{"id":"canary","n":1,"on":true,"none":null,"list":["canary",2]}`), Result: "canary, in words",
		Proposed: []run.Proposed{{Tool: "t", Arguments: json.RawMessage(`{"text":"canary"}`), Preview: []string{"canary"}}},
		Values:   json.RawMessage(`{"choice":"canary"}`),
	}}
}

func hide(text string) string { return strings.ReplaceAll(text, "SECRET", "•") }

func TestPrivacy(t *testing.T) {
	t.Run("Y1 every kind × level keeps what the golden file says", func(t *testing.T) {
		var b strings.Builder
		for _, kind := range kinds {
			for _, level := range run.Privacies {
				kept := "nothing"
				for _, e := range level.Keep([]run.Event{talkative(kind)}, hide) {
					kept = fmt.Sprintf("%s, %d ms, content %v", e.Data.Encode(), e.DurationMS, e.Content != nil)
				}
				fmt.Fprintf(&b, "%-10s %-8s %s\n", kind, level, kept)
			}
		}
		golden(t, "testdata/privacy.golden", b.String())
	})
	t.Run("Y1 redacted words are cut, without secrets and without values", func(t *testing.T) {
		e := run.PrivacyRedacted.Keep([]run.Event{talkative(run.EventToolCall)}, hide)[0]
		text, err := json.MarshalIndent(e.Content, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "testdata/redacted.golden", string(text)+"\n")
	})
	t.Run("Y1 what is kept in full is whole", func(t *testing.T) {
		want := talkative(run.EventToolCall)
		if got := run.PrivacyFull.Keep([]run.Event{want}, hide)[0]; got.Content != want.Content || !got.Data.Content {
			t.Errorf("%+v", got)
		}
	})
	t.Run("Y1 of two levels the stricter one holds, and an unknown one keeps nothing", func(t *testing.T) {
		for i, a := range run.Privacies {
			for j, b := range run.Privacies {
				if got := run.Stricter(a, b); got != run.Privacies[min(i, j)] {
					t.Errorf("%s and %s: %s", a, b, got)
				}
			}
			if got := run.Stricter(a, "more"); got != run.PrivacyNone {
				t.Errorf("%s and an unknown one: %s", a, got)
			}
		}
	})
	t.Run("Y1 whatever a value holds, its redaction is JSON, bounded, and does not hold it", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			value := rapid.StringMatching(`[A-Zäöü]{4,900}`).Draw(t, "value")
			text, err := json.Marshal(map[string]any{"a": value, "b": []any{value, 1.5}})
			if err != nil {
				t.Fatal(err)
			}
			e := run.Event{Kind: run.EventToolCall, Content: &run.Content{Text: value, Arguments: text, Result: value}}
			c := run.PrivacyRedacted.Keep([]run.Event{e}, nil)[0].Content
			if !json.Valid(c.Arguments) || strings.Contains(string(c.Arguments), value) || strings.Contains(c.Result, value) || len(c.Text) > 540 || !utf8.ValidString(c.Text) {
				t.Errorf("%+v", c)
			}
		})
	})
}
