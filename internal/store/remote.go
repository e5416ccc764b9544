package store

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/countersign/countersign/ent"
	"github.com/countersign/countersign/ent/mcpserver"
	"github.com/countersign/countersign/ent/mcptool"
	"github.com/countersign/countersign/ent/toolswitch"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/remote"
)

// MCPServer implements remote.Store.
func (s *Store) MCPServer(ctx context.Context, id uuid.UUID) (remote.Server, error) {
	row, err := s.client.MCPServer.Get(ctx, id)
	if err != nil {
		return remote.Server{}, reading(ctx, err, "MCP server")
	}
	return toMCPServer(row)
}

// MCPServerNamed implements remote.Store.
func (s *Store) MCPServerNamed(ctx context.Context, name string) (remote.Server, error) {
	row, err := s.client.MCPServer.Query().Where(mcpserver.Name(name)).Only(ctx)
	if err != nil {
		return remote.Server{}, reading(ctx, err, "MCP server")
	}
	return toMCPServer(row)
}

// MCPServers implements remote.Store.
func (s *Store) MCPServers(ctx context.Context, page library.Page) ([]remote.Server, error) {
	p := paged{page.Cursor, page.Limit, page.Backward, false}
	rows, err := s.client.MCPServer.Query().Where(p.on).All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "MCP server")
	}
	out := make([]remote.Server, len(rows))
	for i, row := range in(p, rows) {
		if out[i], err = toMCPServer(row); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// MCPSecrets implements remote.Store.
func (s *Store) MCPSecrets(ctx context.Context, id uuid.UUID) (remote.Secrets, error) {
	row, err := s.client.MCPServer.Get(ctx, id)
	if err != nil {
		return remote.Secrets{}, reading(ctx, err, "MCP server")
	}
	var out remote.Secrets
	for _, c := range []struct {
		column, sealed string
		into           *map[string]string
	}{{"env", row.Env, &out.Env}, {"headers", row.Headers, &out.Headers}} {
		text, err := s.secret(place{"mcp_servers", c.column, row.ID.String()}, c.sealed)
		if err == nil && text != "" {
			err = json.Unmarshal([]byte(text), c.into)
		}
		if err != nil {
			return remote.Secrets{}, fault.Wrap(fault.Internal, err, "the secrets of MCP server %s cannot be read", row.Name)
		}
	}
	return out, nil
}

// toMCPServer leaves the secrets out. Lists that cannot be read are an error: another
// program would be started without its arguments.
func toMCPServer(row *ent.MCPServer) (remote.Server, error) {
	args, err := decoded[[]string](row.Args)
	if err != nil {
		return remote.Server{}, fault.Wrap(fault.Internal, err, "the arguments of MCP server %s cannot be read", row.Name)
	}
	return remote.Server{
		ID: row.ID, Name: row.Name, Transport: remote.Transport(row.Transport), Command: row.Command, Args: args,
		EnvNames: lenient[[]string](row.EnvNames), URL: row.URL, HeaderNames: lenient[[]string](row.HeaderNames), Enabled: row.Enabled,
		Class: remote.Class(row.DataClass), Rejected: lenient[[]remote.Rejected](row.Rejected), Revision: row.Revision,
		CreatedAt: row.CreatedAt.UTC(), ImportedAt: row.ImportedAt.UTC(),
	}, nil
}

// MCPTools implements remote.Store.
func (s *Store) MCPTools(ctx context.Context, servers ...uuid.UUID) ([]remote.Tool, error) {
	query := s.client.MCPTool.Query().WithServer().Order(mcptool.ByServerID(), mcptool.ByName())
	if len(servers) > 0 {
		query = query.Where(mcptool.ServerIDIn(servers...))
	}
	rows, err := query.All(ctx)
	if err != nil {
		return nil, reading(ctx, err, "remote tool")
	}
	out := make([]remote.Tool, 0, len(rows))
	for _, row := range rows {
		if row.Edges.Server == nil { // deleted between the two queries
			continue
		}
		out = append(out, toMCPTool(row))
	}
	return out, nil
}

func toMCPTool(row *ent.MCPTool) remote.Tool {
	t := remote.Tool{
		ID: row.ID, ServerID: row.ServerID, ServerName: row.Edges.Server.Name,
		Definition: remote.Definition{Name: row.Name, Description: row.Description, Schema: json.RawMessage(row.InputSchema)},
		Digest:     row.Digest, Status: remote.Status(row.Status), FoundDigest: row.FoundDigest,
		ApprovalRequired: row.ApprovalRequired, ReviewerID: row.ReviewerID, ReviewedAt: row.ReviewedAt.UTC(),
	}
	if row.FoundDigest != "" {
		t.Found = &remote.Definition{Name: row.Name, Description: row.FoundDescription, Schema: json.RawMessage(row.FoundSchema)}
	}
	return t
}

// SwitchesOf implements remote.Store.
func (s *Store) SwitchesOf(ctx context.Context, names []string) ([]uuid.UUID, error) {
	if len(names) == 0 {
		return nil, nil
	}
	ids, err := s.client.ToolSwitch.Query().Where(toolswitch.NameIn(names...)).IDs(ctx)
	if err != nil {
		return nil, reading(ctx, err, "tool switch")
	}
	return ids, nil
}
