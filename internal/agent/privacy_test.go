package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/live"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
	"github.com/countersign/countersign/internal/tool"
	"github.com/countersign/countersign/internal/world"
)

// canary is what a run of the privacy tests says, in every place where something can be
// said.
const canary = "CANARY-7f3a"

// sing lets a run say the canary in its prompt, in arguments, results, a question and its
// answer, the name of a tool, and the final answer; the kinds of its steps are all there
// are.
func (h *house) sing(by actor.Actor) agent.Run {
	h.t.Helper()
	_, err := h.content.Update(context.Background(), h.admin, content.Edit{Table: content.ElementTable, ID: "hello", Fields: map[string]any{"text": canary + " in a field"}})
	h.ok(err)
	h.model.says(
		calls("get_page", `{"id":"home"}`, "highlight_record", `{"table":"page","id":"home"}`, canary, `{}`),
		calls("update_element", `{"id":"hello","fields":{"text":"`+canary+` proposed"}}`),
		calls("ask_choice", `{"question":"`+canary+`?","options":["`+canary+`","no"]}`),
		calls("report_progress", `{"position":1,"total":2}`),
	)
	h.model.does(func(context.Context) (agent.Turn, error) { return agent.Turn{Text: canary + " is the answer."}, nil })
	req := h.plain()
	req.Messages[0].Text = canary + " was asked."
	req.Invocation = &agent.Invocation{Skill: h.skill("style").ID, Subject: &tool.Record{Table: "page", ID: "home"}}
	r := h.start(by, req)
	if r.Status != run.WaitingForApproval {
		h.t.Fatalf("%s: %s", r.Status, r.Message)
	}
	_, err = h.content.Update(context.Background(), h.admin, content.Edit{Table: content.ElementTable, ID: "hello", Fields: map[string]any{"text": canary + " moved"}})
	h.ok(err)
	r = h.decide(by, r, true, "") // shows a fresh card, with a notice
	r = h.decide(by, r, true, "")
	_, err = h.agent.SubmitInput(context.Background(), by, agent.Input{Run: r.ID, TurnDigest: r.TurnDigest, Values: json.RawMessage(`{"choice":"` + canary + `"}`)})
	h.ok(err)
	if r = h.settled(r.ID); r.Status != run.Completed || !strings.HasPrefix(r.Answer, canary) {
		h.t.Fatalf("%s: %s", r.Status, r.Message)
	}
	return r
}

var allKinds = []run.EventKind{
	run.EventStarted, run.EventModelCall, run.EventToolCall, run.EventWrite, run.EventSuspended, run.EventDecision,
	run.EventInput, run.EventProgress, run.EventHighlight, run.EventNotice, run.EventSettled,
}

func TestPrivacy(t *testing.T) {
	for _, database := range storetest.URLs {
		for _, level := range run.Privacies {
			t.Run(fmt.Sprintf("%s at %s", database.Name, level), func(t *testing.T) {
				url, rings := database.URL(t), &live.Hub{}
				s := storetest.OpenAt(t, url, store.Options{Bell: rings})
				h := build(t, s, rings, s, world.Real())
				h.approve("style")
				h.offer("style", library.OnDemand)
				h.setting("privacy.level", string(level))
				r := h.sing(h.admin)
				events, err := h.agent.Events(context.Background(), h.admin, r.ID, -1, 1000)
				h.ok(err)

				t.Run("Y1 the run says which level it keeps", func(t *testing.T) {
					if r.Privacy != level {
						t.Errorf("it keeps %s", r.Privacy)
					}
				})
				t.Run("Y1 C2 every kind of step is kept, progress and highlight among them, but for none", func(t *testing.T) {
					for _, kind := range allKinds {
						kept := slices.Contains(kinds(events), kind)
						read := slices.Contains([]run.EventKind{run.EventModelCall, run.EventProgress, run.EventHighlight, run.EventNotice}, kind)
						if kept != (level != run.PrivacyNone || !read) {
							t.Errorf("%s is kept: %v", kind, kept)
						}
					}
				})
				t.Run("Y1 no row of a step holds in plain text what was said", func(t *testing.T) {
					rows := storetest.Everything(t, url, "run_events")
					if !strings.Contains(rows, "update_element") {
						t.Fatal("no step was read")
					}
					for table, rows := range map[string]string{"run_events": rows, "run_contents": storetest.Everything(t, url, "run_contents"), "runs": storetest.Everything(t, url, "runs")} {
						if strings.Contains(rows, canary) {
							t.Errorf("%s holds it", table)
						}
					}
				})
				t.Run("Y1 below redacted nothing that was said is kept at all", func(t *testing.T) {
					none := storetest.Everything(t, url, "run_contents") == ""
					if none != (level == run.PrivacyNone || level == run.PrivacyMetadata) {
						t.Errorf("nothing is kept: %v", none)
					}
				})
				t.Run("Y1 what is kept is words at full, and at redacted words without the values of fields", func(t *testing.T) {
					for _, e := range events {
						h.heard(t, level, e)
					}
				})
			})
		}
	}
}

