package skill

import "testing"

func TestTrust(t *testing.T) {
	levels := []TrustLevel{Untrusted, Community, Verified, FirstParty}
	t.Run("A1 the levels are ordered", func(t *testing.T) {
		for i, level := range levels {
			for j, threshold := range levels {
				if got := level.AtLeast(threshold); got != (i >= j) {
					t.Errorf("%s at least %s: %v", level, threshold, got)
				}
			}
			if parsed, err := ParseTrustLevel(string(level)); err != nil || parsed != level {
				t.Errorf("ParseTrustLevel(%s) = %s, %v", level, parsed, err)
			}
		}
	})
	t.Run("A1 what is no level reaches nothing and is reached by nothing", func(t *testing.T) {
		for _, odd := range []TrustLevel{"", "Verified", "gold"} {
			if odd.AtLeast(Untrusted) || FirstParty.AtLeast(odd) || odd.AtLeast(odd) {
				t.Errorf("%q takes part", odd)
			}
			if _, err := ParseTrustLevel(string(odd)); err == nil {
				t.Errorf("%q was parsed", odd)
			}
		}
	})
	for _, c := range []struct {
		name, minimum, instruction string
		admission, instructing     TrustLevel
	}{
		{"A1 the defaults", "", "", Untrusted, Verified},
		{"A1 as set", "community", "first_party", Community, FirstParty},
		{"A1 an unreadable instruction threshold is first_party", "", "gold", Untrusted, FirstParty},
		{"A1 the instruction threshold is never below admission", "verified", "community", Verified, Verified},
		{"A1 an unreadable admission threshold lets in first_party only", "gold", "verified", FirstParty, FirstParty},
	} {
		t.Run(c.name, func(t *testing.T) {
			admission, instructing := Threshold(c.minimum, c.instruction)
			if admission != c.admission || instructing != c.instructing {
				t.Errorf("Threshold = %s, %s", admission, instructing)
			}
		})
	}
}
