package remote

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/fault"
)

// Import is the input of Room.Import. Of a server that is known, what is left out stays;
// secrets stay only while what they are sent to stays.
type Import struct {
	Name      string
	Transport Transport         // empty: as it was, else from Command or URL
	Command   *string           // the program
	Args      *[]string         // nil: as they were, if Command was
	Env       map[string]string // nil: as it was, if Command was
	URL       *string
	Headers   map[string]string // nil: as they were, if the address's host was
	Enabled   *bool
	Class     Class // empty: as it was, else secret_adjacent
}

// Import connects to a server, lists its tools and keeps their definitions. Tools that
// are new are off; one whose definition is another than the pinned one is blocked until
// somebody reviews it; one that is gone is blocked until it comes back (RULES G1, G8).
// To import a known server again is to look at it again. Administrators only; audited.
func (r *Room) Import(ctx context.Context, by actor.Actor, in Import) (Server, error) {
	if err := needAdministrator(by); err != nil {
		return Server{}, err
	}
	for range attempts {
		was, known, err := r.known(ctx, in.Name)
		if err != nil {
			return Server{}, err
		}
		now, err := r.merged(ctx, was, known, in)
		if err != nil {
			return Server{}, err
		}
		made, err := r.imported(ctx, by, was, known, now)
		if err != nil {
			return Server{}, err
		}
		out, err := change.One(ctx, r.Store, made)
		if err != nil {
			return Server{}, err
		}
		if out.Applied {
			r.Connector.Forget(now.ID)
			return r.Store.MCPServer(ctx, now.ID)
		}
	}
	return Server{}, fault.New(fault.Unavailable, "Others keep importing this server; try again.")
}

// known reads the server that has a name already.
func (r *Room) known(ctx context.Context, name string) (Reach, bool, error) {
	s, err := r.Store.MCPServerNamed(ctx, name)
	if fault.Is(err, fault.NotFound) {
		return Reach{}, false, nil
	}
	if err != nil {
		return Reach{}, false, err
	}
	secrets, err := r.Store.MCPSecrets(ctx, s.ID)
	return Reach{s, secrets}, true, err
}

// merged is the server as the input wants it.
func (r *Room) merged(ctx context.Context, was Reach, known bool, in Import) (Reach, error) {
	now := was
	now.ImportedAt = r.World.Now()
	if !known {
		all, err := r.Store.MCPServers(ctx, allServers)
		if err != nil {
			return now, err
		}
		if len(all) >= maxServers {
			return now, fault.New(fault.BadInput, "There are %d servers already; delete one first.", maxServers)
		}
		now = Reach{Server: Server{ID: r.World.NewID(), Name: in.Name, Enabled: true, Class: SecretAdjacent, CreatedAt: now.ImportedAt, ImportedAt: now.ImportedAt}}
	}
	if in.Transport == "" && !known && in.Command != nil {
		in.Transport = Stdio
	}
	if in.Transport == "" && !known && in.URL != nil {
		in.Transport = StreamableHTTP
	}
	if in.Transport != "" && in.Transport != now.Transport {
		now.Transport, now.Command, now.Args, now.URL, now.Secrets = in.Transport, "", nil, "", Secrets{}
	}
	if in.Command != nil && *in.Command != now.Command {
		now.Command, now.Args, now.Env = *in.Command, nil, nil
	}
	if in.Args != nil {
		now.Args = *in.Args
	}
	if in.Env != nil {
		now.Env = in.Env
	}
	if in.URL != nil {
		if origin(*in.URL) != origin(now.URL) {
			now.Headers = nil
		}
		now.URL = *in.URL
	}
	if in.Headers != nil {
		now.Headers = in.Headers
	}
	if in.Enabled != nil {
		now.Enabled = *in.Enabled
	}
	if in.Class != "" {
		now.Class = in.Class
	}
	now.Revision++
	now.EnvNames, now.HeaderNames = slices.Sorted(maps.Keys(now.Env)), slices.Sorted(maps.Keys(now.Headers))
	return now, r.check(now)
}

// origin is what secrets are sent to.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + strings.ToLower(u.Host)
}

