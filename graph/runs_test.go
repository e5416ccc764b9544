package graph

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/budget"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/skill"
	"github.com/countersign/countersign/internal/tool"
)

const startIt = `mutation($input: StartRunInput!) { startRun(input: $input) { run { id status } refusal { code message } clientMutationId } }`

func started(t *testing.T, f *fakeAgent, input map[string]any) map[string]any {
	t.Helper()
	got := ask(t, t.Context(), Rooms{Agent: f}, person, startIt, map[string]any{"input": input}).next()
	if got.Errors != nil {
		t.Fatalf("got %+v", got.Errors)
	}
	return got.Data["startRun"].(map[string]any)
}

func TestStartRun(t *testing.T) {
	configuration, invoked := uuid.New(), uuid.New()
	settled := anyRun
	settled.Status = run.WaitingForApproval
	fake := func() (*fakeAgent, *agent.StartRequest) {
		var request agent.StartRequest
		return &fakeAgent{
			runs:  map[uuid.UUID]agent.Run{anyRun.ID: settled},
			start: func(r agent.StartRequest) (agent.Run, error) { request = r; return anyRun, nil },
		}, &request
	}

	t.Run("it answers when the run settles or waits", func(t *testing.T) {
		f, request := fake()
		got := started(t, f, map[string]any{
			"configurationId": configurationKind.id(configuration), "prompt": "Proofread it.", "clientMutationId": "mine",
			"invocation":   map[string]any{"skillId": skillKind.id(invoked), "subject": map[string]any{"table": "page", "id": "home"}},
			"allowedTools": []any{"get_page"}, "maxIterations": 3,
		})
		if run := got["run"].(map[string]any); run["status"] != "WAITING_FOR_APPROVAL" || f.waited != 1 || got["clientMutationId"] != "mine" {
			t.Errorf("got %v after %d waits", got, f.waited)
		}
		want := agent.StartRequest{
			ConfigurationID: configuration, Messages: []prompt.Message{{Role: prompt.User, Text: "Proofread it."}},
			Invocation:   &agent.Invocation{Skill: invoked, Subject: &tool.Record{Table: "page", ID: "home"}},
			AllowedTools: []string{"get_page"}, MaxIterations: 3,
		}
		if diff := cmp.Diff(want, *request); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("P4 it names the run before", func(t *testing.T) {
		f, request := fake()
		started(t, f, map[string]any{"configurationId": configurationKind.id(configuration), "prompt": "x", "predecessorId": runKind.id(anyRun.ID)})
		if request.Predecessor != anyRun.ID {
			t.Errorf("got %s", request.Predecessor)
		}
	})

	t.Run("P3 a run that was stored as stopped comes with its refusal, at once", func(t *testing.T) {
		stopped := anyRun
		stopped.Status, stopped.Reason = run.Failed, run.ReasonInstructionWithdrawn
		f := &fakeAgent{start: func(agent.StartRequest) (agent.Run, error) {
			return stopped, fault.Refuse(fault.InstructionWithdrawn, "Tour may not instruct any more.")
		}}
		got := started(t, f, map[string]any{"configurationId": configurationKind.id(configuration), "prompt": "x"})
		want := map[string]any{"code": "INSTRUCTION_WITHDRAWN", "message": "Tour may not instruct any more."}
		if r := got["run"].(map[string]any); r["status"] != "FAILED" || !cmp.Equal(got["refusal"], any(want)) || f.waited != 0 {
			t.Errorf("got %v", got)
		}
	})

	t.Run("in the background it does not wait", func(t *testing.T) {
		f, _ := fake()
		got := started(t, f, map[string]any{"configurationId": configurationKind.id(configuration), "prompt": "x", "background": true})
		if run := got["run"].(map[string]any); run["status"] != "RUNNING" || f.waited != 0 {
			t.Errorf("got %v after %d waits", got, f.waited)
		}
	})

	t.Run("T10 an empty list of tools is not the absence of one", func(t *testing.T) {
		f, request := fake()
		started(t, f, map[string]any{"configurationId": configurationKind.id(configuration), "prompt": "x", "allowedTools": []any{}})
		if request.AllowedTools == nil || len(request.AllowedTools) != 0 {
			t.Errorf("got %#v", request.AllowedTools)
		}
		started(t, f, map[string]any{"configurationId": configurationKind.id(configuration), "prompt": "x"})
		if request.AllowedTools != nil {
			t.Errorf("got %#v", request.AllowedTools)
		}
	})

	t.Run("I7 what the rules refuse is data", func(t *testing.T) {
		f := &fakeAgent{start: func(agent.StartRequest) (agent.Run, error) {
			return agent.Run{}, fmt.Errorf("starting: %w", fault.Refuse(fault.NotAttached, "It is not attached."))
		}}
		got := started(t, f, map[string]any{"configurationId": configurationKind.id(configuration), "prompt": "x"})
		want := map[string]any{"code": "NOT_ATTACHED", "message": "It is not attached."}
		if got["run"] != nil || !cmp.Equal(got["refusal"], any(want)) || f.waited != 0 {
			t.Errorf("got %v", got)
		}
	})
}

func TestEndProcess(t *testing.T) {
	const endIt = `mutation($input: EndProcessInput!) { endProcess(input: $input) { clientMutationId
		run { processPin { skillId } predecessorId predecessor { id } invocation { derived ended } notices { code } } refusal { code } } }`
	before, ended := anyRun, anyRun
	before.ID = uuid.New()
	ended.PredecessorID = before.ID
	ended.Invocation = &agent.Invocation{Skill: uuid.New(), Derived: true, Ended: true}
	ended.Notices = []run.Notice{{Code: run.NoticeProcessEnded}}
	f := &fakeAgent{runs: map[uuid.UUID]agent.Run{before.ID: before}, endProcess: func(id uuid.UUID) (agent.Run, error) {
		if id != anyRun.ID {
			return agent.Run{}, fault.Refuse(fault.NotInitiator, "It is not yours.")
		}
		return ended, nil
	}}
	end := func(id uuid.UUID) map[string]any {
		t.Helper()
		input := map[string]any{"runId": runKind.id(id), "clientMutationId": "mine"}
		got := ask(t, t.Context(), Rooms{Agent: f}, person, endIt, map[string]any{"input": input}).next()
		if got.Errors != nil {
			t.Fatalf("got %+v", got.Errors)
		}
		return got.Data["endProcess"].(map[string]any)
	}
	t.Run("X10 it answers with the run, which tells how it stands in its lineage", func(t *testing.T) {
		want := map[string]any{"clientMutationId": "mine", "refusal": nil, "run": map[string]any{
			"processPin": nil, "predecessorId": runKind.id(before.ID), "predecessor": map[string]any{"id": runKind.id(before.ID)},
			"invocation": map[string]any{"derived": true, "ended": true}, "notices": []any{map[string]any{"code": "PROCESS_ENDED"}},
		}}
		if diff := cmp.Diff(want, end(anyRun.ID)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("I7 X10 what the rules refuse is data", func(t *testing.T) {
		want := map[string]any{"clientMutationId": "mine", "refusal": map[string]any{"code": "NOT_INITIATOR"}, "run": nil}
		if diff := cmp.Diff(want, end(uuid.New())); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("P7 a run before that is gone is null, its id is not", func(t *testing.T) {
		f.runs = nil
		if r := end(anyRun.ID)["run"].(map[string]any); r["predecessor"] != nil || r["predecessorId"] != runKind.id(before.ID) {
			t.Errorf("got %v", r)
		}
	})
}

func TestDecideRun(t *testing.T) {
	const decideIt = `mutation($input: DecideRunInput!) { decideRun(input: $input) { run { status } refusal {
		code ... on AlreadyDecidedRefusal { decidedBy { name } decidedById decision denialReason at } } } }`
	digest := fmt.Sprintf("%064x", 7)
	var took agent.Decision
	f := &fakeAgent{runs: map[uuid.UUID]agent.Run{anyRun.ID: anyRun}}
	f.decide = func(d agent.Decision) (agent.Run, error) { took = d; return anyRun, nil }
	input := map[string]any{"runId": runKind.id(anyRun.ID), "turnDigest": digest, "decision": "DENY", "reason": "SKIP"}

	t.Run("R14 a denial carries its reason", func(t *testing.T) {
		got := ask(t, t.Context(), Rooms{Agent: f}, person, decideIt, map[string]any{"input": input}).next()
		want := agent.Decision{Run: anyRun.ID, TurnDigest: digest, Reason: agent.Skip}
		if got.Errors != nil || took != want || f.waited != 1 {
			t.Errorf("got %+v, decided %+v after %d waits", got, took, f.waited)
		}
	})

	t.Run("I7 ALREADY_DECIDED says who, what and when", func(t *testing.T) {
		at := time.Date(2026, 1, 31, 9, 30, 0, 0, time.UTC)
		f.decide = func(agent.Decision) (agent.Run, error) {
			return agent.Run{}, fault.Refuse(fault.AlreadyDecided, "Before you.").With(agent.Decided{By: admin.ID, Reason: "variant", At: at})
		}
		got := ask(t, t.Context(), Rooms{Agent: f, Access: people()}, person, decideIt, map[string]any{"input": input}).next()
		want := map[string]any{
			"code": "ALREADY_DECIDED", "decidedBy": map[string]any{"name": "Ada"}, "decidedById": userKind.id(admin.ID),
			"decision": "DENY", "denialReason": "VARIANT", "at": "2026-01-31T09:30:00Z",
		}
		if diff := cmp.Diff(any(want), got.Data["decideRun"].(map[string]any)["refusal"]); diff != "" {
			t.Error(diff)
		}
	})
}

func TestCards(t *testing.T) {
	const look = `query($id: ID!) { node(id: $id) { ... on Run { pendingDecision { turnDigest isProcess answers
		calls { index tool arguments preview { lines failed stale } target { table id fields } } } pendingInput { tool schema } } } }`
	waiting := anyRun
	waiting.Status = run.WaitingForApproval
	card := &agent.Card{TurnDigest: fmt.Sprintf("%064x", 7), IsProcess: true, Answers: []agent.Answer{agent.Apply, agent.Variant, agent.Skip}, Calls: []agent.CardCall{{
		Tool: "update_element", Arguments: json.RawMessage(`{"id":"e1"}`), Lines: []string{"a → b"},
		Target: &tool.Target{Record: tool.Record{Table: "element", ID: "e1"}, Fields: []string{"text"}},
	}}}
	read := func(t *testing.T, r agent.Run, card *agent.Card, err error) map[string]any {
		f := &fakeAgent{runs: map[uuid.UUID]agent.Run{r.ID: r}, card: card, cardErr: err}
		got := ask(t, t.Context(), Rooms{Agent: f}, person, look, map[string]any{"id": runKind.id(r.ID)}).next()
		if got.Errors != nil {
			t.Fatalf("got %+v", got.Errors)
		}
		return got.Data["node"].(map[string]any)
	}

	t.Run("C4 G7 it shows answers, preview and target", func(t *testing.T) {
		want := map[string]any{"pendingInput": nil, "pendingDecision": map[string]any{
			"turnDigest": card.TurnDigest, "isProcess": true, "answers": []any{"APPLY", "VARIANT", "SKIP"}, "calls": []any{map[string]any{
				"index": 0.0, "tool": "update_element", "arguments": map[string]any{"id": "e1"},
				"preview": map[string]any{"lines": []any{"a → b"}, "failed": false, "stale": false},
				"target":  map[string]any{"table": "element", "id": "e1", "fields": []any{"text"}},
			}},
		}}
		if diff := cmp.Diff(want, read(t, waiting, card, nil)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("G7 who may not read the record sees neither arguments nor preview", func(t *testing.T) {
		hidden := *card
		hidden.Calls = []agent.CardCall{{Tool: "update_element"}}
		decision := read(t, waiting, &hidden, nil)["pendingDecision"].(map[string]any)
		call := decision["calls"].([]any)[0].(map[string]any)
		if call["arguments"] != nil || call["preview"] != nil {
			t.Errorf("got %v", call)
		}
	})
	t.Run("I3 a run that does not wait has none", func(t *testing.T) {
		if got := read(t, anyRun, card, nil); got["pendingDecision"] != nil || got["pendingInput"] != nil {
			t.Errorf("got %v", got)
		}
	})
	t.Run("R11 an unreadable state is the operator's", func(t *testing.T) {
		got := read(t, waiting, nil, fault.Refuse(fault.StateUnreadable, "It cannot be read."))
		if got["pendingDecision"] != nil {
			t.Errorf("got %v", got)
		}
	})
	t.Run("R13 a question shows its schema", func(t *testing.T) {
		asking := anyRun
		asking.Status = run.WaitingForInput
		got := read(t, asking, &agent.Card{TurnDigest: card.TurnDigest, Input: &agent.CardInput{Tool: "ask_choice", Schema: json.RawMessage(`{"type":"object"}`)}}, nil)
		want := map[string]any{"pendingDecision": nil, "pendingInput": map[string]any{"tool": "ask_choice", "schema": map[string]any{"type": "object"}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRunEventsAsAConnection(t *testing.T) {
	f := &fakeAgent{runs: map[uuid.UUID]agent.Run{anyRun.ID: anyRun}, events: steps(30)}
	read := func(arguments string) ([]int, *answer) {
		query := `query($id: ID!) { node(id: $id) { ... on Run { events` + arguments + ` { nodes { sequence } pageInfo { endCursor hasNextPage } } } } }`
		got := ask(t, t.Context(), Rooms{Agent: f}, person, query, map[string]any{"id": runKind.id(anyRun.ID)}).next()
		if got.Errors != nil {
			return nil, got
		}
		var out []int
		for _, n := range got.Data["node"].(map[string]any)["events"].(map[string]any)["nodes"].([]any) {
			out = append(out, int(n.(map[string]any)["sequence"].(float64)))
		}
		return out, got
	}
	for arguments, want := range map[string][]int{
		"(first: 2)": {0, 1}, "(first: 2, afterSequence: 0)": {1, 2}, "(afterSequence: 28)": {29}, "(afterSequence: 99)": nil,
		fmt.Sprintf("(first: 1, after: %q)", cursor("4")): {5},
	} {
		if got, _ := read(arguments); !slices.Equal(got, want) {
			t.Errorf("events%s are %v, want %v", arguments, got, want)
		}
	}
	if got, _ := read(""); len(got) != defaultPage {
		t.Errorf("%d events come unasked", len(got))
	}
	for _, wrong := range []string{"(afterSequence: -1)", fmt.Sprintf("(after: %q, afterSequence: 1)", cursor("4")), `(after: "x")`} {
		if _, got := read(wrong); got.code() != "BAD_USER_INPUT" {
			t.Errorf("events%s: %+v", wrong, got)
		}
	}
}

func TestRefusalsCarryWhatAClientNeedsNext(t *testing.T) {
	d := manySkills(1)[0]
	for _, c := range []struct {
		detail any
		want   string
	}{
		{nil, "model.SimpleRefusal"},
		{struct{ Unknown int }{}, "model.SimpleRefusal"},
		{library.StaleVersion{Current: library.Review{Dossier: d, Digest: d.Digest()}}, "model.StaleDigestRefusal"},
		{library.StaleRevision{Current: d}, "model.StaleSkillRefusal"},
		{library.StaleConfiguration{}, "model.StaleConfigurationRefusal"},
		{content.Record{Table: "page", ID: "home"}, "model.StaleRecordRefusal"},
		{[]skill.Obstacle{{Code: skill.ObstacleInvisibleCharacters}}, "model.InvisibleCharactersRefusal"},
		{skill.Standing{Reasons: []skill.Reason{skill.ReasonRevoked}}, "model.NotInstructionRefusal"},
		{library.SyncHolder{}, "model.SyncRunningRefusal"},
		{[]library.Use{{Kind: library.UsedByRun}}, "model.InUseRefusal"},
		{agent.Decided{}, "model.AlreadyDecidedRefusal"},
		{agent.OpenPredecessor{Status: run.WaitingForInput}, "model.PredecessorOpenRefusal"},
		{budget.Exhausted{Budget: budget.Budget{Scope: budget.OfUser, Period: budget.Day}}, "model.BudgetExhaustedRefusal"},
		{agent.ProcessRunning{}, "model.ProcessRunningRefusal"},
	} {
		refusal, err := asData(fault.Refuse(fault.Busy, "No.").With(c.detail))
		if err != nil || typeName(refusal) != c.want {
			t.Errorf("%T becomes %T, %v; want %s", c.detail, refusal, err, c.want)
		}
	}
	for _, err := range []error{nil, errors.New("broken"), fault.New(fault.Forbidden, "No.")} {
		if refusal, got := asData(err); refusal != nil || !errors.Is(got, err) {
			t.Errorf("%v becomes %v, %v", err, refusal, got)
		}
	}
}

func TestAccountsAreShownToThoseWhoMayKnow(t *testing.T) {
	const look = `query($id: ID!) { node(id: $id) { ... on User { name kind administrator enabled permissions } } }`
	rooms := Rooms{Access: people()}
	t.Run("everything of oneself", func(t *testing.T) {
		got := ask(t, t.Context(), rooms, person, look, map[string]any{"id": userKind.id(person.ID)}).next()
		user := got.Data["node"].(map[string]any)
		if user["administrator"] != false || len(user["permissions"].([]any)) == 0 {
			t.Errorf("got %v", user)
		}
	})
	t.Run("of others a name", func(t *testing.T) {
		got := ask(t, t.Context(), rooms, person, look, map[string]any{"id": userKind.id(admin.ID)}).next()
		want := map[string]any{"name": "Ada", "kind": "PERSON", "administrator": nil, "enabled": nil, "permissions": nil}
		if diff := cmp.Diff(any(want), got.Data["node"]); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("nothing to nobody", func(t *testing.T) {
		got := ask(t, t.Context(), rooms, actor.Actor{}, look, map[string]any{"id": userKind.id(admin.ID)}).next()
		if got.code() != "UNAUTHENTICATED" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("nodes keep their order, and each miss is an error of its own", func(t *testing.T) {
		ids := []any{userKind.id(person.ID), userKind.id(uuid.New()), userKind.id(admin.ID)}
		got := ask(t, t.Context(), rooms, admin, `query($ids: [ID!]!) { nodes(ids: $ids) { ... on User { name } } }`, map[string]any{"ids": ids}).next()
		if fmt.Sprint(got.Data["nodes"]) != "[map[name:Per] <nil> map[name:Ada]]" {
			t.Errorf("got %v", got.Data)
		}
		if got.code() != "NOT_FOUND" || fmt.Sprint(got.Errors[0].Path) != "[nodes 1]" {
			t.Errorf("got %+v", got.Errors)
		}
	})
}

func TestRecordFieldsNameUsersByTheirIDs(t *testing.T) {
	raw := toFields(content.PageTable, map[string]any{"title": "Home", content.ReaderIDs: []string{person.ID.String()}})
	if want := fmt.Sprintf(`{"readerIds":[%q],"title":"Home"}`, userKind.id(person.ID)); string(raw) != want {
		t.Errorf("got %s, want %s", raw, want)
	}
	fields, err := fromFields(content.PageTable, raw)
	if err != nil || !cmp.Equal(fields[content.ReaderIDs], any([]string{person.ID.String()})) {
		t.Errorf("got %v, %v", fields, err)
	}
	if _, err := fromFields(content.PageTable, json.RawMessage(`{"readerIds":["skl_x"]}`)); !fault.Is(err, fault.BadInput) {
		t.Errorf("got %v", err)
	}
}

func TestToolsDeclarations(t *testing.T) {
	for name, c := range map[string]struct {
		tools skill.Tools
		want  string
	}{
		"S5 none is null":                     {skill.NoTools(), "null"},
		"S5 an empty declaration stays empty": {skill.DeclareTools(), "[]"},
		"S5 unreadable is empty, and says so": {skill.UnreadableTools(), "[]"},
		"S5 items are listed":                 {skill.DeclareTools("b", "a"), `["a","b"]`},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(toTools(c.tools))
			if err != nil || string(raw) != c.want {
				t.Errorf("got %s, %v; want %s", raw, err, c.want)
			}
		})
	}
}
