package main

import (
	"database/sql"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/countersign/countersign/graph/generated"
	"github.com/countersign/countersign/internal/store/storetest"
)

// row is one mutation of the walk.
type row struct {
	mutation string
	// input may use what earlier rows made, by the name they kept it under.
	input func(w *repetition) object
	// keep names what the payload shows, by the path of its id, for later rows.
	keep map[string][]any
	// refused is the refusal that is expected; empty for none.
	refused string
	// quiet says that it leaves no audit entry.
	quiet bool
	// lost are the fields that cannot be told once a server died before it answered.
	lost []string
}

// static is an input that needs nothing of earlier rows.
func static(input object) func(*repetition) object { return func(*repetition) object { return input } }

// with is an input in which each name stands for what an earlier row kept.
func with(names map[string]string, more object) func(*repetition) object {
	return func(w *repetition) object {
		input := object{}
		for field, name := range names {
			if _, known := w.kept[name]; !known {
				w.site.t.Fatalf("no row before kept %s", name)
			}
			input[field] = w.kept[name]
		}
		for field, value := range more {
			input[field] = value
		}
		return input
	}
}

const (
	done    = "default: {text: Done.}"
	writing = `{steps: [{when: {turn: 1}, calls: [{tool: update_element, arguments: {id: home-hours, fields: {text: We are open.}}}]}], default: {text: Done.}}`
	asking  = `{steps: [{when: {turn: 1}, calls: [{tool: ask_choice, arguments: {question: "Which?", options: [One, Two]}}]}], default: {text: Done.}}`
)

func provides(name, script string) row {
	return row{"createProvider", static(object{"name": name, "kind": "SCRIPTED", "script": script}), map[string][]any{"provider " + name: {"provider", "id"}}, "", false, nil}
}

func configures(name string) row {
	return row{
		mutation: "createConfiguration", input: with(map[string]string{"providerId": "provider " + name}, object{"name": name, "model": "m"}),
		keep: map[string][]any{"configuration " + name: {"configuration", "id"}},
	}
}

func starts(configuration, name string) row {
	return row{
		mutation: "startRun", input: with(map[string]string{"configurationId": "configuration " + configuration}, object{"prompt": "Go."}),
		keep: map[string][]any{name: {"run", "id"}},
	}
}

func mutate(mutation string, names map[string]string, more object) row {
	return row{mutation: mutation, input: with(names, more)}
}

