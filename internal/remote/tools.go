package remote

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/tool"
)

// The tokens of what a remote call can end with, beside tool.TokenChanged.
const (
	tokenUnreachable = "server_unreachable"
	tokenUnknown     = "outcome_unknown"
	tokenFailed      = "remote_tool_failed"
)

// Tools gives every imported tool, bound to its pinned definition. Those of one call
// belong together: before the first of them calls a server, what that server has now is
// held against what is pinned, once.
func (r *Room) Tools(ctx context.Context) ([]tool.Tool, error) {
	servers, err := r.Store.MCPServers(ctx, allServers)
	if err != nil || len(servers) == 0 {
		return nil, err
	}
	tools, err := r.Store.MCPTools(ctx)
	if err != nil {
		return nil, err
	}
	visits := make(map[uuid.UUID]*visit, len(servers))
	for _, s := range servers {
		visits[s.ID] = &visit{room: r, server: s}
	}
	var out []tool.Tool
	for _, t := range tools {
		if v := visits[t.ServerID]; v != nil { // else it was deleted between the two reads
			out = append(out, remote{visit: v, tool: t})
		}
	}
	return out, nil
}

// remote is an imported tool as the runtime calls it.
type remote struct {
	visit *visit
	tool  Tool
}

// Spec implements tool.Tool: what the server says of its tool's effect does not count
// (RULES G1).
func (t remote) Spec() tool.Spec {
	return tool.Spec{
		Definition: prompt.Definition{Name: t.tool.FullName(), Description: t.tool.Description, Schema: t.tool.Schema},
		Title:      t.tool.Name + " (" + t.tool.ServerName + ")", Group: tool.GroupRemote, Effect: tool.NonIdempotentWrite,
		Remote: true, AdminOnly: true, OffByDefault: true, DataClass: t.visit.server.Class.data(),
		Freed: !t.tool.ApprovalRequired, Blocked: t.blocked(),
	}
}

// blocked says why nobody may call the tool for now.
func (t remote) blocked() string {
	switch {
	case !t.visit.server.Enabled:
		return "its server is switched off"
	case t.tool.Status == Drifted:
		return "its definition changed since it was reviewed; see it in mcpServers and review it with reviewMcpTool"
	case t.tool.Status == Gone:
		return "its server does not have it any more, or not in a form that can be imported; import the server again"
	}
	return ""
}

// Execute implements tool.Tool. What a server that fails says stays in the log; what its
// tool answers, also that it failed, is its answer (RULES G4).
func (t remote) Execute(ctx context.Context, call tool.Call) (tool.Result, error) {
	if err := t.visit.check(ctx, call.Run); err != nil {
		return t.visit.failed(call.Run, err, tokenUnreachable, "The server of this tool cannot be reached. Nothing was called.")
	}
	if t.visit.live[t.tool.Name] != t.tool.Digest {
		return tool.Fail(tool.TokenChanged, "This tool is not as it was reviewed. It is blocked until an administrator has reviewed it. Nothing was called."), nil
	}
	answer, err := t.visit.room.Connector.Call(ctx, t.visit.reach, t.tool.Name, call.Arguments)
	switch {
	case errors.Is(err, ErrNotSent):
		return t.visit.failed(call.Run, err, tokenUnreachable, "The server of this tool cannot be reached. Nothing was called.")
	case err != nil:
		return t.visit.failed(call.Run, err, tokenUnknown, "The server did not answer this call. Whether it was carried out is not known.")
	case answer.IsError:
		return tool.Fail(tokenFailed, answer.Text), nil
	}
	return tool.OK(answer.Text), nil
}

// visit is one segment's dealings with a server.
type visit struct {
	room   *Room
	server Server

	once  sync.Once
	err   error
	reach Reach
	live  map[string]string // digests of what the server has, by the tools' names
}

// check looks once at what the server has now (RULES G8).
func (v *visit) check(ctx context.Context, run uuid.UUID) error {
	v.once.Do(func() { v.err = v.look(ctx, run) })
	return v.err
}

func (v *visit) look(ctx context.Context, run uuid.UUID) error {
	r := v.room
	server, err := r.Store.MCPServer(ctx, v.server.ID)
	if err != nil {
		return err
	}
	if !server.Enabled {
		return fault.New(fault.Forbidden, "the server is switched off")
	}
	secrets, err := r.Store.MCPSecrets(ctx, server.ID)
	if err != nil {
		return err
	}
	v.reach = Reach{server, secrets}
	listed, err := r.Connector.List(ctx, v.reach)
	if err != nil {
		return err
	}
	tools, err := r.Store.MCPTools(ctx, server.ID)
	if err != nil {
		return err
	}
	fit, _ := judge(server.Name, listed)
	v.live = make(map[string]string, len(fit))
	for _, d := range fit {
		v.live[d.Name] = d.Digest()
	}
	for _, t := range tools {
		status, present := t.beside(fit)
		if err := v.keep(ctx, t, status, present, run); err != nil {
			return err
		}
	}
	return nil
}

// keep stores what became of a tool, for its operator. Somebody who changed it meanwhile
// knows better.
func (v *visit) keep(ctx context.Context, t Tool, status Status, present *Definition, run uuid.UUID) error {
	updates := t.update(status, present)
	if len(updates) == 0 || status == Pinned {
		return nil
	}
	entry := audit.Record(v.room.World, actor.Actor{}, audit.MCPToolChanged).InRun(run).With("tool", t.FullName()).
		With("status", string(status)).With("pinned", t.Digest).With("found", v.live[t.Name])
	_, err := change.One(ctx, v.room.Store, change.Change{Updates: updates, Audit: []audit.Entry{entry}})
	return err
}

// failed is the error that a model may read of a failure that it may not (RULES G4, R20).
func (v *visit) failed(run uuid.UUID, err error, token, text string) (tool.Result, error) {
	v.room.Log.Warn("a remote server failed", slog.String("server", v.server.Name), slog.String("run", run.String()), slog.Any("error", err))
	return tool.Fail(token, text), nil
}
