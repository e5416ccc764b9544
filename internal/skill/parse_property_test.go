package skill

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// yamlKind is one way to write a value, and what it must mean for the keys that matter. An outcome other than "" is the rejection the kind causes under
// any key; "repaired" means that the file needs a rescue.
type yamlKind struct {
	kind    string
	text    string // what follows `key:`
	outcome string
	isText  bool // good enough for name and description
	tools   Tools
	process Process
}

const repairedOutcome = "repaired"

var yamlKinds = []yamlKind{
	{"nothing", "", "", false, DeclareTools(), ProcessUnreadable},
	{"null", " null", "", false, DeclareTools(), ProcessUnreadable},
	{"tilde", " ~", "", false, DeclareTools(), ProcessUnreadable},
	{"comment", " # x", "", false, DeclareTools(), ProcessUnreadable},
	{"true", " true", "", true, UnreadableTools(), ProcessYes},
	{"false", " false", "", true, UnreadableTools(), ProcessNo},
	{"true and comment", " true # x", "", true, UnreadableTools(), ProcessYes},
	{"True", " True", "", true, UnreadableTools(), ProcessUnreadable},
	{"yes", " yes", "", true, DeclareTools("yes"), ProcessUnreadable},
	{"integer", " 8004", "", true, UnreadableTools(), ProcessUnreadable},
	{"float", " 1.10", "", true, UnreadableTools(), ProcessUnreadable},
	{"infinity", " .inf", "", true, UnreadableTools(), ProcessUnreadable},
	{"date", " 2024-01-01", "", true, UnreadableTools(), ProcessUnreadable},
	{"plain", " Read", "", true, DeclareTools("Read"), ProcessUnreadable},
	{"plain on two lines", " Read\n  Grep", "", true, DeclareTools("Grep", "Read"), ProcessUnreadable},
	{"single quoted", " 'Read, Grep'", "", true, DeclareTools("Grep", "Read"), ProcessUnreadable},
	{"double quoted", ` "Read"`, "", true, DeclareTools("Read"), ProcessUnreadable},
	{"quoted true", ` "true"`, "", true, DeclareTools("true"), ProcessUnreadable},
	{"quoted null", ` "null"`, "", true, DeclareTools("null"), ProcessUnreadable},
	{"quoted nothing", ` ""`, "", false, DeclareTools(), ProcessUnreadable},
	{"quoted space", ` "  "`, "", false, DeclareTools(), ProcessUnreadable},
	{"literal", " |\n  Read\n  Grep", "", true, DeclareTools("Grep", "Read"), ProcessUnreadable},
	{"folded", " >-\n  Read\n  Grep", "", true, DeclareTools("Grep", "Read"), ProcessUnreadable},
	{"literal true", " |-\n  true", "", true, DeclareTools("true"), ProcessUnreadable},
	{"flow list", " [Read, Grep]", "", false, DeclareTools("Grep", "Read"), ProcessUnreadable},
	{"block list", "\n  - Read\n  - \"Agent(x, y)\"", "", false, DeclareTools("Agent(x, y)", "Read"), ProcessUnreadable},
	{"list of a list", " [[Read]]", "", false, UnreadableTools(), ProcessUnreadable},
	{"list with null", " [Read, ~]", "", false, UnreadableTools(), ProcessUnreadable},
	{"list with true", " [Read, true]", "", false, UnreadableTools(), ProcessUnreadable},
	{"list with a map", "\n  - Read: x", "", false, UnreadableTools(), ProcessUnreadable},
	{"list with a string to split", ` ["Read, Grep"]`, "", false, UnreadableTools(), ProcessUnreadable},
	{"flow map", " {Read: true}", "", false, UnreadableTools(), ProcessUnreadable},
	{"block map", "\n  true: true", "", false, UnreadableTools(), ProcessUnreadable},
	{"alias to nothing", " *x", repairedOutcome, true, UnreadableTools(), ProcessUnreadable},
	{"anchor", " &x Read", string(RejectAliasOrAnchor), false, Tools{}, ""},
	{"tag", " !!bool true", string(RejectExplicitTag), false, Tools{}, ""},
	{"own tag", " !x Read", string(RejectExplicitTag), false, Tools{}, ""},
	{"complex key", "\n  ? [a]\n  : b", string(RejectComplexKey), false, Tools{}, ""},
	{"duplicate inside", " {a: 1, a: 2}", string(RejectDuplicateKey), false, Tools{}, ""},
	{"too deep", " " + strings.Repeat("[", 40) + strings.Repeat("]", 40), string(RejectTooDeep), false, Tools{}, ""},
	{"too many", " [" + strings.Repeat("a,", maxNodes) + "]", string(RejectTooManyNodes), false, Tools{}, ""},
	{"escaped NUL", ` "a\0"`, string(RejectControlCharacter), false, Tools{}, ""},
	{"second colon", " Read: true", repairedOutcome, true, UnreadableTools(), ProcessUnreadable},
	{"indicator with text", " >- true", repairedOutcome, true, UnreadableTools(), ProcessUnreadable},
	{"at sign", " @Read", repairedOutcome, true, UnreadableTools(), ProcessUnreadable},
	{"backtick", " `Read`", repairedOutcome, true, UnreadableTools(), ProcessUnreadable},
	{"percent", " %Read", repairedOutcome, true, UnreadableTools(), ProcessUnreadable},
	{"surrogates", ` "\ud83d\udd0d"`, repairedOutcome, true, UnreadableTools(), ProcessUnreadable},
	{"lone surrogate", ` "\ud83d"`, string(RejectNotYAML), false, Tools{}, ""},
	{"open bracket", " [Read", string(RejectNotYAML), false, Tools{}, ""},
	{"open quote", ` "Read`, string(RejectNotYAML), false, Tools{}, ""},
}

