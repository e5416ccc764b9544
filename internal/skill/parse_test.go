package skill

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustReject(tb testing.TB, text string) *Rejection {
	tb.Helper()
	_, err := Parse([]byte(text))
	var rejection *Rejection
	if !errors.As(err, &rejection) {
		tb.Fatalf("parse %.200q: %v, want a rejection", text, err)
	}
	return rejection
}

// TestRejectionPlaces checks that a rejection says where in the file as read, whatever was stripped or converted before.
func TestRejectionPlaces(t *testing.T) {
	for _, c := range []struct {
		name, text string
		code       RejectionCode
		line       int
		offset     int
	}{
		{"empty file", "", RejectNoFrontmatter, 1, -1},
		{"control after a byte order mark and CRLF", "\ufeff---\r\nname: a\r\n---\r\nB\x00", RejectControlCharacter, 4, 23},
		{"control of C1", "---\nname: a\n---\n\u0085", RejectControlCharacter, 4, 16},
		{"invalid UTF-8", "---\nname: \xff\n---\n", RejectInvalidUTF8, 2, 10},
		{"half a character at the end", "---\nname: a\n---\n\xe2\x82", RejectInvalidUTF8, 4, 16},
		{"lone CR in the frontmatter", "\ufeff---\nname: a\rprocess: true\n---\n", RejectControlCharacter, 2, 14},
		{"paragraph separator in the frontmatter", "---\nname: a\u2029\n---\n", RejectControlCharacter, 2, 11},
		{"byte order mark in the frontmatter", "---\nname: \ufeffa\n---\n", RejectControlCharacter, 2, 10},
		{"two byte order marks", "\ufeff\ufeff---\nname: a\n---\n", RejectNoFrontmatter, 1, -1},
		{"space behind the first fence", "--- \nname: a\n---\n", RejectNoFrontmatter, 1, -1},
		{"blank line first", "\n---\nname: a\n---\n", RejectFrontmatterNotFirst, 2, -1},
		{"a rule in a text without frontmatter", "# T\n\n---\n\ntext\n", RejectNoFrontmatter, 1, -1},
		{"space behind the closing fence", "---\nname: a\n--- \n", RejectFrontmatterNotClosed, 1, -1},
		{"empty frontmatter", "---\n---\nB\n", RejectNotMapping, 2, -1},
		{"duplicate key", "---\nname: a\ndescription: b\n\"name\": c\n---\n", RejectDuplicateKey, 4, -1},
		{"several documents", "---\nname: a\n--- \nname: b\n---\n", RejectSeveralDocuments, 2, -1},
		{"complex key", "---\n? [a, b]\n: c\nname: a\n---\n", RejectComplexKey, 2, -1},
		{"complex key in braces at the top", "---\n{name: a, [b]}\n---\n", RejectComplexKey, 2, -1},
		{"anchored key", "---\n&k name: a\n---\n", RejectAliasOrAnchor, 2, -1},
		{"an error of the YAML parser", "---\nname: a\ndescription: [b\nx: y\n---\n", RejectNotYAML, 3, -1},
		{"an error of the YAML scanner", "---\nname: a\ndescription: b\n\nx: \"y\\q\"\n---\n", RejectNotYAML, 5, -1},
		{"a second document after its end", "---\nname: a\n...\nname: b\n---\n", RejectNotYAML, 4, -1},
		{"name missing", "---\ndescription: b\n---\n", RejectNameMissing, 1, -1},
		{"name is a list", "---\ndescription: b\nname:\n  - a\n---\n", RejectNameMissing, 3, -1},
		{"description is white space", "---\nname: a\ndescription: \" \u3000\"\n---\n", RejectDescriptionMissing, 3, -1},
		{"frontmatter too large", "---\nname: a\nx: " + strings.Repeat("x", maxFrontmatter) + "\n---\n", RejectFrontmatterTooLarge, 2, -1},
		{"body too large", "---\nname: a\n---\n" + strings.Repeat("x", maxBody+1), RejectBodyTooLarge, 4, -1},
	} {
		t.Run("S4 "+c.name, func(t *testing.T) {
			got := mustReject(t, c.text)
			if got.Code != c.code || got.Line != c.line || got.Offset != c.offset {
				t.Errorf("rejection = %+v, want %s at line %d, byte %d", got, c.code, c.line, c.offset)
			}
			if got.Hint == "" {
				t.Error("no hint")
			}
		})
	}
	t.Run("S4 the limits themselves are allowed, in bytes", func(t *testing.T) {
		head := "name: a\ndescription: b\nx: "
		text := "---\r\n" + strings.ReplaceAll(head, "\n", "\r\n") + strings.Repeat("x", maxFrontmatter-len(head)-1) + "\r\n---\r\n" + strings.Repeat("é", maxBody/2)
		file := mustParse(t, text)
		if len(file.Frontmatter) != maxFrontmatter || len(file.Version.Body) != maxBody {
			t.Errorf("frontmatter %d, body %d bytes", len(file.Frontmatter), len(file.Version.Body))
		}
	})
	t.Run("S4 a limit's message says bytes", func(t *testing.T) {
		if got := mustReject(t, "---\nname: a\n---\n"+strings.Repeat("x", maxBody+1)); !strings.Contains(got.Error(), "524289 bytes") {
			t.Errorf("error = %q", got)
		}
	})
	t.Run("S4 a value in braces without a colon costs data nobody reads nothing", func(t *testing.T) {
		mustParse(t, "---\nname: a\ndescription: b\nmetadata: {\"x\": {\"bins\": [\"bc\"], [\"touch\"]}}\n---\n")
	})
}

