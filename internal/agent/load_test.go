package agent_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// loadable are skills that a model may come to load.
var loadable = map[string]string{
	"tone":     "---\nname: Tone\ndescription: How to sound\n---\nTONE-TEXT\n",
	"glossary": "---\nname: Glossary\ndescription: Which words to use\n---\nGLOSSARY-TEXT\n",
}

// shelf is a house whose catalogue has two skills, beside a process and a skill that
// nobody approved, which are attached in the same mode.
func shelf(h *house) {
	h.resync(loadable)
	ready(h)
	h.offer("reference", library.OnDemand)
	for _, folder := range []string{"tone", "glossary"} {
		h.approve(folder)
		h.offer(folder, library.OnDemand)
	}
}

// load is a call that loads a skill.
func (h *house) load(folder string) []string {
	return []string{"load_skill", `{"skillId":"` + skillID(h.skill(folder).ID) + `"}`}
}

// told is the system message of the n-th request, and offered the names of its tools.
func (h *house) told(n int) string {
	for _, m := range h.model.asked(n).Messages {
		if m.Role == prompt.System {
			return m.Text
		}
	}
	return ""
}

func (h *house) offered(n int) string {
	var out []string
	for _, d := range h.model.asked(n).Tools {
		out = append(out, d.Name)
	}
	return strings.Join(out, " ")
}

// results are those that the n-th request has, by the text of each.
func (h *house) results(n int) (out []string) {
	for _, m := range h.model.asked(n).Messages {
		if m.Role == prompt.ToolRole {
			out = append(out, m.Text)
		}
	}
	return out
}

func (h *house) last() int { return h.model.count() - 1 }

func ways(h *house, r agent.Run) string {
	var out []string
	for _, p := range r.Pins {
		s, err := h.store.Skill(context.Background(), p.Skill)
		h.ok(err)
		out = append(out, s.Identifier+":"+string(p.Way))
	}
	return strings.Join(out, " ")
}

func TestCatalogueOfModel(t *testing.T) {
	each(t, func(h *house) {
		t := h.t
		none := h.start(h.admin, h.plain())
		t.Run("L4 without anything to load there is neither a catalogue nor a tool, and nothing was denied", func(t *testing.T) {
			if h.told(0) != "You help editors." || strings.Contains(h.offered(0), "load_skill") || none.Status != run.Completed {
				t.Errorf("%q %q", h.told(0), h.offered(0))
			}
		})
		shelf(h)
		h.start(h.admin, h.plain())
		lines := "\n\n- " + skillID(h.skill("tone").ID) + ": Tone — How to sound\n- " + skillID(h.skill("glossary").ID) + ": Glossary — Which words to use"
		t.Run("L4 the catalogue ends the system message: id, name and description of what may be loaded, and nothing else", func(t *testing.T) {
			at := h.told(h.last())
			if !strings.HasPrefix(at, "You help editors.\n\n# Skills that can be loaded\n\n") || !strings.HasSuffix(at, lines) || strings.Contains(at, "Tour") || strings.Contains(at, "Reference") {
				t.Errorf("%s", at)
			}
			if !strings.Contains(h.offered(h.last()), "load_skill") {
				t.Error("no tool to load with")
			}
		})
		h.approve("style")
		h.offer("style", library.Always)
		req := h.plain()
		req.Invocation = &agent.Invocation{Skill: h.skill("tone").ID}
		h.start(h.admin, req)
		t.Run("L4 L9 it stands after the sections, and what is a section is not in it", func(t *testing.T) {
			at := h.told(h.last())
			if strings.Count(at, "Tone") != 1 || strings.Contains(at, skillID(h.skill("tone").ID)) || strings.Contains(at, skillID(h.skill("style").ID)) ||
				strings.Index(at, "TONE-TEXT") > strings.Index(at, "# Skills that can") || !strings.HasSuffix(at, "Glossary — Which words to use") {
				t.Errorf("%s", at)
			}
		})
		h.setting("skills.catalogueMaxBytes", "300")
		cut := h.start(h.admin, h.plain())
		h.model.says(calls(h.load("glossary")...))
		h.start(h.admin, h.plain())
		t.Run("L4 V6 what has no room is left out with a notice, and cannot be loaded", func(t *testing.T) {
			if at := h.told(h.last()); !strings.HasSuffix(at, "Tone — How to sound") {
				t.Errorf("%s", at)
			}
			if !slices.Equal(codes(cut), []run.NoticeCode{run.NoticeCatalogueCut}) || !slices.Equal(cut.Notices[0].Args, []string{"Glossary"}) {
				t.Errorf("%+v", cut.Notices)
			}
			if got := h.results(h.last()); len(got) != 1 || !strings.Contains(got[0], "not_in_catalogue") {
				t.Errorf("%q", got)
			}
		})
		h.setting("skills.catalogueMaxBytes", "0")
		h.start(h.admin, h.plain())
		t.Run("L4 a catalogue that nothing fits into is none", func(t *testing.T) {
			if strings.Contains(h.told(h.last()), "# Skills that can") || strings.Contains(h.offered(h.last()), "load_skill") {
				t.Errorf("%s", h.told(h.last()))
			}
		})
	})
}