// repetitions has a row for every mutation there is: the walk fails for one without.
var repetitions = []row{
	{mutation: "createUser", input: static(object{"name": "Una"}), keep: map[string][]any{"user": {"user", "id"}}},
	mutate("updateUser", map[string]string{"userId": "user"}, object{"name": "Ula"}),
	mutate("grantPermission", map[string]string{"userId": "user"}, object{"permission": "SKILL_APPROVE"}),
	mutate("revokePermission", map[string]string{"userId": "user"}, object{"permission": "SKILL_APPROVE"}),
	{mutation: "createToken", input: with(map[string]string{"userId": "user"}, object{"name": "T"}), keep: map[string][]any{"token": {"token", "id"}}},
	mutate("revokeToken", map[string]string{"tokenId": "token"}, nil),

	provides("plain", done), provides("writing", writing), provides("asking", asking),
	configures("plain"), configures("writing"), configures("asking"),
	mutate("updateConfiguration", map[string]string{"configurationId": "configuration plain"}, object{"systemPrompt": "Be kind."}),
	{mutation: "createSource", input: static(object{"title": "Ours", "type": "AUTHORED", "trustLevel": "FIRST_PARTY"}), keep: map[string][]any{"source": {"source", "id"}}},
	{mutation: "createSource", input: static(object{"title": "Other", "type": "AUTHORED", "trustLevel": "FIRST_PARTY"}), keep: map[string][]any{"other source": {"source", "id"}}},
	{mutation: "createSource", input: static(object{"title": "Read", "type": "REPO", "url": "https://github.com/countersign-demo/skills"}), keep: map[string][]any{"synced": {"source", "id"}}},
	mutate("updateSource", map[string]string{"sourceId": "synced"}, object{"title": "Read again"}),
	mutate("setSourceTrustLevel", map[string]string{"sourceId": "synced"}, object{"trustLevel": "VERIFIED"}),
	mutate("setSourceToken", map[string]string{"sourceId": "synced"}, object{"token": "ghp_secret"}),
	{mutation: "syncSource", input: with(map[string]string{"sourceId": "synced"}, nil), lost: []string{"report"}},
	{mutation: "cancelSync", input: with(map[string]string{"sourceId": "synced"}, nil), quiet: true},
	{mutation: "createSkill", input: with(map[string]string{"sourceId": "source"}, object{"name": "Style", "description": "How.", "body": "One.\n"}), keep: map[string][]any{"skill": {"skill", "id"}, "digest": {"skill", "digest"}}},
	mutate("approveSkillVersion", map[string]string{"skillId": "skill", "digest": "digest"}, nil),
	{mutation: "approveSkillVersion", input: with(map[string]string{"skillId": "skill"}, object{"digest": "1:" + strings.Repeat("0", 64)}), refused: "STALE_DIGEST"},
	mutate("setSkillEnabled", map[string]string{"skillId": "skill"}, object{"enabled": true}),
	{mutation: "attachSkill", input: with(map[string]string{"skillId": "skill", "configurationId": "configuration plain"}, nil), keep: map[string][]any{"attachment": {"attachment", "id"}}},
	mutate("updateAttachment", map[string]string{"attachmentId": "attachment"}, object{"loadMode": "ALWAYS"}),
	mutate("detachSkill", map[string]string{"attachmentId": "attachment"}, nil),
	mutate("updateSkill", map[string]string{"skillId": "skill"}, object{"revision": 1, "body": "Two.\n"}),
	{mutation: "updateSkill", input: with(map[string]string{"skillId": "skill"}, object{"revision": 1, "body": "Three.\n"}), refused: "STALE_REVISION", quiet: true},
	mutate("restoreSkillRevision", map[string]string{"skillId": "skill"}, object{"number": 1, "revision": 2}),
	mutate("revokeSkillVersion", map[string]string{"skillId": "skill", "digest": "digest"}, object{"reason": "No."}),
	mutate("moveSkill", map[string]string{"skillId": "skill", "sourceId": "other source"}, nil),
	{mutation: "createSource", input: static(object{"title": "Doomed", "type": "AUTHORED"}), keep: map[string][]any{"doomed": {"source", "id"}}},
	mutate("deleteSource", map[string]string{"sourceId": "doomed"}, nil),

	{mutation: "createRecord", input: static(object{"table": "page", "parentId": "home", "fields": object{"title": "New", "slug": "new"}}), keep: map[string][]any{"page": {"record", "id"}}},
	mutate("updateRecord", map[string]string{"id": "page"}, object{"table": "page", "fields": object{"title": "Newer"}, "revision": 1}),
	mutate("hideRecord", map[string]string{"id": "page"}, object{"table": "page", "revision": 2}),
	mutate("publishRecord", map[string]string{"id": "page"}, object{"table": "page", "revision": 3}),
	{mutation: "moveRecord", input: with(map[string]string{"id": "page"}, object{"table": "page", "parentId": "about", "revision": 4}), lost: []string{"left"}},
	{mutation: "copyRecord", input: static(object{"table": "element", "id": "care-water"}), keep: map[string][]any{"copy": {"record", "id"}}},
	{mutation: "deleteRecord", input: with(map[string]string{"id": "copy"}, object{"table": "element", "revision": 1}), lost: []string{"left"}},
	{mutation: "translateRecord", input: static(object{"table": "page", "id": "care", "language": "fr", "fields": object{"title": "Soins"}}), lost: []string{"untranslated"}},
	{mutation: "replaceFileReference", input: static(object{"table": "page", "id": "care", "fileId": "moss-photo", "revision": 1}), lost: []string{"left"}},

	{mutation: "createNotificationEndpoint", input: static(object{"url": "https://hooks.example.invalid/x", "enabled": false}), keep: map[string][]any{"endpoint": {"notificationEndpoint", "id"}}},
	mutate("updateNotificationEndpoint", map[string]string{"notificationEndpointId": "endpoint"}, object{"description": "Ours"}),
	mutate("rotateNotificationSecret", map[string]string{"notificationEndpointId": "endpoint"}, nil),
	{mutation: "testNotificationEndpoint", input: with(map[string]string{"notificationEndpointId": "endpoint"}, nil), keep: map[string][]any{"delivery": {"notificationDelivery", "id"}}},
	{mutation: "redeliverNotification", input: with(map[string]string{"notificationDeliveryId": "delivery"}, nil), quiet: true},
	mutate("deleteNotificationEndpoint", map[string]string{"notificationEndpointId": "endpoint"}, nil),
	{mutation: "setBudget", input: static(object{"scope": "EVERY_USER", "requests": 100000}), keep: map[string][]any{"budget": {"budget", "id"}}},
	mutate("deleteBudget", map[string]string{"budgetId": "budget"}, nil),

	starts("plain", "run"), starts("writing", "proposal"),
	{mutation: "decideRun", input: (*repetition).decision, keep: map[string][]any{"decided": {"run", "id"}}},
	{mutation: "decideRun", input: (*repetition).lateDecision, refused: "ALREADY_DECIDED"},
	starts("asking", "question"),
	mutate("updateConfiguration", map[string]string{"configurationId": "configuration writing"}, object{"allowProposalEdits": true}),
	starts("writing", "draft"),
	{mutation: "editRunProposal", input: (*repetition).rewording},
	{mutation: "editRunProposal", input: (*repetition).lateRewording, refused: "STALE_TURN"},
	{mutation: "submitRunInput", input: (*repetition).answer},
	starts("writing", "cancelled"), mutate("cancelRun", map[string]string{"runId": "cancelled"}, nil),
	starts("writing", "withdrawn"), mutate("cancelRunIfWaiting", map[string]string{"runId": "withdrawn"}, nil),
	{mutation: "endProcess", input: with(map[string]string{"runId": "run"}, nil), quiet: true},

	{mutation: "importMcpServer", input: (*repetition).server, keep: map[string][]any{"server": {"mcpServer", "id"}}},
	{mutation: "reviewMcpTool", input: (*repetition).review},
	{mutation: "reviewMcpTool", input: static(object{"toolName": "mcp__weather__tell", "definitionDigest": "0"}), refused: "STALE_DIGEST"},
	mutate("deleteMcpServer", map[string]string{"mcpServerId": "server"}, nil),
	{mutation: "startConversation", input: with(map[string]string{"configurationId": "configuration plain"}, object{"title": "Talk"}), keep: map[string][]any{"talk": {"conversation", "id"}}, quiet: true},
	mutate("sendMessage", map[string]string{"conversationId": "talk"}, object{"text": "Hello."}),
	{mutation: "editMessage", input: (*repetition).editing},
	{mutation: "retryTurn", input: with(map[string]string{"conversationId": "talk"}, nil), refused: "NOTHING_TO_RETRY", quiet: true},
	{mutation: "setConversationConfiguration", input: with(map[string]string{"conversationId": "talk", "configurationId": "configuration writing"}, nil), quiet: true},
	mutate("sendMessage", map[string]string{"conversationId": "talk"}, object{"text": "Open."}),
	{mutation: "editProposal", input: (*repetition).chatRewording},
	{mutation: "decideProposal", input: (*repetition).proposal},
	{mutation: "setConversationConfiguration", input: with(map[string]string{"conversationId": "talk", "configurationId": "configuration asking"}, nil), quiet: true},
	mutate("sendMessage", map[string]string{"conversationId": "talk"}, object{"text": "Which?"}),
	{mutation: "answerQuestion", input: (*repetition).reply},
	mutate("sendMessage", map[string]string{"conversationId": "talk"}, object{"text": "Which then?"}),
	mutate("stopTurn", map[string]string{"conversationId": "talk"}, nil),
	mutate("retryTurn", map[string]string{"conversationId": "talk"}, nil),
	mutate("stopTurn", map[string]string{"conversationId": "talk"}, nil),
	{mutation: "renameConversation", input: with(map[string]string{"conversationId": "talk"}, object{"title": "Talked"}), quiet: true},
	{mutation: "setConversationPinned", input: with(map[string]string{"conversationId": "talk"}, object{"pinned": true}), quiet: true},
	{mutation: "setConversationSkill", input: with(map[string]string{"conversationId": "talk"}, nil), quiet: true},
	{mutation: "archiveConversation", input: with(map[string]string{"conversationId": "talk"}, nil), quiet: true},
	{mutation: "sendMessage", input: with(map[string]string{"conversationId": "talk"}, object{"text": "Still there?"}), refused: "CONVERSATION_ARCHIVED", quiet: true},
	{mutation: "unarchiveConversation", input: with(map[string]string{"conversationId": "talk"}, nil), quiet: true},
	{mutation: "deleteConversation", input: with(map[string]string{"conversationId": "talk"}, nil), quiet: true},

	mutate("updateSetting", nil, object{"name": "agent.maxIterations", "value": "19"}),
	{mutation: "createSnippet", input: static(object{"name": "Tone", "text": "Be kind."}), keep: map[string][]any{"snippet": {"snippet", "id"}}, quiet: true},
	{mutation: "updateSnippet", input: with(map[string]string{"snippetId": "snippet"}, object{"text": "Be kinder."}), quiet: true},
	{mutation: "markSnippet", input: (*repetition).mark},
	mutate("unmarkSnippet", map[string]string{"snippetId": "snippet"}, nil),
	{mutation: "createTask", input: with(map[string]string{"configurationId": "configuration plain"}, object{"name": "Sum up", "prompt": "Sum up."}), keep: map[string][]any{"task": {"task", "id"}}},
	mutate("runTask", map[string]string{"taskId": "task"}, object{"input": "This."}),
	mutate("setToolEnabled", nil, object{"name": "update_element", "enabled": false}),
	mutate("setToolGroupEnabled", nil, object{"name": "content_write", "enabled": false}),
}

