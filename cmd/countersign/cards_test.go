package main

import "testing"

// RULES V6: what comes over conversationUpdates has everything that a card needs, as long
// as it waits, for whoever comes back too; once it is over its entry shows no card.
func TestCardsInTheStream(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		provider := at(t, s.must(`mutation($s: String!) { createProvider(input: {name: "W", kind: SCRIPTED, script: $s}) { provider { id } } }`, object{"s": writing}), "createProvider", "provider", "id")
		configuration := at(t, s.must(`mutation($i: CreateConfigurationInput!) { createConfiguration(input: $i) { configuration { id } } }`,
			object{"i": object{"name": "W", "providerId": provider, "model": "m", "allowProposalEdits": true}}), "createConfiguration", "configuration", "id")
		conversation := at(t, s.must(`mutation($c: ID!) { startConversation(input: {configurationId: $c}) { conversation { id } } }`, object{"c": configuration}), "startConversation", "conversation", "id")
		s.must(`mutation($c: ID!) { sendMessage(input: {conversationId: $c, text: "Go."}) { conversation { status } } }`, object{"c": conversation})
		const updates = `subscription($c: ID!) { conversationUpdates(conversationId: $c) { __typename ... on CardEntry { turnDigest edited
			pendingDecision { turnDigest answers calls { tool preview { lines } texts { pointer text } } } pendingInput { tool } } } }`
		cards := func(n int) (found []any) {
			reader := s.socket(t, s.token, updates, object{"c": conversation})
			for len(found) < n {
				data, ended := reader.next()
				if ended != "" {
					t.Fatal(ended)
				}
				if e := data["conversationUpdates"]; at(t, e, "__typename") == "CardEntry" {
					found = append(found, e)
				}
			}
			return found
		}
		card := cards(1)[0]
		call := at(t, card, "pendingDecision", "calls").([]any)[0]
		if at(t, card, "pendingDecision", "turnDigest") != at(t, card, "turnDigest") || len(at(t, call, "preview", "lines").([]any)) < 2 ||
			len(at(t, call, "texts").([]any)) != 1 || at(t, card, "pendingInput") != nil {
			t.Errorf("%v", card)
		}
		changed := at(t, s.must(`mutation($i: EditProposalInput!) { editProposal(input: $i) { conversation { pendingDecision { turnDigest } } refusal { code message } } }`, object{"i": object{
			"conversationId": conversation, "turnDigest": at(t, card, "turnDigest"), "texts": []any{object{"pointer": "/fields/text", "text": "Open at nine."}},
		}}), "editProposal", "conversation", "pendingDecision", "turnDigest")
		both := cards(2)
		if at(t, both[0], "pendingDecision") != nil || at(t, both[1], "pendingDecision", "turnDigest") != changed || at(t, both[1], "edited") != true {
			t.Errorf("%v", both)
		}
		s.must(`mutation($c: ID!, $d: Digest!) { decideProposal(input: {conversationId: $c, turnDigest: $d, answer: APPROVE}) { conversation { status } } }`, object{"c": conversation, "d": changed})
		for _, card := range cards(2) {
			if at(t, card, "pendingDecision") != nil {
				t.Errorf("%v", card)
			}
		}
		record := at(t, s.must(`{ record(table: "element", id: "home-hours") { fields } }`, nil), "record", "fields")
		if at(t, record, "text") != "Open at nine." {
			t.Errorf("%v", record)
		}
	})
}
