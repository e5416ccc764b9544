// Package emoji knows which characters are emoji. Go's unicode package has no table for it, and a review needs one to tell an emoji's invisible
// selector from an invisible character that hides something. Pure data; safe for any number of goroutines.
package emoji

import "unicode"

//go:generate go run gen.go emoji-data.txt table.go

// Is tells whether a character has the Unicode property Emoji. ASCII digits, # and * have it too, because keycaps are made of them.
func Is(r rune) bool { return unicode.Is(table, r) }
