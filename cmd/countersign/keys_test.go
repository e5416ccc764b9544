package main

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
)

// TestUnreadable damages what one run and one provider keep, and reads the lists.
func TestUnreadable(t *testing.T) {
	for _, database := range storetest.URLs {
		t.Run(database.Name, func(t *testing.T) {
			url := database.URL(t)
			c := demoAt(url)
			s, db := startSite(t, c), openBeside(t, url)
			provider := at(t, s.must(`mutation($i: CreateProviderInput!) { createProvider(input: $i) { provider { id } } }`,
				object{"i": object{"name": "Writing", "kind": "SCRIPTED", "script": writing}}), "createProvider", "provider", "id")
			configuration := at(t, s.must(`mutation($i: CreateConfigurationInput!) { createConfiguration(input: $i) { configuration { id } } }`,
				object{"i": object{"name": "Writing", "providerId": provider, "model": "m"}}), "createConfiguration", "configuration", "id")
			var runs []any
			for range 2 {
				runs = append(runs, at(t, s.must(`mutation($i: StartRunInput!) { startRun(input: $i) { run { id } } }`,
					object{"i": object{"configurationId": configuration, "prompt": "Go."}}), "startRun", "run", "id"))
			}
			source := at(t, s.must(`mutation { createSource(input: {title: "Kept", type: REPO, url: "https://github.com/acme/skills", token: "ghp_secret"}) { source { id } } }`, nil),
				"createSource", "source", "id")
			for _, damage := range []string{
				"UPDATE runs SET state = 'gone:AAAA', request = 'gone:AAAA', answer = 'gone:AAAA' WHERE id = (SELECT id FROM runs WHERE status = 'waiting_for_approval' ORDER BY id LIMIT 1)",
				"UPDATE providers SET api_key = 'gone:AAAA' WHERE name = 'Writing'",
				"UPDATE sources SET access_token = 'gone:AAAA' WHERE title = 'Kept'",
			} {
				if _, err := db.ExecContext(t.Context(), damage); err != nil {
					t.Fatal(err)
				}
			}
			for _, list := range []string{"runs", "inbox"} {
				t.Run("R16 "+list+" shows a run that cannot be decrypted as one unreadable run", func(t *testing.T) {
					a := s.in(t).ask(`{ list: `+list+`(first: 10) { nodes { id status answer pendingDecision { turnDigest } } } }`, nil)
					readable, listed := 0, map[any]bool{}
					for _, run := range at(t, a.Data, "list", "nodes").([]any) {
						listed[at(t, run, "id")] = true
						if at(t, run, "pendingDecision") != nil {
							readable++
						}
					}
					if !listed[runs[0]] || !listed[runs[1]] || readable != 1 || len(a.Errors) != 0 {
						t.Errorf("%s", a.Raw)
					}
				})
			}
			t.Run("R16 providers and sources are listed although what one keeps cannot be decrypted", func(t *testing.T) {
				got := s.in(t).must(`{ providers(first: 10) { nodes { id } } sources(first: 10) { nodes { id hasToken } } }`, nil)
				for list, id := range map[string]any{"providers": provider, "sources": source} {
					found := false
					for _, n := range at(t, got, list, "nodes").([]any) {
						found = found || at(t, n, "id") == id
					}
					if !found {
						t.Errorf("%s lacks it: %v", list, got)
					}
				}
			})
			t.Run("R16 keys rotate names what it cannot decrypt, and says when everything is done", func(t *testing.T) {
				c := c
				fresh := store.NewKey()
				c.EncryptionKey = fresh.String() + "," + storetest.Key.String()
				says := func(says string, fails bool) {
					t.Helper()
					h, err := open(context.Background(), c, slog.New(slog.DiscardHandler), store.Options{})
					if err != nil {
						t.Fatal(err)
					}
					defer h.close()
					var out bytes.Buffer
					if err := rotate(t.Context(), &out, h.store); (err != nil) != fails || !strings.Contains(out.String(), says) {
						t.Errorf("%v\n%s", err, out.String())
					}
				}
				says("providers.api_key of ", true)
				for _, mend := range []string{
					"UPDATE runs SET state = NULL, request = NULL, answer = NULL WHERE state = 'gone:AAAA'", "UPDATE providers SET api_key = NULL WHERE name = 'Writing'",
					"UPDATE sources SET access_token = NULL WHERE title = 'Kept'",
				} {
					if _, err := db.ExecContext(t.Context(), mend); err != nil {
						t.Fatal(err)
					}
				}
				says("Everything is under the first key.", false)
			})
		})
	}
}