func TestLoad(t *testing.T) {
	each(t, func(h *house) {
		t := h.t
		shelf(h)
		h.model.says(calls(h.load("tone")...), calls(append(h.load("tone"), h.load("reference")...)...))
		first := h.start(h.admin, h.plain())
		t.Run("L5 a load answers that it is done, without the text, which stands in the system message when the model is asked next", func(t *testing.T) {
			if got := h.results(1); !slices.Equal(got, []string{"loaded"}) {
				t.Fatalf("%q", got)
			}
			at := h.told(1)
			if strings.Contains(h.told(0), "TONE-TEXT") || !strings.Contains(at, "# Instruction: Tone\n\nTONE-TEXT\n") || strings.Index(at, "TONE-TEXT") > strings.Index(at, "# Skills that can") {
				t.Errorf("%s", at)
			}
		})
		t.Run("L6 a load of what is held appends nothing; what is no part of the catalogue is refused", func(t *testing.T) {
			got := h.results(2)
			if len(got) != 3 || got[1] != "already loaded" || !strings.Contains(got[2], "not_in_catalogue") || h.told(2) != h.told(1) {
				t.Errorf("%q\n%s", got, h.told(2))
			}
		})
		t.Run("P1 T1 a load is pinned by its version, and grants nothing", func(t *testing.T) {
			if p := first.Pins[0]; ways(h, first) != "tone:loaded" || p.Digest != h.skill("tone").StoredDigest || p.Source != h.source.ID {
				t.Errorf("%+v", first.Pins)
			}
			if h.offered(1) != h.offered(0) {
				t.Errorf("%s, then %s", h.offered(0), h.offered(1))
			}
		})
		h.model.says(calls(append(h.load("tone"), h.load("glossary")...)...))
		second := h.start(h.admin, h.after(first))
		t.Run("P11 L6 a continuation holds what was loaded, and loads the rest", func(t *testing.T) {
			asked := h.last() - 1
			if at := h.told(asked); strings.Count(at, "TONE-TEXT") != 1 || strings.Contains(at, skillID(h.skill("tone").ID)) {
				t.Errorf("%s", at)
			}
			if got := h.results(asked + 1); !slices.Equal(got, []string{"already loaded", "loaded"}) || ways(h, second) != "tone:loaded glossary:loaded" {
				t.Errorf("%q %s", got, ways(h, second))
			}
		})
		h.resync(map[string]string{"tone": strings.Replace(loadable["tone"], "TONE-TEXT", "TONE-MOVED", 1), "glossary": loadable["glossary"]})
		h.approve("tone")
		h.offerAgain("tone")
		h.detach("glossary")
		h.model.says(calls(append(h.load("tone"), h.load("glossary")...)...))
		h.offer("style", library.OnDemand)
		h.approve("style") // so that there is something to load
		third := h.start(h.admin, h.after(second))
		t.Run("L6 P9 a load of another version than is held is an error, and what is held stays", func(t *testing.T) {
			got := h.results(h.last())
			if len(got) != 2 || !strings.Contains(got[0], "other_version_held") || !strings.Contains(h.told(h.last()), "TONE-TEXT") || strings.Contains(h.told(h.last()), "TONE-MOVED") {
				t.Errorf("%q\n%s", got, h.told(h.last()))
			}
			if !strings.Contains(got[1], "not_in_catalogue") || ways(h, third) != "tone:loaded" {
				t.Errorf("P8 %q %s", got, ways(h, third))
			}
		})
		h.model.says(calls(h.load("tone")...))
		h.start(h.admin, h.plain())
		t.Run("P9 a new conversation loads the newer version", func(t *testing.T) {
			if !strings.Contains(h.told(h.last()), "TONE-MOVED") {
				t.Errorf("%s", h.told(h.last()))
			}
		})
		h.model.says(calls(h.load("style")...))
		h.model.does(func(context.Context) (agent.Turn, error) {
			return agent.Turn{}, &agent.ProviderError{Message: "gone", Status: 500}
		})
		failed := h.start(h.admin, h.plain())
		after := h.start(h.admin, h.after(failed))
		t.Run("P1 a run that fails after a load hands it on", func(t *testing.T) {
			if failed.Status != run.Failed || ways(h, failed) != "style:loaded" || ways(h, after) != "style:loaded" || !strings.Contains(h.told(h.last()), "Write short sentences.") {
				t.Errorf("%s %s, then %s", failed.Status, ways(h, failed), ways(h, after))
			}
		})
	})
}

