package skill

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"unsafe"
)

// Digest names one version: the format and the SHA-256 of its canonical form, `1:<64 hex>` (RULES D2). The empty digest is a legacy row's: none.
type Digest string

const (
	digestPrefix = "1:"
	// versionFormat opens the canonical form. A field that starts to be read later joins under format 2; this one stays as it is, so that old
	// approvals remain verifiable (RULES D3).
	versionFormat = "countersign/version/1\n"
)

// ParseDigest checks the shape of a digest that comes from outside: `1:` and 64 lower-case hexadecimal digits.
func ParseDigest(text string) (Digest, error) {
	digits, known := strings.CutPrefix(text, digestPrefix)
	if !known {
		return "", fmt.Errorf("digest %q does not begin with %q, the only format known here", clip(text, 80), digestPrefix)
	}
	if len(digits) != 2*sha256.Size || strings.Trim(digits, "0123456789abcdef") != "" {
		return "", fmt.Errorf("digest %q is not %s followed by 64 lower-case hexadecimal digits", clip(text, 80), digestPrefix)
	}
	return Digest(text), nil
}

// Digest computes the version's digest. It is the one digest function: the sync's change test, the compose-time integrity check, approvals,
// revocations and pins all use it (RULES D5).
func (v Version) Digest() Digest {
	h := sha256.New()
	v.writeCanonical(h)
	return Digest(digestPrefix + hex.EncodeToString(h.Sum(nil)))
}

// writeCanonical writes the canonical form of RULES D2. A state outside the known ones is written as unreadable, as it is treated everywhere.
func (v Version) writeCanonical(w io.Writer) {
	w.Write([]byte(versionFormat))
	for _, text := range []string{v.Name, v.Description, v.Body, string(v.Support)} {
		writeText(w, text)
	}
	switch v.Tools.State {
	case ToolsUndeclared:
		w.Write([]byte{0})
	case ToolsDeclared:
		w.Write([]byte{1})
		items := DeclareTools(v.Tools.Items...).Items
		writeCount(w, len(items))
		for _, item := range items {
			writeText(w, item)
		}
	default:
		w.Write([]byte{2})
	}
	switch v.Process {
	case ProcessNo:
		w.Write([]byte{0})
	case ProcessYes:
		w.Write([]byte{1})
	default:
		w.Write([]byte{2})
	}
}

func writeCount(w io.Writer, n int) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(n))
	w.Write(size[:])
}

// writeText writes an 8-byte big-endian length and the bytes of the text. The bytes are lent to the hash, not copied: bodies are up to 512 KiB and
// are hashed at every composition. A hash never keeps or changes what it is given, which makes the loan safe.
func writeText(w io.Writer, text string) {
	writeCount(w, len(text))
	w.Write(bytesOf(text))
}

func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// BodyChecksum is the SHA-256 of the body alone, in hexadecimal. Only the signed manifest and the check of legacy rows read it (RULES D4).
func BodyChecksum(body string) string {
	sum := sha256.Sum256(bytesOf(body))
	return hex.EncodeToString(sum[:])
}

// Changed tells whether an incoming version differs from what is stored, frontmatter included (RULES D8, S7). A legacy row has no stored digest: the
// digest of its stored fields stands in, so that a frontmatter-only change is a change and an unchanged skill is not disabled for being legacy.
func Changed(storedDigest Digest, stored, incoming Version) bool {
	if storedDigest == "" {
		storedDigest = stored.Digest()
	}
	return storedDigest != incoming.Digest()
}

// clip shortens text for a message, at a character's boundary.
func clip(text string, max int) string {
	if len(text) <= max {
		return text
	}
	cut := max
	for cut > 0 && text[cut]&0xC0 == 0x80 {
		cut--
	}
	return text[:cut] + "…"
}