func TestRescue(t *testing.T) {
	parse := func(t *testing.T, frontmatter string) File {
		t.Helper()
		file := mustParse(t, "---\n"+frontmatter+"---\nB\n")
		if file.Status != ParseRepaired {
			t.Fatalf("status = %s", file.Status)
		}
		return file
	}
	for _, c := range []struct{ name, value, want string }{
		{"nothing is cut at a number sign", "Use when: x #1 of y", "Use when: x #1 of y"},
		{"continuation lines are folded", "Use when: x\n  and: y\n\n  z", "Use when: x and: y\nz"},
		{"a block indicator on the same line goes", "|2- Use: x", "Use: x"},
		{"quotes and backslashes stay", `Use "it": C:\new\dir`, `Use "it": C:\new\dir`},
		{"stars", "**bold** text", "**bold** text"},
		{"a surrogate pair inside a rescued value", `x: \ud83d\udd0d`, "x: 🔍"},
		{"a tab inside", "x: a\tb", "x: a\tb"},
	} {
		t.Run("S4 "+c.name, func(t *testing.T) {
			file := parse(t, "name: a\ndescription: "+c.value+"\nlicense: MIT\n")
			if file.Version.Description != c.want || file.Licence != "MIT" {
				t.Errorf("description = %q, want %q; licence %q", file.Version.Description, c.want, file.Licence)
			}
		})
	}
	t.Run("S4 a repair says what and where, and the text is kept as it was", func(t *testing.T) {
		text := "name: a\ndescription: Use: x\nother: >- y\nemoji: \"\\ud83d\\udd0d\"\n"
		file := parse(t, text)
		want := []Repair{
			{Code: RepairSurrogates, Line: 5},
			{Code: RepairQuotedValue, Key: "description", Line: 3},
			{Code: RepairQuotedValue, Key: "other", Line: 4},
		}
		got := append([]Repair(nil), file.Repairs...)
		for i := range got {
			if got[i].Message == "" {
				t.Errorf("no message: %+v", got[i])
			}
			got[i].Message = ""
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("repairs (-want +got):\n%s", diff)
		}
		if file.Frontmatter != text || file.RawDigest != RawDigest(text, "B\n") {
			t.Errorf("frontmatter = %q", file.Frontmatter)
		}
	})
	t.Run("S4 lines after a folded value keep their numbers", func(t *testing.T) {
		got := mustReject(t, "---\nname: a\ndescription: Use: x\n  y\n\n  z\nname: b\n---\n")
		if got.Code != RejectDuplicateKey || got.Line != 7 {
			t.Errorf("rejection = %+v", got)
		}
	})
	t.Run("S5 a declaration inside a rescued value still counts as declared", func(t *testing.T) {
		file := parse(t, "name: a\ndescription: Use: x\n  allowed-tools: []\n  process: false\n")
		if !sameTools(file.Version.Tools, UnreadableTools()) || file.Version.Process != ProcessUnreadable {
			t.Errorf("tools = %+v, process = %s", file.Version.Tools, file.Version.Process)
		}
	})
	t.Run("S4 an escaped backslash begins no escape", func(t *testing.T) {
		if got, line := decodeSurrogates(`\\ud83d\udd0d \\\ud83d\udd0d`); got != `\\ud83d\udd0d \\🔍` || line != 1 {
			t.Errorf("decoded = %q, line %d", got, line)
		}
	})
	t.Run("S4 anchors and tags are not rescued", func(t *testing.T) {
		for _, value := range []string{"&x y: z", "!x y: z"} {
			if got := mustReject(t, "---\nname: a\ndescription: "+value+"\n---\n"); got.Code != RejectNotYAML {
				t.Errorf("%s: %+v", value, got)
			}
		}
	})
}

