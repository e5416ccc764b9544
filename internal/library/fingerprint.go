package library

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"slices"

	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/skill"
)

// fingerprintMismatch is why a source with an expected fingerprint was not stored.
type fingerprintMismatch struct {
	*fault.Refused
	expected, computed string
}

func (m *fingerprintMismatch) Unwrap() error { return m.Refused }

// checkFingerprint holds what was fetched against the fingerprint the source
// expects, if it expects one (RULES S10). Nothing to vouch for does not match.
func checkFingerprint(s Source, fetched Fetched) error {
	if s.ExpectedFingerprint == "" {
		return nil
	}
	computed := fingerprint(fetched)
	if computed != "" && subtle.ConstantTimeCompare([]byte(computed), []byte(s.ExpectedFingerprint)) == 1 {
		return nil
	}
	return &fingerprintMismatch{
		Refused:  fault.Refuse(fault.SyncFailed, "The skills of %q do not have the expected fingerprint; nothing was stored.", s.Title),
		expected: s.ExpectedFingerprint, computed: computed,
	}
}

// fingerprint is the SHA-256, in hexadecimal, over the sorted lines
// identifier:sha256(body), each with an LF; empty without any.
func fingerprint(fetched Fetched) string {
	var lines []string
	for _, item := range fetched.Items {
		if item.Status == ItemLoaded || item.Status == ItemRepaired {
			lines = append(lines, item.Identifier+":"+skill.BodyChecksum(item.File.Version.Body)+"\n")
		}
	}
	if len(lines) == 0 {
		return ""
	}
	slices.Sort(lines)
	h := sha256.New()
	for _, line := range lines {
		h.Write([]byte(line))
	}
	return hex.EncodeToString(h.Sum(nil))
}
