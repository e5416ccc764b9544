package graph

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/remote"
)

func toMcpServer(s remote.Server) *model.McpServer {
	out := &model.McpServer{
		ID: mcpServerKind.id(s.ID), Name: s.Name, Transport: mcpTransports.out(s.Transport), Command: given(s.Command), Args: append([]string{}, s.Args...),
		EnvNames: append([]string{}, s.EnvNames...), URL: given(s.URL), HeaderNames: append([]string{}, s.HeaderNames...), Enabled: s.Enabled,
		DataClass: dataClasses.out(s.Class), Rejected: make([]*model.RejectedMcpTool, len(s.Rejected)), CreatedAt: s.CreatedAt, ImportedAt: s.ImportedAt,
		RowID: s.ID,
	}
	for i, r := range s.Rejected {
		out.Rejected[i] = &model.RejectedMcpTool{Name: r.Name, Reason: r.Reason}
	}
	return out
}

func toMcpTool(t remote.Tool) *model.McpTool {
	_, digest := t.Current()
	out := &model.McpTool{
		Name: t.FullName(), RemoteName: t.Name, Status: mcpToolStatuses.out(t.Status), Definition: toMcpDefinition(t.Definition, t.Digest),
		DefinitionDigest: digest, ApprovalRequired: t.ApprovalRequired, ReviewedAt: t.ReviewedAt, ReviewerID: t.ReviewerID,
	}
	if t.Found != nil {
		out.ChangedDefinition = toMcpDefinition(*t.Found, t.FoundDigest)
	}
	return out
}

func toMcpDefinition(d remote.Definition, digest string) *model.McpToolDefinition {
	return &model.McpToolDefinition{Digest: digest, Description: d.Description, Schema: d.Schema}
}

func mcpServerConnection(w window, read []remote.Server) *model.McpServerConnection {
	c := &model.McpServerConnection{}
	key := func(s remote.Server) uuid.UUID { return s.ID }
	c.Nodes, c.Edges, c.PageInfo = connect(w, oldestFirst(read, key), rowKey(key), toMcpServer,
		func(cursor string, n *model.McpServer) *model.McpServerEdge {
			return &model.McpServerEdge{Cursor: cursor, Node: n}
		})
	return c
}

// mcpImport reads what to import.
func mcpImport(in model.ImportMcpServerInput) (out remote.Import, err error) {
	out = remote.Import{Name: in.Name, Command: in.Command, URL: in.URL, Enabled: in.Enabled}
	if in.Transport != nil {
		out.Transport = mcpTransports.in[*in.Transport]
	}
	if in.DataClass != nil {
		out.Class = dataClasses.in[*in.DataClass]
	}
	if in.Args != nil {
		out.Args = &in.Args
	}
	if out.Env, err = texts("env", in.Env); err != nil {
		return out, err
	}
	out.Headers, err = texts("headers", in.Headers)
	return out, err
}

// texts reads an object of texts; nil when there is none.
func texts(field string, raw json.RawMessage) (map[string]string, error) {
	var out map[string]string
	if len(raw) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fault.New(fault.BadInput, "%s must be an object of texts, such as {\"NAME\": \"value\"}.", field)
	}
	return out, nil
}

// mcpTool reads an imported tool by its full name.
func (r *Resolver) mcpTool(ctx context.Context, name string) (*model.McpTool, error) {
	t, err := r.Remote.ToolNamed(ctx, caller(ctx), name)
	if err != nil {
		return nil, err
	}
	return toMcpTool(t), nil
}