// offerAgain switches a skill on that a sync switched off.
func (h *house) offerAgain(folder string) {
	h.t.Helper()
	_, err := h.library.SetSkillEnabled(context.Background(), h.admin, h.skill(folder).ID, true)
	h.ok(err)
}

func TestLoadIsJudgedAgain(t *testing.T) {
	each(t, func(h *house) {
		shelf(h)
		ctx := context.Background()
		tone := func() library.Skill { return h.skill("tone") }
		attachment := func() library.Offered {
			offered, err := h.library.Offered(ctx, h.config.ID)
			h.ok(err)
			at := slices.IndexFunc(offered, func(o library.Offered) bool { return o.Skill.ID == tone().ID })
			return offered[at]
		}
		mode := func(m library.LoadMode) {
			_, err := h.library.UpdateAttachment(ctx, h.admin, library.AttachmentUpdate{ID: attachment().Attachment.ID, LoadMode: &m})
			h.ok(err)
		}
		process := strings.Replace(loadable["tone"], "---\nTONE", "process: true\n---\nTONE", 1)
		for _, meanwhile := range []struct {
			what       string
			then, back func()
		}{
			{"revoked", func() { h.revoke("tone") }, func() { h.approve("tone") }},
			{"disabled", func() { _, err := h.library.SetSkillEnabled(ctx, h.admin, tone().ID, false); h.ok(err) }, func() { h.offerAgain("tone") }},
			{"attached always", func() { mode(library.Always) }, func() { mode(library.OnDemand) }},
			{"below the threshold", func() { h.setting("skills.instructionTrustLevel", "first_party") }, func() { h.setting("skills.instructionTrustLevel", "verified") }},
			{"detached", func() { h.detach("tone") }, func() { h.offer("tone", library.OnDemand) }},
			{"a process by now, and approved as one", func() {
				h.resync(map[string]string{"tone": process, "glossary": loadable["glossary"]})
				h.approve("tone")
				h.offerAgain("tone")
			}, func() {}},
		} {
			h.model.does(func(context.Context) (agent.Turn, error) {
				meanwhile.then()
				return agent.Turn{Calls: calls(h.load("tone")...)}, nil
			})
			r := h.start(h.admin, h.plain())
			h.t.Run("L5 what is "+meanwhile.what+" between start and load is not loaded", func(t *testing.T) {
				if !strings.Contains(h.told(h.last()), skillID(tone().ID)) {
					t.Fatal("it was not in the catalogue")
				}
				got := h.results(h.last())
				if len(got) != 1 || !strings.Contains(got[0], "not_loadable") || len(r.Pins) != 0 || strings.Contains(h.told(h.last()), "TONE-TEXT") || r.Status != run.Completed {
					t.Errorf("%q %v\n%s", got, r.Pins, h.told(h.last()))
				}
			})
			meanwhile.back()
		}
	})
}

