package ingest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
)

// plugins renders a marketplace of entries.
func plugins(entries ...string) string {
	return `{"name":"m","owner":{"name":"o"},"plugins":[` + strings.Join(entries, ",") + `]}`
}

// entryItem is the item of the n-th entry itself.
func entryItem(n int, status, code string) string {
	return fmt.Sprintf("o/r/%s#/plugins/%d %s %s", marketplaceFile, n, status, code)
}

func TestMarketplaceSources(t *testing.T) {
	files := tree{"p/one/SKILL.md": aSkill("one"), "p/two/SKILL.md": aSkill("two"), "q/SKILL.md": aSkill("q"), "loose/SKILL.md": aSkill("loose")}
	p := []string{"o/r/p/one/SKILL.md loaded", "o/r/p/two/SKILL.md loaded", "o/r/q/SKILL.md skipped not_in_plugin"}
	loose := "o/r/loose/SKILL.md skipped not_in_plugin"
	all := []string{"o/r/loose/SKILL.md loaded", "o/r/p/one/SKILL.md loaded", "o/r/p/two/SKILL.md loaded", "o/r/q/SKILL.md loaded"}
	none := []string{loose, "o/r/p/one/SKILL.md skipped not_in_plugin", "o/r/p/two/SKILL.md skipped not_in_plugin", "o/r/q/SKILL.md skipped not_in_plugin"}
	bad := func(code string) []string {
		return append([]string{entryItem(0, "rejected", code)}, none...)
	}
	cases := []struct {
		name, entry string
		want        []string
		finding     string
	}{
		{"S3 a path at the same commit", `{"name":"p","source":"./p"}`, append([]string{loose}, p...), ""},
		{"S3 a path with a slash at its end", `{"name":"p","source":"./p/"}`, append([]string{loose}, p...), ""},
		{"S3 the root", `{"name":"p","source":"./"}`, all, ""},
		{"S3 a dot, with a warning", `{"name":"p","source":"."}`, all, `"." is read as "./"`},
		{"S3 a bare name, with a warning", `{"name":"p","source":"p"}`, append([]string{loose}, p...), `"p" is read as "./p"`},
		{"S3 keys of an entry that nothing reads do no harm", `{"name":"p","source":"./p","surprise":{"a":1}}`, append([]string{loose}, p...), ""},
		{"S3 an entry without a name is read", `{"source":"./p"}`, append([]string{loose}, p...), "plugin #0: has no name"},
		{"S3 a path upwards is refused", `{"name":"p","source":"../p"}`, bad("path_refused"), ""},
		{"S3 a path upwards on the way is refused", `{"name":"p","source":"./p/../p"}`, bad("path_refused"), ""},
		{"S3 an absolute path is refused", `{"name":"p","source":"/p"}`, bad("path_refused"), ""},
		{"S3 a path with backslashes is refused", `{"name":"p","source":".\\p"}`, bad("path_refused"), ""},
		{"S3 a folder that does not exist", `{"name":"p","source":"./gone"}`, bad("source_missing"), ""},
		{"S3 a path that is a file", `{"name":"p","source":"./q/SKILL.md"}`, bad("source_missing"), ""},
		{"S3 an address instead of a path", `{"name":"p","source":"https://github.com/o/r"}`, bad("source_unreadable"), ""},
		{"S3 no source", `{"name":"p"}`, bad("source_unreadable"), ""},
		{"S3 a source that is null", `{"name":"p","source":null}`, bad("source_unreadable"), ""},
		{"S3 a source that is a list", `{"name":"p","source":["./p"]}`, bad("source_unreadable"), ""},
		{"S3 an entry that is text", `"./p"`, bad("entry_unreadable"), ""},
		{"S3 an entry that is null", `null`, bad("entry_unreadable"), ""},
		{"S3 an unknown source type", `{"name":"p","source":{"source":"carrier-pigeon"}}`, bad("source_unknown"), ""},
		{"S3 npm is listed and refused", `{"name":"p","source":{"source":"npm","package":"x"}}`, bad("npm_refused"), ""},
		{"S3 a repo that is no owner/repo", `{"name":"p","source":{"source":"github","repo":"x/../y"}}`, bad("source_unreadable"), ""},
		{"S2 a host off the list", `{"name":"p","source":{"source":"url","url":"https://gitlab.com/x/y.git"}}`, bad("source_refused"), ""},
		{"S2 a url that is no https", `{"name":"p","source":{"source":"url","url":"git@github.com:x/y.git"}}`, bad("source_refused"), ""},
		{"S3 skills that are a number", `{"name":"p","source":"./p","skills":3}`, bad("skills_unreadable"), ""},
		{"S3 a plugin without skills says so", `{"name":"p","source":"./` + `.claude-plugin"}`, append([]string{entryItem(0, "skipped", "no_skills")}, none...), ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := fetchMarket(t, plugins(c.entry), files, nil)
			wantLines(t, got, c.want...)
			wantFinding(t, got, c.finding)
			if len(got.Reached) != 1 || got.Reached[0] != "o/r" {
				t.Errorf("reached %q", got.Reached)
			}
		})
	}
	t.Run("S3 one result an entry: what an entry gets wrong costs that entry only", func(t *testing.T) {
		entries := []string{}
		for _, c := range cases {
			entries = append(entries, c.entry)
		}
		got := fetchMarket(t, plugins(append(entries, `{"name":"last","source":"./q"}`)...), files, nil)
		for _, want := range all {
			if !slices.Contains(lines(got), want) {
				t.Errorf("%q is missing", want)
			}
		}
		results := 0
		for _, item := range got.Items {
			if strings.Contains(item.Path, "#/plugins/") {
				results++
			}
		}
		// Two entries bring the skills: the first p and, with the root, the rest.
		if results != len(entries)+1-2 {
			t.Errorf("%d of %d entries have an item of their own:\n%s", results, len(entries)+1, strings.Join(lines(got), "\n"))
		}
	})
}

