package remote_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/remote"
	"github.com/countersign/countersign/internal/store"
	"github.com/countersign/countersign/internal/store/storetest"
	"github.com/countersign/countersign/internal/tool"
	"github.com/countersign/countersign/internal/world"
)

const object = `{"type":"object","properties":{"to":{"type":"string"}}}`

// far is a server as a test sets it.
type far struct {
	mu      sync.Mutex
	has     []remote.Definition
	down    error
	lists   int
	calls   []string
	reached remote.Reach
	fails   error
}

func (f *far) Check(remote.Reach) error { return nil }

func (f *far) Probe(_ context.Context, to remote.Reach) ([]remote.Definition, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists++
	f.reached = to
	return slices.Clone(f.has), f.down
}

func (f *far) List(ctx context.Context, to remote.Reach) ([]remote.Definition, error) {
	return f.Probe(ctx, to)
}

func (f *far) Call(_ context.Context, _ remote.Reach, name string, _ json.RawMessage) (remote.Answer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, name)
	return remote.Answer{Text: name + " done"}, f.fails
}

func (f *far) Forget(uuid.UUID) {}

func (f *far) sets(definitions ...remote.Definition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.has = definitions
}

func named(name string) remote.Definition {
	return remote.Definition{Name: name, Description: "Does " + name, Schema: json.RawMessage(object)}
}

// fixture is the room over a real database.
type fixture struct {
	*remote.Room
	t       *testing.T
	store   *store.Store
	library *library.Library
	far     *far
	admin   actor.Actor
	person  actor.Actor
}

func onBoth(t *testing.T, test func(*fixture)) {
	t.Helper()
	for _, database := range storetest.URLs {
		t.Run(database.Name, func(t *testing.T) {
			s := storetest.OpenAt(t, database.URL(t), store.Options{})
			w, far := world.Real(), &far{}
			people := &access.Access{Store: s, World: w}
			f := &fixture{t: t, store: s, far: far, library: &library.Library{Store: s, World: w, Accounts: people}}
			f.Room = &remote.Room{Store: s, Connector: far, World: w, Log: slog.New(slog.DiscardHandler)}
			admin, err := people.EnsureBuiltIn(t.Context())
			f.ok(err)
			f.admin = admin.Actor()
			u, err := people.CreateUser(t.Context(), f.admin, access.NewUser{Name: "Una", Kind: actor.Person})
			f.ok(err)
			f.person, err = people.Actor(t.Context(), u.ID)
			f.ok(err)
			test(f)
		})
	}
}

