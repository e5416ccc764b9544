package main

import (
	"fmt"
	"strings"
	"testing"
)

// at is a value inside an answer.
func at(t testing.TB, value any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			of, ok := value.(object)
			if !ok {
				t.Fatalf("%v has no %s", value, step)
			}
			value = of[step]
		case int:
			of, ok := value.([]any)
			if !ok || step >= len(of) {
				t.Fatalf("%v has no element %d", value, step)
			}
			value = of[step]
		}
	}
	return value
}

// TestSkillsOverTheAPI walks what an administrator does to skills beside approving
// them.
func TestSkillsOverTheAPI(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		source := func(title, kind, url string) any {
			return at(t, s.must(`mutation($i: CreateSourceInput!) { createSource(input: $i) { source { id hasToken } } }`,
				object{"i": object{"title": title, "type": kind, "url": url, "trustLevel": "FIRST_PARTY"}}), "createSource", "source", "id")
		}
		authored, other := source("Ours", "AUTHORED", ""), source("Theirs", "AUTHORED", "")
		skill := at(t, s.must(`mutation($i: CreateSkillInput!) { createSkill(input: $i) { skill { id } } }`,
			object{"i": object{"sourceId": authored, "name": "Style", "description": "How.", "body": "One.\n"}}), "createSkill", "skill", "id")
		for n, body := range []string{"Two.\n", "Three.\n"} {
			s.must(`mutation($i: UpdateSkillInput!) { updateSkill(input: $i) { skill { id } } }`, object{"i": object{"skillId": skill, "revision": n + 1, "body": body}})
		}

		t.Run("W2 revisions are listed newest first, each with what it changed, and one comes back as a new one", func(t *testing.T) {
			s := s.in(t)
			query := `query($id: ID!, $after: String) { node(id: $id) { ... on Skill { revisions(first: 2, after: $after) {
				nodes { number body digest author { name } diff { lines { kind text } } } pageInfo { hasNextPage endCursor } } } } }`
			page := at(t, s.must(query, object{"id": skill}), "node", "revisions")
			if at(t, page, "nodes", 0, "number") != 3.0 || at(t, page, "nodes", 1, "body") != "Two.\n" || at(t, page, "pageInfo", "hasNextPage") != true {
				t.Fatalf("%v", page)
			}
			lines := fmt.Sprint(at(t, page, "nodes", 0, "diff", "lines"))
			if !strings.Contains(lines, "kind:REMOVED text:Two.") || !strings.Contains(lines, "kind:ADDED text:Three.") {
				t.Fatalf("the diff is %s", lines)
			}
			rest := at(t, s.must(query, object{"id": skill, "after": at(t, page, "pageInfo", "endCursor")}), "node", "revisions")
			if at(t, rest, "nodes", 0, "number") != 1.0 || at(t, rest, "pageInfo", "hasNextPage") != false {
				t.Fatalf("%v", rest)
			}
			restore := `mutation($i: RestoreSkillRevisionInput!) { restoreSkillRevision(input: $i) { skill { revision body } refusal { code } } }`
			stale := s.must(restore, object{"i": object{"skillId": skill, "number": 1, "revision": 2}})
			if at(t, stale, "restoreSkillRevision", "refusal", "code") != "STALE_REVISION" {
				t.Fatalf("W5 %v", stale)
			}
			got := at(t, s.must(restore, object{"i": object{"skillId": skill, "number": 1, "revision": 3}}), "restoreSkillRevision", "skill")
			if at(t, got, "revision") != 4.0 || at(t, got, "body") != "One.\n" {
				t.Fatalf("%v", got)
			}
		})
		t.Run("S12 a moved skill has another source and no matching approval", func(t *testing.T) {
			s := s.in(t)
			digest := at(t, s.must(`query($id: ID!) { node(id: $id) { ... on Skill { digest } } }`, object{"id": skill}), "node", "digest")
			approval := at(t, s.must(`mutation($i: ApproveSkillVersionInput!) { approveSkillVersion(input: $i) { approval { id } skill { standing { instructs } } } }`,
				object{"i": object{"skillId": skill, "digest": digest}}), "approveSkillVersion")
			if at(t, approval, "skill", "standing", "instructs") != true {
				t.Fatalf("%v", approval)
			}
			moved := at(t, s.must(`mutation($i: MoveSkillInput!) { moveSkill(input: $i) { skill { source { id } standing { instructs reasons } } } }`,
				object{"i": object{"skillId": skill, "sourceId": other}}), "moveSkill", "skill")
			if at(t, moved, "source", "id") != other || at(t, moved, "standing", "reasons", 0) != "NO_APPROVAL" {
				t.Fatalf("%v", moved)
			}
			trail := s.must(`{ auditTrail(filter: {events: [SKILL_MOVED]}) { nodes { skill { id } } } }`, nil)
			if at(t, trail, "auditTrail", "nodes", 0, "skill", "id") != skill {
				t.Fatalf("%v", trail)
			}
			node := s.must(`query($id: ID!) { node(id: $id) { ... on Approval { digest } } }`, object{"id": at(t, approval, "approval", "id")})
			if at(t, node, "node", "digest") != digest {
				t.Fatalf("%v", node)
			}
		})
		t.Run("A7 a revocation is a node", func(t *testing.T) {
			s := s.in(t)
			revoked := s.must(`mutation($i: RevokeSkillVersionInput!) { revokeSkillVersion(input: $i) { revocation { id } } }`,
				object{"i": object{"skillId": skill, "digest": "1:" + strings.Repeat("a", 64), "reason": "no"}})
			node := s.must(`query($id: ID!) { node(id: $id) { ... on Revocation { reason } } }`, object{"id": at(t, revoked, "revokeSkillVersion", "revocation", "id")})
			if at(t, node, "node", "reason") != "no" {
				t.Fatalf("%v", node)
			}
		})
		t.Run("L1 an attachment is a node, and so is a token", func(t *testing.T) {
			s := s.in(t)
			configuration := at(t, s.must(`{ configurations(first: 1) { nodes { id } } }`, nil), "configurations", "nodes", 0, "id")
			attached := s.must(`mutation($i: AttachSkillInput!) { attachSkill(input: $i) { attachment { id } } }`, object{"i": object{"skillId": skill, "configurationId": configuration}})
			node := s.must(`query($id: ID!) { node(id: $id) { ... on Attachment { loadMode skill { id } } } }`, object{"id": at(t, attached, "attachSkill", "attachment", "id")})
			if at(t, node, "node", "loadMode") != "ON_DEMAND" || at(t, node, "node", "skill", "id") != skill {
				t.Fatalf("%v", node)
			}
			viewer := at(t, s.must(`{ viewer { id } }`, nil), "viewer", "id")
			made := s.must(`mutation($i: CreateTokenInput!) { createToken(input: $i) { token { id } } }`, object{"i": object{"userId": viewer, "name": "node"}})
			node = s.must(`query($id: ID!) { node(id: $id) { ... on Token { name user { id } } } }`, object{"id": at(t, made, "createToken", "token", "id")})
			if at(t, node, "node", "name") != "node" || at(t, node, "node", "user", "id") != viewer {
				t.Fatalf("%v", node)
			}
		})
		t.Run("T7 a group that is switched off takes its tools along, and only its own", func(t *testing.T) {
			s := s.in(t)
			set := `mutation($i: SetToolGroupEnabledInput!) { setToolGroupEnabled(input: $i) { group { name enabled tools { name enabled groupEnabled } } } }`
			got := at(t, s.must(set, object{"i": object{"name": "content_write", "enabled": false}}), "setToolGroupEnabled", "group")
			if at(t, got, "enabled") != false || at(t, got, "tools", 0, "groupEnabled") != false {
				t.Fatalf("%v", got)
			}
			configuration := at(t, s.must(`{ configurations(first: 1) { nodes { id } } }`, nil), "configurations", "nodes", 0, "id")
			denials := func() map[any]any {
				all := map[any]any{}
				explained := s.must(`query($id: ID!) { explainTools(configurationId: $id) { tool { name group } denial } }`, object{"id": configuration})
				for _, e := range at(t, explained, "explainTools").([]any) {
					if at(t, e, "tool", "group") == "content_write" || at(t, e, "denial") == "DISABLED" {
						all[at(t, e, "tool", "name")] = at(t, e, "denial")
					}
				}
				return all
			}
			for name, denial := range denials() {
				if denial != "DISABLED" {
					t.Errorf("%v is %v", name, denial)
				}
			}
			s.must(set, object{"i": object{"name": "content_write", "enabled": true}})
			if denial := denials()["update_element"]; denial != nil {
				t.Errorf("update_element is still denied: %v", denial)
			}
			if code := s.ask(set, object{"i": object{"name": "no_group", "enabled": true}}).code(); code != "NOT_FOUND" {
				t.Errorf("an unknown group is %s", code)
			}
		})
		t.Run("S1 a source tells whether it has a token, never which", func(t *testing.T) {
			s := s.in(t)
			id := source("Private", "REPO", "https://github.com/acme/private")
			set := `mutation($i: SetSourceTokenInput!) { setSourceToken(input: $i) { source { hasToken } } }`
			if got := s.must(set, object{"i": object{"sourceId": id, "token": "hush"}}); at(t, got, "setSourceToken", "source", "hasToken") != true {
				t.Fatalf("%v", got)
			}
			if got := s.must(set, object{"i": object{"sourceId": id}}); at(t, got, "setSourceToken", "source", "hasToken") != false {
				t.Fatalf("%v", got)
			}
		})
		t.Run("S12 a source of another type was never synced; S11 there is nothing to cancel", func(t *testing.T) {
			s := s.in(t)
			id := source("Changing", "REPO", "https://github.com/acme/changing")
			got := at(t, s.must(`mutation($i: UpdateSourceInput!) { updateSource(input: $i) { source { type syncStatus } } }`,
				object{"i": object{"sourceId": id, "type": "MARKETPLACE"}}), "updateSource", "source")
			if at(t, got, "type") != "MARKETPLACE" || at(t, got, "syncStatus") != "NEVER_SYNCED" {
				t.Fatalf("%v", got)
			}
			cancelled := s.must(`mutation($i: CancelSyncInput!) { cancelSync(input: $i) { cancelled source { id } refusal { code } } }`, object{"i": object{"sourceId": id}})
			if at(t, cancelled, "cancelSync", "cancelled") != false || at(t, cancelled, "cancelSync", "source", "id") != id {
				t.Fatalf("%v", cancelled)
			}
		})
	})
}