func TestMarketplacePluginRoot(t *testing.T) {
	files := tree{"plugins/a/SKILL.md": aSkill("a"), "b/SKILL.md": aSkill("b")}
	manifest := func(root string) string {
		return `{"metadata":{"pluginRoot":` + root + `},"plugins":[{"name":"a","source":"./a"},{"name":"b","source":"./b"}]}`
	}
	t.Run("S3 pluginRoot is joined when the joined path exists", func(t *testing.T) {
		got := fetchMarket(t, manifest(`"./plugins"`), files, nil)
		wantLines(t, got, "o/r/b/SKILL.md loaded", "o/r/plugins/a/SKILL.md loaded")
	})
	t.Run("S3 the root stays the root whatever pluginRoot says", func(t *testing.T) {
		got := fetchMarket(t, `{"metadata":{"pluginRoot":"plugins"},"plugins":[{"name":"all","source":"./"}]}`, files, nil)
		wantLines(t, got, "o/r/b/SKILL.md loaded", "o/r/plugins/a/SKILL.md loaded")
	})
	for _, root := range []string{`"../x"`, `3`, `"/abs"`, `""`} {
		t.Run("S3 a pluginRoot that is no path inside is not used: "+root, func(t *testing.T) {
			got := fetchMarket(t, manifest(root), files, nil)
			wantLines(t, got, entryItem(0, "rejected", "source_missing"), "o/r/b/SKILL.md loaded", "o/r/plugins/a/SKILL.md skipped not_in_plugin")
			wantFinding(t, got, "metadata.pluginRoot")
		})
	}
}

