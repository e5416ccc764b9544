package graph

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/run"
)

// constants reads the constants of a type from the source of its room, so that a new one cannot be forgotten here.
func constants(t *testing.T, room, typeName string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "internal", room, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no source of %s: %v", room, err)
	}
	var found []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if of, ok := spec.Type.(*ast.Ident); !ok || of.Name != typeName || len(spec.Values) == 0 {
				return true
			}
			for _, v := range spec.Values {
				if lit, ok := v.(*ast.BasicLit); ok {
					text, err := strconv.Unquote(lit.Value)
					if err != nil {
						t.Fatal(err)
					}
					found = append(found, text)
				}
			}
			return true
		})
	}
	if len(found) == 0 {
		t.Fatalf("%s declares no constants of %s", room, typeName)
	}
	return found
}

// table is a mapping as texts.
func table[G, D ~string](e enum[G, D]) map[string]string {
	out := map[string]string{}
	for g, d := range e.in {
		out[string(g)] = string(d)
	}
	return out
}

func TestEnumsAreCompleteInBothDirections(t *testing.T) {
	for _, c := range []struct {
		enum, room, constants string
		table                 map[string]string
		only                  []string // constants that the API offers, when not all
	}{
		{"UserKind", "actor", "Kind", table(userKinds), nil},
		{"Permission", "actor", "Permission", table(permissions), nil},
		{"GovernanceComparison", "access", "Comparison", table(comparisons), nil},
		{"SourceType", "library", "SourceType", table(sourceTypes), nil},
		{"SyncStatus", "library", "SyncStatus", table(syncStatuses), nil},
		{"SyncItemStatus", "library", "ItemStatus", table(itemStatuses), nil},
		{"LoadMode", "library", "LoadMode", table(loadModes), nil},
		{"ProviderKind", "library", "ProviderKind", table(providerKinds), nil},
		{"TrustZone", "library", "TrustZone", table(trustZones), nil},
		{"UseKind", "library", "UseKind", table(useKinds), nil},
		{"TrustLevel", "skill", "TrustLevel", table(trustLevels), nil},
		{"SupportStatus", "skill", "SupportStatus", table(supportStatuses), nil},
		{"ParseStatus", "skill", "ParseStatus", table(parseStatuses), nil},
		{"Severity", "skill", "Severity", table(severities), nil},
		{"StandingReason", "skill", "Reason", table(standingReasons), nil},
		{"DiffLineKind", "skill", "DiffKind", table(diffKinds), nil},
		{"ObstacleCode", "skill", "ObstacleCode", table(obstacleCodes), nil},
		{"ToolEffect", "tool", "Effect", table(toolEffects), nil},
		{"ToolDenial", "tool", "Gate", table(toolDenials), nil},
		{"WriteCompleteness", "tool", "Completeness", table(completeness), []string{"complete", "partial"}}, // not stated is null
		{"PrivacyLevel", "run", "Privacy", table(privacyLevels), nil},
		{"MessageRole", "prompt", "Role", table(messageRoles), []string{"system", "user", "assistant"}}, // nobody sends a tool's answers
		{"McpTransport", "remote", "Transport", table(mcpTransports), nil},
		{"McpToolStatus", "remote", "Status", table(mcpToolStatuses), nil},
		{"ToolDataClass", "remote", "Class", table(dataClasses), nil},
		{"RunStatus", "run", "Status", table(runStatuses), nil},
		{"RunOutcome", "run", "Outcome", table(runOutcomes), nil},
		{"TerminationReason", "run", "Reason", table(runReasons), nil},
		{"RunPinWay", "run", "Way", table(pinWays), nil},
		{"RunNoticeCode", "run", "NoticeCode", table(noticeCodes), nil},
		{"RunEventKind", "run", "EventKind", table(eventKinds), nil},
		{"CardAnswer", "agent", "Answer", table(cardAnswers), nil},
		{"DenialReason", "agent", "Answer", table(denialReasons), []string{"variant", "skip"}},
		{"ConversationStatus", "chat", "Status", table(conversationStatuses), nil},
		{"ConversationEntryKind", "chat", "Kind", table(conversationKinds), nil},
		{"CardOutcome", "chat", "Outcome", table(cardOutcomes), nil},
		{"WhenBusy", "chat", "WhenBusy", table(busyChoices), nil},
		{"BudgetScope", "budget", "Scope", table(budgetScopes), nil},
		{"BudgetPeriod", "budget", "Period", table(budgetPeriods), nil},
		{"NotificationEvent", "notify", "Event", table(notifyEvents), nil},
		{"NotificationDeliveryStatus", "notify", "Status", table(notifyStatus), nil},
		{"Language", "wording", "Language", table(languages), nil},
		{"RefusalCode", "fault", "Code", nil, nil},
		{"AuditEvent", "audit", "Event", nil, nil},
	} {
		t.Run(c.enum, func(t *testing.T) {
			want := constants(t, c.room, c.constants)
			if c.only != nil {
				for _, d := range c.only {
					if !slices.Contains(want, d) {
						t.Errorf("%s has no constant %s", c.room, d)
					}
				}
				want = c.only
			}
			var values []string
			for _, v := range parsedSchema().Types[c.enum].EnumValues {
				values = append(values, v.Name)
			}
			if c.table == nil { // written in the API's way already
				c.table = map[string]string{}
				for _, d := range want {
					c.table[d] = d
				}
			}
			same(t, "constants", slices.Collect(maps.Values(c.table)), want)
			same(t, "values", slices.Collect(maps.Keys(c.table)), values)
		})
	}

	t.Run("every enum of the schema is held against a room", func(t *testing.T) {
		// Decision and InboxUpdateKind are truth values in the runtime.
		count := 0
		for name, def := range parsedSchema().Types {
			if def.Kind == "ENUM" && !strings.HasPrefix(name, "__") && name != "Decision" && name != "InboxUpdateKind" {
				count++
			}
		}
		if count != 44 {
			t.Errorf("the schema has %d enums, the table above 44", count)
		}
	})
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s are\n%v, want\n%v", what, got, want)
	}
}

func TestPermissionsAreWrittenWithAnUnderscore(t *testing.T) {
	if got := permissions.out("run:approve_own"); got != model.PermissionRunApproveOwn {
		t.Errorf("got %s", got)
	}
	if got := permissions.in[model.PermissionRunApproveOwn]; got != "run:approve_own" {
		t.Errorf("got %s", got)
	}
}

func TestEveryKindOfEventHasItsType(t *testing.T) {
	types := map[string]bool{}
	for _, kind := range constants(t, "run", "EventKind") {
		make, known := eventTypes[run.EventKind(kind)]
		if !known {
			t.Errorf("%s has no type", kind)
			continue
		}
		types[strings.TrimPrefix(typeName(make(run.Event{Kind: run.EventKind(kind)})), "*model.")] = true
	}
	if got := typeName(toEvent(run.Event{Kind: "FROM_A_NEWER_REPLICA"})); got != "*model.StartedEvent" {
		t.Errorf("a kind that is not known here becomes a %s", got)
	}
	implementers := parsedSchema().PossibleTypes["RunEvent"]
	if len(implementers) != len(types) {
		t.Errorf("%d types implement RunEvent, %d are made", len(implementers), len(types))
	}
	for _, def := range implementers {
		if !types[def.Name] {
			t.Errorf("nothing makes a %s", def.Name)
		}
	}
}
