package skill

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// corpusFolder is where public skill files are kept for tests; they are not part of the repository.
const corpusFolder = "COUNTERSIGN_CORPUS"

// TestCorpus reads real public skill files. Every one is read, repaired or rejected, and what becomes of each kind is counted.
func TestCorpus(t *testing.T) {
	root := os.Getenv(corpusFolder)
	if root == "" {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not set: name the folder of public skill files", corpusFolder)
		}
		t.Logf("%s is not set: no public skill files were read", corpusFolder)
		return
	}
	counts := map[string]int{}
	repaired := map[string]bool{}
	for path, data := range corpusFiles(t, root) {
		file, err := Parse(data)
		var rejection *Rejection
		switch {
		case errors.As(err, &rejection):
			counts[string(rejection.Code)]++
			t.Logf("%s: %v", path, err)
		case err != nil:
			t.Errorf("%s: %v is no rejection", path, err)
		default:
			counts[string(file.Status)]++
			if file.Status == ParseRepaired {
				repaired[filepath.Base(filepath.Dir(path))] = true
			}
		}
	}
	t.Run("S4 every public file is read, repaired or rejected with its reason", func(t *testing.T) {
		want := map[string]int{
			"ok": 331, "repaired": 2,
			string(RejectNoFrontmatter): 3, string(RejectFrontmatterNotFirst): 3, string(RejectFrontmatterNotClosed): 1,
			string(RejectControlCharacter): 2, string(RejectNotMapping): 1, string(RejectDuplicateKey): 1, string(RejectNameMissing): 1,
			string(RejectNotYAML): 1,
		}
		if diff := cmp.Diff(want, counts); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
	})
	t.Run("S4 the repaired public files are the ones that need it", func(t *testing.T) {
		want := map[string]bool{"agent-memory-pro": true, "video-pro-cza": true}
		if diff := cmp.Diff(want, repaired); diff != "" {
			t.Errorf("repaired (-want +got):\n%s", diff)
		}
	})
}

// corpusFiles reads every file that is named exactly SKILL.md below a folder.
func corpusFiles(tb testing.TB, root string) map[string][]byte {
	tb.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "SKILL.md" {
			return err
		}
		files[path], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		tb.Fatalf("read the corpus: %v", err)
	}
	return files
}
