package ingest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/skill"
)

var ctx = context.Background()

func TestDiscovery(t *testing.T) {
	ten := strings.Repeat("d/", 10)
	cases := []struct {
		name  string
		files tree
		want  []string
	}{
		{
			"S3 SKILL.md is found at any depth up to ten folders",
			tree{"SKILL.txt": "x", ten + "SKILL.md": aSkill("a"), "e/" + ten + "SKILL.md": aSkill("b"), "x/SKILL.md": aSkill("c")},
			[]string{ten + "SKILL.md loaded", "e/" + ten + "SKILL.md skipped too_deep", "x/SKILL.md loaded"},
		},
		{
			"S4 one bad file never stops a sync, and each says what became of it",
			tree{"a/SKILL.md": aSkill("a"), "b/SKILL.md": aBrokenSkill, "c/SKILL.md": aRepairable, "d/SKILL.md": "---\nname: d\n"},
			[]string{"a/SKILL.md loaded", "b/SKILL.md rejected no_frontmatter", "c/SKILL.md repaired", "d/SKILL.md rejected frontmatter_not_closed"},
		},
		{
			"S3 other cases are reported, and beside SKILL.md they lose",
			tree{"a/skill.md": aSkill("a"), "b/SKILL.md": aSkill("b"), "b/Skill.md": aSkill("b2"), "b/skill.MD": aSkill("b3"), "c/SKILL.MD": aSkill("c")},
			[]string{
				"a/skill.md skipped case_variant", "b/SKILL.md loaded", "b/Skill.md skipped case_conflict",
				"b/skill.MD skipped case_conflict", "c/SKILL.MD skipped case_variant",
			},
		},
		{
			"S3 a valid skill's folder stops descent, an invalid one does not",
			tree{"a/SKILL.md": aSkill("a"), "a/B/SKILL.md": aSkill("ab"), "c/SKILL.md": aBrokenSkill, "c/d/SKILL.md": aSkill("cd"), "ab/SKILL.md": aSkill("other")},
			[]string{
				"a/B/SKILL.md skipped nested", "a/SKILL.md loaded", "ab/SKILL.md loaded",
				"c/SKILL.md rejected no_frontmatter", "c/d/SKILL.md loaded",
			},
		},
		{
			"S3 a repaired skill stops descent too",
			tree{"a/SKILL.md": aRepairable, "a/b/SKILL.md": aSkill("ab")},
			[]string{"a/SKILL.md repaired", "a/b/SKILL.md skipped nested"},
		},
		{
			"S3 folders on the skip list are left out and listed",
			tree{
				"node_modules/x/SKILL.md": aSkill("a"), "x/vendor/SKILL.md": aSkill("b"), "backups/SKILL.md": aSkill("c"),
				"templates/a/SKILL.md": aSkill("d"), "tests/fixtures/SKILL.md": aSkill("e"), "testdata/SKILL.md": aSkill("f"),
				"docs/ja-JP/s/SKILL.md": aSkill("g"), "docs/zh/SKILL.md": aSkill("h"), "docs/zh-Hans/SKILL.md": aSkill("i"),
				"docs/ml/SKILL.md": aSkill("j"), "docs/guide/SKILL.md": aSkill("k"), "vendored/SKILL.md": aSkill("l"), "my-templates/SKILL.md": aSkill("m"),
			},
			[]string{
				"backups/SKILL.md skipped skipped_folder", "docs/guide/SKILL.md loaded", "docs/ja-JP/s/SKILL.md skipped skipped_folder",
				"docs/ml/SKILL.md loaded", "docs/zh-Hans/SKILL.md skipped skipped_folder", "docs/zh/SKILL.md skipped skipped_folder",
				"my-templates/SKILL.md loaded", "node_modules/x/SKILL.md skipped skipped_folder", "templates/a/SKILL.md skipped skipped_folder",
				"testdata/SKILL.md skipped skipped_folder", "tests/fixtures/SKILL.md skipped skipped_folder",
				"vendored/SKILL.md loaded", "x/vendor/SKILL.md skipped skipped_folder",
			},
		},
		{
			"S3 links are aliases of what they lead to inside the tree",
			tree{
				"real/a/SKILL.md": aSkill("a"), ".claude/skills": asLink + "../real", "b/SKILL.md": asLink + "../real/a/SKILL.md",
				"c": asLink + ".claude/skills/a", "plain": asLink + "docs", "docs/x.md": "x",
			},
			[]string{".claude/skills skipped alias", "b/SKILL.md skipped alias", "c skipped alias", "real/a/SKILL.md loaded"},
		},
		{
			"S3 a link to a file of another name is read with that file's content",
			tree{"a/SKILL.md": asLink + "../AGENTS.md", "AGENTS.md": aSkill("agents")},
			[]string{"a/SKILL.md loaded"},
		},
		{
			"S3 links that lead nowhere are rejected, each with its reason",
			tree{
				"a/SKILL.md": asLink + "gone.md", "b/SKILL.md": asLink + "/etc/passwd", "c/SKILL.md": asLink + "../../up/SKILL.md",
				"d/SKILL.md": asLink + "SKILL.md", "e/SKILL.md": asLink + "../f", "f/x": "x", "g/SKILL.md": asLink + `C:\x`, "h/SKILL.md": asLink + "../sub/SKILL.md", "sub": someSubmodule,
			},
			[]string{
				"a/SKILL.md rejected link_dangling", "b/SKILL.md rejected link_absolute", "c/SKILL.md rejected link_escapes",
				"d/SKILL.md rejected link_loop", "e/SKILL.md rejected link_to_folder", "g/SKILL.md rejected link_absolute",
				"h/SKILL.md rejected link_dangling", "sub skipped submodule",
			},
		},
		{
			"S3 a submodule or a folder called SKILL.md is no skill file",
			tree{"a/SKILL.md": someSubmodule, "b/SKILL.md/x": "x"},
			[]string{"a/SKILL.md skipped submodule"},
		},
		{
			"S3 a path that cannot be shown is rejected by its quoted name",
			tree{"a\nb/SKILL.md": aSkill("a"), "\xff/SKILL.md": aSkill("b"), "ok ✅/SKILL.md": aSkill("c")},
			[]string{`"\xff/SKILL.md" rejected path_unreadable`, `"a\nb/SKILL.md" rejected path_unreadable`, "ok ✅/SKILL.md loaded"},
		},
		{
			"S3 a skill file over the limit is rejected for its size",
			tree{"a/SKILL.md": aSkill("a") + strings.Repeat("x", maxSkillFile), "b/SKILL.md": aSkill("b") + strings.Repeat("x", 600<<10)},
			[]string{"a/SKILL.md rejected too_large", "b/SKILL.md rejected body_too_large"},
		},
		{
			"S3 a bundle that cannot be measured whole is rejected",
			tree{"a/SKILL.md": aSkill("a"), "a/big.bin": strings.Repeat("x", maxBundleFile+1)},
			[]string{"a/SKILL.md rejected bundle_too_large"},
		},
	}
	crowded, heavy := tree{"a/SKILL.md": aSkill("a")}, tree{"a/SKILL.md": aSkill("a")}
	for i := range maxBundleFiles {
		crowded[fmt.Sprintf("a/%d", i)] = "x"
	}
	for i := range maxBundleBytes/maxBundleFile + 1 {
		heavy[fmt.Sprintf("a/%d", i)] = strings.Repeat("x", maxBundleFile)
	}
	for name, files := range map[string]tree{"too many files": crowded, "too many bytes": heavy} {
		t.Run("S3 a bundle with "+name+" is rejected", func(t *testing.T) {
			wantLines(t, fetchTree(t, files), "a/SKILL.md rejected bundle_too_large")
		})
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := fetchTree(t, c.files)
			wantLines(t, got, c.want...)
			for _, item := range got.Items {
				loaded := item.Status == library.ItemLoaded
				if loaded == (item.Reason != "") || (item.Status == library.ItemRejected || item.Status == library.ItemSkipped) != (item.Code != "") {
					t.Errorf("%s is %s with code %q and reason %q", item.Path, item.Status, item.Code, item.Reason)
				}
				if item.Scope != "o/r" {
					t.Errorf("%s has the scope %q", item.Path, item.Scope)
				}
			}
		})
	}
}

