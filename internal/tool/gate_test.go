package tool

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func registryOf(t *testing.T, tools ...Tool) *Registry {
	t.Helper()
	r, err := New(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestGates(t *testing.T) {
	spec := named("purge")
	spec.Group, spec.AdminOnly, spec.OffByDefault, spec.DataClass = GroupContentRead, true, true, SecretAdjacent
	r := registryOf(t, fake{spec: spec})
	// Each step repairs exactly the gate that was reported.
	at := Situation{
		ConfigurationGroups: []Group{}, SkillList: []string{}, CallerList: []string{}, Zone: ZoneGlobalExternal,
	}
	t.Run("T6 the first gate that fails is the one reported", func(t *testing.T) {
		if d, denied := r.Decide("purgee", at); !denied || d.Gate != GateNotRegistered || d.Tool != "purgee" {
			t.Errorf("got %+v", d)
		}
		for _, step := range []struct {
			gate    Gate
			message string
			repair  func()
		}{
			{GateDisabled, "purge is switched off in this installation", func() { at.Tools = map[string]bool{"purge": true} }},
			{GateAdminOnly, "only administrators may use purge", func() { at.Administrator = true }},
			{GateConfigurationGroup, "the configuration does not allow the group of purge", func() { at.ConfigurationGroups = []Group{GroupContentRead} }},
			{GateSkillList, "the skills of this run do not grant purge", func() { at.SkillList = []string{"purge"} }},
			{GateSkillList, "whoever started this run left out purge", func() { at.CallerList = []string{"purge"} }},
			{GateTrustZone, "purge may return data that must not reach this model's provider", func() { at.Zone = ZoneLocal }},
		} {
			want := Denial{Tool: "purge", Gate: step.gate, Message: step.message}
			if d, denied := r.Decide("purge", at); !denied || d != want {
				t.Fatalf("got %+v, want %+v", d, want)
			}
			step.repair()
		}
		if d, denied := r.Decide("purge", at); denied {
			t.Errorf("with every gate passed: %+v", d)
		}
	})
}

func TestLoadGate(t *testing.T) {
	spec := named(LoadSkill)
	spec.Group, spec.DataClass = GroupSkills, SecretAdjacent
	lists := Situation{ConfigurationGroups: []Group{}, SkillList: []string{}, CallerList: []string{}, Loads: true, Zone: ZoneLocal}
	for _, c := range []struct {
		name string
		but  func(*Situation)
		gate Gate // empty when nothing denies it
	}{
		{"T5 T10 no list and no group denies a load", func(*Situation) {}, ""},
		{"T5 the tool's switch does", func(at *Situation) { at.Tools = map[string]bool{LoadSkill: false} }, GateDisabled},
		{"T5 so does its group's", func(at *Situation) { at.Groups = map[Group]bool{GroupSkills: false} }, GateDisabled},
		{"T5 T8 so does the trust zone", func(at *Situation) { at.Zone = ZonePrivateHosted }, GateTrustZone},
		{"L4 so does an empty catalogue", func(at *Situation) { at.Loads = false }, GateSkillList},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := lists
			c.but(&at)
			if d, denied := Decide(spec, at); denied != (c.gate != "") || d.Gate != c.gate {
				t.Errorf("%+v", d)
			}
		})
	}
}

func TestSwitches(t *testing.T) {
	shipped, off, remote := named("a"), named("b"), named("c")
	off.OffByDefault, remote.Remote = true, true
	for _, s := range []*Spec{&shipped, &off, &remote} {
		s.Group = GroupContentWrite
	}
	for _, c := range []struct {
		name   string
		spec   Spec
		tools  map[string]bool
		groups map[Group]bool
		on     bool
	}{
		{"T6 a shipped tool is on", shipped, nil, nil, true},
		{"T6 a tool that is off by default is off", off, nil, nil, false},
		{"G1 a remote tool is off until it is switched on", remote, nil, nil, false},
		{"T6 a switch turns on", off, map[string]bool{"b": true}, nil, true},
		{"G1 a switch turns a remote tool on", remote, map[string]bool{"c": true}, nil, true},
		{"T6 a switch turns off", shipped, map[string]bool{"a": false}, nil, false},
		{"T6 a group that is off takes its tools along", shipped, map[string]bool{"a": true}, map[Group]bool{GroupContentWrite: false}, false},
		{"T6 a group that is on switches no tool on", off, nil, map[Group]bool{GroupContentWrite: true}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, denied := Decide(c.spec, Situation{Tools: c.tools, Groups: c.groups, Administrator: true})
			if denied == c.on || denied && d.Gate != GateDisabled {
				t.Errorf("denied=%v %+v", denied, d)
			}
		})
	}
	t.Run("G8 a blocked tool is off whatever its switch, and says why", func(t *testing.T) {
		blocked := remote
		blocked.Blocked = "its definition changed"
		d, denied := Decide(blocked, Situation{Tools: map[string]bool{"c": true}, Administrator: true})
		if want := (Denial{Tool: "c", Gate: GateDisabled, Message: "c is blocked: its definition changed"}); !denied || d != want {
			t.Errorf("got %+v", d)
		}
	})
	t.Run("G1 a remote tool is for administrators alone", func(t *testing.T) {
		d, denied := Decide(remote, Situation{Tools: map[string]bool{"c": true}})
		if !denied || d.Gate != GateAdminOnly {
			t.Errorf("got %+v", d)
		}
	})
}

