package countersign_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the test files into docs/rules.md")

const rulesPage = "docs/rules.md"

// ruleSections says how many rules each section has, numbered from 1.
var ruleSections = map[string]int{
	"D": 9, "S": 15, "A": 11, "W": 5, "L": 11, "T": 10, "P": 13, "X": 10, "B": 5, "N": 5,
	"R": 20, "G": 9, "C": 8, "V": 9, "O": 4, "I": 8, "U": 3, "Y": 2, "M": 3,
}

// rule is one row of the page: what it promises, and its proof or what is open.
type rule struct {
	id, does, proof string
	line            int // 0-based
}

const (
	proven = "proven:"
	open   = "open:"
	today  = "; today: "
)

var (
	ruleRow    = regexp.MustCompile(`^\| ([A-Z]\d+) \| (.+) \| (.+) \|$`)
	anyRow     = regexp.MustCompile(`^\| *[A-Z]\d`)
	ruleWord   = regexp.MustCompile(`^[A-Z]\d{1,2}$`)
	idsAtStart = regexp.MustCompile(`^[A-Z]\d{1,2}(?:(?:, | and | |–)[A-Z]\d{1,2})*\b`)
	inComment  = regexp.MustCompile(`\bRULES ([A-Z]\d{1,2}(?:(?:,?\s+|\s+and\s+|–)[A-Z]\d{1,2}\b)*)`)
	separator  = regexp.MustCompile(`\s+and\s+|,?\s+`)
)

func readRules(t *testing.T) (lines []string, rules []rule) {
	t.Helper()
	page, err := os.ReadFile(rulesPage)
	if err != nil {
		t.Fatal(err)
	}
	lines = strings.Split(string(page), "\n")
	for i, line := range lines {
		row := ruleRow.FindStringSubmatch(line)
		switch {
		case row != nil:
			rules = append(rules, rule{id: row[1], does: row[2], proof: row[3], line: i})
		case anyRow.MatchString(line):
			t.Errorf("%s:%d: this row does not read | id | what the system does | proof |", rulesPage, i+1)
		}
	}
	return lines, rules
}

// mentions lists, for every rule, the test files in which its id opens a text (the
// name of a test, given in a call or a table) or stands in a comment after RULES.
// Conformance suites are test files too: the Go files of a folder called …test.
func mentions(t *testing.T, root string) map[string][]string {
	t.Helper()
	found := map[string]map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git" || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.IsDir() || !testFile(path):
			return nil
		}
		code, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		ids, err := named(path, code)
		for _, id := range ids {
			if found[id] == nil {
				found[id] = map[string]bool{}
			}
			found[id][filepath.ToSlash(path)] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]string{}
	for id, paths := range found {
		files[id] = slices.Sorted(maps.Keys(paths))
	}
	return files
}

// testFile tells the files whose mentions count. This file is none: it names ids that
// it proves nothing about.
func testFile(path string) bool {
	folder := filepath.Base(filepath.Dir(path))
	return path != "rules_test.go" && (strings.HasSuffix(path, "_test.go") ||
		strings.HasSuffix(path, ".go") && strings.HasSuffix(folder, "test") && folder != "pgtest" && folder != "test")
}

// named lists the rules that a test file names.
func named(path string, code []byte) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, code, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var ids []string
	ast.Inspect(file, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
			if value, err := strconv.Unquote(text.Value); err == nil && strings.Contains(value, " ") {
				ids = append(ids, expand(idsAtStart.FindString(value))...)
			}
		}
		return true
	})
	for _, group := range file.Comments {
		for _, match := range inComment.FindAllStringSubmatch(group.Text(), -1) {
			ids = append(ids, expand(match[1])...)
		}
	}
	return ids, nil
}

// expand reads "R2, R5 and A1–A3" as the ids it stands for.
func expand(list string) []string {
	var ids []string
	for _, part := range separator.Split(list, -1) {
		first, last, isRange := strings.Cut(part, "–")
		if !isRange {
			last = first
		}
		if !ruleWord.MatchString(first) || !ruleWord.MatchString(last) || first[0] != last[0] {
			continue
		}
		from, _ := strconv.Atoi(first[1:]) // both are digits: ruleWord matched
		to, _ := strconv.Atoi(last[1:])
		for n := from; n <= to; n++ {
			ids = append(ids, fmt.Sprintf("%c%d", first[0], n))
		}
	}
	return ids
}