func TestFileLabels(t *testing.T) {
	for _, c := range []struct{ name, frontmatter, version, licence string }{
		{"metadata.version comes first", "version: 1\nmetadata:\n  version: 1.10\nlicense: MIT\n", "1.10", "MIT"},
		{"version stands in", "version: '2'\nmetadata: {author: x}\nlicence: ISC\n", "2", "ISC"},
		{"none", "metadata: x\nversion: [1]\nlicense:\n", "", ""},
	} {
		t.Run("S4 "+c.name, func(t *testing.T) {
			file := mustParse(t, "---\nname: a\ndescription: b\n"+c.frontmatter+"---\nB\n")
			if file.VersionLabel != c.version || file.Licence != c.licence {
				t.Errorf("version %q, licence %q", file.VersionLabel, file.Licence)
			}
		})
	}
}

func TestToolTokens(t *testing.T) {
	parse := func(t *testing.T, value string) Tools {
		t.Helper()
		return mustParse(t, "---\nname: a\ndescription: b\n"+value+"\n---\nB\n").Version.Tools
	}
	for _, c := range []struct {
		name, value string
		want        Tools
	}{
		{"a string splits outside parentheses", "allowed-tools: Bash(git add:*), Read", DeclareTools("Bash(git add:*)", "Read")},
		{"parentheses nest", "allowed-tools: Bash(f(x, y), z) Read", DeclareTools("Bash(f(x, y), z)", "Read")},
		{"a quoted parenthesis does not close", `allowed-tools: Bash(echo ")", x)`, DeclareTools(`Bash(echo ")", x)`)},
		{"a remote tool's name is a token", "allowed-tools: mcp__github__list-issues", DeclareTools("mcp__github__list-issues")},
		{"the other spelling is the same key", "allowed_tools: Read", DeclareTools("Read")},
		{"tools is another key", "tools: Bash", NoTools()},
		{"a list item is one token", "allowed-tools: [\"Bash(a b, c)\", Read]", DeclareTools("Bash(a b, c)", "Read")},
		{"a list item is never split", "allowed-tools: [\"Read Grep\"]", UnreadableTools()},
		{"stray separators are no tokens", "allowed-tools: \", Read,, Grep ,\"", DeclareTools("Grep", "Read")},
		{"two groups are no token", "allowed-tools: Bash(a)(b)", UnreadableTools()},
		{"text behind a group is no token", "allowed-tools: Bash(a)b", UnreadableTools()},
		{"a group alone is no token", "allowed-tools: Bash (a)", UnreadableTools()},
		{"a closing parenthesis first", "allowed-tools: Bash)a(", UnreadableTools()},
		{"a pattern is no name", "allowed-tools: mcp__github__*", UnreadableTools()},
		{"an open quote", "allowed-tools: Bash(don't)", UnreadableTools()},
		{"a hidden character in parentheses", "allowed-tools: \"Bash(a\\u200bb)\"", UnreadableTools()},
		{"one bad token spoils the declaration", "allowed-tools: [Read, \"\"]", UnreadableTools()},
	} {
		t.Run("S5 "+c.name, func(t *testing.T) {
			if got := parse(t, c.value); !sameTools(got, c.want) {
				t.Errorf("tools = %+v, want %+v", got, c.want)
			}
		})
	}
	t.Run("S5 an unreadable declaration is a declaration that grants nothing", func(t *testing.T) {
		for _, tools := range []Tools{UnreadableTools(), {}, {State: "odd", Items: []string{"Bash"}}} {
			if !tools.Declares() || len(tools.Grants()) > 0 {
				t.Errorf("%+v declares %v, grants %v", tools, tools.Declares(), tools.Grants())
			}
		}
		if NoTools().Declares() || !DeclareTools().Declares() {
			t.Error("null and [] are not told apart")
		}
	})
	t.Run("S5 grants are the caller's own", func(t *testing.T) {
		tools := DeclareTools("a", "b")
		tools.Grants()[0] = "z"
		if tools.Items[0] != "a" {
			t.Error("a caller changed the declaration")
		}
	})
}

// BenchmarkParse reads a file of the median size of public skills, with the findings an import asks for.
func BenchmarkParse(b *testing.B) {
	paragraph := "Use `kubectl get pods` to see what runs, then read the log of the pod that fails.\n- **First** look at the events.\n- Then at [the guide](references/guide.md).\n\n```bash\ncurl -s https://example.com/health | jq .status\n```\n\n"
	data := []byte("---\nname: cluster-doctor\ndescription: Finds out why a workload does not start. Use when a pod is pending or restarts.\nallowed-tools: Bash(kubectl get:*), Read, Grep\nlicense: MIT\nmetadata:\n  version: 1.2.0\n  author: someone\n---\n" + strings.Repeat(paragraph, 24))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(data); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "files/s")
}
