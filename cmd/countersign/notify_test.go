package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/store/storetest"
	"github.com/countersign/countersign/internal/webhook"
)

// RULES R4: a server is told of a run that waits, signed, and its log says that it took it.
func TestNotificationsOverTheAPI(t *testing.T) {
	type received struct{ id, at, signature, body string }
	got := make(chan received, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- received{r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), r.Header.Get("webhook-signature"), string(body)}
		w.WriteHeader(204)
	}))
	defer receiver.Close()
	next := func(t *testing.T) received {
		t.Helper()
		select {
		case r := <-got:
			return r
		case <-time.After(time.Minute):
			t.Fatal("nothing was posted")
			return received{}
		}
	}
	for _, database := range storetest.URLs {
		t.Run(database.Name, func(t *testing.T) {
			c := demoAt(database.URL(t))
			c.NotifyNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
			s := startSite(t, c)
			made := at(t, s.must(`mutation($u: String!) { createNotificationEndpoint(input: {url: $u, events: [RUN_WAITING]}) { secret notificationEndpoint { id } } }`,
				object{"u": receiver.URL}), "createNotificationEndpoint")
			secret, endpoint := at(t, made, "secret").(string), at(t, made, "notificationEndpoint", "id")
			s.must(`mutation($e: ID!) { testNotificationEndpoint(input: {notificationEndpointId: $e}) { notificationDelivery { status } } }`, object{"e": endpoint})
			if ping := next(t); ping.signature != webhook.Signature(secret, ping.id, ping.at, ping.body) {
				t.Errorf("%+v", ping)
			}
			provider := at(t, s.must(`mutation($s: String!) { createProvider(input: {name: "W", kind: SCRIPTED, script: $s}) { provider { id } } }`, object{"s": writing}), "createProvider", "provider", "id")
			configuration := at(t, s.must(`mutation($i: CreateConfigurationInput!) { createConfiguration(input: $i) { configuration { id } } }`,
				object{"i": object{"name": "Told", "providerId": provider, "model": "m"}}), "createConfiguration", "configuration", "id")
			run := at(t, s.must(`mutation($c: ID!) { startRun(input: {configurationId: $c, prompt: "Go."}) { run { id pendingDecision { turnDigest } } } }`, object{"c": configuration}), "startRun", "run")
			var told struct {
				Type string
				Data struct{ RunID, TurnDigest, Status string }
			}
			waiting := next(t)
			if err := json.Unmarshal([]byte(waiting.body), &told); err != nil {
				t.Fatal(err)
			}
			if told.Type != "run.waiting" || told.Data.RunID != at(t, run, "id") || told.Data.TurnDigest != at(t, run, "pendingDecision", "turnDigest") ||
				waiting.signature != webhook.Signature(secret, waiting.id, waiting.at, waiting.body) {
				t.Errorf("%+v", waiting)
			}
			const log = `query($e: ID!) { node(id: $e) { ... on NotificationEndpoint { deliveries(status: DELIVERED, first: 5) { nodes { id event runId attempts { statusCode } } } } } }`
			var nodes []any
			for range 100 { // it is stored after the answer came
				if nodes = at(t, s.must(log, object{"e": endpoint}), "node", "deliveries", "nodes").([]any); len(nodes) == 2 {
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
			if len(nodes) != 2 || at(t, nodes[0], "event") != "RUN_WAITING" || at(t, nodes[0], "runId") != at(t, run, "id") || at(t, nodes[0], "id") != waiting.id {
				t.Errorf("%v", nodes)
			}
			for what, read := range map[string]string{
				"the endpoints": `{ notificationEndpoints { nodes { id url description enabled disabledReason events deliveries { nodes { id attempts { error } } } } } }`,
				"the trail":     `{ auditTrail(filter: {events: [NOTIFICATIONS_CHANGED]}) { nodes { event detail } } }`,
			} {
				if a := s.ask(read, nil); len(a.Errors) != 0 || strings.Contains(a.Raw, secret) || !strings.Contains(a.Raw, endpoint.(string)[len("nep_"):]) && what == "the endpoints" {
					t.Errorf("R16 %s: %s", what, a.Raw)
				}
			}
			metrics := ""
			for range 100 { // a try is counted after it is stored
				response, err := http.Get(s.url + "/metrics")
				if err != nil {
					t.Fatal(err)
				}
				read, err := io.ReadAll(response.Body)
				response.Body.Close()
				if err != nil {
					t.Fatal(err)
				}
				if metrics = string(read); strings.Contains(metrics, "countersign_notification_tries_total{outcome=\"taken\"} 2\n") {
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
			for _, line := range []string{`countersign_notification_tries_total{outcome="taken"} 2`, "countersign_notifications_pending 0"} {
				if !strings.Contains(metrics, line+"\n") {
					t.Errorf("no %s in the metrics", line)
				}
			}
			if a := s.ask(`mutation { createNotificationEndpoint(input: {url: "ftp://x"}) { secret } }`, nil); a.code() != "BAD_USER_INPUT" {
				t.Errorf("%s", a.Raw)
			}
		})
	}
}
