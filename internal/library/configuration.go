package library

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/tool"
)

// Configuration is what a run runs with: model, prompt, limits. Its attachments are
// rows of their own.
type Configuration struct {
	ID                           uuid.UUID
	Name                         string
	ProviderID                   uuid.UUID
	Model                        string
	ContextWindow                int      // tokens; 0 is unknown
	MaxOutputTokens              int      // of one answer; 0 leaves it to the runtime (RULES B1)
	Price                        *Price   // nil is unknown
	Fallbacks                    []Choice // who is asked when its own model cannot answer, in order (RULES M1)
	SystemPrompt                 string
	AllowedToolGroups            []tool.Group // nil allows all groups
	RequireSecondApprover        bool
	AllowProposalEdits           bool        // whoever approves may change proposed texts first (RULES C8)
	SnippetIDs                   []uuid.UUID // in the order in which they join (RULES N5)
	SnippetsInCallerSystemPrompt bool        // RULES N2
	MaxIterations                int         // 0 leaves it to the settings
	ApprovalExpiryHours          int         // 0 leaves it to the settings
	AllowedUserIDs               []uuid.UUID
	Revision                     int
	Arrangement                  int // counts the changes of what it offers
	CreatedAt                    time.Time
}

// MayUse reports whether the actor may run with the configuration (RULES I6): an
// administrator always, anybody when it names nobody, else those it names.
func (c Configuration) MayUse(a actor.Actor) bool {
	return a.Administrator || len(c.AllowedUserIDs) == 0 || slices.Contains(c.AllowedUserIDs, a.ID)
}