func (f *fixture) ok(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func program() remote.Import {
	command := "/bin/far"
	return remote.Import{Name: "far", Command: &command, Env: map[string]string{"TOKEN": "s3cret"}}
}

func (f *fixture) imports(in remote.Import) remote.Server {
	f.t.Helper()
	s, err := f.Import(f.t.Context(), f.admin, in)
	f.ok(err)
	return s
}

func (f *fixture) tool(name string) remote.Tool {
	f.t.Helper()
	t, err := f.ToolNamed(f.t.Context(), f.admin, name)
	f.ok(err)
	return t
}

func (f *fixture) offered(name string) tool.Tool {
	f.t.Helper()
	all, err := f.Tools(f.t.Context())
	f.ok(err)
	for _, t := range all {
		if t.Spec().Name == name {
			return t
		}
	}
	f.t.Fatalf("no tool %s", name)
	return nil
}

func (f *fixture) trail(event audit.Event) []audit.Entry {
	f.t.Helper()
	entries, err := f.store.AuditEntries(f.t.Context(), audit.Filter{Events: []audit.Event{event}}, audit.Page{Limit: 100})
	f.ok(err)
	return entries
}

func refusedAs(t *testing.T, err error, code fault.Code) *fault.Refused {
	t.Helper()
	refusal, is := fault.AsRefusal(err)
	if !is || refusal.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return refusal
}

func TestImport(t *testing.T) {
	onBoth(t, func(f *fixture) {
		t, ctx := f.t, f.t.Context()
		f.far.sets(named("send"), named("read"))
		t.Run("G8 an import pins what the server lists, and nobody reads its secrets back", func(t *testing.T) {
			s := f.imports(program())
			if !slices.Equal(s.EnvNames, []string{"TOKEN"}) || s.Transport != remote.Stdio || !s.Enabled || f.far.reached.Env["TOKEN"] != "s3cret" {
				t.Errorf("%+v", s)
			}
			if got := f.tool("mcp__far__send"); got.Status != remote.Pinned || !got.ApprovalRequired || got.ReviewerID != f.admin.ID || got.Digest != named("send").Digest() || string(got.Schema) != object {
				t.Errorf("%+v", got)
			}
			entries := f.trail(audit.MCPServerImported)
			if len(entries) != 1 || strings.Contains(fmt.Sprint(entries[0].Detail), "s3cret") {
				t.Errorf("%+v", entries)
			}
		})
		t.Run("G1 a remote tool is an unrepeatable write for administrators, off, bound to an approval, with the worst data class", func(t *testing.T) {
			spec := f.offered("mcp__far__send").Spec()
			if tool.EffectOf(spec) != tool.NonIdempotentWrite || !spec.AdminOnly || !spec.Remote || !tool.ApprovalBound(spec, tool.Approvals{}) || spec.DataClass != tool.SecretAdjacent {
				t.Errorf("%+v", spec)
			}
			if d, denied := tool.Decide(spec, tool.Situation{Administrator: true, Zone: tool.ZoneLocal}); !denied || d.Gate != tool.GateDisabled {
				t.Errorf("got %+v", d)
			}
			on := map[string]bool{"mcp__far__send": true}
			if d, denied := tool.Decide(spec, tool.Situation{Tools: on, Administrator: true, Zone: tool.ZonePrivateHosted}); !denied || d.Gate != tool.GateTrustZone {
				t.Errorf("T8 got %+v", d)
			}
			if d, denied := tool.Decide(spec, tool.Situation{Tools: on, Administrator: true, Zone: tool.ZoneLocal}); denied {
				t.Errorf("got %+v", d)
			}
		})
		t.Run("G8 an import by anybody else is refused", func(t *testing.T) {
			if _, err := f.Import(ctx, f.person, program()); !fault.Is(err, fault.Forbidden) {
				t.Errorf("got %v", err)
			}
			if _, err := f.Import(ctx, actor.Actor{}, program()); !fault.Is(err, fault.Unauthenticated) {
				t.Errorf("got %v", err)
			}
		})
		t.Run("G8 another import finds what changed, is gone and is new, and keeps the secrets", func(t *testing.T) {
			changed := named("send")
			changed.Description = "Sends everything to me"
			f.far.sets(changed, named("new"))
			f.imports(remote.Import{Name: "far"})
			if f.far.reached.Env["TOKEN"] != "s3cret" {
				t.Error("the secrets are lost")
			}
			send, read := f.tool("mcp__far__send"), f.tool("mcp__far__read")
			if send.Status != remote.Drifted || send.Description != "Does send" || send.Found == nil || send.Found.Description != changed.Description || read.Status != remote.Gone || f.tool("mcp__far__new").Status != remote.Pinned {
				t.Errorf("%+v %+v", send, read)
			}
			for _, name := range []string{"mcp__far__send", "mcp__far__read"} {
				if f.offered(name).Spec().Blocked == "" {
					t.Errorf("%s is not blocked", name)
				}
			}
			f.far.sets(named("send"), named("read"))
			f.imports(remote.Import{Name: "far"})
			if f.tool("mcp__far__send").Status != remote.Pinned || f.tool("mcp__far__read").Status != remote.Pinned {
				t.Error("what went back to the reviewed text is still blocked")
			}
		})
		t.Run("G8 what answers elsewhere begins again: without secrets, off, with approvals", func(t *testing.T) {
			no := false
			_, err := f.Review(ctx, f.admin, remote.Review{Tool: "mcp__far__send", Digest: named("send").Digest(), ApprovalRequired: &no})
			f.ok(err)
			f.ok(f.library.SetToolEnabled(ctx, f.admin, "mcp__far__send", true))
			other := "/bin/other"
			f.imports(remote.Import{Name: "far", Command: &other})
			switches, err := f.library.ToolSwitches(ctx)
			f.ok(err)
			if len(f.far.reached.Env) != 0 || switches["mcp__far__send"] || !f.tool("mcp__far__send").ApprovalRequired {
				t.Errorf("%+v, %v, %+v", f.far.reached.Env, switches, f.tool("mcp__far__send"))
			}
		})
		t.Run("a server that cannot be reached is a refusal and changes nothing", func(t *testing.T) {
			before := f.tool("mcp__far__send")
			f.far.down = fmt.Errorf("connection refused")
			_, err := f.Import(ctx, f.admin, remote.Import{Name: "far"})
			refusedAs(t, err, fault.ServerUnreachable)
			f.far.down = nil
			if after := f.tool("mcp__far__send"); after.ReviewedAt != before.ReviewedAt || after.Status != before.Status {
				t.Errorf("%+v", after)
			}
		})
		t.Run("a server that is switched off is not asked, and its tools are blocked", func(t *testing.T) {
			no, lists := false, f.far.lists
			f.imports(remote.Import{Name: "far", Enabled: &no})
			if f.far.lists != lists || f.offered("mcp__far__send").Spec().Blocked == "" {
				t.Error("it is used")
			}
			yes := true
			f.imports(remote.Import{Name: "far", Enabled: &yes})
		})
		t.Run("a deleted server takes its tools and their switches along", func(t *testing.T) {
			f.ok(f.library.SetToolEnabled(ctx, f.admin, "mcp__far__send", true))
			s, err := f.store.MCPServerNamed(ctx, "far")
			f.ok(err)
			if err := f.Delete(ctx, f.person, s.ID); !fault.Is(err, fault.Forbidden) {
				t.Errorf("got %v", err)
			}
			f.ok(f.Delete(ctx, f.admin, s.ID))
			all, err := f.Tools(ctx)
			f.ok(err)
			switches, err := f.library.ToolSwitches(ctx)
			f.ok(err)
			if len(all) != 0 || switches["mcp__far__send"] || len(f.trail(audit.MCPServerDeleted)) != 1 {
				t.Errorf("%v %v", all, switches)
			}
		})
	})
}

func TestBounds(t *testing.T) {
	with := func(change func(*remote.Definition)) remote.Definition {
		d := named("x")
		change(&d)
		return d
	}
	schema := func(s string) remote.Definition {
		return with(func(d *remote.Definition) { d.Schema = json.RawMessage(s) })
	}
	bad := map[string]struct {
		definition remote.Definition
		want       string
	}{
		"a name with a dot":                {with(func(d *remote.Definition) { d.Name = "a.b" }), "rename the tool"},
		"a name that is too long":          {with(func(d *remote.Definition) { d.Name = strings.Repeat("a", 60) }), "shorter name"},
		"a long description":               {with(func(d *remote.Definition) { d.Description = strings.Repeat("a", 5000) }), "shorten it"},
		"invisible characters":             {with(func(d *remote.Definition) { d.Description = "a\u202eb" }), "cannot see"},
		"a large schema":                   {schema(`{"type":"object","description":"` + strings.Repeat("a", 33<<10) + `"}`), "simplify it"},
		"a deep schema":                    {schema(`{"type":"object","properties":` + strings.Repeat(`{"a":`, 40) + `{}` + strings.Repeat(`}`, 40) + `}`), "levels deep"},
		"a schema that refers outside":     {schema(`{"type":"object","properties":{"a":{"$ref":"https://example.org/a"}}}`), "outside itself"},
		"a schema that is not an object's": {schema(`{"type":"string"}`), "must be an object"},
	}
	onBoth(t, func(f *fixture) {
		for _, name := range slices.Sorted(maps.Keys(bad)) {
			f.t.Run("G8 a tool with "+name+" is left out with a reason, and the others are imported", func(t *testing.T) {
				f.far.sets(bad[name].definition, named("good"))
				s := f.imports(program())
				if len(s.Rejected) != 1 || !strings.Contains(s.Rejected[0].Reason, bad[name].want) || f.tool("mcp__far__good").Status != remote.Pinned {
					t.Errorf("rejected %+v", s.Rejected)
				}
			})
		}
		f.t.Run("G8 a server with too many tools is refused", func(t *testing.T) {
			var many []remote.Definition
			for i := range 101 {
				many = append(many, named(fmt.Sprint("t", i)))
			}
			f.far.sets(many...)
			_, err := f.Import(t.Context(), f.admin, program())
			refusedAs(t, err, fault.TooManyTools)
		})
		f.t.Run("S5 a server's name leaves one way to read its tools' names", func(t *testing.T) {
			f.far.sets()
			for name, taken := range map[string]bool{"a": true, "a_b-1": true, "a__b": false, "_a": false, "a_": false, "A": false, "": false, strings.Repeat("a", 33): false} {
				in := program()
				in.Name = name
				if _, err := f.Import(t.Context(), f.admin, in); (err == nil) != taken {
					t.Errorf("%q: %v", name, err)
				}
			}
		})
	})
}

func TestReviewAndDrift(t *testing.T) {
	onBoth(t, func(f *fixture) {
		t, ctx := f.t, f.t.Context()
		const send = "mcp__far__send"
		changed := named("send")
		changed.Schema = json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"},"bcc":{"type":"string"}}}`)
		call := tool.Call{Run: uuid.New(), Arguments: json.RawMessage(`{}`)}
		f.far.sets(named("send"), named("read"))
		f.imports(program())
		t.Run("G8 a segment asks a server once what it has, before its first call", func(t *testing.T) {
			lists := f.far.lists
			all, err := f.Tools(ctx)
			f.ok(err)
			for _, each := range append(all, all...) {
				r, err := each.Execute(ctx, call)
				f.ok(err)
				if r.IsError || !strings.HasSuffix(r.Text, " done") || r.Write != nil {
					t.Errorf("got %+v", r)
				}
			}
			if f.far.lists != lists+1 || len(f.far.calls) != 4 {
				t.Errorf("asked %d times, called %v", f.far.lists-lists, f.far.calls)
			}
		})
		t.Run("G8 a tool that changed is not called, is kept for its operator, and blocked from then on", func(t *testing.T) {
			segment := f.offered(send)
			f.far.sets(changed, named("read"))
			calls := len(f.far.calls)
			r, err := segment.Execute(ctx, call)
			f.ok(err)
			if r.Token != tool.TokenChanged || !r.IsError || len(f.far.calls) != calls {
				t.Errorf("got %+v", r)
			}
			now, entries := f.tool(send), f.trail(audit.MCPToolChanged)
			if now.Status != remote.Drifted || now.FoundDigest != changed.Digest() || now.Digest != named("send").Digest() || f.offered(send).Spec().Blocked == "" {
				t.Errorf("%+v", now)
			}
			if len(entries) != 1 || entries[0].Run != call.Run || entries[0].Detail["tool"] != send || entries[0].Detail["found"] != changed.Digest() {
				t.Errorf("%+v", entries)
			}
			if r, err = f.offered("mcp__far__read").Execute(ctx, call); err != nil || r.IsError {
				t.Errorf("the other tool: %+v, %v", r, err)
			}
		})
		t.Run("G8 a review that names another digest is refused with the tool as it is, and audited", func(t *testing.T) {
			_, err := f.Review(ctx, f.admin, remote.Review{Tool: send, Digest: named("send").Digest()})
			if stale, is := refusedAs(t, err, fault.StaleDigest).Detail.(remote.StaleTool); !is || stale.Tool.FoundDigest != changed.Digest() {
				t.Errorf("detail %+v", stale)
			}
			if len(f.trail(audit.MCPToolReviewRefused)) != 1 || f.tool(send).Status != remote.Drifted {
				t.Error("it counted")
			}
			if _, err := f.Review(ctx, f.person, remote.Review{Tool: send, Digest: changed.Digest()}); !fault.Is(err, fault.Forbidden) {
				t.Errorf("got %v", err)
			}
			if _, err := f.Review(ctx, f.admin, remote.Review{Tool: "mcp__far__nobody", Digest: "x"}); !fault.Is(err, fault.NotFound) {
				t.Errorf("got %v", err)
			}
		})
		t.Run("C6 an operator frees a tool by a review, and a changed definition begins with an approval again", func(t *testing.T) {
			no := false
			got, err := f.Review(ctx, f.admin, remote.Review{Tool: send, Digest: changed.Digest(), ApprovalRequired: &no})
			f.ok(err)
			if got.Status != remote.Pinned || got.Digest != changed.Digest() || got.ApprovalRequired || got.Found != nil || tool.ApprovalBound(f.offered(send).Spec(), tool.Approvals{}) {
				t.Errorf("%+v", got)
			}
			if e := f.trail(audit.MCPToolReviewed); len(e) != 1 || e[0].Detail["now"] != changed.Digest() || e[0].Detail["approvalRequired"] != false {
				t.Errorf("%+v", e)
			}
			f.far.sets(named("send"), named("read"))
			f.imports(remote.Import{Name: "far"})
			got, err = f.Review(ctx, f.admin, remote.Review{Tool: send, Digest: named("send").Digest()})
			f.ok(err)
			if !got.ApprovalRequired {
				t.Error("it kept its freedom")
			}
		})
		t.Run("G8 a tool that was reviewed while a segment ran is not what that segment was told", func(t *testing.T) {
			segment := f.offered(send)
			f.far.sets(changed, named("read"))
			f.imports(remote.Import{Name: "far"})
			_, err := f.Review(ctx, f.admin, remote.Review{Tool: send, Digest: changed.Digest()})
			f.ok(err)
			if r, err := segment.Execute(ctx, call); err != nil || r.Token != tool.TokenChanged {
				t.Errorf("got %+v, %v", r, err)
			}
		})
		t.Run("G8 a server that is gone costs the call alone, and says what is known", func(t *testing.T) {
			f.far.down = fmt.Errorf("password hunter2")
			r, err := f.offered("mcp__far__read").Execute(ctx, call)
			f.ok(err)
			if r.Token != "server_unreachable" || strings.Contains(r.Text, "hunter2") {
				t.Errorf("got %+v", r)
			}
			f.far.down, f.far.fails = nil, fmt.Errorf("password hunter2")
			r, err = f.offered("mcp__far__read").Execute(ctx, call)
			f.ok(err)
			if r.Token != "outcome_unknown" || strings.Contains(r.Text, "hunter2") {
				t.Errorf("got %+v", r)
			}
			f.far.fails = nil
		})
		t.Run("G8 a tool that is gone is blocked and cannot be reviewed", func(t *testing.T) {
			f.far.sets(named("read"))
			if r, err := f.offered(send).Execute(ctx, call); err != nil || r.Token != tool.TokenChanged {
				t.Errorf("got %+v, %v", r, err)
			}
			_, err := f.Review(ctx, f.admin, remote.Review{Tool: send, Digest: changed.Digest()})
			refusedAs(t, err, fault.ToolGone)
		})
	})
}

func TestDigest(t *testing.T) {
	t.Run("G8 a digest is of what a model reads, however the schema is written", func(t *testing.T) {
		a, b := named("x"), named("x")
		b.Schema = json.RawMessage("{\n \"properties\": {\"to\": {\"type\": \"string\"}}, \"type\": \"object\"}")
		if a.Digest() != b.Digest() {
			t.Error("white space and the order of keys count")
		}
		for _, change := range []func(*remote.Definition){
			func(d *remote.Definition) { d.Name = "y" }, func(d *remote.Definition) { d.Description += "!" },
			func(d *remote.Definition) { d.Schema = json.RawMessage(`{"type":"object"}`) },
		} {
			c := named("x")
			change(&c)
			if c.Digest() == a.Digest() {
				t.Errorf("%+v has the same digest", c)
			}
		}
	})
}
