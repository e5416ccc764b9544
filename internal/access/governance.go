package access

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/skill"
)

// Comparison is how what is in force compares with what a profile expects.
type Comparison string

// The comparisons. Stricter lets less pass, or keeps less.
const (
	Matches  Comparison = "matches"
	Stricter Comparison = "stricter"
	Looser   Comparison = "looser"
)

// Readout compares the settings in force with profiles. It describes and changes
// nothing (RULES M3).
type Readout struct {
	InForce  []InForce
	Profiles []Profile
}

// InForce is one value that is in force. Name is a setting's.
type InForce struct{ Name, Value string }

// Profile is a way to run an installation, with what it expects.
type Profile struct {
	Name     string
	Expected []Expected
}

// Expected is one value that a profile expects, beside the one in force.
type Expected struct {
	Name, Want, Is string
	Comparison     Comparison
}

// profiles are the four of RULES M3, in the order in which they trust less and less,
// and what each expects.
var profiles = []struct {
	name                string
	admits, instructs   skill.TrustLevel
	privacy             string
	retentionDaysOfRuns int
}{
	{"local_only", skill.Community, skill.Verified, "full", 90},
	{"controlled_cloud", skill.Verified, skill.Verified, "redacted", 30},
	{"enterprise_strict", skill.FirstParty, skill.FirstParty, "metadata", 7},
	{"development", skill.Untrusted, skill.Verified, "full", 7},
}

// Governance reads the settings in force against the profiles. Administrators only.
func (a *Access) Governance(ctx context.Context, by actor.Actor) (Readout, error) {
	shown, err := a.Settings(ctx, by)
	if err != nil {
		return Readout{}, err
	}
	is := map[string]string{}
	for _, s := range shown {
		is[s.Name] = s.InForce
	}
	var out Readout
	for _, name := range []string{minTrustLevel, instructionTrustLevel, privacyLevel, runDays, defaultMaxIterations, maxIterations, guardrails} {
		out.InForce = append(out.InForce, InForce{name, is[name]})
	}
	for _, p := range profiles {
		out.Profiles = append(out.Profiles, Profile{Name: p.name, Expected: []Expected{
			{minTrustLevel, string(p.admits), is[minTrustLevel], byLevel(p.admits, is[minTrustLevel])},
			{instructionTrustLevel, string(p.instructs), is[instructionTrustLevel], byLevel(p.instructs, is[instructionTrustLevel])},
			{privacyLevel, p.privacy, is[privacyLevel], stricterWhenLess(slices.Index(privacies, p.privacy), slices.Index(privacies, is[privacyLevel]))},
			{runDays, strconv.Itoa(p.retentionDaysOfRuns), is[runDays], byDays(p.retentionDaysOfRuns, is[runDays])},
		}})
	}
	return out, nil
}

// byLevel: a threshold that is higher is stricter.
func byLevel(want skill.TrustLevel, is string) Comparison {
	level := skill.TrustLevel(is)
	switch {
	case level == want:
		return Matches
	case level.AtLeast(want):
		return Stricter
	}
	return Looser
}

// byDays: what is kept for fewer days is stricter, and 0 keeps it for ever.
func byDays(want int, is string) Comparison {
	days, err := strconv.Atoi(is)
	if err != nil || days == 0 {
		return Looser
	}
	return stricterWhenLess(want, days)
}

func stricterWhenLess(want, is int) Comparison {
	return map[int]Comparison{-1: Stricter, 0: Matches, 1: Looser}[cmp.Compare(is, want)]
}
