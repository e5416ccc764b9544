package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/tool"
)

// editable lets proposals of the house's configuration be changed.
func (h *house) editable() {
	h.t.Helper()
	yes := true
	h.configure(library.ConfigurationUpdate{AllowProposalEdits: &yes})
}

func rewording(r agent.Run, texts ...string) agent.Edit {
	e := agent.Edit{Run: r.ID, TurnDigest: r.TurnDigest}
	for i := 0; i < len(texts); i += 2 {
		e.Texts = append(e.Texts, agent.EditedText{Text: tool.Text{Pointer: texts[i], Text: texts[i+1]}})
	}
	return e
}

func (h *house) reword(by actor.Actor, r agent.Run, text string) agent.Run {
	h.t.Helper()
	now, err := h.agent.EditProposal(context.Background(), by, rewording(r, "/fields/text", text))
	h.ok(err)
	return now
}

func (h *house) card(by actor.Actor, r agent.Run) *agent.Card {
	h.t.Helper()
	card, err := h.agent.Card(context.Background(), by, r)
	h.ok(err)
	if card == nil {
		h.t.Fatalf("the run shows no card; it is %s", r.Status)
	}
	return card
}

func (h *house) ofKind(r agent.Run, kind run.EventKind) []run.Event {
	return slices.DeleteFunc(h.events(r.ID), func(e run.Event) bool { return e.Kind != kind })
}

func TestEditProposal(t *testing.T) {
	t.Run("C8 an edited write is previewed, bound, applied and told, beside what was proposed", func(t *testing.T) {
		each(t, func(h *house) {
			h.editable()
			h.setting("privacy.level", "full")
			r := h.waiting()
			first := h.card(h.admin, r)
			if texts := first.Calls[0].Texts; len(texts) != 1 || texts[0] != (tool.Text{Pointer: "/fields/text", Text: "Hello"}) {
				h.t.Fatalf("the card offers %+v", texts)
			}
			now := h.reword(h.admin, r, "Hello, you")
			if now.Status != run.WaitingForApproval || now.TurnDigest == r.TurnDigest || now.Suspension != r.Suspension+1 {
				h.t.Fatalf("%s %d", now.Status, now.Suspension)
			}
			card := h.card(h.admin, now).Calls[0]
			if !card.Edited || !strings.Contains(string(card.Proposed), `"Hello"`) || !strings.Contains(string(card.Arguments), "Hello, you") ||
				!strings.Contains(strings.Join(card.Lines, "\n"), "“Helo” → “Hello, you”") || card.Target.ID != "hello" {
				h.t.Fatalf("%+v", card)
			}
			h.refused(h.admin, decision(r, true), fault.StaleTurn)

			ended := h.decide(h.admin, now, true, "")
			if ended.Status != run.Completed || h.text("hello") != "Hello, you" {
				h.t.Fatalf("%s with %q", ended.Status, h.text("hello"))
			}
			edits := h.ofKind(ended, run.EventEdited)
			if len(edits) != 1 || edits[0].Data.DecidedBy != h.admin.ID.String() || edits[0].Data.TurnDigest != r.TurnDigest ||
				!slices.Equal(edits[0].Data.Args, []string{"update_element /fields/text"}) {
				h.t.Errorf("%+v", edits)
			}
			step := h.ofKind(ended, run.EventToolCall)
			wrote := step[len(step)-1]
			if !wrote.Data.Edited || wrote.Content == nil || !strings.Contains(string(wrote.Content.Arguments), "Hello, you") ||
				len(wrote.Content.Proposed) != 1 || !strings.Contains(string(wrote.Content.Proposed[0].Arguments), `"Hello"`) {
				h.t.Errorf("%+v %+v", wrote.Data, wrote.Content)
			}
			results := h.results(h.last())
			if told := results[len(results)-1]; !strings.Contains(told, `"texts_now":{"/fields/text":"Hello, you"}`) || !strings.Contains(told, "run_owner") {
				h.t.Errorf("the model read %q", told)
			}
			if !slices.Contains(h.trail(r.ID), audit.ProposalEdited) {
				h.t.Errorf("%v", h.trail(r.ID))
			}
		})
	})
	t.Run("C8 an edit of an edit keeps what the model proposed, and a moved record shows the edited card again", func(t *testing.T) {
		each(t, func(h *house) {
			h.editable()
			r := h.reword(h.admin, h.reword(h.admin, h.waiting(), "One"), "Two")
			if p := h.card(h.admin, r).Calls[0].Proposed; !strings.Contains(string(p), `"Hello"`) {
				h.t.Fatalf("%s", p)
			}
			h.edit("Meanwhile")
			again := h.decide(h.admin, r, true, "")
			card := h.card(h.admin, again).Calls[0]
			if again.Status != run.WaitingForApproval || !card.Stale || !card.Edited || !strings.Contains(strings.Join(card.Lines, ""), "“Meanwhile” → “Two”") {
				h.t.Fatalf("%s %+v", again.Status, card)
			}
			if h.decide(h.admin, again, true, ""); h.text("hello") != "Two" {
				h.t.Errorf("%q", h.text("hello"))
			}
		})
	})
	t.Run("C8 R8 an edited write whose worker died is carried out once, as edited", func(t *testing.T) {
		dying(t, func(h *house, die func(func(change.Change) bool)) {
			h.editable()
			r := h.reword(h.admin, h.waiting(), "Edited")
			die(func(c change.Change) bool { _, fences := sets(c, "fence"); return fences })
			_, err := h.agent.Decide(context.Background(), h.admin, decision(r, true))
			h.ok(err)
			h.killed(r.ID)
			h.takenOver(1, r.ID)
			if r = h.takenOver(2, r.ID); r.Status != run.Completed || h.text("hello") != "Edited" || h.revisions("hello") != 2 {
				h.t.Fatalf("%+v %q in %d revisions", r, h.text("hello"), h.revisions("hello"))
			}
		})
	})
	t.Run("C8 what was edited is not written when it is denied", func(t *testing.T) {
		each(t, func(h *house) {
			h.editable()
			r := h.reword(h.admin, h.waiting(), "Edited")
			if ended := h.decide(h.admin, r, false, agent.Skip); ended.Status != run.Completed || h.text("hello") != "Helo" {
				h.t.Errorf("%s with %q", ended.Status, h.text("hello"))
			}
		})
	})
}

