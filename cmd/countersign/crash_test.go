package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/pgtest"
	"github.com/countersign/countersign/internal/store/storetest"
)

const (
	kills   = 30
	clients = 8
)

// proposing is a script that reads, proposes one write to the record it works on, and
// ends.
const proposing = `
steps:
  - when: {turn: 1}
    calls: [{tool: read_record, arguments: {table: element, id: "${subject.id}"}}]
  - when: {turn: 2}
    calls: [{tool: update_element, arguments: {id: "${subject.id}", fields: {text: New}}}]
default: Done.
`

// replica is a server process that can be killed.
type replica struct {
	command *exec.Cmd
	site    *site
}

// process starts this test binary as a server on a database.
func process(t *testing.T, database string) *replica {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), asCommand+"=1", "COUNTERSIGN_ADDR=127.0.0.1:0", "COUNTERSIGN_DATABASE_URL="+database,
		"COUNTERSIGN_ADMIN_TOKEN="+testToken, "COUNTERSIGN_ENCRYPTION_KEY="+storetest.Key.String(), "COUNTERSIGN_DEMO=on")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { command.Process.Kill(); command.Wait() })
	r := &replica{command: command, site: &site{t: t, token: testToken}}
	r.site.greet(out)
	return r
}

// fleet is the replicas as their clients see them: any may be gone at any time.
type fleet struct {
	t        *testing.T
	database string

	mu       sync.RWMutex
	replicas []*replica
}

// kill ends a replica as a power cut does, and starts another in its place.
func (f *fleet) kill(n int) {
	f.mu.RLock()
	victim := f.replicas[n]
	f.mu.RUnlock()
	victim.command.Process.Kill()
	victim.command.Wait()
	next := process(f.t, f.database)
	f.mu.Lock()
	f.replicas[n] = next
	f.mu.Unlock()
}

// errUnanswered says that nobody knows whether an operation took effect.
var errUnanswered = errors.New("no answer")

// ask sends an operation to any replica.
func (f *fleet) ask(query string, variables object) (object, error) {
	f.mu.RLock()
	s := f.replicas[rand.IntN(len(f.replicas))].site
	f.mu.RUnlock()
	response, err := s.try(operation(f.t, query, variables), "application/graphql-response+json")
	if err != nil {
		return nil, errUnanswered
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, errUnanswered
	}
	var a answer
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, fmt.Errorf("the answer is not JSON: %w\n%s", err, raw)
	}
	switch a.code() {
	case "UNAVAILABLE":
		return nil, errUnanswered
	case "":
		if len(a.Errors) == 0 {
			return a.Data, nil
		}
	}
	return nil, fmt.Errorf("%s", raw)
}

