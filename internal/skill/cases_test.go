package skill

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
)

// fileCase is one case of testdata/skill-files.json. A field that a case does not name is not checked; presence is read from the raw object, because
// null is a value there.
type fileCase struct {
	Case         string          `json:"case"`
	Input        string          `json:"input"`
	Status       string          `json:"status"`
	Name         *string         `json:"name"`
	Description  *string         `json:"description"`
	Body         *string         `json:"body"`
	AllowedTools json.RawMessage `json:"allowedTools"`
	Process      json.RawMessage `json:"process"`
	Reason       *string         `json:"reason"`
	Offset       *int            `json:"offset"`
	Finding      *string         `json:"finding"`
	Approvable   *bool           `json:"approvable"`
}

// reasonCodes says which code carries the meaning of a case's reason.
var reasonCodes = map[string]RejectionCode{
	"description missing":          RejectDescriptionMissing,
	"frontmatter is not closed":    RejectFrontmatterNotClosed,
	"frontmatter must be first":    RejectFrontmatterNotFirst,
	"no frontmatter":               RejectNoFrontmatter,
	"frontmatter is not a mapping": RejectNotMapping,
	"duplicate key":                RejectDuplicateKey,
	"alias or anchor":              RejectAliasOrAnchor,
	"explicit tag":                 RejectExplicitTag,
	"control character":            RejectControlCharacter,
	"not YAML":                     RejectNotYAML,
}

func TestSkillFileCases(t *testing.T) {
	var table struct {
		Cases []json.RawMessage `json:"cases"`
	}
	readJSON(t, "testdata/skill-files.json", &table)
	for _, raw := range table.Cases {
		var c fileCase
		decoder := json.NewDecoder(strings.NewReader(string(raw)))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&c); err != nil {
			t.Fatalf("case %s: %v", raw, err)
		}
		t.Run("S4 "+c.Case, func(t *testing.T) {
			file, err := Parse([]byte(c.Input))
			if c.Status == "rejected" {
				checkRejection(t, c, err)
				return
			}
			if err != nil {
				t.Fatalf("rejected: %v", err)
			}
			checkFile(t, c, file)
		})
	}
}

func checkRejection(t *testing.T, c fileCase, err error) {
	t.Helper()
	var rejection *Rejection
	if !errors.As(err, &rejection) {
		t.Fatalf("error = %v, want a rejection", err)
	}
	if c.Reason != nil {
		code, known := reasonCodes[*c.Reason]
		if !known {
			t.Fatalf("the reason %q has no code here", *c.Reason)
		}
		if rejection.Code != code || !strings.Contains(rejection.Reason, *c.Reason) && code != RejectAliasOrAnchor && code != RejectNotYAML {
			t.Errorf("rejection = %s %q, want %q", rejection.Code, rejection.Reason, *c.Reason)
		}
	}
	if c.Offset != nil && rejection.Offset != *c.Offset {
		t.Errorf("offset = %d, want %d", rejection.Offset, *c.Offset)
	}
	if rejection.Line < 1 {
		t.Errorf("a rejection of text that was read names a line, got %d", rejection.Line)
	}
}

func checkFile(t *testing.T, c fileCase, file File) {
	t.Helper()
	if string(file.Status) != c.Status {
		t.Errorf("status = %s, want %s", file.Status, c.Status)
	}
	if (file.Status == ParseRepaired) != (len(file.Repairs) > 0) {
		t.Errorf("status %s with repairs %v", file.Status, file.Repairs)
	}
	checkText(t, "name", file.Version.Name, c.Name)
	checkText(t, "description", file.Version.Description, c.Description)
	checkText(t, "body", file.Version.Body, c.Body)
	if c.AllowedTools != nil {
		checkTools(t, file.Version.Tools, c.AllowedTools)
	}
	if c.Process != nil {
		want := map[string]Process{"true": ProcessYes, "false": ProcessNo, `"unreadable"`: ProcessUnreadable}[string(c.Process)]
		if file.Version.Process != want {
			t.Errorf("process = %s, want %s", file.Version.Process, c.Process)
		}
	}
	if c.Finding != nil && !hasFinding(file.Findings, *c.Finding) {
		t.Errorf("findings = %+v, want one that says %q", file.Findings, *c.Finding)
	}
	if obstacles := Obstacles(file.Version); c.Approvable != nil && (len(obstacles) == 0) != *c.Approvable {
		t.Errorf("obstacles = %+v, want approvable %v", obstacles, *c.Approvable)
	}
}

func checkText(t *testing.T, field, got string, want *string) {
	t.Helper()
	if want != nil && got != *want {
		t.Errorf("%s = %q, want %q", field, got, *want)
	}
}

func checkTools(t *testing.T, got Tools, raw json.RawMessage) {
	t.Helper()
	if want := toolsFromJSON(t, raw); !sameTools(got, want) {
		t.Errorf("tools = %+v, want %+v", got, want)
	}
}

// toolsFromJSON reads a declaration as the test data writes it: null, "unreadable" or a list.
func toolsFromJSON(tb testing.TB, raw json.RawMessage) Tools {
	tb.Helper()
	switch string(raw) {
	case "null":
		return NoTools()
	case `"unreadable"`:
		return UnreadableTools()
	}
	var items []string
	if err := json.Unmarshal(raw, &items); err != nil {
		tb.Fatalf("tools %s: %v", raw, err)
	}
	return DeclareTools(items...)
}

func sameTools(a, b Tools) bool {
	return a.State == b.State && (len(a.Items) == 0 && len(b.Items) == 0 || reflect.DeepEqual(a.Items, b.Items))
}

func hasFinding(findings []Finding, text string) bool {
	for _, finding := range findings {
		if strings.Contains(finding.Message, text) {
			return true
		}
	}
	return false
}

func readJSON(tb testing.TB, path string, into any) {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
}