var propertyKeys = []string{"name", "description", keyTools, keyProcess, "license", "metadata", "user-invocable", "whatever"}

// TestEveryKindForEveryKey is the whole table: each kind under each key, everything else well written.
func TestEveryKindForEveryKey(t *testing.T) {
	plain := yamlKinds[13]
	for _, key := range propertyKeys {
		for _, kind := range yamlKinds {
			t.Run(fmt.Sprintf("S4 %s: %s", key, kind.kind), func(t *testing.T) {
				written := map[string]yamlKind{"name": plain, "description": plain}
				written[key] = kind
				checkKinds(t, propertyKeys, written)
			})
		}
	}
}

// TestKindsTogether draws files with any kinds under any keys in any order.
func TestKindsTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.Permutation(propertyKeys).Draw(t, "keys")
		written := map[string]yamlKind{}
		for _, key := range keys {
			if key == "name" || key == "description" || rapid.Bool().Draw(t, "has "+key) {
				written[key] = yamlKinds[rapid.IntRange(0, len(yamlKinds)-1).Draw(t, key)]
			}
		}
		checkKinds(t, keys, written)
	})
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// checkKinds writes a file and holds what was read against what its kinds say.
func checkKinds(t failer, keys []string, written map[string]yamlKind) {
	t.Helper()
	var text strings.Builder
	text.WriteString("---\n")
	rejections, needsRescue := map[string]bool{}, false
	for _, key := range keys {
		kind, has := written[key]
		if !has {
			continue
		}
		text.WriteString(key + ":" + kind.text + "\n")
		switch {
		case kind.outcome == repairedOutcome:
			needsRescue = true
		case kind.outcome != "":
			rejections[kind.outcome] = true
		}
		if key == "name" && !kind.isText {
			rejections[string(RejectNameMissing)] = true
		}
		if key == "description" && !kind.isText {
			rejections[string(RejectDescriptionMissing)] = true
		}
	}
	text.WriteString("---\nB\n")
	file, err := Parse([]byte(text.String()))
	var rejection *Rejection
	if errors.As(err, &rejection) {
		// Two broken values may break a third thing between them; a file with one of them is refused for exactly that.
		if len(rejections) == 0 || len(rejections) == 1 && !rejections[string(rejection.Code)] {
			t.Fatalf("rejected as %s, want one of %v:\n%s", rejection.Code, rejections, text.String())
		}
		return
	}
	if err != nil || len(rejections) > 0 {
		t.Fatalf("error = %v, want one of %v:\n%.2000s", err, rejections, text.String())
	}
	checkGrants(t, file, written, needsRescue)
}

func checkGrants(t failer, file File, written map[string]yamlKind, needsRescue bool) {
	t.Helper()
	if (file.Status == ParseRepaired) != needsRescue {
		t.Errorf("status = %s, rescue needed: %v", file.Status, needsRescue)
	}
	wantTools, wantProcess := NoTools(), ProcessNo
	if kind, has := written[keyTools]; has {
		wantTools = kind.tools
		if needsRescue {
			wantTools = UnreadableTools()
		}
	}
	if kind, has := written[keyProcess]; has {
		wantProcess = kind.process
		if needsRescue {
			wantProcess = ProcessUnreadable
		}
	}
	if !sameTools(file.Version.Tools, wantTools) {
		t.Errorf("tools = %+v, want %+v", file.Version.Tools, wantTools)
	}
	if file.Version.Process != wantProcess {
		t.Errorf("process = %s, want %s", file.Version.Process, wantProcess)
	}
}
