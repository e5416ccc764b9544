package library

import (
	"context"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/tool"
)

// Store is what the room needs kept. Every read returns fault.NotFound for an id
// that is not there; lists are empty then.
type Store interface {
	change.Applier

	Source(ctx context.Context, id uuid.UUID) (Source, error)
	Skill(ctx context.Context, id uuid.UUID) (Skill, error)
	// SkillsOf lists every skill of a source, by identifier.
	SkillsOf(ctx context.Context, sourceID uuid.UUID) ([]Skill, error)
	// Dossiers reads skills with their sources, approvals and revocations in at most
	// three queries, whatever their number; ids that are not there are left out, the
	// order is that of ids.
	Dossiers(ctx context.Context, skillIDs []uuid.UUID) ([]Dossier, error)
	// Offered lists what a configuration offers, by position, then id, in at most
	// four queries.
	Offered(ctx context.Context, configurationID uuid.UUID) ([]Offered, error)
	// OfferedByTask is Offered for a task.
	OfferedByTask(ctx context.Context, taskID uuid.UUID) ([]Offered, error)
	Attachment(ctx context.Context, id uuid.UUID) (Attachment, error)
	Approval(ctx context.Context, id uuid.UUID) (Approval, error)
	Revocation(ctx context.Context, id uuid.UUID) (Revocation, error)
	// Revisions lists the revisions of an authored skill, newest first.
	Revisions(ctx context.Context, skillID uuid.UUID) ([]Revision, error)
	// UsesOf lists what keeps a source from being deleted (RULES S15): approvals and
	// revocations from it or of one of its skills, attachments of its skills, and open runs with a
	// pin on one of them. By kind, then id; at most limit.
	UsesOf(ctx context.Context, sourceID uuid.UUID, limit int) ([]Use, error)

	Provider(ctx context.Context, id uuid.UUID) (Provider, error)
	Configuration(ctx context.Context, id uuid.UUID) (Configuration, error)
	Task(ctx context.Context, id uuid.UUID) (Task, error)
	Snippet(ctx context.Context, id uuid.UUID) (Snippet, error)
	// SnippetsByID reads snippets in the order of ids; those that are not there are left
	// out.
	SnippetsByID(ctx context.Context, ids []uuid.UUID) ([]Snippet, error)

	// ToolSwitches tells the tools whose switch was ever set.
	ToolSwitches(ctx context.Context) (map[string]bool, error)
	// GroupSwitches tells the tool groups whose switch was ever set.
	GroupSwitches(ctx context.Context) (map[tool.Group]bool, error)
	// IntegritySeen reports whether an integrity failure of this skill with these two
	// digests was audited before (RULES D6).
	IntegritySeen(ctx context.Context, skillID uuid.UUID, stored, computed string) (bool, error)

	// Pages of the API's connections, in the order their cursors give.
	Sources(ctx context.Context, page Page) ([]Source, error)
	Skills(ctx context.Context, filter SkillFilter, page Page) ([]Skill, error)
	Configurations(ctx context.Context, page Page) ([]Configuration, error)
	Providers(ctx context.Context, page Page) ([]Provider, error)
	Snippets(ctx context.Context, page Page) ([]Snippet, error)
	Tasks(ctx context.Context, page Page) ([]Task, error)
}

// Page asks for at most Limit rows after (or, backwards, before) the row with an id,
// in the order of creation ids. The zero Cursor starts at the end it reads from.
type Page struct {
	Cursor   uuid.UUID
	Limit    int
	Backward bool
}

// SkillFilter narrows a list of skills; a nil field does not narrow. Whether a
// skill instructs is no column: the use case filters by it.
type SkillFilter struct {
	SourceID *uuid.UUID
	Enabled  *bool
	Orphaned *bool
	Process  *bool
	Search   string
}

// Use is something that names a source or one of its skills.
type Use struct {
	Kind    UseKind
	ID      uuid.UUID // of the approval, revocation, attachment or run
	SkillID uuid.UUID
}

// UseKind says what names it.
type UseKind string

// The kinds of use.
const (
	UsedByApproval   UseKind = "approval"
	UsedByAttachment UseKind = "attachment"
	UsedByRevocation UseKind = "revocation"
	UsedByRun        UseKind = "run"
)
