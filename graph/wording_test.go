package graph

import (
	"maps"
	"slices"
	"testing"

	"github.com/countersign/countersign/internal/chat"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/wording"
)

// RULES V6: every outcome and every notice has a sentence in every language, and no
// sentence is left of a code that is gone.
func TestEveryCodeHasItsSentence(t *testing.T) {
	codes := slices.Clone(chat.Notices)
	for _, o := range chat.Outcomes {
		codes = append(codes, string(o))
	}
	for _, n := range run.Notices {
		codes = append(codes, string(n))
	}
	slices.Sort(codes)
	for _, l := range wording.Languages {
		if said := slices.Sorted(maps.Keys(wording.Sentences(l))); !slices.Equal(said, codes) {
			t.Errorf("%s says %v\nbut there are %v", l, said, codes)
		}
	}
}
