package storetest

import (
	"testing"

	"github.com/countersign/countersign/internal/store"
)

// RunAll holds a store to what the ports and the package change promise. open gives
// an empty one.
func RunAll(t *testing.T, open func(t *testing.T) *store.Store) {
	for name, test := range map[string]func(*testing.T, *store.Store){
		"Guards":         guards,
		"Batches":        batches,
		"Keys":           keys,
		"Races":          races,
		"Sequences":      sequences,
		"Events":         events,
		"Trail":          trail,
		"TrailPages":     trailPages,
		"Access":         accessReads,
		"Sources":        sources,
		"Skills":         skills,
		"Dossiers":       dossiers,
		"Uses":           uses,
		"Configurations": configurations,
		"Snippets":       snippets,
		"Tasks":          tasks,
		"Runs":           runs,
		"RunPages":       runPages,
		"States":         states,
		"Content":        contentReads,
		"Search":         search,
		"Contexts":       contexts,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}