// repetition is a walk under way.
type repetition struct {
	site *site
	db   *sql.DB
	kept map[string]any
}

func (w *repetition) card(run string) any {
	return at(w.site.t, w.site.must(`query($id: ID!) { node(id: $id) { ... on Run { status pendingDecision { turnDigest } pendingInput { turnDigest } } } }`,
		object{"id": w.kept[run]}), "node")
}

func (w *repetition) decision() object {
	w.kept["turn"] = at(w.site.t, w.card("proposal"), "pendingDecision", "turnDigest")
	return object{"runId": w.kept["proposal"], "turnDigest": w.kept["turn"], "decision": "APPROVE"}
}

func (w *repetition) lateDecision() object {
	return object{"runId": w.kept["proposal"], "turnDigest": w.kept["turn"], "decision": "DENY"}
}

func (w *repetition) rewording() object {
	w.kept["first turn"] = at(w.site.t, w.card("draft"), "pendingDecision", "turnDigest")
	return w.lateRewording()
}

func (w *repetition) lateRewording() object {
	return object{"runId": w.kept["draft"], "turnDigest": w.kept["first turn"], "texts": []any{object{"pointer": "/fields/text", "text": "We are closed."}}}
}

func (w *repetition) chatRewording() object {
	return object{
		"conversationId": w.kept["talk"], "turnDigest": at(w.site.t, w.talk("pendingDecision"), "turnDigest"),
		"texts": []any{object{"pointer": "/fields/text", "text": "We may be open."}},
	}
}