// surely asks until there is an answer; for operations that may be repeated.
func (f *fleet) surely(query string, variables object) object {
	for {
		data, err := f.ask(query, variables)
		if err == nil {
			return data
		}
		if !errors.Is(err, errUnanswered) {
			f.t.Errorf("%s\n%v", query, err)
			return object{}
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// acknowledged is what a client was promised about one run.
type acknowledged struct {
	element, run string // empty when the answer was lost
	decided      bool
}

// TestCrash kills two replicas on one database at random while clients start and decide
// runs, and then holds what is stored against what was acknowledged (RULES R2, R5, R7,
// R8).
func TestCrash(t *testing.T) {
	database := pgtest.Schema(t)
	f := &fleet{t: t, database: database, replicas: []*replica{process(t, database), process(t, database)}}
	f.surely(`mutation { updateSetting(input: {name: "agent.leaseSeconds", value: "5"}) { setting { name } } }`, nil)
	provider := at(t, f.surely(`mutation($s: String!) { createProvider(input: {name: "Proposing", kind: SCRIPTED, trustZone: LOCAL, script: $s}) { provider { id } } }`,
		object{"s": proposing}), "createProvider", "provider", "id")
	configuration := at(t, f.surely(`mutation($p: ID!) { createConfiguration(input: {name: "Proposing", providerId: $p, model: "m"}) { configuration { id } } }`,
		object{"p": provider}), "createConfiguration", "configuration", "id").(string)
	c := &client{fleet: f, configuration: configuration, skill: f.process(configuration)}
	paused := c.start()
	c.waits(paused)

	under, stop := context.WithCancel(context.Background())
	var work sync.WaitGroup
	promised := make([][]*acknowledged, clients)
	for n := range clients {
		work.Go(func() {
			for under.Err() == nil {
				promised[n] = append(promised[n], c.tour())
			}
		})
	}
	chance := rand.New(rand.NewPCG(1, 2))
	for range kills {
		time.Sleep(time.Duration(chance.IntN(400)) * time.Millisecond)
		f.kill(chance.IntN(2))
	}
	stop()
	work.Wait()

	runs, ends := 0, map[string]int{}
	for _, some := range promised {
		for _, p := range some {
			if p.run != "" {
				runs++
			}
			ends[c.holds(p)]++
		}
	}
	if runs < kills {
		t.Errorf("only %d runs were started between %d kills", runs, kills)
	}
	t.Logf("%d runs, %d kills, %v", runs, kills, ends)
	c.decide(paused)
	c.holds(paused)
}

// process gives a configuration the demo's process, approved, and returns its id.
func (f *fleet) process(configuration string) string {
	t := f.t
	list := at(t, f.surely(`{ skills(first: 100) { nodes { id identifier digest } } }`, nil), "skills", "nodes").([]any)
	for _, s := range list {
		if at(t, s, "identifier") != "proofread-page" {
			continue
		}
		id := at(t, s, "id").(string)
		for query, input := range map[string]object{
			`mutation($i: ApproveSkillVersionInput!) { approveSkillVersion(input: $i) { refusal { message } } }`: {"skillId": id, "digest": at(t, s, "digest")},
			`mutation($i: SetSkillEnabledInput!) { setSkillEnabled(input: $i) { refusal { message } } }`:         {"skillId": id, "enabled": true},
			`mutation($i: AttachSkillInput!) { attachSkill(input: $i) { refusal { message } } }`:                 {"skillId": id, "configurationId": configuration},
		} {
			f.surely(query, object{"i": input})
		}
		return id
	}
	t.Fatalf("the demo has no process among %d skills", len(list))
	return ""
}

// client starts runs and decides them.
type client struct {
	*fleet
	configuration, skill string
}

// tour makes a record, lets a run propose a change to it, and approves that; it stops
// where an answer was lost that cannot be asked for again.
func (c *client) tour() *acknowledged {
	p := c.start()
	if p.run != "" && c.waits(p) {
		c.decide(p)
	}
	return p
}

func (c *client) start() *acknowledged {
	p := &acknowledged{}
	data, err := c.ask(`mutation { createRecord(input: {table: "element", parentId: "home", fields: {kind: "text", text: "Old"}}) { record { id } } }`, nil)
	if !c.answered(err) {
		return p
	}
	p.element = at(c.t, data, "createRecord", "record", "id").(string)
	data, err = c.ask(`mutation($c: ID!, $s: ID!, $e: ID!) { startRun(input: {
		configurationId: $c, prompt: "Go.", background: true, invocation: {skillId: $s, subject: {table: "element", id: $e}}
	}) { run { id } refusal { message } } }`, object{"c": c.configuration, "s": c.skill, "e": p.element})
	if c.answered(err) {
		p.run, _ = at(c.t, data, "startRun", "run", "id").(string)
		if p.run == "" {
			c.t.Errorf("%v", data)
		}
	}
	return p
}

// answered is false where an answer was lost.
func (c *client) answered(err error) bool {
	if err != nil && !errors.Is(err, errUnanswered) {
		c.t.Error(err)
	}
	return err == nil
}

const standing = `query($id: ID!) { node(id: $id) { ... on Run {
	status outcome terminationReason checkRecord pendingDecision { turnDigest }
	events(first: 100) { nodes { sequence kind } }
} } }`

// waits is true once the run waits for its decision, false when it ended instead.
func (c *client) waits(p *acknowledged) bool {
	for {
		r := at(c.t, c.surely(standing, object{"id": p.run}), "node")
		switch status := at(c.t, r, "status"); {
		case status == "WAITING_FOR_APPROVAL":
			return true
		case at(c.t, r, "outcome") == "REQUEUED": // it goes on in half a minute, and is not waited for
			return false
		case status == "QUEUED", status == "RUNNING":
			time.Sleep(5 * time.Millisecond)
		default:
			return false
		}
	}
}

// decide approves the run's proposal. A decision whose answer was lost is sent again:
// the same decider repeating the same decision gets the first result.
func (c *client) decide(p *acknowledged) {
	digest := at(c.t, c.surely(standing, object{"id": p.run}), "node", "pendingDecision", "turnDigest")
	data := c.surely(`mutation($r: ID!, $d: Digest!) { decideRun(input: {runId: $r, turnDigest: $d, decision: APPROVE}) { run { id } refusal { code message } } }`,
		object{"r": p.run, "d": digest})
	if refusal := at(c.t, data, "decideRun", "refusal"); refusal != nil {
		c.t.Errorf("%s: %v", p.run, refusal)
		return
	}
	p.decided = true
}

// holds waits until a run rests, compares what is stored with what was acknowledged, and
// says how the run ended.
func (c *client) holds(p *acknowledged) string {
	t := c.t
	if p.element == "" {
		return "no record"
	}
	record := at(t, c.surely(`query($id: ID!) { record(table: "element", id: $id) { fields history(first: 10) { nodes { revision } } } }`, object{"id": p.element}), "record")
	if record == nil {
		t.Errorf("the record %s was acknowledged and is lost", p.element)
		return "lost"
	}
	if p.run == "" {
		return "no run"
	}
	r := c.rests(p)
	if r == nil {
		t.Errorf("the run %s was acknowledged and is lost", p.run)
		return "lost"
	}
	record = at(t, c.surely(`query($id: ID!) { record(table: "element", id: $id) { fields history(first: 10) { nodes { revision } } } }`, object{"id": p.element}), "record")
	kinds := map[any]int{}
	for i, e := range at(t, r, "events", "nodes").([]any) {
		kinds[at(t, e, "kind")]++
		if at(t, e, "sequence") != float64(i) {
			t.Errorf("R5 event %d of %s has the sequence %v", i, p.run, at(t, e, "sequence"))
		}
	}
	audited := map[any]int{}
	for _, e := range at(t, c.surely(`query($id: ID!) { auditTrail(first: 100, filter: {runId: $id}) { nodes { event } } }`, object{"id": p.run}), "auditTrail", "nodes").([]any) {
		audited[at(t, e, "event")]++
	}
	status, check := at(t, r, "status"), at(t, r, "checkRecord") == true
	ended := 0
	if status != "WAITING_FOR_APPROVAL" {
		ended = 1
	}
	decided := kinds["DECISION"]
	written := at(t, record, "fields", "text") == "New"
	revisions := len(at(t, record, "history", "nodes").([]any))
	for _, wrong := range []struct {
		is   bool
		what string
	}{
		{kinds["STARTED"] != 1 || audited["RUN_STARTED"] != 1, "it did not start once with its entry"},
		{kinds["SETTLED"] != ended || audited["RUN_ENDED"] != ended, "it did not end once with its entry"},
		{decided > 1 || audited["RUN_DECIDED"] != decided, "a decision and its entry are not one each"},
		{p.decided && decided != 1, "its acknowledged decision is lost"},
		{written && decided == 0, "it was written without a decision"},
		{revisions > 2 || written != (revisions == 2), "it was not written once"},
		{written && kinds["WRITE"] == 0 && !check, "its write has no step, and nothing says to check the record"},
		{kinds["WRITE"] > 0 && !written, "a write step stands for nothing"},
		{kinds["WRITE"] != audited["WRITE_EXECUTED"], "a write step and its entry are not one each"},
		{decided == 1 && !written && status == "COMPLETED", "an approved write is missing and the run says that all is well"},
	} {
		if wrong.is {
			t.Errorf("%s (%s): %s; events %v, entries %v, %d revisions, written=%v\n%v", p.run, p.element, wrong.what, kinds, audited, revisions, written, r)
		}
	}
	return fmt.Sprint(status, " ", at(t, r, "terminationReason"))
}

// rests waits until a run has ended or waits; nil when there is none.
func (c *client) rests(p *acknowledged) any {
	for {
		r := at(c.t, c.surely(standing, object{"id": p.run}), "node")
		if r == nil {
			return nil
		}
		switch at(c.t, r, "status") {
		case "QUEUED", "RUNNING":
			time.Sleep(20 * time.Millisecond)
		default:
			return r
		}
	}
}
