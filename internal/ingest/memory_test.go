package ingest

import (
	"context"
	"testing"
	"testing/fstest"

	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
)

func TestMemory(t *testing.T) {
	files := fstest.MapFS{
		"skills/a/SKILL.md": {Data: []byte(aSkill("a"))}, "skills/a/run.sh": {Data: []byte("x"), Mode: 0o755}, "README.md": {Data: []byte("x")},
	}
	demo, err := Memory("countersign-demo", "skills", files)
	check(t, err)
	host := ByOwner(map[string]Host{"countersign-demo": demo}, Mirror(""))
	t.Run("S13 a bundled repository is read like any other", func(t *testing.T) {
		got, err := fetch(host, repoAt("Countersign-Demo/skills", ""))
		check(t, err)
		wantLines(t, got, "skills/a/SKILL.md loaded")
		if bundle := itemAt(t, got, "skills/a/SKILL.md").Bundle; len(bundle) != 2 || bundle[1].Mode != "100755" {
			t.Errorf("bundle %+v", bundle)
		}
		if got.Branch != "main" {
			t.Errorf("branch %q", got.Branch)
		}
	})
	t.Run("S13 the same files give the same commit", func(t *testing.T) {
		again, err := Memory("countersign-demo", "skills", files)
		check(t, err)
		first, err := fetch(host, repoAt("countersign-demo/skills", ""))
		check(t, err)
		second, err := fetch(again, repoAt("countersign-demo/skills", ""))
		check(t, err)
		if first.Commit != second.Commit || len(first.Commit) != 40 {
			t.Errorf("commits %s and %s", first.Commit, second.Commit)
		}
	})
	t.Run("S13 another repository of the bundled owner is not found", func(t *testing.T) {
		_, err := fetch(host, repoAt("countersign-demo/other", ""))
		wantError(t, err, fault.NotFound, "countersign-demo/skills")
	})
	t.Run("S13 other owners go to the other host", func(t *testing.T) {
		_, err := fetch(host, repoAt("acme/skills", ""))
		wantError(t, err, fault.Unavailable, MirrorVariable)
	})
	t.Run("S13 an impossible name is refused when the repository is built", func(t *testing.T) {
		_, err := Memory("countersign-demo", "..", files)
		wantError(t, err, fault.BadInput, "no name")
	})
}

// spy records which tokens reach a host.
type spy struct {
	Host
	tokens map[string]string
}

func TestToken(t *testing.T) {
	t.Run("S1 the token is sent for the source's owner only", func(t *testing.T) {
		seen := spy{Host: onShelf(t, map[string]tree{
			"o/r": {marketplaceFile: `{"plugins":[{"name":"p","source":{"source":"github","repo":"x/y"}},{"name":"q","source":{"source":"github","repo":"O/r","ref":"main"}}]}`},
			"x/y": {"SKILL.md": aSkill("a")},
		}).host(), tokens: map[string]string{}}
		_, err := fetch(seen, library.Origin{Type: library.Marketplace, URL: "https://github.com/o/r", Token: "secret"})
		check(t, err)
		if seen.tokens["o/r"] != "secret" || seen.tokens["x/y"] != "" || len(seen.tokens) != 2 {
			t.Errorf("tokens %v", seen.tokens)
		}
	})
}

func (s spy) Open(ctx context.Context, name Name, token string) (Repository, error) {
	s.tokens[name.String()] = token
	return s.Host.Open(ctx, name, token)
}