func (w *repetition) answer() object {
	return object{"runId": w.kept["question"], "turnDigest": at(w.site.t, w.card("question"), "pendingInput", "turnDigest"), "values": object{"choice": "One"}}
}

func (w *repetition) talk(what string) any {
	return at(w.site.t, w.site.must(`query($id: ID!) { node(id: $id) { ... on Conversation { pendingDecision { turnDigest } pendingInput { turnDigest }
		entries(first: 100) { nodes { ... on MessageEntry { id } } } } } }`, object{"id": w.kept["talk"]}), "node", what)
}

func (w *repetition) proposal() object {
	return object{"conversationId": w.kept["talk"], "turnDigest": at(w.site.t, w.talk("pendingDecision"), "turnDigest"), "answer": "APPROVE"}
}

func (w *repetition) reply() object {
	return object{"conversationId": w.kept["talk"], "turnDigest": at(w.site.t, w.talk("pendingInput"), "turnDigest"), "values": object{"choice": "One"}}
}

func (w *repetition) editing() object {
	for _, e := range at(w.site.t, w.talk("entries"), "nodes").([]any) {
		if id, is := e.(object)["id"]; is {
			return object{"conversationId": w.kept["talk"], "messageId": id, "text": "Hello again."}
		}
	}
	w.site.t.Fatal("there is no message")
	return nil
}

func (w *repetition) mark() object {
	digest := at(w.site.t, w.site.must(`query($id: ID!) { node(id: $id) { ... on Snippet { blockDigest } } }`, object{"id": w.kept["snippet"]}), "node", "blockDigest")
	return object{"snippetId": w.kept["snippet"], "blockDigest": digest}
}

