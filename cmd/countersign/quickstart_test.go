package main

import "testing"

// TestQuickStart does what docs/quickstart.md says, query by query, and holds the
// answers against those that the document shows.
func TestQuickStart(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		w := walkThrough(t, "../../docs/quickstart.md", s)
		if w.sent < 15 {
			t.Errorf("the document holds only %d queries", w.sent)
		}
	})
}