func TestFindings(t *testing.T) {
	got := fetchTree(t, tree{
		"a/SKILL.md": aSkill("a"), "dangling": asLink + "nowhere", "absolute": asLink + "/etc", "a/escaping": asLink + "../../x", "sub": someSubmodule, "a/sub": someSubmodule,
	})
	t.Run("S3 dangling, absolute and escaping links and submodules are findings", func(t *testing.T) {
		for _, part := range []string{
			"the link dangling leads to nowhere", "the link absolute has the absolute", "the link a/escaping leads out", "sub is a submodule at 1234",
		} {
			wantFinding(t, got, part)
		}
	})
	t.Run("S3 a submodule in a skill's folder is one of its files", func(t *testing.T) {
		wantLines(t, got, "a/SKILL.md loaded", "sub skipped submodule")
		if len(itemAt(t, got, "a/SKILL.md").Bundle) != 3 {
			t.Errorf("bundle: %+v", itemAt(t, got, "a/SKILL.md").Bundle)
		}
	})
	t.Run("S3 nothing found differs from nothing fetched", func(t *testing.T) {
		empty := fetchTree(t, tree{"README.md": "x"})
		wantFinding(t, empty, "holds no SKILL.md")
		if len(empty.Items) != 0 || len(empty.Reached) != 1 || empty.Commit == "" {
			t.Errorf("fetched %+v", empty)
		}
	})
	t.Run("S3 findings are bounded and the rest is counted", func(t *testing.T) {
		many := tree{}
		for range 250 {
			many[strings.Repeat("x", len(many)+1)] = asLink + "nowhere"
		}
		flood := fetchTree(t, many)
		if len(flood.Findings) != maxFindings+1 {
			t.Errorf("%d findings", len(flood.Findings))
		}
		wantFinding(t, flood, "more findings are not listed")
	})
}

