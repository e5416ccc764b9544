package ingest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/internal/library"
)

// corpusVariable names a folder owner/repo/files… of public skills, which stay
// outside the repository.
const corpusVariable = "COUNTERSIGN_CORPUS"

// tally counts what became of the paths of one source.
type tally struct {
	loaded, repaired, rejected, skipped int
}

func count(got library.Fetched) tally {
	var n tally
	for _, item := range got.Items {
		*map[library.ItemStatus]*int{
			library.ItemLoaded: &n.loaded, library.ItemRepaired: &n.repaired,
			library.ItemRejected: &n.rejected, library.ItemSkipped: &n.skipped,
		}[item.Status]++
	}
	return n
}

// corpusRepos is what every repository gives as a source of type repo.
var corpusRepos = map[string]tally{
	"AgentWorkers/skills":             {loaded: 4, repaired: 2, rejected: 9, skipped: 1},
	"UiPath/skills":                   {rejected: 1},
	"addyosmani/agent-skills":         {loaded: 19},
	"affaan-m/everything-claude-code": {loaded: 1},
	"block/agent-skills":              {loaded: 7},
	"dotnet/skills":                   {loaded: 33, skipped: 2},
	"getsentry/skills":                {loaded: 27},
	"github/awesome-copilot":          {loaded: 1},
	"mattpocock/skills":               {loaded: 41},
	"obra/superpowers":                {loaded: 14},
	"openclaw/skills":                 {loaded: 1, rejected: 2},
	"secondsky/claude-skills":         {skipped: 1},
	"wshobson/agents":                 {loaded: 181},
}

// corpusMarkets is the same for those with a marketplace.json, read as
// marketplaces: plugin.json of mattpocock/skills lists 22 of its 41 skills,
// dotnet/skills has two skills outside its plugins, and of the plugins of
// wshobson/agents 41 bring no skills and one lies in a repository that the corpus lacks.
var corpusMarkets = map[string]tally{
	"addyosmani/agent-skills": {loaded: 19},
	"dotnet/skills":           {loaded: 31, skipped: 4},
	"getsentry/skills":        {loaded: 27},
	"mattpocock/skills":       {loaded: 22, skipped: 19},
	"obra/superpowers":        {loaded: 14},
	"wshobson/agents":         {loaded: 181, rejected: 1, skipped: 41},
}

// corpusReasons is why files of the corpus were not loaded, when no folder is
// left out.
var corpusReasons = map[string]int{
	"no_frontmatter": 3, "frontmatter_not_first": 3, "frontmatter_not_closed": 1, "control_character": 2, "not_a_mapping": 1,
	"duplicate_key": 1, "name_missing": 1, "not_yaml": 1, "case_conflict": 1,
}

// corpus builds a mirror of bare repositories from the corpus and returns the
// files of each. Without the corpus it reports false, or fails where CI must have it.
func corpus(t *testing.T) (mirror string, repos map[string]tree, ok bool) {
	t.Helper()
	dir := os.Getenv(corpusVariable)
	if dir == "" && os.Getenv("CI") == "true" {
		t.Fatalf("%s is not set: it names the folder of public skills that this test must read", corpusVariable)
	}
	if dir == "" {
		t.Logf("%s is not set: the corpus was not read", corpusVariable)
		return "", nil, false
	}
	repos, mirror = map[string]tree{}, t.TempDir()
	check(t, filepath.WalkDir(dir, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, at)
		check(t, err)
		parts := strings.SplitN(filepath.ToSlash(rel), "/", 3)
		if len(parts) < 3 {
			return nil // the corpus describes itself at its root
		}
		name := parts[0] + "/" + parts[1]
		if repos[name] == nil {
			repos[name] = tree{}
		}
		repos[name][parts[2]] = string(content(t, at))
		return nil
	}))
	for name, files := range repos {
		inMirror(t, mirror, name, files)
	}
	return mirror, repos, true
}

func TestCorpus(t *testing.T) {
	mirror, repos, ok := corpus(t)
	if !ok {
		return
	}
	if len(repos) != len(corpusRepos) {
		t.Errorf("the corpus holds %d repositories, want %d", len(repos), len(corpusRepos))
	}
	for name, files := range repos {
		t.Run("S4 every file of "+name+" is accounted for", func(t *testing.T) {
			got, err := fetch(Mirror(mirror), library.Origin{Type: library.Repo, URL: "https://github.com/" + name})
			check(t, err)
			if n, want := count(got), corpusRepos[name]; n != want {
				t.Errorf("%+v, want %+v", n, want)
			}
			wantEveryFile(t, got, files, "")
		})
		t.Run("S3 over GitHub "+name+" gives the same", func(t *testing.T) {
			got, err := fetch(onShelf(t, map[string]tree{name: files}).host(), library.Origin{Type: library.Repo, URL: "https://github.com/" + name})
			check(t, err)
			if n, want := count(got), corpusRepos[name]; n != want {
				t.Errorf("%+v, want %+v", n, want)
			}
		})
		if files[marketplaceFile] == "" {
			continue
		}
		t.Run("S3 the marketplace "+name+" loses no file", func(t *testing.T) {
			got, err := fetch(Mirror(mirror), library.Origin{Type: library.Marketplace, URL: "https://github.com/" + name})
			check(t, err)
			if n, want := count(got), corpusMarkets[name]; n != want {
				t.Errorf("%+v, want %+v", n, want)
			}
			wantEveryFile(t, got, files, name+"/")
		})
	}
	t.Run("S4 of 346 skill files 331 are loaded, 2 repaired and 13 rejected", func(t *testing.T) {
		nothing := SkipRule{Folder: regexp.MustCompile(`^\x00$`)}
		all, reasons := tally{}, map[string]int{}
		for name := range repos {
			got, err := New(Mirror(mirror), nothing).Fetch(ctx, repoAt(name, ""), library.FetchLimits{}, nil)
			check(t, err)
			n := count(got)
			all = tally{all.loaded + n.loaded, all.repaired + n.repaired, all.rejected + n.rejected, all.skipped + n.skipped}
			for _, item := range got.Items {
				if item.Code != "" {
					reasons[item.Code]++
				}
			}
		}
		if want := (tally{331, 2, 13, 1}); all != want {
			t.Errorf("%+v, want %+v", all, want)
		}
		if diff := cmp.Diff(corpusReasons, reasons); diff != "" {
			t.Errorf("reasons (-want +got):\n%s", diff)
		}
	})
}

// wantEveryFile holds that each skill file of a tree, in whatever case, is in
// exactly one item, and that an item for a path has a file behind it.
func wantEveryFile(t *testing.T, got library.Fetched, files tree, prefix string) {
	t.Helper()
	times := map[string]int{}
	for _, item := range got.Items {
		times[item.Path]++
		if item.Status != library.ItemLoaded && item.Reason == "" {
			t.Errorf("%s is %s without a reason", item.Path, item.Status)
		}
	}
	for at := range files {
		if strings.EqualFold(filepath.Base(at), skillFile) && times[prefix+at] != 1 {
			t.Errorf("%s is in %d items", at, times[prefix+at])
		}
	}
}
