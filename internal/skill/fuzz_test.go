package skill

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzParse feeds bytes and checks what every reader of a File relies on.
func FuzzParse(f *testing.F) {
	var table struct {
		Cases []struct {
			Input string `json:"input"`
		} `json:"cases"`
	}
	readJSON(f, "testdata/skill-files.json", &table)
	for _, c := range table.Cases {
		f.Add([]byte(c.Input))
	}
	f.Add([]byte("---\nname: a\ndescription: x: y\n  allowed-tools: Bash\n\n  process: true\n---\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse(data)
		if err != nil {
			checkFuzzedRejection(t, data, err)
			return
		}
		v := file.Version
		if v.Name == "" || v.Description == "" || v.Name != strings.TrimSpace(v.Name) || v.Description != strings.TrimSpace(v.Description) {
			t.Errorf("name %q, description %q", v.Name, v.Description)
		}
		if !strings.HasSuffix(strings.ReplaceAll(string(data), "\r\n", "\n"), v.Body) {
			t.Errorf("the body %q is not the file's end", v.Body)
		}
		if !utf8.ValidString(v.Name+v.Description+v.Body) || strings.ContainsRune(v.Name+v.Description+v.Body, 0) {
			t.Error("text that cannot be stored")
		}
		if file.Status == ParseRepaired && (len(v.Tools.Grants()) > 0 || v.Process == ProcessYes || len(file.Repairs) == 0) {
			t.Errorf("a repaired file grants: %+v", file)
		}
		if _, err := json.Marshal(file); err != nil {
			t.Error(err)
		}
		again := mustParse(t, "---\n"+file.Frontmatter+"---\n"+v.Body)
		if again.Version.Digest() != v.Digest() || again.RawDigest != file.RawDigest {
			t.Error("what was kept does not read as the same version")
		}
		for _, obstacle := range Obstacles(v) {
			if obstacle.Code == ObstacleInvisibleCharacters && (obstacle.Line < 1 || obstacle.Column < 1 || obstacle.CodePoint == "") {
				t.Errorf("an obstacle without a place: %+v", obstacle)
			}
		}
		if lines := Diff(v, v); len(lines) > 0 {
			t.Errorf("a version differs from itself: %v", lines)
		}
	})
}

func checkFuzzedRejection(t *testing.T, data []byte, err error) {
	t.Helper()
	var rejection *Rejection
	if !errors.As(err, &rejection) {
		t.Fatalf("%v is no rejection", err)
	}
	if rejection.Code == "" || rejection.Reason == "" || rejection.Line < 1 || rejection.Line > strings.Count(string(data), "\n")+2 {
		t.Errorf("rejection without a reason or place: %+v", rejection)
	}
	if rejection.Offset < -1 || rejection.Offset >= len(data) {
		t.Errorf("offset %d of %d bytes", rejection.Offset, len(data))
	}
}

// FuzzTokenizeTools checks that a string is either cut into whole tokens with nothing but separators between them, or refused.
func FuzzTokenizeTools(f *testing.F) {
	for _, text := range []string{"", "Read, Grep,Bash", "Bash(git add *) Read", "Bash(cmd:psql,cmd:mysql)", "Bash(git", "a)b(", `Bash(echo ")")`, `"Read`, "Bash(a)(b)", "é(ü)"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tokens, ok := tokenizeTools(text)
		if !ok {
			return
		}
		rest := text
		for _, token := range tokens {
			before, after, found := strings.Cut(rest, token)
			if token == "" || !found || strings.Trim(before, ", \t\n\r") != "" {
				t.Fatalf("tokens %q of %q", tokens, text)
			}
			rest = after
		}
		if strings.Trim(rest, ", \t\n\r") != "" {
			t.Fatalf("tokens %q lose %q of %q", tokens, rest, text)
		}
		tools := toolsOf(tokens)
		if tools.State == ToolsDeclared && !slices.IsSorted(tools.Items) {
			t.Errorf("unsorted: %q", tools.Items)
		}
		for _, item := range tools.Grants() {
			if strings.Count(item, "(") == 0 && strings.ContainsAny(item, " ,\t\n)'\"") {
				t.Errorf("granted %q", item)
			}
		}
	})
}
