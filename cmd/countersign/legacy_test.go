package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/store/storetest"
)

// said runs a command as an operator does and returns what it prints.
func said(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	c := command()
	c.SetArgs(args)
	c.SetOut(&out)
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out.String())
	}
	return out.String()
}

func TestLegacyCommands(t *testing.T) {
	for _, database := range storetest.URLs {
		t.Run(database.Name+": D9 import reports every line it skips, adopt-legacy every row", func(t *testing.T) {
			t.Setenv("COUNTERSIGN_DATABASE_URL", database.URL(t))
			t.Setenv("COUNTERSIGN_ENCRYPTION_KEY", storetest.Key.String())
			export := filepath.Join(t.TempDir(), "export.jsonl")
			const lines = `{"kind":"export","format":1,"installation":"intranet"}
{"kind":"source","id":3,"title":"Acme skills","type":"repo","url":"https://github.com/acme/skills"}
{"kind":"skill","id":17,"source":3,"identifier":"style","name":"Style","description":"How.","body":"Plainly.\n","frontmatter":"name: Style\ndescription: How.\n","body_checksum":"e1c26ca2fd2ea0dc97c96ccc52fa8af6b61a0f1ac2b5f1e1a5e5f6a4a3f2d1c0","enabled":true}
{"kind":"skill","id":18,"source":4,"identifier":"other","name":"Other","description":"How.","body":""}
`
			if err := os.WriteFile(export, []byte(lines), 0o600); err != nil {
				t.Fatal(err)
			}
			got := said(t, "import", export)
			for _, want := range []string{
				"line 3, skill 17, imported: the body is not the one its checksum names",
				`line 4, skill 18, skipped: no line before it brought its source "4"`,
				"3 lines: imported 2 (sources 1, skills 1, attachments 0), present 0, skipped 1",
			} {
				if !strings.Contains(got, want) {
					t.Errorf("import does not say %q:\n%s", want, got)
				}
			}
			if got := said(t, "adopt-legacy"); got != "Acme skills, style: not adopted and disabled, failed: body_checksum\nadopted 0, failed 1\n" {
				t.Errorf("adopt-legacy says %q", got)
			}
			if got := said(t, "adopt-legacy"); got != "Acme skills, style: not adopted, failed: body_checksum\nadopted 0, failed 1\n" {
				t.Errorf("a second time it says %q", got)
			}
		})
	}
}
