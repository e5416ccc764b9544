package library_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/ingest"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/skill"
)

// corpusVariable names a folder owner/repo/files… of public skills, which stay
// outside the repository.
const corpusVariable = "COUNTERSIGN_CORPUS"

// corpus reads the corpus, by repository and path. Without one it reports false, or
// fails where CI must have it.
func corpus(t *testing.T) (repos map[string]map[string]string, ok bool) {
	t.Helper()
	dir := os.Getenv(corpusVariable)
	if dir == "" && os.Getenv("CI") == "true" {
		t.Fatalf("%s is not set: it names the folder of public skills that this test must read", corpusVariable)
	}
	if dir == "" {
		t.Logf("%s is not set: the corpus was not read", corpusVariable)
		return nil, false
	}
	repos = map[string]map[string]string{}
	err := filepath.WalkDir(dir, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, at)
		if err != nil {
			return err
		}
		parts := strings.SplitN(filepath.ToSlash(rel), "/", 3)
		if len(parts) < 3 {
			return nil // the corpus describes itself at its root
		}
		content, err := os.ReadFile(at)
		name := parts[0] + "/" + parts[1]
		if repos[name] == nil {
			repos[name] = map[string]string{}
		}
		repos[name][parts[2]] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(repos) == 0 {
		t.Fatalf("%s holds nothing", dir)
	}
	return repos, true
}

// accounted fails unless every skill file of a repository is in exactly one item of a
// report, and whatever was not loaded has a reason.
func accounted(t *testing.T, r library.Report, files map[string]string) {
	t.Helper()
	times := map[string]int{}
	for _, item := range r.Items {
		times[item.Path]++
		if item.Reason == "" && (item.Status == library.ItemRejected || item.Status == library.ItemSkipped || item.Status == library.ItemRepaired) {
			t.Errorf("%s is %s without a reason", item.Path, item.Status)
		}
	}
	for at := range files {
		if strings.EqualFold(path.Base(at), "SKILL.md") && times[at] != 1 {
			t.Errorf("%s is in %d items", at, times[at])
		}
	}
}

func TestCorpus(t *testing.T) {
	repos, ok := corpus(t)
	if !ok {
		return
	}
	mirror := t.TempDir()
	for name, files := range repos {
		inMirror(t, mirror, name, files)
	}
	onBoth(t, func(t *testing.T, setUp func(*testing.T) *fixture) {
		f := setUp(t)
		f.Fetcher = ingest.New(ingest.Mirror(mirror))
		f.rules.values.SyncMaxFiles = 10_000
		for _, name := range sorted(repos) {
			f.source = f.newSource(library.Repo, "https://github.com/"+name, skill.Verified)
			t.Run("S4 a first sync of "+name+" loses nothing silently, and a second finds the same", func(t *testing.T) {
				one := f.sync()
				accounted(t, one, repos[name])
				two := f.sync()
				accounted(t, two, repos[name])
				if two.Loaded != 0 || two.Repaired != 0 || two.Orphaned != 0 || two.Unchanged != one.Loaded+one.Repaired {
					t.Errorf("the second sync says %d loaded, %d repaired, %d orphaned, %d unchanged after %+v", two.Loaded, two.Repaired, two.Orphaned, two.Unchanged, one)
				}
				for i, item := range one.Items {
					again := two.Items[i]
					again.Status, item.Reason = item.Status, again.Reason
					if kept := item.Status == library.ItemRejected || item.Status == library.ItemSkipped; again != item || kept && two.Items[i].Status != item.Status {
						t.Errorf("first %+v, then %+v", item, two.Items[i])
					}
				}
			})
		}
		t.Run("S7 one key of one frontmatter disables exactly that skill", func(t *testing.T) { oneKey(t, f, repos) })
	})
}

// oneKey enables every skill of the largest repository and changes one key of one
// file.
func oneKey(t *testing.T, f *fixture, repos map[string]map[string]string) {
	name := slices.MaxFunc(sorted(repos), func(a, b string) int { return len(repos[a]) - len(repos[b]) })
	files := map[string]string{}
	for at, content := range repos[name] {
		files[at] = content
	}
	const copied = "acme/edited"
	mirror := t.TempDir()
	f.Fetcher = ingest.New(ingest.Mirror(mirror))
	inMirror(t, mirror, copied, files)
	f.source = f.newSource(library.Repo, "https://github.com/"+copied, skill.Verified)
	report := f.sync()
	for _, item := range report.Items {
		if item.Status == library.ItemLoaded {
			f.enabled(item.SkillID)
		}
	}
	at := slices.IndexFunc(report.Items, func(i library.ReportItem) bool { return i.Status == library.ItemLoaded })
	target := report.Items[at]
	edited := strings.Replace(files[target.Path], "\ndescription:", "\nallowed-tools: get_page\ndescription:", 1)
	if edited == files[target.Path] || f.reread(target.SkillID).Skill.Version.Tools.Declares() {
		t.Fatalf("%s cannot take one more key", target.Path)
	}
	files[target.Path] = edited
	inMirror(t, mirror, copied, files)
	second := f.sync()
	if second.Loaded != 1 || second.Unchanged != report.Loaded+report.Repaired-1 {
		t.Errorf("%d loaded, %d unchanged of %d", second.Loaded, second.Unchanged, report.Found)
	}
	for _, item := range report.Items {
		if item.Status == library.ItemLoaded && f.reread(item.SkillID).Skill.Enabled == (item.Path == target.Path) {
			t.Errorf("%s: enabled is %v", item.Path, item.Path == target.Path)
		}
	}
	if e := f.once(audit.IngestDisabledOnChange); e.Skill != target.SkillID {
		t.Errorf("%+v", e)
	}
}