func TestListsAndZones(t *testing.T) {
	spec := named("a")
	t.Run("T1 no list imposes nothing, an empty one allows nothing", func(t *testing.T) {
		if _, denied := Decide(spec, Situation{}); denied {
			t.Error("denied without any list")
		}
		if d, denied := Decide(spec, Situation{SkillList: []string{}}); !denied || d.Gate != GateSkillList {
			t.Errorf("got %+v", d)
		}
	})
	t.Run("T8 each zone reads up to its ceiling", func(t *testing.T) {
		for zone, ceiling := range map[Zone]DataClass{
			ZoneLocal: SecretAdjacent, ZonePrivateHosted: Diagnostics, ZoneEUExternal: InternalConfiguration,
			ZoneGlobalExternal: EditorContent, "": EditorContent, "moon": EditorContent,
		} {
			for class := EditorContent; class <= SecretAdjacent; class++ {
				spec.DataClass = class
				if _, denied := Decide(spec, Situation{Zone: zone}); denied != (class > ceiling) {
					t.Errorf("zone %q, class %d: denied=%v", zone, class, denied)
				}
			}
		}
	})
}

func TestExplain(t *testing.T) {
	on, off := named("on"), named("off")
	off.OffByDefault = true
	r := registryOf(t, fake{spec: off}, fake{spec: on})
	t.Run("T6 every tool is explained in the order of registration", func(t *testing.T) {
		var got []string
		for _, e := range r.Explain(Situation{}) {
			line := e.Spec.Name
			if e.Denial != nil {
				line += " " + string(e.Denial.Gate)
			}
			got = append(got, line)
		}
		if diff := cmp.Diff([]string{"off disabled", "on"}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestEffects(t *testing.T) {
	read, declared, idempotent, write, remote := named("read"), named("declared"), named("idempotent"), named("write"), named("remote")
	declared.Effect, idempotent.Effect, write.Effect = ReadOnly, IdempotentWrite, NonIdempotentWrite
	remote.Remote, remote.Effect = true, ReadOnly
	r := registryOf(t, fake{spec: read}, fake{spec: declared}, fakeWrite{fake: fake{spec: idempotent}}, fakeWrite{fake: fake{spec: write}}, fake{spec: remote})
	t.Run("G1 effects by name", func(t *testing.T) {
		for name, want := range map[string]Effect{
			"read": ReadOnly, "declared": ReadOnly, "idempotent": IdempotentWrite, "write": NonIdempotentWrite,
			"remote": NonIdempotentWrite, "nobody_knows": NonIdempotentWrite, "": NonIdempotentWrite,
		} {
			if got := r.Effect(name); got != want {
				t.Errorf("%q is %s, want %s", name, got, want)
			}
		}
	})
	t.Run("C6 a declared write is a shipped tool's", func(t *testing.T) {
		for _, s := range r.Specs() {
			if want := s.Name == "idempotent" || s.Name == "write"; DeclaredWrite(s) != want {
				t.Errorf("%s: %v", s.Name, !want)
			}
		}
	})
}

func TestApprovalBound(t *testing.T) {
	marked, write, remote, read := named("marked"), named("write"), named("remote"), named("read")
	marked.RequiresApproval, write.Effect, remote.Remote = true, IdempotentWrite, true
	freed := func(s Spec) Spec { s.Freed = true; return s }
	for _, c := range []struct {
		name string
		spec Spec
		with Approvals
		want bool
	}{
		{"G2 a marked tool is bound", marked, Approvals{}, true},
		{"G2 a declared write is bound", write, Approvals{}, true},
		{"G2 a remote tool is bound", remote, Approvals{}, true},
		{"G2 a read is free", read, Approvals{}, false},
		{"G2 a read that is configured so is bound", read, Approvals{Reads: map[string]bool{"read": true}}, true},
		{"G2 only a remote tool's operator frees it", freed(remote), Approvals{}, false},
		{"C6 nothing frees a shipped write", freed(write), Approvals{}, true},
		{"G2 nothing frees a marked tool", freed(marked), Approvals{}, true},
		{"G2 every read is bound where all are configured so", read, Approvals{AllReads: true}, true},
		{"G2 a question is not bound beside its pause", Spec{RequiresInput: true}, Approvals{AllReads: true}, false},
		{"G2 configuring a remote tool as a read binds nothing that its operator freed", freed(remote), Approvals{Reads: map[string]bool{"remote": true}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ApprovalBound(c.spec, c.with); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
