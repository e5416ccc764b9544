package prompt

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Snippet is a text that joins a system message under its name. Mark is the digest
// of the block that an administrator marked, empty when nobody did.
type Snippet struct {
	Name string
	Text string
	Mark string
}

// Block is what a snippet adds to a system message: its name, a colon, a line break
// and its trimmed text (RULES N1).
func (s Snippet) Block() string { return s.Name + ":\n" + strings.TrimSpace(s.Text) }

// Digest is the SHA-256 of the block's bytes in hexadecimal digits.
func (s Snippet) Digest() string {
	sum := sha256.Sum256([]byte(s.Block()))
	return hex.EncodeToString(sum[:])
}

// Marked reports whether the present block is the one that was marked: any edit of
// name or text ends the mark by mismatch (RULES N4).
func (s Snippet) Marked() bool { return s.Mark == s.Digest() }
