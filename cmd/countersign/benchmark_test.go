package main

import (
	"io"
	"net/http"
	"testing"
	"time"
)

// The limits that docs/benchmarks.md names.
const (
	startLimit = 300 * time.Millisecond
	runLimit   = 50 * time.Millisecond
)

// reportShare says how an iteration compares with its limit: below 1 is within it.
func reportShare(b *testing.B, limit time.Duration) {
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(limit), "limits/op")
}

// BenchmarkStart starts on an existing SQLite database with the demo in it, from
// reading the keys to the first answer of /readyz.
func BenchmarkStart(b *testing.B) {
	c := demoAt("sqlite:" + b.TempDir() + "/countersign.db")
	startSite(b, c).stop()
	for b.Loop() {
		s := startSite(b, c)
		response, err := http.Get(s.url + "/readyz")
		if err != nil || response.StatusCode != http.StatusOK {
			b.Fatalf("not ready: %v, %v", response, err)
		}
		response.Body.Close()
		b.StopTimer()
		s.stop()
		b.StartTimer()
	}
	reportShare(b, startLimit)
}

// threeSteps is a script of three model calls, two of which call a tool.
const threeSteps = `
steps:
  - calls: [{tool: get_page, arguments: {id: home}}]
  - calls: [{tool: read_record, arguments: {table: element, id: home-hours}}]
  - text: The greenhouse is closed on Sundays.
`

// BenchmarkRun starts a run of three steps over HTTP on SQLite and waits until it has
// settled.
func BenchmarkRun(b *testing.B) {
	s := startSite(b, demoAt("sqlite:"+b.TempDir()+"/countersign.db"))
	provider := s.must(`mutation($script: String!) {
		createProvider(input: {name: "Three steps", kind: SCRIPTED, trustZone: LOCAL, script: $script}) { provider { id } }
	}`, object{"script": threeSteps})["createProvider"].(object)["provider"].(object)["id"]
	configuration := s.must(`mutation($provider: ID!) {
		createConfiguration(input: {name: "Three steps", providerId: $provider, model: "scripted"}) { configuration { id } }
	}`, object{"provider": provider})["createConfiguration"].(object)["configuration"].(object)["id"]
	start := operation(b, `mutation($configuration: ID!) {
		startRun(input: {configurationId: $configuration, prompt: "When is it closed?"}) {
			run { status answer } refusal { code message }
		}
	}`, object{"configuration": configuration})
	for b.Loop() {
		response := s.post(start, "application/graphql-response+json")
		if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
			b.Fatalf("%s, %v", response.Status, err)
		}
		response.Body.Close()
	}
	reportShare(b, runLimit)
	run := s.must(`{ runs(first: 1) { nodes { status answer events(first: 20) { nodes { kind } } } } }`, nil)["runs"].(object)["nodes"].([]any)[0].(object)
	if steps := len(run["events"].(object)["nodes"].([]any)); run["status"] != "COMPLETED" || steps != 7 {
		b.Fatalf("the run has %d events: %v", steps, run)
	}
}