func TestEditRefusals(t *testing.T) {
	no := func(*house, agent.Run) {}
	for name, test := range map[string]struct {
		before func(*house, agent.Run)
		edit   func(agent.Run) agent.Edit
		code   fault.Code
		kind   fault.Kind
	}{
		"C8 of what the configuration does not allow": {
			func(h *house, _ agent.Run) {
				never := false
				h.configure(library.ConfigurationUpdate{AllowProposalEdits: &never})
			},
			func(r agent.Run) agent.Edit { return rewording(r, "/fields/text", "x") }, fault.NotEditable, "",
		},
		"C8 of the record":                    {no, func(r agent.Run) agent.Edit { return rewording(r, "/id", "other") }, fault.NotEditable, ""},
		"C8 of a field that was not proposed": {no, func(r agent.Run) agent.Edit { return rewording(r, "/fields/header", "x") }, fault.NotEditable, ""},
		"C8 of a card that is not shown": {
			no, func(r agent.Run) agent.Edit {
				e := rewording(r, "/fields/text", "x")
				e.TurnDigest = strings.Repeat("0", 64)
				return e
			}, fault.StaleTurn, "",
		},
		"C8 of a run that does not wait": {
			func(h *house, r agent.Run) {
				_, err := h.agent.Cancel(context.Background(), h.admin, r.ID)
				h.ok(err)
			},
			func(r agent.Run) agent.Edit { return rewording(r, "/fields/text", "x") }, fault.NotWaiting, "",
		},
		"C8 when the record is gone": {
			func(h *house, _ agent.Run) {
				_, err := h.content.Delete(context.Background(), h.admin, content.Deletion{Table: "element", ID: "hello"})
				h.ok(err)
			},
			func(r agent.Run) agent.Edit { return rewording(r, "/fields/text", "x") }, fault.NotEditable, "",
		},
		"C8 over the field's limit": {no, func(r agent.Run) agent.Edit { return rewording(r, "/fields/text", strings.Repeat("x", 100_001)) }, fault.NotEditable, ""},
		"C8 of nothing":             {no, func(r agent.Run) agent.Edit { return rewording(r) }, "", fault.BadInput},
		"C8 to what is there":       {no, func(r agent.Run) agent.Edit { return rewording(r, "/fields/text", "Hello") }, "", fault.BadInput},
		"C8 M2 to a marker":         {no, func(r agent.Run) agent.Edit { return rewording(r, "/fields/text", "a [redacted:key] b") }, "", fault.BadInput},
		"C8 of a call that is not there": {no, func(r agent.Run) agent.Edit {
			e := rewording(r, "/fields/text", "x")
			e.Texts[0].Call = 1
			return e
		}, "", fault.BadInput},
	} {
		t.Run(name+" is refused and changes nothing", func(t *testing.T) {
			each(t, func(h *house) {
				h.editable()
				r := h.waiting()
				test.before(h, r)
				before := h.row(r.ID)
				_, err := h.agent.EditProposal(context.Background(), h.admin, test.edit(r))
				if refusal, refused := fault.AsRefusal(err); refused && refusal.Code != test.code || !refused && (test.code != "" || !fault.Is(err, test.kind)) {
					h.t.Fatalf("got %v", err)
				}
				if after := h.row(r.ID); after.TurnDigest != before.TurnDigest || after.Events != before.Events || after.Suspension != before.Suspension {
					h.t.Errorf("%+v", after)
				}
			})
		})
	}
}