func (w *repetition) server() object {
	return object{"name": "weather", "url": startWeather(w.site.t).address, "dataClass": "EDITOR_CONTENT"}
}

func (w *repetition) review() object {
	tools := at(w.site.t, w.site.must(`query($id: ID!) { node(id: $id) { ... on McpServer { tools { definitionDigest } } } }`, object{"id": w.kept["server"]}), "node", "tools")
	return object{"toolName": "mcp__weather__tell", "definitionDigest": at(w.site.t, tools.([]any)[0], "definitionDigest")}
}

// selection is everything that names what a payload shows.
func selection(schema *ast.Schema, payload string) string {
	var out []string
	for _, f := range schema.Types[payload].Fields {
		shown := schema.Types[f.Type.Name()]
		switch {
		case f.Name == "refusal":
			out = append(out, `refusal { __typename code message ... on StaleDigestRefusal { current skill { id } diff { lines { text } } }
				... on StaleSkillRefusal { stale: current { id } } ... on AlreadyDecidedRefusal { decidedBy { id } decidedById decision at } }`)
		case shown.Kind != ast.Object:
			out = append(out, f.Name)
		default:
			var names []string
			for _, name := range []string{"id", "table", "name", "digest", "status", "found"} {
				if of := shown.Fields.ForName(name); of != nil {
					names = append(names, name)
				}
			}
			out = append(out, f.Name+" { "+strings.Join(names, " ")+" }")
		}
	}
	return strings.Join(out, " ")
}

func (w *repetition) send(r row, input object, key string) answer {
	w.site.t.Helper()
	sent := object{"idempotencyKey": key, "clientMutationId": "echo"}
	for name, value := range input {
		sent[name] = value
	}
	title := strings.ToUpper(r.mutation[:1]) + r.mutation[1:]
	schema := generated.NewExecutableSchema(generated.Config{}).Schema()
	return w.site.ask(fmt.Sprintf(`mutation($i: %sInput!) { %s(input: $i) { %s } }`, title, r.mutation, selection(schema, title+"Payload")), object{"i": sent})
}

// payload is the answer to a mutation that has no error.
func (w *repetition) payload(r row, a answer) object {
	w.site.t.Helper()
	if len(a.Errors) > 0 {
		w.site.t.Fatalf("%s: %s", r.mutation, a.Raw)
	}
	payload, ok := a.Data[r.mutation].(object)
	if !ok {
		w.site.t.Fatalf("%s: %s", r.mutation, a.Raw)
	}
	return payload
}

// entries is how many audit entries there are.
func (w *repetition) entries() (size int) {
	w.site.t.Helper()
	if err := w.db.QueryRowContext(w.site.t.Context(), "SELECT size FROM audit_head").Scan(&size); err != nil {
		w.site.t.Fatal(err)
	}
	return size
}

// die makes the newest key of a mutation look as if its server had died between the
// effect and the answer.
func (w *repetition) die(mutation string) (effect bool) {
	w.site.t.Helper()
	result, err := w.db.ExecContext(w.site.t.Context(), "UPDATE idempotency_keys SET status = 'done', answer = NULL WHERE mutation = '"+mutation+"' AND effect IS NOT NULL")
	if err != nil {
		w.site.t.Fatal(err)
	}
	hit, err := result.RowsAffected()
	if err != nil {
		w.site.t.Fatal(err)
	}
	return hit > 0
}

func (w *repetition) walk(n int, r row) {
	t := w.site.t
	t.Helper()
	before, input, key := w.entries(), r.input(w), fmt.Sprintf("key-%d", n)
	first := w.payload(r, w.send(r, input, key))
	if refusal, _ := first["refusal"].(object); (refusal == nil) != (r.refused == "") || refusal != nil && refusal["code"] != r.refused {
		t.Fatalf("%s was refused: %v", r.mutation, first)
	}
	for name, path := range r.keep {
		w.kept[name] = at(t, first, path...)
	}
	after := w.entries()
	if (after == before) != r.quiet {
		t.Errorf("%s left %d audit entries", r.mutation, after-before)
	}
	if _, has := first["secret"]; has {
		first["secret"] = nil // shown once
	}
	if diff := cmp.Diff(first, w.payload(r, w.send(r, input, key))); diff != "" {
		t.Errorf("%s is repeated with another answer (-first +repeated):\n%s", r.mutation, diff)
	}
	if w.die(r.mutation) {
		again := w.payload(r, w.send(r, input, key))
		for _, name := range append(r.lost, "leftOthers") {
			delete(first, name)
			delete(again, name)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("%s is repeated with another answer after a crash before it answered (-first +repeated):\n%s", r.mutation, diff)
		}
	}
	if now := w.entries(); now != after {
		t.Errorf("%s had more than one effect: %d audit entries came with its repetitions", r.mutation, now-after)
	}
}

