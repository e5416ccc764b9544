package wording

import (
	"maps"
	"regexp"
	"slices"
	"testing"
)

var place = regexp.MustCompile(`\{[^}]*\}`)

// RULES V6: a code is said in every language, with the same arguments.
func TestEveryLanguageSaysTheSame(t *testing.T) {
	for _, l := range Languages[1:] {
		if !slices.Equal(slices.Sorted(maps.Keys(sentences[English])), slices.Sorted(maps.Keys(sentences[l]))) {
			t.Errorf("en and %s do not say the same codes", l)
		}
	}
	for code, english := range sentences[English] {
		want := slices.Sorted(slices.Values(place.FindAllString(english, -1)))
		for _, l := range Languages {
			said := sentences[l][code]
			if got := slices.Sorted(slices.Values(place.FindAllString(said, -1))); !slices.Equal(got, want) {
				t.Errorf("%s of %s has the places %v, not %v", l, code, got, want)
			}
			for _, p := range place.FindAllString(said, -1) {
				if p != "{0}" && p != "{1}" && p != "{2}" {
					t.Errorf("%s of %s has the place %s, which Say does not fill", l, code, p)
				}
			}
			if len(said) < 10 || said[len(said)-1] != '.' {
				t.Errorf("%s of %s is no sentence: %q", l, code, said)
			}
		}
	}
}

func TestSay(t *testing.T) {
	for _, test := range []struct {
		l    Language
		code string
		args []string
		want string
	}{
		{English, "REQUEUED", []string{"1", "3"}, "The worker that executed the run is gone; it is tried again (1 of 3)."},
		{German, "APPLIED", []string{"page 7"}, "Übernommen: page 7."},
		{English, "APPLIED", nil, "Applied: ."},
		{English, "APPLIED", []string{"{1} of {0}", "x"}, "Applied: {1} of {0}."},
		{German, "FROM_TOMORROW", []string{"a", "b"}, "FROM_TOMORROW a b"},
	} {
		if got := Say(test.l, test.code, test.args...); got != test.want {
			t.Errorf("%s %s: %q", test.l, test.code, got)
		}
	}
}
