package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/pgtest"
)

// restless is a script that reads in many rounds, asks for a decision half way, and
// reads on.
func restless(rounds int) string {
	var steps strings.Builder
	for turn := 1; turn <= rounds; turn++ {
		if turn == rounds/2 {
			fmt.Fprintf(&steps, "  - {when: {turn: %d}, calls: [{tool: update_element, arguments: {id: home-hours, fields: {header: Hours}}}]}\n", turn)
			continue
		}
		read := "{tool: read_record, arguments: {table: page, id: home}}"
		fmt.Fprintf(&steps, "  - {when: {turn: %d}, calls: [%s]}\n", turn, strings.Join([]string{read, read, read}, ", "))
	}
	return "steps:\n" + steps.String() + "default: Done.\n"
}

// TestRejoin (RULES R5) cuts subscribers off 200 times while the run they follow goes on, is
// decided and ends, and lets them go on from their last sequence at the other replica.
func TestRejoin(t *testing.T) {
	database := pgtest.Schema(t)
	replicas := []*site{startSite(t, demoAt(database)), startSite(t, demoAt(database))}
	first := replicas[0]
	admin := func(query string, variables object, path ...any) any {
		t.Helper()
		return at(t, first.must(query, variables), path...)
	}
	admin(`mutation { updateSetting(input: {name: "agent.maxIterations", value: "1000"}) { setting { name } } }`, nil)
	provider := admin(`mutation($s: String!) { createProvider(input: {name: "Restless", kind: SCRIPTED, trustZone: LOCAL, script: $s}) { provider { id } } }`,
		object{"s": restless(40)}, "createProvider", "provider", "id")
	configuration := admin(`mutation($p: ID!) { createConfiguration(input: {name: "Restless", providerId: $p, model: "m", maxIterations: 1000}) { configuration { id } } }`,
		object{"p": provider}, "createConfiguration", "configuration", "id")

	const subscribers, cutsEach = 10, 20
	run := admin(`mutation($c: ID!) { startRun(input: {configurationId: $c, prompt: "Go.", background: true}) { run { id } } }`,
		object{"c": configuration}, "startRun", "run", "id").(string)

	var followers sync.WaitGroup
	seen := make([][]int, subscribers)
	cuts := make([]int, subscribers)
	for n := range subscribers {
		f := &follower{replicas: replicas, run: run, chance: rand.New(rand.NewPCG(uint64(n), 7))}
		followers.Go(func() { seen[n], cuts[n] = f.follow(t, cutsEach) })
	}
	decideWhenWaiting(t, replicas[1], run)
	followers.Wait()

	end := admin(`query($id: ID!) { node(id: $id) { ... on Run { status events(first: 100, afterSequence: 99) { nodes { sequence } } } } }`, object{"id": run}, "node")
	if at(t, end, "status") != "COMPLETED" {
		t.Fatalf("the run is %v", end)
	}
	late := at(t, end, "events", "nodes").([]any)
	total := 100 + len(late)
	cut := 0
	for n, sequences := range seen {
		cut += cuts[n]
		if len(sequences) != total {
			t.Errorf("R5 subscriber %d received %d of %d events", n, len(sequences), total)
		}
		for i, sequence := range sequences {
			if sequence != i {
				t.Fatalf("R5 subscriber %d received %d as its event %d", n, sequence, i)
			}
		}
	}
	if cut != subscribers*cutsEach {
		t.Errorf("%d cuts were made, not %d", cut, subscribers*cutsEach)
	}
}

// decideWhenWaiting approves the run's proposal at a replica as soon as there is one.
func decideWhenWaiting(t *testing.T, s *site, run string) {
	t.Helper()
	query := `query($id: ID!) { node(id: $id) { ... on Run { status message pendingDecision { turnDigest } } } }`
	for {
		r := at(t, s.must(query, object{"id": run}), "node")
		switch at(t, r, "status") {
		case "QUEUED", "RUNNING":
		case "WAITING_FOR_APPROVAL":
			refusal := at(t, s.must(`mutation($r: ID!, $d: Digest!) { decideRun(input: {runId: $r, turnDigest: $d, decision: APPROVE}) { refusal { message } } }`,
				object{"r": run, "d": at(t, r, "pendingDecision", "turnDigest")}), "decideRun", "refusal")
			if refusal != nil {
				t.Fatalf("%v", refusal)
			}
			return
		default:
			t.Errorf("the run does not wait: %v", r)
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// follower follows a run over connections that break.
type follower struct {
	replicas []*site
	run      string
	chance   *rand.Rand
}

// follow reads the run to its end. After each of the first cuts connections it goes
// away, at any point, and comes back with the last sequence it saw.
func (f *follower) follow(t *testing.T, cuts int) (sequences []int, cut int) {
	for after := any(nil); ; {
		most := 1 + f.chance.IntN(6) // events before this connection breaks
		if cut == cuts {
			most = -1
		}
		received, ended := f.connection(t, after, most)
		sequences = append(sequences, received...)
		if ended {
			return sequences, cut
		}
		cut++
		if len(sequences) > 0 {
			after = sequences[len(sequences)-1]
		}
	}
}

// connection follows the run at any replica for as many events as it is given; fewer
// when the connection breaks before they are there.
func (f *follower) connection(t *testing.T, after any, most int) (sequences []int, ended bool) {
	s := *f.replicas[f.chance.IntN(len(f.replicas))]
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	if most > 0 && f.chance.IntN(3) == 0 { // sometimes the line breaks while nothing is said
		breaks := time.AfterFunc(time.Duration(f.chance.IntN(20))*time.Millisecond, leave)
		defer breaks.Stop()
	}
	s.ctx = ctx
	stream, err := s.follow(operation(t, `subscription($run: ID!, $after: Int) { runEvents(runId: $run, after: $after) { sequence } }`,
		object{"run": f.run, "after": after}))
	if err != nil {
		return nil, false
	}
	defer stream.body.Close()
	for most != 0 {
		event, more, err := stream.event()
		switch {
		case err != nil && most < 0:
			t.Errorf("the last connection broke: %v", err)
			return sequences, true
		case err != nil:
			return sequences, false
		case !more:
			return sequences, true
		}
		sequences = append(sequences, int(event.Data["runEvents"].(object)["sequence"].(float64)))
		most--
	}
	return sequences, false
}