var (
	serverNames   = regexp.MustCompile(`^[a-z0-9-]+(_[a-z0-9-]+)*$`)
	variableNames = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	headerNames   = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

const (
	maxServerName = 32
	maxText       = 4 << 10 // bytes of a command, an argument, an address or a secret
	maxList       = 64      // arguments, variables or headers
)

// check refuses settings with which no server could be reached.
func (r *Room) check(s Reach) error {
	bad := func(format string, args ...any) error { return fault.New(fault.BadInput, format, args...) }
	long := func(text string) bool { return len(text) > maxText || strings.ContainsRune(text, 0) }
	switch {
	case len(s.Name) > maxServerName || !serverNames.MatchString(s.Name):
		return bad("name must be 1 to %d of a-z, 0-9, - and single _ between them: it becomes part of the tools' names.", maxServerName)
	case s.Transport != Stdio && s.Transport != StreamableHTTP:
		return bad("transport must be stdio (with command) or streamable_http (with url).")
	case s.Transport == Stdio && (s.Command == "" || s.URL != "" || len(s.Headers) > 0):
		return bad("A server over stdio needs command and takes neither url nor headers.")
	case s.Transport == StreamableHTTP && (s.URL == "" || s.Command != "" || len(s.Args) > 0 || len(s.Env) > 0):
		return bad("A server over streamable_http needs url and takes neither command, args nor env.")
	case long(s.Command) || long(s.URL) || slices.ContainsFunc(s.Args, long):
		return bad("command, args and url must be at most %d bytes each, without NUL.", maxText)
	case len(s.Args) > maxList || len(s.Env) > maxList || len(s.Headers) > maxList:
		return bad("At most %d arguments, variables or headers are accepted.", maxList)
	case !slices.Contains(Classes(), s.Class):
		return bad("dataClass must be one of %v.", Classes())
	}
	for name, value := range s.Env {
		if !variableNames.MatchString(name) || long(name) || long(value) {
			return bad("env: %s must be a variable's name with a text of at most %d bytes.", clip(name), maxText)
		}
	}
	for name, value := range s.Headers {
		if !headerNames.MatchString(name) || long(name) || long(value) || strings.ContainsAny(value, "\r\n") {
			return bad("headers: %s must be a header's name with one line of at most %d bytes.", clip(name), maxText)
		}
	}
	return r.Connector.Check(s)
}

// imported is the change that keeps what a server lists. A server that is switched off is
// not asked.
func (r *Room) imported(ctx context.Context, by actor.Actor, was Reach, known bool, now Reach) (change.Change, error) {
	entry := audit.Record(r.World, by, audit.MCPServerImported).With("server", now.Name).With("transport", string(now.Transport)).
		With("command", now.Command).With("url", now.URL).With("enabled", now.Enabled).With("dataClass", string(now.Class)).
		With("env", now.EnvNames).With("headers", now.HeaderNames)
	var c change.Change
	if now.Enabled {
		listed, err := r.probe(ctx, now)
		if err != nil {
			return c, err
		}
		fit, rejected := judge(now.Name, listed)
		now.Rejected = rejected
		compared, err := r.compared(ctx, by, now.Server, fit)
		if err != nil {
			return c, err
		}
		c = compared.change
		entry = entry.With("added", compared.added).With("changed", compared.drifted).With("gone", compared.gone).With("rejected", len(rejected))
	}
	if known && elsewhere(was, now) {
		if err := r.distrust(ctx, &c, now.Server); err != nil {
			return c, err
		}
	}
	row, err := serverRow(now)
	if err != nil {
		return c, err
	}
	if known {
		c.Updates = append(c.Updates, change.Update{Table: serversTable, ID: now.ID, If: []change.Value{serverRevision.Is(was.Revision)}, Set: row})
	} else {
		row = append(row, serverID.To(now.ID), serverName.To(now.Name), serverCreatedAt.To(now.CreatedAt))
		c.Inserts = append([]change.Insert{{Table: serversTable, Row: row}}, c.Inserts...)
	}
	c.Audit = append(c.Audit, entry)
	return c, nil
}

// probe lists what a server has, or says why that did not work.
func (r *Room) probe(ctx context.Context, s Reach) ([]Definition, error) {
	listed, err := r.Connector.Probe(ctx, s)
	if err != nil {
		return nil, fault.Refuse(fault.ServerUnreachable, "The server %s does not answer as an MCP server: %s", s.Name, clip(err.Error()))
	}
	if len(listed) > maxTools {
		return nil, fault.Refuse(fault.TooManyTools, "The server %s lists %d tools, and %d are accepted; let it offer fewer.", s.Name, len(listed), maxTools)
	}
	return listed, nil
}

// elsewhere reports whether what answers may be somebody else than before.
func elsewhere(was, now Reach) bool {
	return was.Transport != now.Transport || was.Command != now.Command || !slices.Equal(was.Args, now.Args) || origin(was.URL) != origin(now.URL)
}

// distrust lets every tool of a server begin again: off, and with an approval.
func (r *Room) distrust(ctx context.Context, c *change.Change, s Server) error {
	tools, err := r.Store.MCPTools(ctx, s.ID)
	if err != nil {
		return err
	}
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.FullName()
		at := slices.IndexFunc(c.Updates, func(u change.Update) bool { return u.Table == toolsTable && u.ID == t.ID })
		if at < 0 {
			c.Updates = append(c.Updates, change.Update{Table: toolsTable, ID: t.ID})
			at = len(c.Updates) - 1
		}
		c.Updates[at].Set = append(c.Updates[at].Set, toolApproval.To(true))
	}
	return r.switchOff(ctx, c, names)
}