func TestMarketplaceSkills(t *testing.T) {
	files := tree{
		"skills/a/SKILL.md": aSkill("a"), "skills/b/SKILL.md": aSkill("b"), "deep/er/c/SKILL.md": aSkill("c"), "templates/d/SKILL.md": aSkill("d"),
	}
	const a, b, c, d = "o/r/skills/a/SKILL.md ", "o/r/skills/b/SKILL.md ", "o/r/deep/er/c/SKILL.md ", "o/r/templates/d/SKILL.md "
	at := "o/r/" + marketplaceFile + "#/plugins/0/skills/"
	cases := []struct {
		name, entry, plugin string
		want                []string
	}{
		{
			"S3 skills of an entry at the root are the complete set", `"skills":["./skills/a","templates/d/SKILL.md"]`, "",
			[]string{c + "skipped not_listed", a + "loaded", b + "skipped not_listed", d + "loaded"},
		},
		{
			"S3 the complete set may name a folder of skills", `"skills":"./skills/"`, "",
			[]string{c + "skipped not_listed", a + "loaded", b + "loaded", d + "skipped skipped_folder"},
		},
		{
			"S3 the complete set beats plugin.json", `"skills":["./skills/a"]`, `{"skills":["./skills/b"]}`,
			[]string{c + "skipped not_listed", a + "loaded", b + "skipped not_listed", d + "skipped skipped_folder"},
		},
		{
			"S3 a listed path that is missing or leads upwards is one rejected item", `"skills":["./skills/a","./gone","../x",7]`, "",
			[]string{
				at + "1 rejected skill_missing", at + "2 rejected path_refused", at + "3 rejected skill_unreadable",
				c + "skipped not_listed", a + "loaded", b + "skipped not_listed", d + "skipped skipped_folder",
			},
		},
		{
			"S3 an empty set is complete too", `"skills":[]`, "",
			[]string{
				strings.TrimSuffix(at, "/skills/") + " skipped no_skills",
				c + "skipped not_listed", a + "skipped not_listed", b + "skipped not_listed", d + "skipped skipped_folder",
			},
		},
		{
			"S3 plugin.json may give text, beside the folders of skills/", "", `{"skills":"./deep/"}`,
			[]string{c + "loaded", a + "loaded", b + "loaded", d + "skipped skipped_folder"},
		},
		{
			"S3 plugin.json may give a list", "", `{"skills":["./templates/d"]}`,
			[]string{c + "skipped not_listed", a + "loaded", b + "loaded", d + "loaded"},
		},
		{
			"S3 plugin.json may give a list of maps", "", `{"skills":[{"name":"d","path":"./templates/d"},{"name":"a"},{"x":1}]}`,
			[]string{
				"o/r/" + pluginFile + "#/skills/2 rejected skill_unreadable",
				c + "skipped not_listed", a + "loaded", b + "loaded", d + "loaded",
			},
		},
		{
			"S3 a plugin.json that is no JSON costs only itself", "", `{"skills":`,
			[]string{"o/r/" + pluginFile + " rejected plugin_unreadable", c + "loaded", a + "loaded", b + "loaded", d + "skipped skipped_folder"},
		},
		{
			"S3 a plugin.json whose skills cannot be read costs only itself", "", `{"skills":true}`,
			[]string{"o/r/" + pluginFile + " rejected plugin_unreadable", c + "loaded", a + "loaded", b + "loaded", d + "skipped skipped_folder"},
		},
		{
			"S3 a plugin.json without skills changes nothing", "", "\ufeff" + `{"name":"x","skills":null}`,
			[]string{c + "loaded", a + "loaded", b + "loaded", d + "skipped skipped_folder"},
		},
	}
	for _, one := range cases {
		t.Run(one.name, func(t *testing.T) {
			with := tree{}
			for at, content := range files {
				with[at] = content
			}
			if one.plugin != "" {
				with[pluginFile] = one.plugin
			}
			entry := `{"name":"p","source":"./"`
			if one.entry != "" {
				entry += "," + one.entry
			}
			got := fetchMarket(t, plugins(entry+"}"), with, nil)
			slices.Sort(one.want)
			wantLines(t, got, one.want...)
		})
	}
	t.Run("S3 a listed skill is read although it lies in another skill's folder", func(t *testing.T) {
		got := fetchMarket(t, plugins(`{"name":"p","source":"./","skills":["./","./skills/a"]}`), tree{
			"SKILL.md": aSkill("root"), "skills/a/SKILL.md": aSkill("a"), "skills/b/SKILL.md": aSkill("b"),
		}, nil)
		wantLines(t, got, "o/r/SKILL.md loaded", "o/r/skills/a/SKILL.md loaded", "o/r/skills/b/SKILL.md skipped nested")
	})
	t.Run("S3 a link in a plugin's folder brings the skills it leads to", func(t *testing.T) {
		got := fetchMarket(t, plugins(`{"name":"p","source":"./plugins/p"}`), tree{
			"plugins/p/skills": asLink + "../../shared", "shared/a/SKILL.md": aSkill("a"), "plugins/p/b/SKILL.md": asLink + "../../../other/b/SKILL.md", "other/b/SKILL.md": aSkill("b"),
		}, nil)
		wantLines(t, got, "o/r/other/b/SKILL.md loaded", "o/r/plugins/p/b/SKILL.md skipped alias", "o/r/plugins/p/skills skipped alias", "o/r/shared/a/SKILL.md loaded")
	})
	t.Run("S3 a plugin's folder may itself be a link", func(t *testing.T) {
		got := fetchMarket(t, plugins(`{"name":"p","source":"./p"}`), tree{"p": asLink + "real", "real/a/SKILL.md": aSkill("a")}, nil)
		wantLines(t, got, "o/r/p skipped alias", "o/r/real/a/SKILL.md loaded")
	})
}

