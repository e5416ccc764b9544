package ingest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/countersign/countersign/internal/skill"
)

// Bounds of one skill's bundle. A bundle over a limit is not measured in part:
// its digest would vouch for files that nobody counted, so the skill is rejected.
const (
	maxBundleFile  = 32 << 20
	maxBundleBytes = 128 << 20
	maxBundleFiles = 5_000
)

// bundle measures every file under a skill's folder, SKILL.md and binaries
// included; a link counts with its target's text, a submodule with its commit.
func (s *snapshot) bundle(ctx context.Context, folder string, entries []Entry) ([]skill.BundleFile, *outcome, error) {
	if len(entries) > maxBundleFiles {
		return nil, refused("bundle_too_large", "the skill's folder holds %d files; the limit is %d", len(entries), maxBundleFiles), nil
	}
	files := make([]skill.BundleFile, 0, len(entries))
	var total int64
	for _, entry := range entries {
		measured, err := s.measure(ctx, entry)
		var large *tooLarge
		if errors.As(err, &large) {
			return nil, refused("bundle_too_large", "%s has %d bytes; the limit for a bundled file is %d",
				printable(entry.Path), large.size, large.max), nil
		}
		if err != nil {
			return nil, nil, err
		}
		if total += measured.size; total > maxBundleBytes {
			return nil, refused("bundle_too_large", "the files in the skill's folder exceed %d bytes together", maxBundleBytes), nil
		}
		files = append(files, skill.BundleFile{
			Path: printable(below(entry.Path, folder)), Mode: string(entry.Mode), Size: measured.size, SHA256: measured.sha256,
		})
	}
	return files, nil, nil
}

func (s *snapshot) measure(ctx context.Context, entry Entry) (measure, error) {
	if known, ok := s.hashed[entry.Hash]; ok {
		return known, nil
	}
	content := []byte(entry.Hash)
	if entry.Mode != modeSubmodule {
		var err error
		if content, err = s.repo.Blob(ctx, entry.Hash, maxBundleFile); err != nil {
			return measure{}, err
		}
	}
	sum := sha256.Sum256(content)
	s.hashed[entry.Hash] = measure{size: int64(len(content)), sha256: hex.EncodeToString(sum[:])}
	return s.hashed[entry.Hash], nil
}