// switchOff forgets the switches of these tools.
func (r *Room) switchOff(ctx context.Context, c *change.Change, names []string) error {
	rows, err := r.Store.SwitchesOf(ctx, names)
	for _, row := range rows {
		c.Deletes = append(c.Deletes, change.Delete{Table: switchesTable, ID: row})
	}
	return err
}

// serverRow is everything of a server that an import sets.
func serverRow(s Reach) ([]change.Value, error) {
	env, err := secret(s.Env)
	if err != nil {
		return nil, err
	}
	headers, err := secret(s.Headers)
	if err != nil {
		return nil, err
	}
	return []change.Value{
		serverTransport.To(s.Transport), serverCommand.To(s.Command), serverArgs.To(s.Args), serverEnv.To(env), serverEnvNames.To(s.EnvNames),
		serverURL.To(s.URL), serverHeaders.To(headers), serverHeaderNames.To(s.HeaderNames), serverEnabled.To(s.Enabled), serverClass.To(s.Class),
		serverRejected.To(s.Rejected), serverRevision.To(s.Revision), serverImportedAt.To(s.ImportedAt),
	}, nil
}

// secret is a set of secrets as it is sealed; the empty text when there are none.
func secret(of map[string]string) (string, error) {
	if len(of) == 0 {
		return "", nil
	}
	b, err := json.Marshal(of)
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "storing the secrets of a server")
	}
	return string(b), nil
}

// Delete removes a server with its tools and their switches. Administrators only;
// audited.
func (r *Room) Delete(ctx context.Context, by actor.Actor, id uuid.UUID) error {
	if err := needAdministrator(by); err != nil {
		return err
	}
	for range attempts {
		s, err := r.Store.MCPServer(ctx, id)
		if err != nil {
			return err
		}
		tools, err := r.Store.MCPTools(ctx, id)
		if err != nil {
			return err
		}
		names := make([]string, len(tools))
		for i, t := range tools {
			names[i] = t.FullName()
		}
		c := change.Change{
			Deletes: []change.Delete{{Table: serversTable, ID: id, If: []change.Value{serverRevision.Is(s.Revision)}}},
			Audit:   []audit.Entry{audit.Record(r.World, by, audit.MCPServerDeleted).With("server", s.Name).With("tools", len(tools))},
		}
		if err := r.switchOff(ctx, &c, names); err != nil {
			return err
		}
		out, err := change.One(ctx, r.Store, c)
		if err != nil {
			return err
		}
		if out.Applied {
			r.Connector.Forget(id)
			return nil
		}
	}
	return fault.New(fault.Unavailable, "Others keep changing this server; try again.")
}
