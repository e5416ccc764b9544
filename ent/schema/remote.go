package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/index"

	"github.com/countersign/countersign/internal/remote"
)

// MCPServer is a server whose tools were imported (RULES G8).
type MCPServer struct{ ent.Schema }

// Fields of the table.
func (MCPServer) Fields() []ent.Field {
	return []ent.Field{
		id(),
		must("name", "part of its tools' names"),
		must("transport", "how it is reached"),
		text("command", "stdio: the program"),
		maybe("args", "stdio: JSON list"),
		sealed("env", "JSON object of the variables that the program gets"),
		maybe("env_names", "JSON list, for people"),
		text("url", "streamable_http"),
		sealed("headers", "JSON object of what is sent with every request"),
		maybe("header_names", "JSON list, for people"),
		flag("enabled", "whether its tools may be called"),
		must("data_class", "the most sensitive data that its results may hold (RULES T8)"),
		maybe("rejected", "JSON list of what it has and could not be imported, with reasons"),
		number("revision", "guards concurrent imports; another one is another session"),
		moment("created_at", ""),
		moment("imported_at", "when its tools were last listed"),
	}
}

// Indexes of the table.
func (MCPServer) Indexes() []ent.Index { return []ent.Index{index.Fields("name").Unique()} }

// Annotations of the table.
func (MCPServer) Annotations() []schema.Annotation {
	return table("mcp_servers",
		enum("transport", remote.Stdio, remote.StreamableHTTP),
		enum("data_class", remote.Classes()...),
	)
}

// MCPTool is a tool of such a server: the definition that was reviewed and, when the
// server has another one by now, that one.
type MCPTool struct{ ent.Schema }

// Fields of the table.
func (MCPTool) Fields() []ent.Field {
	return []ent.Field{
		id(),
		ref("server_id", ""),
		must("name", "as the server calls it"),
		text("description", "pinned"),
		must("input_schema", "pinned; the bytes are kept"),
		must("digest", "of the pinned definition"),
		must("status", "pinned, drifted or gone (RULES G8)"),
		text("found_description", "of the server's present definition, when drifted"),
		text("found_schema", "as above"),
		text("found_digest", "as above"),
		flag("approval_required", "false once an operator freed it (RULES C6)"),
		ref("reviewer_id", "who imported or reviewed the pinned definition"),
		moment("reviewed_at", ""),
	}
}

// Edges of the table.
func (MCPTool) Edges() []ent.Edge {
	return []ent.Edge{to("server", MCPServer.Type, "server_id", entsql.Cascade)}
}

// Indexes of the table.
func (MCPTool) Indexes() []ent.Index {
	return []ent.Index{index.Fields("server_id", "name").Unique()}
}

// Annotations of the table.
func (MCPTool) Annotations() []schema.Annotation {
	return table("mcp_tools", enum("status", remote.Pinned, remote.Drifted, remote.Gone))
}