// open opens the site's database beside the server.
func openBeside(t *testing.T, url string) *sql.DB {
	t.Helper()
	driver := "postgres"
	if path, is := strings.CutPrefix(url, "sqlite:"); is {
		driver, url = "sqlite", "file:"+path+"?_pragma=busy_timeout(5000)"
	}
	db, err := sql.Open(driver, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

var rowID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// TestEveryMutationIsRepeatable walks every mutation of the schema.
func TestEveryMutationIsRepeatable(t *testing.T) {
	walked := map[string]bool{}
	for _, r := range repetitions {
		walked[r.mutation] = true
	}
	for _, f := range generated.NewExecutableSchema(generated.Config{}).Schema().Mutation.Fields {
		if !walked[f.Name] {
			t.Errorf("R18 the mutation %s has no row in repetitions (cmd/countersign/once_test.go): add one with an input that works; its input needs the field "+
				"idempotencyKey, and a new type of object in its payload a line in objects (graph/repeatobject.go)", f.Name)
		}
	}
	for _, database := range storetest.URLs {
		t.Run(database.Name, func(t *testing.T) {
			url := database.URL(t)
			w := &repetition{site: startSite(t, demoAt(url)), db: openBeside(t, url), kept: map[string]any{}}
			site := w.site
			for n, r := range repetitions {
				t.Run(fmt.Sprintf("R18 %02d %s has one effect and one answer", n, r.mutation), func(t *testing.T) {
					w.site = site.in(t)
					w.walk(n, r)
				})
			}
			t.Run("U1 what the trail tells of all that names objects by the ids of the API", func(t *testing.T) {
				for after := any(nil); ; {
					page := at(t, site.in(t).must(`query($after: String) { auditTrail(first: 100, after: $after) { nodes { event detail } pageInfo { hasNextPage endCursor } } }`,
						object{"after": after}), "auditTrail")
					for _, entry := range at(t, page, "nodes").([]any) {
						if detail := fmt.Sprint(at(t, entry, "detail")); rowID.MatchString(detail) {
							t.Errorf("%s tells %s: add the member to detailIDs (graph/detail.go)", at(t, entry, "event"), detail)
						}
					}
					if at(t, page, "pageInfo", "hasNextPage") != true {
						return
					}
					after = at(t, page, "pageInfo", "endCursor")
				}
			})
			t.Run("R18 the same key with another input is a conflict, one of another mutation is another key, an error frees it", func(t *testing.T) {
				w.site = site.in(t)
				user := row{mutation: "createUser"}
				if got := w.send(user, object{"name": "Somebody else"}, "key-0").code(); got != "CONFLICT" {
					t.Errorf("another input: %s", got)
				}
				w.payload(row{mutation: "createSnippet"}, w.send(row{mutation: "createSnippet"}, object{"name": "S", "text": "S."}, "key-0"))
				if got := w.send(user, object{"name": ""}, "mistaken").code(); got != "BAD_USER_INPUT" {
					t.Errorf("a bad input: %s", got)
				}
				w.payload(user, w.send(user, object{"name": "Right"}, "mistaken"))
				for _, key := range []string{"", "with space", strings.Repeat("k", 201)} {
					if got := w.send(user, object{"name": "Una"}, key).code(); got != "BAD_USER_INPUT" {
						t.Errorf("the key %q: %s", key, got)
					}
				}
			})
		})
	}
}

// TestServeOnATakenAddress: a wrong address leaves nothing behind.
func TestServeOnATakenAddress(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	folder := t.TempDir()
	c := demoAt("sqlite:" + filepath.Join(folder, "countersign.db"))
	c.Addr = taken.Addr().String()
	if err := serve(t.Context(), c, io.Discard); err == nil || !strings.Contains(err.Error(), "COUNTERSIGN_ADDR") {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}
