package tool

import (
	"fmt"
	"slices"
	"strings"
)

// Gate names the reason for which a tool is not available (RULES T6).
type Gate string

// The gates, in the order in which they are tried.
const (
	GateNotRegistered      Gate = "not_registered"
	GateDisabled           Gate = "disabled"
	GateAdminOnly          Gate = "admin_only"
	GateConfigurationGroup Gate = "configuration_group"
	GateSkillList          Gate = "skill_list"
	GateTrustZone          Gate = "trust_zone"
)

// Denial is the first gate that a tool failed.
type Denial struct {
	Tool    string `json:"tool"`
	Gate    Gate   `json:"gate"`
	Message string `json:"message"`
}

// Zone is where the model that reads the results runs. The values are those of a
// provider's trust zone; an unknown one counts as the farthest.
type Zone string

// The zones, from nearest to farthest.
const (
	ZoneLocal          Zone = "local"
	ZonePrivateHosted  Zone = "private_hosted"
	ZoneEUExternal     Zone = "eu_external"
	ZoneGlobalExternal Zone = "global_external"
)

// DataClass orders what a tool's results may hold, from harmless to close to
// secrets.
type DataClass int

// The classes.
const (
	EditorContent DataClass = iota
	InternalConfiguration
	Diagnostics
	SecretAdjacent
)

// ceilings is the most sensitive class that each zone may read (RULES T8).
var ceilings = map[Zone]DataClass{
	ZoneLocal:          SecretAdjacent,
	ZonePrivateHosted:  Diagnostics,
	ZoneEUExternal:     InternalConfiguration,
	ZoneGlobalExternal: EditorContent,
}

// MayRead reports whether a model in the zone may read data of a class (RULES T8).
func (z Zone) MayRead(c DataClass) bool { return c <= ceilings[z] }

// Situation is everything but the tool that a decision depends on, taken by value:
// the gate asks nobody.
type Situation struct {
	// Tools and Groups are the installation's switches by name; what is not in them
	// stands as it was shipped (RULES T7).
	Tools  map[string]bool
	Groups map[Group]bool
	// Administrator says whether the run's initiator is one.
	Administrator bool
	// ConfigurationGroups are the groups that the configuration allows; nil allows all.
	ConfigurationGroups []Group
	// SkillList is the list that the run's skills add up to (RULES T1); nil imposes
	// nothing, an empty list allows nothing.
	SkillList []string
	// CallerList is what the caller narrowed the run to; nil imposes nothing (RULES T10).
	CallerList []string
	// Loads says that the run has a catalogue to load skills from (RULES L4).
	Loads bool
	Zone  Zone
}

// loads reports whether the tool is the one that loads skills. Lists and groups say what
// a run may do; loading does nothing that its attachments did not grant, so they do not
// bind it (RULES T5, T10).
func loads(s Spec) bool { return s.Name == LoadSkill }

// gates is T6: the first line that fails is the one reported. A tool that nobody
// registered fails before any of them can look at it.
var gates = []struct {
	gate    Gate
	fails   func(Spec, Situation) bool
	message string
}{
	{GateDisabled, func(s Spec, at Situation) bool { return !switchedOn(s, at) }, "{tool} is switched off in this installation"},
	{GateDisabled, func(s Spec, _ Situation) bool { return s.Blocked != "" }, "{tool} is blocked: {why}"},
	{GateAdminOnly, func(s Spec, at Situation) bool { return (s.AdminOnly || s.Remote) && !at.Administrator }, "only administrators may use {tool}"},
	{GateConfigurationGroup, func(s Spec, at Situation) bool {
		return at.ConfigurationGroups != nil && !loads(s) && !slices.Contains(at.ConfigurationGroups, s.Group)
	}, "the configuration does not allow the group of {tool}"},
	{GateSkillList, func(s Spec, at Situation) bool {
		return at.SkillList != nil && !loads(s) && !slices.Contains(at.SkillList, s.Name)
	}, "the skills of this run do not grant {tool}"},
	{GateSkillList, func(s Spec, at Situation) bool {
		return at.CallerList != nil && !loads(s) && !slices.Contains(at.CallerList, s.Name)
	}, "whoever started this run left out {tool}"},
	{GateSkillList, func(s Spec, at Situation) bool { return loads(s) && !at.Loads }, "there is no skill for {tool} to load"},
	{GateTrustZone, func(s Spec, at Situation) bool { return !at.Zone.MayRead(s.DataClass) }, "{tool} may return data that must not reach this model's provider"},
}

// switchedOn reads the switches: a group that is off takes its tools along, a tool's
// own switch stands before what it was shipped with.
func switchedOn(s Spec, at Situation) bool {
	if on, set := at.Groups[s.Group]; set && !on {
		return false
	}
	if on, set := at.Tools[s.Name]; set {
		return on
	}
	return !s.OffByDefault && !s.Remote
}

// Decide reports the first gate that the tool fails, and whether it fails one.
func Decide(s Spec, at Situation) (Denial, bool) {
	for _, g := range gates {
		if g.fails(s, at) {
			said := strings.NewReplacer("{tool}", s.Name, "{why}", s.Blocked)
			return Denial{Tool: s.Name, Gate: g.gate, Message: said.Replace(g.message)}, true
		}
	}
	return Denial{}, false
}

// Decide is Decide by name: a name that nobody registered fails the first gate.
func (r *Registry) Decide(name string, at Situation) (Denial, bool) {
	spec, ok := r.Spec(name)
	if !ok {
		label := r.Label(name)
		return Denial{Tool: label, Gate: GateNotRegistered, Message: fmt.Sprintf("there is no tool %q", label)}, true
	}
	return Decide(spec, at)
}

// Explained is a tool with the gate it fails, if any.
type Explained struct {
	Spec   Spec
	Denial *Denial // nil when the tool is available
}

// Explain says for every registered tool whether it is available and why not, in
// the order of registration.
func (r *Registry) Explain(at Situation) []Explained {
	out := make([]Explained, 0, len(r.order))
	for _, name := range r.order {
		e := Explained{Spec: r.tools[name].spec}
		if denial, denied := Decide(e.Spec, at); denied {
			e.Denial = &denial
		}
		out = append(out, e)
	}
	return out
}
