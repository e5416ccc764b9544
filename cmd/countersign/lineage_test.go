package main

import "testing"

// guided makes an approved process, attached to a configuration whose model only says
// that it is done.
func (s *site) guided(name string, source, configuration any) any {
	s.t.Helper()
	skill := at(s.t, s.must(`mutation($i: CreateSkillInput!) { createSkill(input: $i) { skill { id digest } } }`,
		object{"i": object{"sourceId": source, "name": name, "description": "How.", "body": "Point by point.\n", "process": true}}), "createSkill", "skill")
	id := at(s.t, skill, "id")
	s.must(`mutation($a: ApproveSkillVersionInput!, $e: SetSkillEnabledInput!, $o: AttachSkillInput!) {
		approveSkillVersion(input: $a) { approval { id } }
		setSkillEnabled(input: $e) { skill { id } }
		attachSkill(input: $o) { attachment { id } }
	}`, object{
		"a": object{"skillId": id, "digest": at(s.t, skill, "digest")}, "e": object{"skillId": id, "enabled": true},
		"o": object{"skillId": id, "configurationId": configuration},
	})
	return id
}

func TestLineageOverTheAPI(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		source := at(t, s.must(`mutation { createSource(input: {title: "Ours", type: AUTHORED, trustLevel: FIRST_PARTY}) { source { id } } }`, nil), "createSource", "source", "id")
		provider := at(t, s.must(`mutation { createProvider(input: {name: "S", kind: SCRIPTED, script: "default: {text: Done.}"}) { provider { id } } }`, nil), "createProvider", "provider", "id")
		configuration := at(t, s.must(`mutation($i: CreateConfigurationInput!) { createConfiguration(input: $i) { configuration { id } } }`,
			object{"i": object{"name": "Guided", "providerId": provider, "model": "m"}}), "createConfiguration", "configuration", "id")
		tour, survey := s.guided("Tour", source, configuration), s.guided("Survey", source, configuration)
		start := func(s *site, more object) any {
			s.t.Helper()
			input := object{"configurationId": configuration, "prompt": "Go."}
			for k, v := range more {
				input[k] = v
			}
			return at(s.t, s.must(`mutation($i: StartRunInput!) { startRun(input: $i) {
				run { id status predecessor { id } predecessorId processPin { skillId derived } pins { skillId } invocation { skillId derived ended } subject { id } }
				refusal { code message ... on ProcessRunningRefusal { process { skill { name } } subject { table id } } ... on PredecessorOpenRefusal { status } }
			} }`, object{"i": input}), "startRun")
		}
		page := object{"table": "page", "id": "home"}
		first := at(t, start(s, object{"invocation": object{"skillId": tour, "subject": page}}), "run")
		second := at(t, start(s, object{"predecessorId": at(t, first, "id")}), "run")

		t.Run("P4 a continuation takes over the process, its invocation and its subject", func(t *testing.T) {
			if at(t, second, "status") != "COMPLETED" || at(t, second, "processPin", "skillId") != tour || at(t, second, "processPin", "derived") != true {
				t.Errorf("%v", second)
			}
			if at(t, second, "invocation", "derived") != true || at(t, second, "subject", "id") != "home" {
				t.Errorf("%v", second)
			}
			if at(t, second, "predecessor", "id") != at(t, first, "id") || at(t, second, "predecessorId") != at(t, first, "id") || at(t, first, "predecessor") != nil {
				t.Errorf("%v", second)
			}
		})
		t.Run("X3 I7 a second process is refused with the first one", func(t *testing.T) {
			s := s.in(t)
			refusal := at(t, start(s, object{"predecessorId": at(t, second, "id"), "invocation": object{"skillId": survey}}), "refusal")
			if at(t, refusal, "code") != "PROCESS_RUNNING" || at(t, refusal, "process", "skill", "name") != "Tour" || at(t, refusal, "subject", "id") != "home" {
				t.Errorf("%v", refusal)
			}
		})
		t.Run("P7 a run that is not there is refused, an id of another kind is wrong", func(t *testing.T) {
			s := s.in(t)
			gone := runIDLike(at(t, first, "id").(string))
			if got := start(s, object{"predecessorId": gone}); at(t, got, "refusal", "code") != "PREDECESSOR_MISSING" || at(t, got, "run") != nil {
				t.Errorf("%v", got)
			}
			wrong := s.ask(`mutation($i: StartRunInput!) { startRun(input: $i) { run { id } } }`,
				object{"i": object{"configurationId": configuration, "prompt": "Go.", "predecessorId": tour}})
			if wrong.code() != "BAD_USER_INPUT" {
				t.Errorf("%s", wrong.Raw)
			}
		})
		t.Run("X10 X9 a process that was ended is not gone on with", func(t *testing.T) {
			s := s.in(t)
			ended := at(t, s.must(`mutation($i: EndProcessInput!) { endProcess(input: $i) { run { processPin { skillId } notices { code args } invocation { ended } } refusal { code } } }`,
				object{"i": object{"runId": at(t, second, "id")}}), "endProcess", "run")
			if at(t, ended, "processPin") != nil || at(t, ended, "notices", 0, "code") != "PROCESS_ENDED" || at(t, ended, "notices", 0, "args", 0) != "Tour" || at(t, ended, "invocation", "ended") != true {
				t.Errorf("%v", ended)
			}
			third := at(t, start(s, object{"predecessorId": at(t, second, "id")}), "run")
			if at(t, third, "processPin") != nil || at(t, third, "invocation") != nil || at(t, third, "subject") != nil {
				t.Errorf("%v", third)
			}
			trail := at(t, s.must(`{ auditTrail(filter: {events: [PROCESS_ENDED]}) { nodes { skill { id } run { id } actor { name } } } }`, nil), "auditTrail", "nodes", 0)
			if at(t, trail, "skill", "id") != tour || at(t, trail, "run", "id") != at(t, second, "id") || at(t, trail, "actor", "name") != "Administrator" {
				t.Errorf("%v", trail)
			}
		})
	})
}

// runIDLike is the id of a run that is not there.
func runIDLike(id string) string {
	last := id[len(id)-2]
	other := byte('a')
	if last == other {
		other = 'b'
	}
	return id[:len(id)-2] + string(other) + id[len(id)-1:]
}