func TestMarketplaceOtherRepositories(t *testing.T) {
	others := map[string]tree{
		"x/y": {"a/SKILL.md": aSkill("a"), "sub/b/SKILL.md": aSkill("b")},
	}
	both := []string{"x/y/a/SKILL.md loaded", "x/y/sub/b/SKILL.md loaded"}
	cases := []struct {
		name, source string
		want         []string
	}{
		{"S3 github", `{"source":"github","repo":"x/y"}`, both},
		{"S3 github with a ref", `{"source":"github","repo":"x/y","ref":"main"}`, both},
		{"S3 url", `{"source":"url","url":"https://github.com/x/y.git"}`, both},
		{"S3 git-subdir", `{"source":"git-subdir","url":"https://github.com/x/y.git","path":"sub"}`, both[1:]},
		{"S3 git-subdir with owner/repo", `{"source":"git-subdir","url":"x/y","path":"./sub"}`, both[1:]},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := fetchMarket(t, plugins(`{"name":"p","source":`+c.source+`}`), nil, others)
			wantLines(t, got, c.want...)
			if strings.Join(got.Reached, " ") != "o/r x/y" || got.Items[0].Scope != "x/y" {
				t.Errorf("reached %q, scope %q", got.Reached, got.Items[0].Scope)
			}
		})
	}
	lost := []struct{ name, source, code string }{
		{"a repository the host lacks", `{"source":"github","repo":"x/gone"}`, "not_reached"},
		{"an owner the host lacks", `{"source":"github","repo":"nobody/y"}`, "not_reached"},
		{"a ref that is missing", `{"source":"github","repo":"x/y","ref":"gone"}`, "not_reached"},
		{"an unknown key of a source", `{"source":"github","repo":"x/y","surprise":1}`, "source_key_unknown"},
		{"a short sha", `{"source":"github","repo":"x/y","sha":"abc"}`, "source_unreadable"},
		{"a ref that is no text", `{"source":"github","repo":"x/y","ref":3}`, "source_unreadable"},
		{"a subdir without a path", `{"source":"git-subdir","url":"x/y"}`, "source_unreadable"},
		{"a subdir that leads upwards", `{"source":"git-subdir","url":"x/y","path":"sub/../.."}`, "path_refused"},
	}
	for _, c := range lost {
		t.Run("S8 "+c.name+" costs its entry and protects the repository's skills", func(t *testing.T) {
			got := fetchMarket(t, plugins(`{"name":"p","source":`+c.source+`}`, `{"name":"q","source":"./q"}`), tree{"q/SKILL.md": aSkill("q")}, others)
			wantLines(t, got, entryItem(0, "rejected", c.code), "o/r/q/SKILL.md loaded")
			if strings.Join(got.Reached, " ") != "o/r" || got.Items[0].Scope == "o/r" {
				t.Errorf("reached %q, scope %q", got.Reached, got.Items[0].Scope)
			}
		})
	}
	t.Run("S8 a repository that one entry reached and another did not is protected", func(t *testing.T) {
		got := fetchMarket(t, plugins(`{"name":"p","source":{"source":"github","repo":"x/y"}}`, `{"name":"q","source":{"source":"github","repo":"X/Y","ref":"gone"}}`), nil, others)
		wantLines(t, got, append([]string{entryItem(1, "rejected", "not_reached")}, both...)...)
		if strings.Join(got.Reached, " ") != "o/r" {
			t.Errorf("reached %q", got.Reached)
		}
	})
	t.Run("S8 an entry that cannot be understood protects the repository it names", func(t *testing.T) {
		good, bad := `{"name":"p","source":{"source":"github","repo":"x/y"}}`, `{"name":"q","source":{"source":"github","repo":"x/y","surprise":1}}`
		for _, entries := range [][]string{{good, bad}, {bad, good}} {
			got := fetchMarket(t, plugins(entries...), nil, others)
			if strings.Join(got.Reached, " ") != "o/r" || itemAt(t, got, "x/y/a/SKILL.md").Status != library.ItemLoaded {
				t.Errorf("reached %q, items %q", got.Reached, lines(got))
			}
		}
	})
	t.Run("S3 a subdir that does not exist costs its entry, and the repository was reached", func(t *testing.T) {
		got := fetchMarket(t, plugins(`{"name":"p","source":{"source":"git-subdir","url":"x/y","path":"gone"}}`), nil, others)
		wantLines(t, got, entryItem(0, "rejected", "source_missing"))
		if strings.Join(got.Reached, " ") != "o/r x/y" {
			t.Errorf("reached %q", got.Reached)
		}
	})
	t.Run("S3 skills that an entry before brought are not brought twice", func(t *testing.T) {
		got := fetchMarket(t, plugins(`{"name":"p","source":{"source":"github","repo":"x/y"}}`, `{"name":"q","source":{"source":"url","url":"https://github.com/x/y"}}`), nil, others)
		wantLines(t, got, append([]string{entryItem(1, "skipped", "already_listed")}, both...)...)
	})
}