func TestLoadAndPause(t *testing.T) {
	each(t, func(h *house) {
		t := h.t
		shelf(h)
		ctx := context.Background()
		h.model.says(calls(h.load("tone")...), calls("update_element", fix))
		waiting := h.start(h.admin, h.plain())
		state, err := h.store.State(ctx, waiting.ID)
		h.ok(err)
		h.model.says(calls(h.load("glossary")...))
		done := h.decide(h.admin, waiting, true, "")
		t.Run("P1 L4 the catalogue's ids wait with the run, and it goes on with what it loaded", func(t *testing.T) {
			if ids := state.Catalogue.Skills; len(ids) != 2 || ids[0] != h.skill("tone").ID || ids[1] != h.skill("glossary").ID {
				t.Errorf("%v", ids)
			}
			for _, n := range []int{h.last() - 1, h.last()} {
				if at := h.told(n); strings.Count(at, "TONE-TEXT") != 1 || strings.Count(at, "# Skills that can") != 1 || !strings.Contains(h.offered(n), "load_skill") {
					t.Errorf("%s", at)
				}
			}
			if at := h.told(h.last()); !strings.Contains(at, "TONE-TEXT\n\n\n# Instruction: Glossary") || ways(h, done) != "tone:loaded glossary:loaded" {
				t.Errorf("%s %s", at, ways(h, done))
			}
		})

		h.model.says(calls(append(h.load("tone"), "update_element", `{"id":"hello","fields":{"text":"Hallo"}}`)...))
		waiting = h.start(h.admin, h.plain())
		before := ways(h, waiting)
		done = h.decide(h.admin, waiting, true, "")
		t.Run("G3 L5 beside a write of an ordinary run a load waits for the decision", func(t *testing.T) {
			if before != "" || ways(h, done) != "tone:loaded" || !strings.Contains(h.told(h.last()), "TONE-TEXT") || h.text("hello") != "Hallo" {
				t.Errorf("%q, then %q", before, ways(h, done))
			}
		})

		h.model.says(calls(append(h.load("tone"), "update_element", `{"id":"hello","fields":{"text":"Hej"}}`)...))
		waiting = h.start(h.admin, h.tour())
		before = ways(h, waiting)
		h.revoke("tone")
		stopped := h.decide(h.admin, waiting, true, "")
		t.Run("C1 T5 in a process run it is a read before the card, past a list that does not name it", func(t *testing.T) {
			if before != "tour:invoked tone:loaded" || slices.Contains(waiting.SkillAllowList, "load_skill") {
				t.Errorf("%q %v", before, waiting.SkillAllowList)
			}
		})
		t.Run("P2 P3 what was loaded is checked like every pin, before the write", func(t *testing.T) {
			if stopped.Reason != run.ReasonInstructionWithdrawn || ways(h, stopped) != "tour:invoked" || h.text("hello") != "Hallo" {
				t.Errorf("%s %s", stopped.Reason, ways(h, stopped))
			}
		})
	})
}