func TestRules(t *testing.T) {
	lines, rules := readRules(t)
	named := mentions(t, ".")

	t.Run("every rule has one row, in order", func(t *testing.T) {
		count := map[string]int{}
		for _, r := range rules {
			count[r.id[:1]]++
			if want := r.id[:1] + strconv.Itoa(count[r.id[:1]]); r.id != want {
				t.Fatalf("%s:%d: %s stands where %s should", rulesPage, r.line+1, r.id, want)
			}
		}
		if !maps.Equal(count, ruleSections) {
			t.Errorf("rules in each section: %v, want %v", count, ruleSections)
		}
	})
	t.Run("a proven rule names exactly the files whose tests name it", func(t *testing.T) {
		changed := false
		for _, r := range rules {
			if !strings.HasPrefix(r.proof, proven) {
				continue
			}
			want := strings.TrimSpace(proven + " " + strings.Join(named[r.id], ", "))
			if len(named[r.id]) == 0 {
				t.Errorf("%s:%d: %s claims to be proven, and no test names it", rulesPage, r.line+1, r.id)
			}
			if r.proof == want {
				continue
			}
			row := fmt.Sprintf("| %s | %s | %s |", r.id, r.does, want)
			if *update {
				lines[r.line], changed = row, true
				continue
			}
			t.Errorf("%s:%d should end in %q (go test -run TestRules -update .)", rulesPage, r.line+1, want)
		}
		if changed {
			if err := os.WriteFile(rulesPage, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("an open rule says what is missing and what answers, and claims no test", func(t *testing.T) {
		for _, r := range rules {
			missing, answer, said := strings.Cut(strings.TrimPrefix(r.proof, open), today)
			switch {
			case strings.HasPrefix(r.proof, proven):
			case !strings.HasPrefix(r.proof, open):
				t.Errorf("%s:%d: %s is neither proven nor open", rulesPage, r.line+1, r.id)
			case !said || strings.TrimSpace(missing) == "" || strings.TrimSpace(answer) == "":
				t.Errorf("%s:%d: %s does not read %q … %q …", rulesPage, r.line+1, r.id, open, today)
			case strings.Contains(r.proof, ".go"):
				t.Errorf("%s:%d: %s is open and names a file", rulesPage, r.line+1, r.id)
			}
		}
	})
	t.Run("tests name only rules that there are", func(t *testing.T) {
		for id, files := range named {
			if !slices.ContainsFunc(rules, func(r rule) bool { return r.id == id }) {
				t.Errorf("%s names %s, which is no rule", strings.Join(files, ", "), id)
			}
		}
	})
}

func TestNamed(t *testing.T) {
	for _, c := range []struct{ name, code, want string }{
		{"a test's name", `t.Run("S5 a list", f)`, "S5"},
		{"a name in a table", `cases = []c{{"X6, X7 and R11 in order"}, {"A1–A3 hold"}}`, "X6 X7 R11 A1 A2 A3"},
		{"ids side by side", `t.Run("D6 D5 a text", f)`, "D6 D5"},
		{"a comment", "// Proves RULES P2, P3 and T4.", "P2 P3 T4"},
		{"a comment that goes on", "// As RULES P2,\n// P3 has it.", "P2 P3"},
		{"a comment about something else", "// C1 controls and the B4 sheet.", ""},
		{"an id inside a text", `t.Run("as in C1", f)`, ""},
		{"an id that is all of a text", `key("B4")`, ""},
		{"a word that begins like one", `t.Run("A1 A4x4 car", f)`, "A1"},
		{"a longer word", `t.Run("S55x is none", f)`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			code := c.code
			if !strings.HasPrefix(code, "//") {
				code = "func f() { " + code + " }"
			}
			ids, err := named("a_test.go", []byte("package a\n\n"+code+"\n\nvar b int\n"))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(ids, " "); got != c.want {
				t.Errorf("named %q, want %q", got, c.want)
			}
		})
	}
}