// heard holds what one step kept of what was said.
func (h *house) heard(t *testing.T, level run.Privacy, e run.Event) {
	c := run.Content{}
	if e.Content != nil {
		c = *e.Content
	}
	has := func(v any) bool {
		text, err := json.Marshal(v)
		h.ok(err)
		return strings.Contains(string(text), canary)
	}
	words := level == run.PrivacyRedacted || level == run.PrivacyFull
	full := level == run.PrivacyFull
	for _, part := range []struct {
		what      string
		got, want bool
	}{
		{"what was asked", has(c.Messages), words && e.Kind == run.EventStarted},
		{"the answer", e.Kind == run.EventSettled && has(c.Text), words && e.Kind == run.EventSettled},
		{"arguments", has(c.Arguments), full && e.Kind == run.EventToolCall && (e.Data.Tool == "update_element" || e.Data.Tool == "ask_choice")},
		{"a result", e.Data.Tool == "get_page" && has(c.Result), full && e.Data.Tool == "get_page"},
		{"a proposal", has(c.Proposed), full && e.Kind == run.EventSuspended},
		{"given values", has(c.Values), full && e.Kind == run.EventInput},
		{"a step that cannot be read", e.Unreadable, false},
	} {
		if part.got != part.want {
			t.Errorf("step %d, %s: %s holds it: %v", e.Sequence, e.Kind, part.what, part.got)
		}
	}
}

func TestPrivacyOfOthers(t *testing.T) {
	each(t, func(h *house) {
		h.approve("style")
		h.offer("style", library.OnDemand)
		h.setting("privacy.level", "full")
		ada, bea := h.person("Ada"), h.person("Bea", actor.RunRead, actor.RunApprove)
		r := h.sing(ada)
		said := func(by actor.Actor) (n int) {
			for e, err := range h.agent.Follow(context.Background(), by, r.ID, -1) {
				h.ok(err)
				if e.Content != nil {
					n++
				}
			}
			events, err := h.agent.Events(context.Background(), by, r.ID, -1, 1000)
			h.ok(err)
			for _, e := range events {
				if e.Content != nil {
					n++
				}
			}
			return n
		}
		h.t.Run("Y1 G7 what was said is shown to its initiator and to administrators, and the steps to whoever watches", func(t *testing.T) {
			if own, admin, other := said(ada), said(h.admin), said(bea); own < 10 || own != admin || other != 0 {
				t.Errorf("own %d, an administrator's %d, another's %d", own, admin, other)
			}
		})
		h.t.Run("Y1 a level that became stricter holds at once for a run under way, and a looser one does not", func(t *testing.T) {
			more := func(level string, id uuid.UUID) int {
				h.setting("privacy.level", level)
				before := len(kept(h, ada, id))
				now, err := h.store.Run(context.Background(), id)
				h.ok(err)
				h.decide(ada, now, false, "")
				return len(kept(h, ada, id)) - before
			}
			h.model.says(calls("update_element", fix))
			begun := h.start(ada, h.plain()) // at full
			if n := more("metadata", begun.ID); n != 0 {
				t.Errorf("%d of its steps kept words at metadata", n)
			}
			h.model.says(calls("update_element", fix))
			begun = h.start(ada, h.plain()) // at metadata
			if n := more("full", begun.ID); n != 0 {
				t.Errorf("%d of its steps kept words although it began at metadata", n)
			}
		})
	})
}

// kept are the steps of a run that kept words.
func kept(h *house, by actor.Actor, id uuid.UUID) []run.Event {
	h.t.Helper()
	events, err := h.agent.Events(context.Background(), by, id, -1, 1000)
	h.ok(err)
	return slices.DeleteFunc(events, func(e run.Event) bool { return e.Content == nil })
}

func TestPrivacyRedactor(t *testing.T) {
	each(t, func(h *house) {
		h.setting("privacy.level", "redacted")
		req := h.plain()
		req.Messages[0].Text = "It is password=" + leaked + "."
		r, err := h.agent.Start(context.Background(), h.admin, req)
		h.ok(err)
		h.t.Run("Y1 M2 redacted words have no secrets", func(t *testing.T) {
			if got := kept(h, h.admin, r.ID)[0].Content.Messages[0].Text; got != "It is password=[redacted:password]" {
				t.Errorf("%q", got)
			}
		})
	})
}