func TestIdentity(t *testing.T) {
	t.Run("S6 the identifier is the folder's path in the source, a dot at the root", func(t *testing.T) {
		got := fetchTree(t, tree{"skills/a/SKILL.md": aSkill("a")})
		if id := itemAt(t, got, "skills/a/SKILL.md").Identifier; id != "skills/a" {
			t.Errorf("identifier %q", id)
		}
		got = fetchTree(t, tree{"SKILL.md": aSkill("root"), "skills/a/SKILL.md": aSkill("a")})
		if id := itemAt(t, got, "SKILL.md").Identifier; id != "." {
			t.Errorf("identifier %q", id)
		}
		wantLines(t, got, "SKILL.md loaded", "skills/a/SKILL.md skipped nested")
	})
	t.Run("S6 a marketplace puts owner/repo in front", func(t *testing.T) {
		got := fetchMarket(t, `{"plugins":[{"name":"p","source":"./p"},{"name":"q","source":{"source":"github","repo":"x/y"}}]}`,
			tree{"p/a/SKILL.md": aSkill("a")}, map[string]tree{"x/y": {"SKILL.md": aSkill("root")}})
		for at, want := range map[string]string{"o/r/p/a/SKILL.md": "o/r/p/a", "x/y/SKILL.md": "x/y"} {
			if id := itemAt(t, got, at).Identifier; id != want {
				t.Errorf("%s has the identifier %q, want %q", at, id, want)
			}
		}
	})
}

