package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/skill"
	"github.com/countersign/countersign/internal/tool"
)

// legacyExport is an older installation with one skill that is loaded always.
const legacyExport = `{"kind":"export","format":1,"installation":"intranet"}
{"kind":"source","id":1,"title":"Old","type":"repo","url":"https://github.com/acme/old","trust_level":"first_party"}
{"kind":"skill","id":1,"source":1,"identifier":"old","name":"Old","description":"Of old.","body":"LEGACY-TEXT\n","body_checksum":"CHECKSUM","enabled":true}
{"kind":"attachment","skill":1,"configuration":"Editors"}
`

// read is all that the model was given in its latest call.
func (h *house) read() (system, rest string) {
	for _, m := range h.model.asked(h.model.count() - 1).Messages {
		if m.Role == prompt.System {
			system += m.Text
		} else {
			rest += m.Text
		}
	}
	return system, rest
}

func TestLegacyRows(t *testing.T) {
	each(t, func(h *house) {
		t := h.t
		export := strings.Replace(legacyExport, "CHECKSUM", skill.BodyChecksum("LEGACY-TEXT\n"), 1)
		report, err := h.library.Import(context.Background(), h.admin, strings.NewReader(export))
		h.ok(err)
		if report.Imported != 3 {
			t.Fatalf("%+v", report)
		}
		r := h.start(h.admin, h.plain())
		t.Run("D7 L1 an imported row is fenced, whatever its source is trusted with, and pins nothing", func(t *testing.T) {
			system, rest := h.read()
			if strings.Contains(system, "LEGACY-TEXT") || !strings.Contains(rest, "BEGIN UNTRUSTED SKILL DATA") || !strings.Contains(rest, "LEGACY-TEXT") || len(r.Pins) != 0 {
				t.Errorf("the system message is %q, the rest %q, the pins are %v", system, rest, r.Pins)
			}
		})
		offered, err := h.library.Offered(context.Background(), h.config.ID)
		h.ok(err)
		_, err = h.store.Apply(context.Background(), change.Change{Updates: []change.Update{{
			Table: "skills", ID: offered[0].Skill.ID, Set: []change.Value{change.Text[string]("skills", "body").To("Tampered with.")},
		}}})
		h.ok(err)
		r = h.start(h.admin, h.plain())
		t.Run("D7 a row whose body is not the one its checksum names is left out, with a notice", func(t *testing.T) {
			if system, rest := h.read(); strings.Contains(system+rest, "Tampered") {
				t.Error("the model read it")
			}
			if len(r.Notices) != 1 || r.Notices[0].Code != run.NoticeIntegritySkipped {
				t.Errorf("%v", r.Notices)
			}
		})
	})
}

func TestGroupSwitch(t *testing.T) {
	each(t, func(h *house) {
		h.ok(h.library.SetToolGroupEnabled(context.Background(), h.admin, tool.GroupContentWrite, false))
		h.start(h.admin, h.plain())
		h.t.Run("T7 a run is offered no tool of a group that is switched off, and every other", func(t *testing.T) {
			names := map[string]bool{}
			for _, d := range h.model.asked(0).Tools {
				names[d.Name] = true
			}
			if names["update_element"] || !names["get_page"] {
				t.Errorf("%v", names)
			}
		})
		h.ok(h.library.SetToolGroupEnabled(context.Background(), h.admin, tool.GroupContentWrite, true))
		h.start(h.admin, h.plain())
		h.t.Run("T7 a group that is switched on again leaves each tool to its own switch", func(t *testing.T) {
			names := map[string]bool{}
			for _, d := range h.model.asked(1).Tools {
				names[d.Name] = true
			}
			if !names["update_element"] || names["delete_record"] {
				t.Errorf("%v", names)
			}
		})
	})
}

func TestMovedSkill(t *testing.T) {
	each(t, func(h *house) {
		h.approve("style")
		h.offer("style", library.Always)
		s := h.skill("style")
		other, err := h.library.CreateSource(context.Background(), h.admin, library.NewSource{
			Title: "Other", Type: library.Repo, URL: "https://github.com/acme/other", TrustLevel: h.source.TrustLevel,
		})
		h.ok(err)
		r := h.start(h.admin, h.plain())
		if len(r.Pins) != 1 {
			h.t.Fatalf("%v", r.Pins)
		}
		_, err = h.library.MoveSkill(context.Background(), h.admin, s.ID, other.ID)
		h.ok(err)
		r = h.start(h.admin, h.plain())
		h.t.Run("S12 a moved skill instructs no new run", func(t *testing.T) {
			if system, rest := h.read(); len(r.Pins) != 0 || strings.Contains(system, "Write short sentences") || !strings.Contains(rest, "Write short sentences") {
				t.Errorf("%v %q", r.Pins, system)
			}
		})
	})
}
