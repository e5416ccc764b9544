package remote

import "github.com/countersign/countersign/internal/change"

// The tables this room changes. Deleting a server takes its tools with it (ON DELETE
// CASCADE). The switches of its tools are rows of the library's, which go with them, so
// that a later server of the same name begins with everything off.
const (
	serversTable  change.Table = "mcp_servers"
	toolsTable    change.Table = "mcp_tools"
	switchesTable change.Table = "tool_switches"
)

// The columns.
var (
	serverID          = change.ID(serversTable, "id")
	serverName        = change.Text[string](serversTable, "name")
	serverTransport   = change.Text[Transport](serversTable, "transport")
	serverCommand     = change.Text[string](serversTable, "command")
	serverArgs        = change.JSON[[]string](serversTable, "args")
	serverEnv         = change.Sealed(serversTable, "env")
	serverEnvNames    = change.JSON[[]string](serversTable, "env_names")
	serverURL         = change.Text[string](serversTable, "url")
	serverHeaders     = change.Sealed(serversTable, "headers")
	serverHeaderNames = change.JSON[[]string](serversTable, "header_names")
	serverEnabled     = change.Bool(serversTable, "enabled")
	serverClass       = change.Text[Class](serversTable, "data_class")
	serverRejected    = change.JSON[[]Rejected](serversTable, "rejected")
	serverRevision    = change.Int(serversTable, "revision")
	serverCreatedAt   = change.Time(serversTable, "created_at")
	serverImportedAt  = change.Time(serversTable, "imported_at")

	toolID          = change.ID(toolsTable, "id")
	toolServerID    = change.ID(toolsTable, "server_id")
	toolName        = change.Text[string](toolsTable, "name")
	toolDescription = change.Text[string](toolsTable, "description")
	toolSchema      = change.Text[string](toolsTable, "input_schema")
	toolDigest      = change.Text[string](toolsTable, "digest")
	toolStatus      = change.Text[Status](toolsTable, "status")
	toolFoundDescr  = change.Text[string](toolsTable, "found_description")
	toolFoundSchema = change.Text[string](toolsTable, "found_schema")
	toolFoundDigest = change.Text[string](toolsTable, "found_digest")
	toolApproval    = change.Bool(toolsTable, "approval_required")
	toolReviewerID  = change.ID(toolsTable, "reviewer_id")
	toolReviewedAt  = change.Time(toolsTable, "reviewed_at")
)

// found is the server's present definition of a tool that drifted; none without one.
func found(d *Definition) []change.Value {
	if d == nil {
		return []change.Value{toolFoundDescr.To(""), toolFoundSchema.To(""), toolFoundDigest.To("")}
	}
	return []change.Value{toolFoundDescr.To(d.Description), toolFoundSchema.To(string(d.Schema)), toolFoundDigest.To(d.Digest())}
}
