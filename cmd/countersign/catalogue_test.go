package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// RULES I1: the menu of skills gives each field of the rule, and marks what nobody
// approved; a start takes a skill from it, and the next run goes on from that one.
func TestCatalogueOverTheAPI(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		source := at(t, s.must(`mutation { createSource(input: {title: "Ours", type: AUTHORED, trustLevel: FIRST_PARTY}) { source { id } } }`, nil), "createSource", "source", "id")
		provider := at(t, s.must(`mutation { createProvider(input: {name: "S", kind: SCRIPTED, script: "default: {text: Done.}"}) { provider { id } } }`, nil), "createProvider", "provider", "id")
		configuration := at(t, s.must(`mutation($i: CreateConfigurationInput!) { createConfiguration(input: $i) { configuration { id } } }`,
			object{"i": object{"name": "Guided", "providerId": provider, "model": "m"}}), "createConfiguration", "configuration", "id")
		tour := s.guided("Tour", source, configuration)
		attach := func(name string, enabled bool, mode string) any {
			id := at(t, s.must(`mutation($i: CreateSkillInput!) { createSkill(input: $i) { skill { id } } }`,
				object{"i": object{"sourceId": source, "name": name, "description": "Do as I say.", "body": "B.\n"}}), "createSkill", "skill", "id")
			s.must(`mutation($e: SetSkillEnabledInput!, $o: AttachSkillInput!) { setSkillEnabled(input: $e) { skill { id } } attachSkill(input: $o) { attachment { id } } }`, object{
				"e": object{"skillId": id, "enabled": enabled}, "o": object{"skillId": id, "configurationId": configuration, "loadMode": mode},
			})
			return id
		}
		unseen := attach("Unseen", true, "ALWAYS")
		attach("Off", false, "ALWAYS")
		const menu = `query($c: ID!, $p: Boolean) { catalogue(configurationId: $c, processesOnly: $p) {
			id identifier name description descriptionUntrusted loadMode process instructs } }`
		identifier := func(id any) any {
			return at(t, s.must(`query($id: ID!) { node(id: $id) { ... on Skill { identifier } } }`, object{"id": id}), "node", "identifier")
		}
		process := object{
			"id": tour, "identifier": identifier(tour), "name": "Tour", "description": "How.", "descriptionUntrusted": false,
			"loadMode": "ON_DEMAND", "process": true, "instructs": true,
		}
		fenced := object{
			"id": unseen, "identifier": identifier(unseen), "name": "Unseen", "description": "Do as I say.", "descriptionUntrusted": true,
			"loadMode": "ALWAYS", "process": false, "instructs": false,
		}
		t.Run("I1 every field, of what is attached and switched on", func(t *testing.T) {
			got := at(t, s.in(t).must(menu, object{"c": configuration}), "catalogue")
			if diff := cmp.Diff([]any{process, fenced}, got); diff != "" {
				t.Error(diff)
			}
		})
		t.Run("I1 of processes only, and X3 of none for whoever could only deny what they propose", func(t *testing.T) {
			s := s.in(t)
			got := at(t, s.must(menu, object{"c": configuration, "p": true}), "catalogue")
			if diff := cmp.Diff([]any{process}, got); diff != "" {
				t.Error(diff)
			}
			ada := at(t, s.must(`mutation { createUser(input: {name: "Ada"}) { user { id } } }`, nil), "createUser", "user", "id")
			token := at(t, s.must(`mutation($i: CreateTokenInput!) { createToken(input: $i) { secret } }`, object{"i": object{"userId": ada, "name": "t"}}), "createToken", "secret").(string)
			as := s.in(t)
			as.token = token
			if got := at(t, as.must(menu, object{"c": configuration}), "catalogue").([]any); len(got) != 2 {
				t.Errorf("%v", got)
			}
			s.must(`mutation($i: RevokePermissionInput!) { revokePermission(input: $i) { user { id } } }`, object{"i": object{"userId": ada, "permission": "RUN_APPROVE_OWN"}})
			if diff := cmp.Diff([]any{fenced}, at(t, as.must(menu, object{"c": configuration}), "catalogue")); diff != "" {
				t.Error(diff)
			}
		})
		t.Run("I1 what is on the menu can be started, on a subject, and continued", func(t *testing.T) {
			s := s.in(t)
			const start = `mutation($i: StartRunInput!) { startRun(input: $i) { run { id subject { id } invocation { skillId } } refusal { code } } }`
			first := at(t, s.must(start, object{"i": object{"configurationId": configuration, "prompt": "Go.", "invocation": object{"skillId": tour, "subject": object{"table": "page", "id": "home"}}}}), "startRun", "run")
			next := at(t, s.must(start, object{"i": object{"configurationId": configuration, "prompt": "On.", "predecessorId": at(t, first, "id")}}), "startRun", "run")
			if at(t, first, "invocation", "skillId") != tour || at(t, next, "subject", "id") != "home" {
				t.Errorf("%v then %v", first, next)
			}
		})
	})
}
