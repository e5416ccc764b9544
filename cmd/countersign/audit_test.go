package main

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
	"github.com/countersign/countersign/internal/world"
)

// shell runs commands as a reader of a document does, in a folder of their own, with
// this program as countersign.
type shell struct {
	t      *testing.T
	folder string
	env    []string
}

func newShell(t *testing.T, database string) *shell {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &shell{t: t, folder: t.TempDir()}
	bin := filepath.Join(s.folder, "bin")
	script := "#!/bin/sh\nexec env " + asCommand + "=1 '" + self + "' \"$@\"\n"
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "countersign"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	s.env = append(os.Environ(), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"),
		"COUNTERSIGN_DATABASE_URL="+database, "COUNTERSIGN_ENCRYPTION_KEY="+storetest.Key.String())
	return s
}

// run returns what the commands print, on either stream.
func (s *shell) run(commands string) (string, error) {
	s.t.Helper()
	c := exec.CommandContext(s.t.Context(), "bash", "-euo", "pipefail", "-c", commands)
	c.Dir, c.Env = s.folder, s.env
	out, err := c.CombinedOutput()
	return string(out), err
}

func (s *shell) must(commands string) string {
	s.t.Helper()
	out, err := s.run(commands)
	if err != nil {
		s.t.Fatalf("%s\n%s%v", commands, out, err)
	}
	return out
}

// shows reports whether commands print what a document shows. An … stands for
// anything in a line, HASH for one hash, the same wherever it stands.
func shows(shown, printed string) bool {
	pattern := regexp.QuoteMeta(shown)
	pattern = strings.ReplaceAll(pattern, "…", ".+")
	if hash := regexp.MustCompile(`[0-9a-f]{64}`).FindString(printed); hash != "" {
		pattern = strings.ReplaceAll(pattern, "HASH", hash)
	}
	return regexp.MustCompile("^" + pattern + "$").MatchString(printed)
}

// TestAuditing does what docs/auditing.md says: its queries against a server with the
// demo, and its commands beside it.
func TestAuditing(t *testing.T) {
	const document = "../../docs/auditing.md"
	for _, database := range storetest.URLs {
		t.Run(database.Name, func(t *testing.T) {
			at := database.URL(t)
			s := startSite(t, demoAt(at))
			walkThrough(t, "../../docs/quickstart.md", s) // so that there is something to audit
			t.Run("U1 and U2 the queries of the document are answered as it shows", func(t *testing.T) {
				if w := walkThrough(t, document, s); w.sent < 4 {
					t.Errorf("the document holds only %d queries", w.sent)
				}
			})
			sh := newShell(t, at)
			ran := 0
			pieces := indented(t, document)
			for i, p := range pieces {
				if p.kind != pieceShell {
					continue
				}
				ran++
				printed := sh.must(p.text)
				if i+1 == len(pieces) || pieces[i+1].kind != "text" {
					t.Fatalf("%s:%d: nothing says what these commands print", document, p.line)
				}
				if shown := pieces[i+1].text; !shows(shown, printed) {
					t.Errorf("U2 %s:%d: the commands print\n%s\nand not\n%s", document, p.line, printed, shown)
				}
			}
			if ran < 7 {
				t.Errorf("the document holds only %d blocks of commands", ran)
			}
		})
	}
}

// indented reads the pieces of a document, those inside of lists too.
func indented(t *testing.T, path string) []piece {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flat := filepath.Join(t.TempDir(), "document.md")
	if err := os.WriteFile(flat, regexp.MustCompile(`(?m)^   `).ReplaceAll(text, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	return readPieces(t, flat)
}

func TestAuditCommands(t *testing.T) {
	at := "sqlite:" + t.TempDir() + "/countersign.db"
	sh := newShell(t, at)
	sh.must("countersign audit key > key && countersign audit checkpoint > old && countersign audit export > trail")
	for name, c := range map[string]struct{ commands, says string }{
		"U2 a trail without a key is not verified":        {"countersign audit verify trail", `required flag(s) "key"`},
		"U2 what is no key is said to be none":            {"countersign audit verify --key x trail", "--key is no public key of a trail"},
		"U2 a file that is not there":                     {`countersign audit verify --key "$(cat key)" none`, "none: no such file"},
		"U2 an older checkpoint that is not there":        {`countersign audit verify --key "$(cat key)" --older none trail`, "--older: open none"},
		"U2 an empty older checkpoint":                    {`: > empty; countersign audit export --older empty`, "empty is empty"},
		"U2 a checkpoint of something else":               {`echo hello > note; countersign audit verify --key "$(cat key)" --older note trail`, "the older checkpoint cannot be used"},
		"U2 a part that there is not":                     {"countersign audit export --from 1000", "there is nothing from 1000"},
		"U2 a file that is cut off is not the trail":      {`head -c 300 trail | countersign audit verify --key "$(cat key)" -`, "is not the trail that was signed"},
		"U2 a command that there is not shows what is":    {"countersign audit check", "unknown command"},
		"U2 verify takes the file that it is to look at":  {`countersign audit verify --key "$(cat key)"`, "accepts 1 arg"},
		"U2 it needs no database, and says what is wrong": {`COUNTERSIGN_DATABASE_URL=nowhere: countersign audit verify --key "$(cat key)" note`, "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := sh.run("echo hello > note; " + c.commands); err == nil || !strings.Contains(out, c.says) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	t.Run("U2 from the standard input, and without a database, a trail verifies", func(t *testing.T) {
		out := sh.must(`COUNTERSIGN_DATABASE_URL=nowhere: countersign audit verify --key "$(cat key)" --older old - < trail`)
		if !strings.Contains(out, "verified: ") || !strings.Contains(out, "begins with") {
			t.Errorf("got %s", out)
		}
	})
}

func TestRetention(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
		w := world.Fixed(now, 1)
		h := &house{log: slog.New(slog.DiscardHandler), world: w, store: s, proofs: audit.NewLog(s), access: &access.Access{Store: s, World: w}}
		for _, days := range []int{100, 40, 31, 29, 5, 0} {
			e := audit.Record(w, actor.Actor{ID: access.BuiltIn}, audit.SkillEnabled)
			e.At = now.AddDate(0, 0, -days)
			if _, err := change.One(t.Context(), s, change.Change{Audit: []audit.Entry{e}}); err != nil {
				t.Fatal(err)
			}
		}
		old, err := h.proofs.Checkpoint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		floor := func() int64 {
			t.Helper()
			h.growTrail(t.Context())
			h.tidyTrail(t.Context())
			c, err := h.proofs.Checkpoint(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return c.Floor
		}
		t.Run("U3 nothing goes by default", func(t *testing.T) {
			if got := floor(); got != 0 {
				t.Errorf("entries below %d went", got)
			}
		})
		t.Run("U3 what is older than the setting goes, and the rest verifies", func(t *testing.T) {
			h.access.File = map[string]string{"retention.auditDays": "30"}
			if got := floor(); got != 3 {
				t.Errorf("entries below %d went", got)
			}
			if _, err := h.proofs.Consistency(t.Context(), old.Size, old.Size); err != nil {
				t.Error(err)
			}
		})
		t.Run("U3 a house that ends stops tending", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if h.growTrail(ctx) {
				t.Error("it goes on")
			}
		})
	})
}
