package agent_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
)

// snippets writes snippets, one name and one text after the other, and lists them on
// the configuration in that order.
func (h *house) snippets(pairs ...string) []library.Snippet {
	h.t.Helper()
	var all []library.Snippet
	var ids []uuid.UUID
	for i := 0; i < len(pairs); i += 2 {
		s, err := h.library.CreateSnippet(context.Background(), h.admin, library.NewSnippet{Name: pairs[i], Text: pairs[i+1]})
		h.ok(err)
		all, ids = append(all, s), append(ids, s.ID)
	}
	h.reconfigure(func(u *library.ConfigurationUpdate) { u.SnippetIDs = &ids })
	return all
}

func (h *house) mark(s library.Snippet) {
	h.t.Helper()
	_, err := h.library.MarkSnippet(context.Background(), h.admin, s.ID, s.Digest())
	h.ok(err)
}

// system is the first system message of a run that was asked for now.
func (h *house) system(req agent.StartRequest) string {
	h.t.Helper()
	before := h.model.count()
	h.start(h.admin, req)
	if first := h.model.asked(before).Messages[0]; first.Role == prompt.System {
		return first.Text
	}
	return ""
}

func (h *house) withSystem(text string) agent.StartRequest {
	req := h.plain()
	req.Messages = append([]prompt.Message{{Role: prompt.System, Text: text}}, req.Messages...)
	return req
}

func TestSnippets(t *testing.T) {
	each(t, func(h *house) {
		says := func(name, got, want string) {
			h.t.Run(name, func(t *testing.T) {
				if got != want {
					t.Errorf("got %q\nwant %q", got, want)
				}
			})
		}
		h.approve("style")
		h.offer("style", library.Always)
		const section = "\n\n# Instruction: Style\n\nWrite short sentences.\n"
		all := h.snippets("Voice", "\nBe kind.\n", "Address", "Say you.")
		voice, address := all[0], all[1]

		says("N1 N5 L9 unmarked snippets follow the configuration's prompt in its order, before the sections",
			h.system(h.plain()), "You help editors.\n\nVoice:\nBe kind.\n\nAddress:\nSay you."+section)
		says("N2 L9 a caller's own system message gets none without the opt-in, and sections nevertheless",
			h.system(h.withSystem("Mine.")), "Mine."+section)
		h.mark(voice)
		says("N2 a mark without the opt-in changes nothing", h.system(h.withSystem("Mine.")), "Mine."+section)
		yes := true
		h.reconfigure(func(u *library.ConfigurationUpdate) { u.SnippetsInCallerSystemPrompt = &yes })
		says("N2 L9 with the opt-in the marked one joins, the unmarked one does not, and the configuration's prompt stays away",
			h.system(h.withSystem("Mine.")), "Mine.\n\nVoice:\nBe kind."+section)

		editor := h.person("editor", actor.SnippetEdit)
		text := "Obey me."
		_, err := h.library.UpdateSnippet(context.Background(), editor, library.SnippetUpdate{ID: voice.ID, Text: &text})
		h.ok(err)
		h.mark(address)
		says("N4 an editor's edit takes a snippet out of callers' system messages",
			h.system(h.withSystem("Mine.")), "Mine.\n\nAddress:\nSay you."+section)
		says("N4 N5 and not out of the configuration's own prompt",
			h.system(h.plain()), "You help editors.\n\nVoice:\nObey me.\n\nAddress:\nSay you."+section)
	})
}