func TestMarketplaceRevisions(t *testing.T) {
	other := memory.NewStorage()
	old := writeCommit(t, other, "old", tree{"a/SKILL.md": aSkill("old")})
	writeCommit(t, other, "main", tree{"a/SKILL.md": aSkill("new"), "b/SKILL.md": aSkill("b")})
	home := memory.NewStorage()
	host := shelf{"o/r": home, "x/y": other}.host()
	market := func(t *testing.T, pinned string, entries ...string) library.Fetched {
		t.Helper()
		writeCommit(t, home, "main", tree{marketplaceFile: plugins(entries...), "h/SKILL.md": aSkill("home")})
		got, err := fetch(host, library.Origin{Type: library.Marketplace, URL: "https://github.com/o/r", PinnedCommit: pinned})
		check(t, err)
		return got
	}
	t.Run("S3 sha beats ref beats the default branch", func(t *testing.T) {
		for source, want := range map[string]string{
			`{"source":"github","repo":"x/y","ref":"main","sha":"` + old + `"}`: "old",
			`{"source":"github","repo":"x/y","ref":"old"}`:                      "old",
			`{"source":"github","repo":"x/y","ref":null}`:                       "new",
		} {
			got := market(t, "", `{"name":"p","source":`+source+`}`)
			if name := itemAt(t, got, "x/y/a/SKILL.md").File.Version.Name; name != want {
				t.Errorf("%s gave %q", source, name)
			}
		}
	})
	t.Run("S3 two commits of one repository: the first asked for counts, and the other is said", func(t *testing.T) {
		got := market(t, "", `{"name":"p","source":{"source":"github","repo":"x/y","sha":"`+old+`"}}`, `{"name":"q","source":{"source":"github","repo":"x/y"}}`)
		wantLines(t, got, "o/r/h/SKILL.md skipped not_in_plugin", "x/y/a/SKILL.md loaded", "x/y/b/SKILL.md loaded")
		if name := itemAt(t, got, "x/y/a/SKILL.md").File.Version.Name; name != "old" {
			t.Errorf("read %q", name)
		}
		wantFinding(t, got, "x/y/a/SKILL.md is asked for at commit")
	})
	t.Run("S1 a pinned marketplace reads its own repository at the pin", func(t *testing.T) {
		pin := market(t, "", `{"name":"p","source":{"source":"github","repo":"o/r"}}`).Commit
		writeCommit(t, home, "main", tree{marketplaceFile: plugins(), "h/SKILL.md": aSkill("moved on")})
		got, err := fetch(host, library.Origin{Type: library.Marketplace, URL: "https://github.com/o/r", PinnedCommit: pin})
		check(t, err)
		if name := itemAt(t, got, "o/r/h/SKILL.md").File.Version.Name; name != "home" || got.Commit != pin {
			t.Errorf("read %q at %s", name, got.Commit)
		}
	})
	t.Run("S3 an entry may name another branch of the marketplace's own repository", func(t *testing.T) {
		writeCommit(t, home, "next", tree{"h/SKILL.md": aSkill("next")})
		got := market(t, "", `{"name":"p","source":{"source":"github","repo":"o/r","ref":"next"}}`)
		if name := itemAt(t, got, "o/r/h/SKILL.md").File.Version.Name; name != "next" {
			t.Errorf("read %q", name)
		}
		if len(got.Findings) != 0 || len(got.Items) != 1 {
			t.Errorf("findings %q, items %q", got.Findings, lines(got))
		}
	})
	t.Run("S2 a damaged repository of an entry costs that entry", func(t *testing.T) {
		broken := memory.NewStorage()
		writeCommit(t, broken, "main", tree{"a/SKILL.md": aSkill("a")})
		delete(broken.Objects, plumbing.ComputeHash(plumbing.BlobObject, []byte(aSkill("a"))))
		writeCommit(t, home, "main", tree{marketplaceFile: plugins(`{"name":"p","source":{"source":"github","repo":"x/y"}}`), "h/SKILL.md": aSkill("home")})
		got, err := fetch(shelf{"o/r": home, "x/y": broken}.host(), library.Origin{Type: library.Marketplace, URL: "https://github.com/o/r"})
		check(t, err)
		wantLines(t, got, entryItem(0, "rejected", "not_reached"), "o/r/h/SKILL.md skipped not_in_plugin")
	})
}