func TestBundle(t *testing.T) {
	sum := func(text string) string { h := sha256.Sum256([]byte(text)); return hex.EncodeToString(h[:]) }
	got := fetchTree(t, tree{
		"a/SKILL.md": aSkill("a"), "a/scripts/run.sh": asScript + "#!/bin/sh\n", "a/assets/x.bin": "\x00\xff", "a/link": asLink + "assets",
		"a/nested/SKILL.md": aSkill("n"), "ab/other.md": "not in the folder", "README.md": "x",
	})
	t.Run("S3 a bundle is every file under the skill's folder with path, mode, size and hash", func(t *testing.T) {
		want := []skill.BundleFile{
			{Path: "SKILL.md", Mode: "100644", Size: int64(len(aSkill("a"))), SHA256: sum(aSkill("a"))},
			{Path: "assets/x.bin", Mode: "100644", Size: 2, SHA256: sum("\x00\xff")},
			{Path: "link", Mode: "120000", Size: 6, SHA256: sum("assets")},
			{Path: "nested/SKILL.md", Mode: "100644", Size: int64(len(aSkill("n"))), SHA256: sum(aSkill("n"))},
			{Path: "scripts/run.sh", Mode: "100755", Size: 10, SHA256: sum("#!/bin/sh\n")},
		}
		if diff := cmp.Diff(want, itemAt(t, got, "a/SKILL.md").Bundle); diff != "" {
			t.Error(diff)
		}
	})
}

func TestLimits(t *testing.T) {
	files := tree{"a/SKILL.md": aSkill("a"), "b/SKILL.md": aBrokenSkill, "c/SKILL.md": aSkill("c"), "d/skill.md": "x"}
	host := onShelf(t, map[string]tree{"o/r": files}).host()
	origin := library.Origin{Type: library.Repo, URL: "https://github.com/o/r"}
	t.Run("S11 beyond the file limit every file is listed and the scope is not complete", func(t *testing.T) {
		got, err := New(host).Fetch(ctx, origin, library.FetchLimits{Files: 2}, nil)
		check(t, err)
		wantLines(t, got, "a/SKILL.md loaded", "b/SKILL.md rejected no_frontmatter", "c/SKILL.md skipped file_limit", "d/skill.md skipped case_variant")
		if len(got.Reached) != 0 {
			t.Errorf("reached %q although a file was not read", got.Reached)
		}
	})
	t.Run("S11 a limit that is just met leaves nothing out", func(t *testing.T) {
		got, err := New(host).Fetch(ctx, origin, library.FetchLimits{Files: 3}, nil)
		check(t, err)
		if len(got.Reached) != 1 || itemAt(t, got, "c/SKILL.md").Status != library.ItemLoaded {
			t.Errorf("reached %q, items %q", got.Reached, lines(got))
		}
	})
	t.Run("S11 progress grows to the end and counts rejected files", func(t *testing.T) {
		var seen []library.Progress
		_, err := New(host).Fetch(ctx, origin, library.FetchLimits{}, func(p library.Progress) { seen = append(seen, p) })
		check(t, err)
		want := library.Progress{Seen: 4, Done: 4, Errors: 1}
		if len(seen) != 5 || seen[0] != (library.Progress{Seen: 4}) || seen[4] != want {
			t.Errorf("progress %+v", seen)
		}
	})
	t.Run("S11 a cancelled fetch is an error, not an empty result", func(t *testing.T) {
		stopped, cancel := context.WithCancel(ctx)
		_, err := New(host).Fetch(stopped, origin, library.FetchLimits{}, func(library.Progress) { cancel() })
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("S3 the skip list can be replaced", func(t *testing.T) {
		host := onShelf(t, map[string]tree{"o/r": {"templates/SKILL.md": aSkill("a"), "old/SKILL.md": aSkill("b")}}).host()
		rules := SkipRule{Folder: regexp.MustCompile(`^old(/|$)`), Reason: "replaced by us"}
		got, err := New(host, rules).Fetch(ctx, origin, library.FetchLimits{}, nil)
		check(t, err)
		wantLines(t, got, "old/SKILL.md skipped skipped_folder", "templates/SKILL.md loaded")
	})
}