func TestEditors(t *testing.T) {
	t.Run("C8 who may not approve may not edit, and is shown no texts to change", func(t *testing.T) {
		each(t, func(h *house) {
			h.editable()
			ada := h.person("Ada")
			_, err := h.access.RevokePermission(context.Background(), h.admin, ada.ID, actor.RunApproveOwn)
			h.ok(err)
			ada, err = h.access.Actor(context.Background(), ada.ID)
			h.ok(err)
			r := h.ordinary(ada)
			for _, who := range []struct {
				by   actor.Actor
				want fault.Kind
			}{{ada, fault.Forbidden}, {h.person("Watcher", actor.RunRead), fault.Forbidden}, {h.person("Other"), fault.NotFound}} {
				if _, err := h.agent.EditProposal(context.Background(), who.by, rewording(r, "/fields/text", "x")); !fault.Is(err, who.want) {
					h.t.Errorf("%v", err)
				}
			}
			if texts := h.card(ada, r).Calls[0].Texts; len(texts) != 0 {
				h.t.Errorf("%+v", texts)
			}
			approver := h.person("Approver", actor.RunApprove)
			if texts := h.card(approver, r).Calls[0].Texts; len(texts) != 1 {
				h.t.Errorf("%+v", texts)
			}
			now := h.reword(approver, r, "By another")
			if h.decide(approver, now, true, ""); h.text("hello") != "By another" {
				h.t.Errorf("%q", h.text("hello"))
			}
			if told := h.results(h.last()); !strings.Contains(strings.Join(told, "\n"), `"changed_by":"other_user"`) {
				h.t.Errorf("%v", told)
			}
		})
	})
	t.Run("C8 X5 nobody but its initiator edits a process run", func(t *testing.T) {
		each(t, func(h *house) {
			h.editable()
			ready(h)
			h.model.says(calls("update_element", fix))
			r := h.start(h.person("Ada", actor.RunApproveOwn), h.tour())
			_, err := h.agent.EditProposal(context.Background(), h.admin, rewording(r, "/fields/text", "x"))
			if refusal, ok := fault.AsRefusal(err); !ok || refusal.Code != fault.NotInitiator {
				h.t.Errorf("got %v", err)
			}
			if texts := h.card(h.admin, r).Calls[0].Texts; len(texts) != 0 {
				h.t.Errorf("%+v", texts)
			}
		})
	})
	t.Run("C8 I5 with a second approver nobody approves words of their own", func(t *testing.T) {
		each(t, func(h *house) {
			h.editable()
			yes := true
			h.configure(library.ConfigurationUpdate{RequireSecondApprover: &yes})
			one, two := h.person("One", actor.RunApprove), h.person("Two", actor.RunApprove)
			r := h.reword(one, h.ordinary(h.person("Ada", actor.RunApproveOwn)), "By one")
			h.refused(one, decision(r, true), fault.SecondApproverRequired)
			if h.decide(two, r, true, ""); h.text("hello") != "By one" {
				h.t.Errorf("%q", h.text("hello"))
			}
		})
	})
}