func TestMarketplaceFile(t *testing.T) {
	origin := library.Origin{Type: library.Marketplace, URL: "https://github.com/o/r"}
	t.Run("S3 a repository without a marketplace.json is not found as one", func(t *testing.T) {
		_, err := fetch(onShelf(t, map[string]tree{"o/r": {"a/SKILL.md": aSkill("a")}}).host(), origin)
		wantError(t, err, fault.NotFound, "has no .claude-plugin/marketplace.json at main")
	})
	for name, text := range map[string]string{
		"no JSON": "{", "a list": "[]", "null": "null", "without plugins": "{}", "with plugins that are null": `{"plugins":null}`,
		"with plugins that are text": `{"plugins":"./p"}`, "with too many plugins": plugins(strings.Split(strings.Repeat("0", maxPlugins+1), "")...),
		"over the size limit": strings.Repeat(" ", maxManifest+1),
	} {
		t.Run("S3 a marketplace.json "+name+" is an error and orphans nothing", func(t *testing.T) {
			_, err := fetch(onShelf(t, map[string]tree{"o/r": {marketplaceFile: text}}).host(), origin)
			wantError(t, err, fault.BadInput, marketplaceFile)
		})
	}
	t.Run("S2 a rate limit stops the whole sync", func(t *testing.T) {
		host := ByOwner(map[string]Host{"o": onShelf(t, map[string]tree{"o/r": {marketplaceFile: plugins(`{"name":"p","source":{"source":"github","repo":"x/y"}}`)}}).host()}, limited{})
		_, err := fetch(host, origin)
		wantError(t, err, fault.RateLimited, "in ten minutes")
	})
}

// FuzzMarketplace feeds marketplace.json files to the parser and holds it to what
// the rest of the room relies on.
func FuzzMarketplace(f *testing.F) {
	for _, seed := range []string{
		plugins(`{"name":"p","source":"./p","skills":["./a"]}`), plugins(`{"name":"p","source":{"source":"github","repo":"x/y","sha":"abc"}}`),
		plugins(`{"name":"p","source":{"source":"git-subdir","url":"x/y","path":"../.."}}`), `{"metadata":{"pluginRoot":"../x"},"plugins":[null,3,"x",{}]}`,
		plugins(`{"name":"\u0000","source":"a/..\\b","skills":[{"path":"/x"},{"name":"../../y"}]}`), "\ufeff{}",
	} {
		f.Add([]byte(seed))
	}
	inside := func(t *testing.T, at string) {
		t.Helper()
		if at == "" || strings.HasPrefix(at, "/") || slices.Contains(strings.Split(at, "/"), "..") || strings.Contains(at, "\\") {
			t.Fatalf("the path %q leads out", at)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseMarketplace(data, nil)
		if err != nil {
			return
		}
		var top map[string]json.RawMessage
		var entries []json.RawMessage
		if json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &top) != nil || json.Unmarshal(top["plugins"], &entries) != nil || len(entries) != len(m.plugins) {
			t.Fatalf("%d entries became %d", len(entries), len(m.plugins))
		}
		if m.pluginRoot != "" {
			inside(t, m.pluginRoot)
		}
		for _, entry := range m.plugins {
			if entry.problem != nil {
				if entry.problem.code == "" || entry.problem.reason == "" {
					t.Fatalf("an entry is refused without a reason")
				}
				continue
			}
			inside(t, entry.from.path)
			if _, ok := newName(entry.from.repo.Owner, entry.from.repo.Repo); entry.from.other && !ok {
				t.Fatalf("the repository %s has an impossible name", entry.from.repo)
			}
			for _, one := range entry.skills {
				if one.problem == nil {
					inside(t, one.path)
				}
			}
		}
	})
}

// limited is a host whose quota is used up.
type limited struct{}

func (limited) Open(context.Context, Name, string) (Repository, error) {
	return nil, fault.New(fault.RateLimited, "try again in ten minutes")
}
