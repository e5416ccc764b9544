package skill

import "fmt"

// TrustLevel says what a source is. It never says anything about a text: that is what an approval is for.
type TrustLevel string

const (
	Untrusted  TrustLevel = "untrusted"
	Community  TrustLevel = "community"
	Verified   TrustLevel = "verified"
	FirstParty TrustLevel = "first_party"
)

// trustOrder ranks the levels (RULES A1). A value that is no level has rank 0 and reaches nothing.
var trustOrder = map[TrustLevel]int{Untrusted: 1, Community: 2, Verified: 3, FirstParty: 4}

// ParseTrustLevel reads a level as settings and the database write it.
func ParseTrustLevel(text string) (TrustLevel, error) {
	level := TrustLevel(text)
	if trustOrder[level] == 0 {
		return "", fmt.Errorf("trust level %q is none of untrusted, community, verified, first_party", clip(text, 40))
	}
	return level, nil
}

// AtLeast tells whether the level reaches the threshold. It is false when either is no level: what cannot be read reaches nothing and is reached by nothing.
func (l TrustLevel) AtLeast(threshold TrustLevel) bool {
	rank, wanted := trustOrder[l], trustOrder[threshold]
	return rank > 0 && wanted > 0 && rank >= wanted
}

// Threshold reads the two settings of RULES A1 as they are stored: the level that gates admission and the level that gates instructing. Not set means
// the default (untrusted, verified); unreadable means first_party; the second is never below the first.
func Threshold(minTrustLevel, instructionTrustLevel string) (admission, instructing TrustLevel) {
	admission = levelOr(minTrustLevel, Untrusted)
	instructing = levelOr(instructionTrustLevel, Verified)
	if !instructing.AtLeast(admission) {
		instructing = admission
	}
	return admission, instructing
}

func levelOr(text string, unset TrustLevel) TrustLevel {
	if text == "" {
		return unset
	}
	level, err := ParseTrustLevel(text)
	if err != nil {
		return FirstParty
	}
	return level
}
