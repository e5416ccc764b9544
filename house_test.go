// Package countersign_test holds the house to its own description: which room may
// import which, and which tests prove which rule.
package countersign_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/countersign/countersign"

// pure rooms touch no SQL, HTTP, GraphQL or clock.
var pure = []string{
	"internal/skill", "internal/prompt", "internal/run", "internal/tool", "internal/audit",
	"internal/actor", "internal/fault", "internal/change", "internal/guard", "internal/wording",
}

// useCases may lean on the pure rooms and, in this order, on those before them.
var useCases = []string{"internal/once", "internal/access", "internal/budget", "internal/notify", "internal/content", "internal/library", "internal/remote", "internal/agent"}

// adapters implement ports and never import each other; only cmd joins them.
var adapters = []string{
	"internal/store", "internal/live", "internal/ingest", "internal/provider", "internal/auth", "internal/webhook", "internal/mcp",
}

// forbidden is the table of edges that must not exist, directly or through other
// packages. A rule names folders; a folder includes what is below it.
func forbidden() []edge {
	edges := []edge{
		{from: []string{"graph"}, to: append(slices.Clone(adapters), "ent", "server"), why: "API types are not table types, and the graph imports no adapter"},
		{from: []string{"server"}, to: append(slices.Clone(adapters), "ent"), why: "the server sees adapters through ports"},
		{from: pure, to: append(slices.Clone(adapters), "github.com/99designs/gqlgen", "entgo.io/ent"), why: "a pure room touches no GraphQL and no adapter"},
		{from: useCases, to: append(slices.Clone(adapters), "ent", "graph", "server", "github.com/99designs/gqlgen"), why: "a use case sees the outside through its ports"},
		{from: []string{"internal/builtin"}, to: append(slices.Clone(adapters), "graph", "server", "ent"), why: "tools work on use cases"},
	}
	for i, room := range useCases {
		edges = append(edges, edge{from: []string{room}, to: useCases[i+1:], why: "use cases lean one way: agent → remote → library → content, access"})
	}
	edges = append(edges, edge{from: []string{"internal/access"}, to: []string{"internal/content"}, why: "access and content do not know each other"})
	for _, one := range adapters {
		others := slices.DeleteFunc(slices.Clone(adapters), func(other string) bool { return other == one })
		edges = append(edges, edge{from: []string{one}, to: others, why: "adapters never import each other"})
	}
	return edges
}

// only names what exactly one room may import.
var only = []struct{ room, imports string }{
	{"internal/store", module + "/ent"},
	{"server/ws", "github.com/gorilla/websocket"},
	{"internal/provider", "github.com/sony/gobreaker/v2"},
	{"internal/mcp", "github.com/modelcontextprotocol/go-sdk"},
	{"internal/ingest", "github.com/go-git/go-git/v5"},
}

// outside is what neither a pure room nor a use case imports itself: time and
// randomness come from internal/world, data through ports.
var outside = []string{"database/sql", "net/http", "os", "math/rand", "math/rand/v2", "crypto/rand"}

type edge struct {
	from, to []string
	why      string
}

type listed struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Standard,Imports,Deps", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 10 {
		t.Fatalf("only %d packages listed", len(all))
	}
	return all
}

// within reports whether a package is the folder or below it; both may be outside the
// module.
func within(pkg, folder string) bool {
	return pkg == folder || strings.HasPrefix(pkg, folder+"/") ||
		pkg == module+"/"+folder || strings.HasPrefix(pkg, module+"/"+folder+"/")
}

func TestImports(t *testing.T) {
	all := packages(t)
	for _, rule := range forbidden() {
		for _, from := range rule.from {
			t.Run(from+" does not reach "+strings.Join(rule.to, ", "), func(t *testing.T) {
				for _, p := range all {
					if !within(p.ImportPath, from) {
						continue
					}
					for _, dep := range p.Deps {
						if slices.ContainsFunc(rule.to, func(to string) bool { return within(dep, to) }) {
							t.Errorf("%s reaches %s: %s", p.ImportPath, dep, rule.why)
						}
					}
				}
			})
		}
	}
	t.Run("pure rooms and use cases ask the outside for nothing", func(t *testing.T) {
		for _, p := range all {
			for _, room := range append(slices.Clone(pure), useCases...) {
				if !within(p.ImportPath, room) {
					continue
				}
				for _, imported := range p.Imports {
					if slices.Contains(outside, imported) {
						t.Errorf("%s imports %s", p.ImportPath, imported)
					}
				}
			}
		}
	})
	for _, o := range only {
		t.Run("only "+o.room+" imports "+o.imports, func(t *testing.T) {
			found := false
			for _, p := range all {
				for _, imported := range p.Imports {
					if !within(imported, o.imports) {
						continue
					}
					found = found || within(p.ImportPath, o.room)
					if !within(p.ImportPath, o.room) && !within(p.ImportPath, strings.TrimPrefix(o.imports, module+"/")) {
						t.Errorf("%s imports %s", p.ImportPath, imported)
					}
				}
			}
			if !found {
				t.Errorf("nobody imports %s: the rule is out of date", o.imports)
			}
		})
	}
}