func TestLoadGates(t *testing.T) {
	each(t, func(h *house) {
		t := h.t
		h.resync(map[string]string{"tone": loadable["tone"], "glossary": loadable["glossary"], "none": "---\nname: None\ndescription: d\nallowed-tools: []\n---\nN\n"})
		for _, folder := range []string{"tone", "glossary", "none"} {
			h.approve(folder)
			h.offer(folder, library.OnDemand)
		}
		ctx := context.Background()
		var err error
		h.config, err = h.library.UpdateConfiguration(ctx, h.admin, library.ConfigurationUpdate{ID: h.config.ID, AllowedToolGroups: &[]tool.Group{}})
		h.ok(err)
		req := h.plain()
		req.AllowedTools = []string{}
		h.model.says(calls(h.load("tone")...))
		r := h.start(h.admin, req)
		t.Run("T5 T10 neither an empty list of the skills nor one of the caller nor the groups take loading away", func(t *testing.T) {
			if r.SkillAllowList == nil || len(r.SkillAllowList) != 0 || h.offered(0) != "load_skill" || ways(h, r) != "tone:loaded" {
				t.Errorf("%v %q %s", r.SkillAllowList, h.offered(0), ways(h, r))
			}
		})
		h.ok(h.library.SetToolEnabled(ctx, h.admin, "load_skill", false))
		h.model.says(calls(h.load("tone")...))
		r = h.start(h.admin, h.plain())
		t.Run("T5 the installation's switch does, and the catalogue with it", func(t *testing.T) {
			if h.offered(h.last()) != "" || strings.Contains(h.told(h.last()), "# Skills that can") || len(r.Pins) != 0 {
				t.Errorf("%q %s", h.offered(h.last()), h.told(h.last()))
			}
		})
	})
}

func TestLoadAndDeath(t *testing.T) {
	// afterLoad dies at the first change that follows a load's.
	afterLoad := func() func(change.Change) bool {
		loaded := false
		return func(c change.Change) bool {
			_, pins := sets(c, "pins")
			dies := loaded
			loaded = loaded || pins && recordsCall(c)
			return dies
		}
	}
	t.Run("P1 R8 what a worker loaded before it died is held by the one that begins again", func(t *testing.T) {
		dying(t, func(h *house, die func(func(change.Change) bool)) {
			shelf(h)
			die(afterLoad())
			h.model.says(calls(h.load("tone")...), calls("list_pages", `{}`), calls(h.load("tone")...))
			started, err := h.agent.Start(context.Background(), h.admin, h.plain())
			h.ok(err)
			h.killed(started.ID)
			h.takenOver(1, started.ID)
			r := h.takenOver(2, started.ID)
			if r.Status != run.Completed || ways(h, r) != "tone:loaded" || strings.Count(h.told(h.last()), "TONE-TEXT") != 1 || !slices.Equal(h.results(h.last()), []string{"already loaded"}) {
				h.t.Errorf("%s %s %q\n%s", r.Status, ways(h, r), h.results(h.last()), h.told(h.last()))
			}
		})
	})
	t.Run("P1 R8 also after a pause, whose stored state does not have the section yet", func(t *testing.T) {
		dying(t, func(h *house, die func(func(change.Change) bool)) {
			shelf(h)
			h.model.says(calls("update_element", fix))
			waiting := h.start(h.admin, h.plain())
			die(afterLoad())
			h.model.says(calls(h.load("tone")...), calls("list_pages", `{}`), calls(h.load("glossary")...))
			_, err := h.agent.Decide(context.Background(), h.admin, agent.Decision{Run: waiting.ID, TurnDigest: waiting.TurnDigest})
			h.ok(err)
			h.killed(waiting.ID)
			h.takenOver(1, waiting.ID)
			r := h.takenOver(2, waiting.ID)
			if at := h.told(h.last()); r.Status != run.Completed || ways(h, r) != "tone:loaded glossary:loaded" || strings.Count(at, "TONE-TEXT") != 1 || strings.Count(at, "GLOSSARY-TEXT") != 1 || strings.Count(at, "# Skills that can") != 1 {
				h.t.Errorf("%s %s\n%s", r.Status, ways(h, r), at)
			}
		})
	})
}
