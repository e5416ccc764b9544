package graph

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/world"
)

// shelf is a store of one configuration with a snippet and a task; what it is told to
// change it forgets.
type shelf struct {
	fakeLibrary
	configuration library.Configuration
	snippet       library.Snippet
	task          library.Task
	attached      []library.Offered
	told          []change.Change
}

func newShelf() *shelf {
	id := func(n byte) uuid.UUID { return uuid.UUID{0: n, 15: n} }
	at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	return &shelf{
		configuration: library.Configuration{ID: id(1), Name: "Editors", SnippetIDs: []uuid.UUID{id(2)}},
		snippet: library.Snippet{
			ID: id(2), Snippet: prompt.Snippet{Name: "Voice", Text: "Be kind.\n"}, Revision: 3, EditorID: person.ID, CreatedAt: at, UpdatedAt: at,
		},
		task: library.Task{ID: id(3), Name: "Proofread", ConfigurationID: id(1), Prompt: "Read it.", CreatedAt: at},
	}
}

func (s *shelf) Configuration(context.Context, uuid.UUID) (library.Configuration, error) {
	return s.configuration, nil
}

func (s *shelf) Snippet(context.Context, uuid.UUID) (library.Snippet, error) { return s.snippet, nil }
func (s *shelf) Task(context.Context, uuid.UUID) (library.Task, error)       { return s.task, nil }
func (s *shelf) Snippets(context.Context, library.Page) ([]library.Snippet, error) {
	return []library.Snippet{s.snippet}, nil
}

func (s *shelf) Tasks(context.Context, library.Page) ([]library.Task, error) {
	return []library.Task{s.task}, nil
}

func (s *shelf) OfferedByTask(context.Context, uuid.UUID) ([]library.Offered, error) {
	return s.attached, nil
}

func (s *shelf) Apply(_ context.Context, changes ...change.Change) ([]change.Outcome, error) {
	s.told = append(s.told, changes...)
	out := make([]change.Outcome, len(changes))
	for i := range out {
		out[i].Applied = true
	}
	return out, nil
}

// rooms are the rooms over the shelf.
func (s *shelf) rooms() Rooms {
	return Rooms{Library: &library.Library{Store: s, Accounts: s, World: world.Real()}, Access: people()}
}

// answered is what an operation without errors answers.
func answered(t *testing.T, rooms Rooms, by actor.Actor, query string, variables map[string]any) map[string]any {
	t.Helper()
	got := ask(t, t.Context(), rooms, by, query, variables).next()
	if got.Errors != nil {
		t.Fatalf("got %+v", got.Errors)
	}
	return got.Data
}