func TestEditRaces(t *testing.T) {
	t.Run("C8 R2 of edits and decisions of one card one wins, and what was applied is what its card showed", func(t *testing.T) {
		each(t, func(h *house) {
			h.editable()
			for range 5 {
				h.edit("Helo")
				r := h.ordinary(h.admin)
				var both sync.WaitGroup
				errs := make([]error, 8)
				for i := range errs {
					both.Go(func() {
						if i%2 == 0 {
							_, errs[i] = h.agent.EditProposal(context.Background(), h.admin, rewording(r, "/fields/text", "Edited"))
							return
						}
						_, errs[i] = h.agent.Decide(context.Background(), h.admin, decision(r, true))
					})
				}
				both.Wait()
				edited := 0
				for i, err := range errs {
					if _, refused := fault.AsRefusal(err); err != nil && !refused {
						h.t.Errorf("%d: %v", i, err)
					}
					if err == nil && i%2 == 0 {
						edited++
					}
				}
				now := h.settled(r.ID)
				switch {
				case edited > 1:
					h.t.Errorf("%d edits of one card were taken", edited)
				case edited == 1 && (now.Status != run.WaitingForApproval || h.text("hello") != "Helo"):
					h.t.Errorf("edited, and %s with %q", now.Status, h.text("hello"))
				case edited == 0 && (now.Status != run.Completed || h.text("hello") != "Hello"):
					h.t.Errorf("approved, and %s with %q", now.Status, h.text("hello"))
				}
				_, err := h.agent.Cancel(context.Background(), h.admin, r.ID)
				h.ok(err)
			}
		})
	})
	t.Run("C8 an edit that cannot be stored leaves the card as it was", func(t *testing.T) {
		var m *meddler
		meddled(t, func(s *store.Store) agent.Store { m = &meddler{Store: s}; return m }, func(h *house) {
			h.editable()
			r := h.waiting()
			gone := errors.New("gone")
			m.meddle(func(c change.Change) error {
				if slices.ContainsFunc(c.Events, func(e run.Event) bool { return e.Kind == run.EventEdited }) {
					return gone
				}
				return nil
			})
			if _, err := h.agent.EditProposal(context.Background(), h.admin, rewording(r, "/fields/text", "x")); !errors.Is(err, gone) {
				h.t.Fatalf("got %v", err)
			}
			if now := h.row(r.ID); now.TurnDigest != r.TurnDigest || now.Events != r.Events {
				h.t.Errorf("%+v", now)
			}
		})
	})
}

// RULES C8: every shipped write says which of its arguments are text, and a call with
// other texts is one that the tool takes.
func TestTextPlaces(t *testing.T) {
	each(t, func(h *house) {
		tools, err := h.agent.Tools.Now(context.Background())
		h.ok(err)
		for name, arguments := range map[string]string{
			"update_element":           `{"id":"hello","fields":{"text":"T","link":"/a","kind":"text"}}`,
			"update_page_metadata":     `{"id":"home","fields":{"title":"T","slug":"/home","noIndex":true}}`,
			"create_element_draft":     `{"pageId":"home","fields":{"text":"T","image":"1"}}`,
			"create_page_draft":        `{"fields":{"title":"T","language":"de"}}`,
			"create_translation_draft": `{"table":"page","id":"home","language":"de","fields":{},"elements":{"hello":{"text":"T"}}}`,
			"attach_file":              `{"table":"page","id":"home","fileId":"1","alternative":"T"}`,
			"replace_file_reference":   `{"table":"page","id":"home","fileId":"1","alternative":"T"}`,
			"set_alternative_text":     `{"table":"page","id":"home","text":"T"}`,
			"move_element":             `{"id":"hello","pageId":"home"}`,
			"delete_record":            `{"table":"page","id":"home"}`,
			"publish_record":           `{"table":"page","id":"home"}`,
			"copy_record":              `{"table":"page","id":"home"}`,
		} {
			spec, _ := tools.Spec(name)
			texts := spec.Texts(json.RawMessage(arguments))
			if want := strings.Contains(arguments, `"T"`); want != (len(texts) == 1) {
				h.t.Errorf("%s: %+v", name, texts)
			}
			for _, text := range texts {
				changed, err := spec.Reworded(json.RawMessage(arguments), []tool.Text{{Pointer: text.Pointer, Text: "U"}})
				h.ok(err)
				want := strings.Replace(arguments, `"T"`, `"U"`, 1)
				if string(run.CanonicalJSON(changed)) != string(run.CanonicalJSON(json.RawMessage(want))) {
					h.t.Errorf("%s: %s", name, changed)
				}
			}
		}
	})
}
