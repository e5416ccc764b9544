// Package guard keeps out of texts what must not be in them: secrets, which are always
// replaced by a marker, and what an operator's rules say of what goes to a model and comes
// from it. It is pure. Text enters whole, as JSON, or piece by piece as a model writes it;
// the pieces of a Stream come out as the whole text would.
//
// A Redactor and a set of rules do not change and may be used by any number of goroutines;
// a Stream belongs to one. The work is linear in the text.
package guard

import "strings"

// Redactor replaces secrets by markers: those that have a shape (Kinds), and those it was
// told. The zero value knows the shapes.
type Redactor struct{ told *told }

// ShortestTold is the least that a secret must have to be looked for by its value: a
// shorter one could not be kept out of texts without garbling them.
const ShortestTold = 8

// New makes a redactor that also replaces these secrets, wherever they stand, in the ways
// in which JSON and URLs write them.
func New(secrets ...string) *Redactor { return &Redactor{told: tell(secrets)} }

// Text is a whole text without its secrets.
func (r *Redactor) Text(text string) string {
	s := r.Stream()
	out := s.Write(text)
	rest := s.Close()
	return out + rest
}

// Marker stands for a secret of a kind.
func Marker(kind string) string { return markerStart + kind + "]" }

const markerStart = "[redacted:"

// Marked says whether a text holds a marker.
func Marked(text string) bool { return strings.Contains(text, markerStart) }
