package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/live"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
	"github.com/countersign/countersign/internal/world"
)

var update = flag.Bool("update", false, "write the golden files")

// act is what somebody may ask of a run, and the transition it makes when it is granted.
type act struct {
	name string
	edge *run.Transition // nil leaves the run as it is
	do   func(h *house, by actor.Actor, r agent.Run) (verdict string, err error)
}

// said is the verdict of a mutation that either does what it is asked or says why not.
func said[T any](_ T, err error) (string, error) { return "ok", err }

var acts = []act{
	{"decideRun APPROVE", &run.Decide, func(h *house, by actor.Actor, r agent.Run) (string, error) {
		return said(h.agent.Decide(context.Background(), by, agent.Decision{Run: r.ID, TurnDigest: r.TurnDigest, Approve: true}))
	}},
	{"decideRun DENY", &run.Decide, func(h *house, by actor.Actor, r agent.Run) (string, error) {
		return said(h.agent.Decide(context.Background(), by, agent.Decision{Run: r.ID, TurnDigest: r.TurnDigest}))
	}},
	{"editRunProposal", &run.Edit, func(h *house, by actor.Actor, r agent.Run) (string, error) {
		return said(h.agent.EditProposal(context.Background(), by, rewording(r, "/fields/text", "Edited")))
	}},
	{"submitRunInput", &run.Answer, func(h *house, by actor.Actor, r agent.Run) (string, error) {
		return said(h.agent.SubmitInput(context.Background(), by, agent.Input{Run: r.ID, TurnDigest: r.TurnDigest, Values: []byte(`{"choice":"a"}`)}))
	}},
	{"cancelRun", &run.Cancel, func(h *house, by actor.Actor, r agent.Run) (string, error) {
		won, err := h.agent.Cancel(context.Background(), by, r.ID)
		return fmt.Sprint(won), err
	}},
	{"cancelRunIfWaiting", &run.CancelIfWaiting, func(h *house, by actor.Actor, r agent.Run) (string, error) {
		won, _, err := h.agent.CancelIfWaiting(context.Background(), by, r.ID)
		return fmt.Sprint(won), err
	}},
	{"endProcess", nil, func(h *house, by actor.Actor, r agent.Run) (string, error) {
		return said(h.agent.EndProcess(context.Background(), by, r.ID))
	}},
	{"startRun predecessorId", nil, func(h *house, by actor.Actor, r agent.Run) (string, error) {
		return said(h.agent.Start(context.Background(), by, h.after(r)))
	}},
}

// stand puts a queued run by hand where the matrix wants it.
func (h *house) stand(r agent.Run, status run.Status) agent.Run {
	h.t.Helper()
	set := []change.Value{storetest.V("status", string(status))}
	waiting := func(c prompt.Call, schema string) {
		state := agent.State{
			Messages: []prompt.Message{{Role: prompt.User, Text: "Go."}, {Role: prompt.Assistant, Calls: []prompt.Call{c}}},
			Pending:  []agent.Pending{{Call: c, Write: schema == "", Failed: true}}, Suspension: 1, NonceKey: make([]byte, 32), Schema: json.RawMessage(schema),
		}
		text, err := json.Marshal(state)
		h.ok(err)
		set = append(set, storetest.Sealed("state", string(text)), storetest.V("suspension", int64(1)),
			storetest.V("turn_digest", run.TurnDigest(1, []prompt.Call{c})))
	}
	switch status {
	case run.Running:
		set = append(set, storetest.V("lease_owner", "another"), storetest.V("lease_until", time.Now().Add(time.Hour)))
	case run.WaitingForApproval:
		waiting(calls("update_element", fix)[0], "")
	case run.WaitingForInput:
		waiting(calls("ask_choice", `{"question":"Which?","options":["a","b"]}`)[0],
			`{"type":"object","properties":{"choice":{"enum":["a","b"]}},"required":["choice"]}`)
	case run.Completed:
		set = append(set, storetest.V("outcome", "completed"), storetest.V("termination_reason", "completed"), storetest.V("finished_at", time.Now()))
	case run.Failed:
		set = append(set, storetest.V("outcome", "failed"), storetest.V("termination_reason", "provider_failed"), storetest.V("finished_at", time.Now()))
	case run.Cancelled:
		set = append(set, storetest.V("outcome", "cancelled"), storetest.V("termination_reason", "cancelled"), storetest.V("finished_at", time.Now()))
	}
	h.set(r.ID, set...)
	return h.row(r.ID)
}