func TestSnippetAPI(t *testing.T) {
	s := newShelf()
	id := snippetKind.id(s.snippet.ID)

	t.Run("N1 N3 a snippet shows its block and the digest that marking takes", func(t *testing.T) {
		got := answered(t, s.rooms(), person, `query($id: ID!) { node(id: $id) { ... on Snippet { id name text block blockDigest marked revision editor { id } } }
			snippets { nodes { id } } }`, map[string]any{"id": id})
		want := map[string]any{
			"node": map[string]any{
				"id": id, "name": "Voice", "text": "Be kind.\n", "block": "Voice:\nBe kind.", "blockDigest": s.snippet.Digest(), "marked": false,
				"revision": 3.0, "editor": map[string]any{"id": userKind.id(person.ID)},
			},
			"snippets": map[string]any{"nodes": []any{map[string]any{"id": id}}},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("N3 a stale mark is refused as data, with the block as it is", func(t *testing.T) {
		got := answered(t, s.rooms(), admin, `mutation($id: ID!, $d: Digest!) { markSnippet(input: {snippetId: $id, blockDigest: $d}) { snippet { id }
			refusal { code ... on StaleSnippetRefusal { current { block blockDigest } } } } }`, map[string]any{"id": id, "d": strings.Repeat("a", 64)})
		want := map[string]any{"markSnippet": map[string]any{"snippet": nil, "refusal": map[string]any{
			"code": "STALE_SNIPPET", "current": map[string]any{"block": "Voice:\nBe kind.", "blockDigest": s.snippet.Digest()},
		}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("N4 an edit that started from another revision is refused as data, with the text as it is", func(t *testing.T) {
		got := answered(t, s.rooms(), admin, `mutation($id: ID!) { updateSnippet(input: {snippetId: $id, revision: 2, text: "x"}) {
			refusal { code ... on StaleSnippetRefusal { current { revision } } } } }`, map[string]any{"id": id})
		want := map[string]any{"updateSnippet": map[string]any{"refusal": map[string]any{"code": "STALE_REVISION", "current": map[string]any{"revision": 3.0}}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("N3 N4 who may not is FORBIDDEN", func(t *testing.T) {
		for _, mutation := range []string{
			`createSnippet(input: {name: "a", text: "b"})`, `updateSnippet(input: {snippetId: "` + id + `"})`,
			`markSnippet(input: {snippetId: "` + id + `", blockDigest: "` + s.snippet.Digest() + `"})`, `unmarkSnippet(input: {snippetId: "` + id + `"})`,
		} {
			if got := ask(t, t.Context(), s.rooms(), person, "mutation { "+mutation+" { refusal { code } } }", nil).next(); got.code() != "FORBIDDEN" {
				t.Errorf("%s: got %+v", mutation, got)
			}
		}
	})

	t.Run("N5 a configuration shows its snippets in order", func(t *testing.T) {
		got := answered(t, s.rooms(), person, `query($id: ID!) { configuration(id: $id) { snippetIds snippetsInCallerSystemMessage } }`,
			map[string]any{"id": configurationKind.id(s.configuration.ID)})
		want := map[string]any{"configuration": map[string]any{"snippetIds": []any{id}, "snippetsInCallerSystemMessage": false}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestTaskAPI(t *testing.T) {
	s := newShelf()
	id, configuration := taskKind.id(s.task.ID), configurationKind.id(s.configuration.ID)

	t.Run("I4 a task shows its prompt, its configuration and its skills", func(t *testing.T) {
		s := newShelf()
		s.attached = []library.Offered{{Attachment: library.Attachment{ID: uuid.UUID{9}, TaskID: s.task.ID, LoadMode: library.Always, Position: 1}}}
		got := answered(t, s.rooms(), person, `{ tasks { nodes { id prompt configuration { id } attachments { nodes { taskId configurationId loadMode } } } } }`, nil)
		want := map[string]any{"tasks": map[string]any{"nodes": []any{map[string]any{
			"id": id, "prompt": "Read it.", "configuration": map[string]any{"id": configuration},
			"attachments": map[string]any{"nodes": []any{map[string]any{"taskId": id, "configurationId": nil, "loadMode": "ALWAYS"}}},
		}}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("I4 on demand on a task is refused as data", func(t *testing.T) {
		s := newShelf()
		d := library.Dossier{Skill: library.Skill{ID: uuid.UUID{8}}}
		d.Skill.Version.Process = "no"
		s.dossiers = []library.Dossier{d}
		got := answered(t, s.rooms(), admin, `mutation($s: ID!, $t: ID!) { attachSkill(input: {skillId: $s, taskId: $t, loadMode: ON_DEMAND}) {
			attachment { id } refusal { code } } }`, map[string]any{"s": skillKind.id(d.Skill.ID), "t": id})
		want := map[string]any{"attachSkill": map[string]any{"attachment": nil, "refusal": map[string]any{"code": "TASK_ALWAYS_ONLY"}}}
		if diff := cmp.Diff(want, got); diff != "" || len(s.told) > 0 {
			t.Error(diff, s.told)
		}
	})

	t.Run("a skill is attached to a configuration or to a task", func(t *testing.T) {
		for _, where := range []string{``, `, taskId: "` + id + `", configurationId: "` + configuration + `"`} {
			query := `mutation { attachSkill(input: {skillId: "` + skillKind.id(uuid.UUID{8}) + `"` + where + `}) { refusal { code } } }`
			if got := ask(t, t.Context(), s.rooms(), admin, query, nil).next(); got.code() != "BAD_USER_INPUT" {
				t.Errorf("%q: got %+v", where, got)
			}
		}
	})

	t.Run("I4 a task runs with its input and answers when the run settles or waits, unless in the background", func(t *testing.T) {
		settled := anyRun
		settled.Status, settled.TaskID = run.Completed, s.task.ID
		for background, want := range map[bool]string{false: "COMPLETED", true: "RUNNING"} {
			var request agent.TaskRequest
			f := &fakeAgent{
				runs:    map[uuid.UUID]agent.Run{anyRun.ID: settled},
				runTask: func(r agent.TaskRequest) (agent.Run, error) { request = r; return anyRun, nil },
			}
			rooms := s.rooms()
			rooms.Agent = f
			got := answered(t, rooms, person, `mutation($in: RunTaskInput!) { runTask(input: $in) { run { status task { name } } refusal { code } } }`,
				map[string]any{"in": map[string]any{"taskId": id, "input": "Helo", "allowedTools": []any{}, "maxIterations": 2, "background": background}})
			if r := got["runTask"].(map[string]any)["run"].(map[string]any); r["status"] != want || (!background && r["task"].(map[string]any)["name"] != "Proofread") {
				t.Errorf("got %v", got)
			}
			if diff := cmp.Diff(agent.TaskRequest{TaskID: s.task.ID, Input: "Helo", AllowedTools: []string{}, MaxIterations: 2}, request); diff != "" {
				t.Error(diff)
			}
		}
	})

	t.Run("I7 what the rules refuse a task is data, without a run", func(t *testing.T) {
		rooms := s.rooms()
		rooms.Agent = &fakeAgent{runTask: func(agent.TaskRequest) (agent.Run, error) {
			return agent.Run{}, fault.Refuse(fault.ConfigurationNotAllowed, "Not yours.")
		}}
		got := answered(t, rooms, person, `mutation($t: ID!) { runTask(input: {taskId: $t}) { run { id } refusal { code } } }`, map[string]any{"t": id})
		want := map[string]any{"runTask": map[string]any{"run": nil, "refusal": map[string]any{"code": "CONFIGURATION_NOT_ALLOWED"}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