// TestLifecycleMatrix asks everything of a run in every status, as everybody, and holds
// the verdicts against a file that a person can read.
func TestLifecycleMatrix(t *testing.T) {
	rings := &live.Hub{}
	s := storetest.OpenAt(t, "sqlite::memory:", store.Options{Bell: rings})
	h := build(t, s, rings, s, world.Real())
	h.drain() // what is queued stays queued
	ready(h)
	h.editable()
	ada, left := h.person("Ada"), h.person("Left")
	robot, err := h.access.CreateUser(context.Background(), h.admin, access.NewUser{Name: "Robot", Kind: actor.ServiceAccount})
	h.ok(err)
	for _, p := range []actor.Permission{actor.RunApprove, actor.RunCancel, actor.RunStart, actor.ContentRead, actor.ContentEdit} {
		robot, err = h.access.GrantPermission(context.Background(), h.admin, robot.ID, p)
		h.ok(err)
	}
	var b strings.Builder
	for _, kind := range []string{"an ordinary run", "a process run"} {
		for _, who := range []struct {
			name      string
			by, owner actor.Actor
			gone      bool // the initiator's account is disabled by the time
		}{
			{"its initiator", ada, ada, false},
			{"another with the grants", h.person("Grants of "+kind, actor.RunApprove, actor.RunCancel), ada, false},
			{"another who watches", h.person("Watcher of "+kind, actor.RunRead), ada, false},
			{"another without", h.person("Without of " + kind), ada, false},
			{"an administrator", h.admin, ada, false},
			{"a service account with the grants", robot.Actor(), ada, false},
			{"a deleted user", actor.Actor{}, ada, false},
			{"an administrator, its initiator deleted", h.admin, left, true},
		} {
			t.Run("R1 R2 "+kind+" and "+who.name, func(t *testing.T) {
				off, on := false, true
				if who.gone {
					_, err := h.access.UpdateUser(context.Background(), h.admin, access.UserUpdate{ID: left.ID, Enabled: &on})
					h.ok(err)
				}
				var runs []agent.Run
				for range len(acts) * len(run.Statuses) {
					req := h.plain()
					if kind == "a process run" {
						req = h.tour()
					}
					r, err := h.agent.Start(context.Background(), who.owner, req)
					h.ok(err)
					runs = append(runs, r)
				}
				if who.gone {
					_, err := h.access.UpdateUser(context.Background(), h.admin, access.UserUpdate{ID: left.ID, Enabled: &off})
					h.ok(err)
				}
				fmt.Fprintf(&b, "%s and %s\n", kind, who.name)
				for i, a := range acts {
					fmt.Fprintf(&b, "  %s\n", a.name)
					for j, status := range run.Statuses {
						r := h.stand(runs[i*len(run.Statuses)+j], status)
						fmt.Fprintf(&b, "    %-22s %s\n", status, h.verdict(t, a, who.by, r))
					}
				}
			})
		}
	}
	t.Run("R1 R2 every status × act × actor is answered as the golden file says", func(t *testing.T) {
		matrix(t, "testdata/lifecycle.golden", b.String())
	})
}

// verdict asks for one thing and holds what it did to the run against the machine.
func (h *house) verdict(t *testing.T, a act, by actor.Actor, r agent.Run) string {
	t.Helper()
	got, err := a.do(h, by, r)
	refusal, refused := fault.AsRefusal(err)
	switch {
	case refused:
		got = string(refusal.Code)
	case err != nil:
		got = string(fault.KindOf(err))
	}
	now := h.row(r.ID)
	granted := got == "ok" || got == "true"
	switch {
	case granted && a.edge != nil && !a.edge.Allows(r.Status):
		t.Errorf("%s of a run that is %s was granted", a.name, r.Status)
	case granted && a.edge != nil && now.Status == r.Status && r.Suspension == now.Suspension:
		t.Errorf("%s of a run that is %s was granted and did nothing", a.name, r.Status)
	case !granted && (now.Status != r.Status || now.Events != r.Events || now.TurnDigest != r.TurnDigest || len(now.Pins) != len(r.Pins)):
		t.Errorf("%s of a run that is %s was answered %s, and changed it: %+v", a.name, r.Status, got, now)
	}
	if granted && a.edge != nil && a.edge.To == run.Running {
		h.settled(r.ID)
	}
	return got
}

// matrix compares with a golden file, and writes it when it is told to.
func matrix(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, []byte(got), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s", path, got)
	}
}
