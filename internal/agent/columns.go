package agent

import (
	"github.com/google/uuid"

	"github.com/countersign/countersign/internal/change"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/tool"
)

// runsTable and textsTable are what this room changes; events are appended through
// change.Change. Reading goes through Store.
const (
	runsTable  change.Table = "runs"
	textsTable change.Table = "run_texts"
)

var (
	textID    = change.ID(textsTable, "id") // the run's
	textOwner = change.Text[string](textsTable, "owner")
	textPart  = change.Int(textsTable, "part")
	textRound = change.Int(textsTable, "round")
	textSoFar = change.Sealed(textsTable, "text")
)

var (
	runID            = change.ID(runsTable, "id")
	runStatus        = change.Text[run.Status](runsTable, "status")
	runOutcome       = change.Text[run.Outcome](runsTable, "outcome")
	runReason        = change.Text[run.Reason](runsTable, "termination_reason")
	runTruncated     = change.Bool(runsTable, "truncated")
	runMessage       = change.Text[string](runsTable, "message")
	runAnswer        = change.Sealed(runsTable, "answer")
	runInitiator     = change.ID(runsTable, "initiator_id")
	runConfiguration = change.ID(runsTable, "configuration_id")
	runInvocation    = change.JSON[*Invocation](runsTable, "invocation")
	// runInvokedSkill repeats the invocation's skill for the filter runs(skillId).
	runInvokedSkill  = change.ID(runsTable, "invoked_skill_id")
	runSubject       = change.JSON[*tool.Record](runsTable, "subject")
	runPredecessor   = change.ID(runsTable, "predecessor_id")
	runTask          = change.ID(runsTable, "task_id")
	runConversation  = change.ID(runsTable, "conversation_id")
	runForced        = change.JSON[[]uuid.UUID](runsTable, "forced_skill_ids")
	runAllowList     = change.JSON[[]string](runsTable, "skill_allow_list")
	runCallerTools   = change.JSON[[]string](runsTable, "caller_tools")
	runPins          = change.JSON[run.Pins](runsTable, "pins")
	runNotices       = change.JSON[[]run.Notice](runsTable, "notices")
	runProgress      = change.JSON[*tool.Progress](runsTable, "progress")
	runHighlight     = change.JSON[*tool.Record](runsTable, "highlight")
	runMaxIterations = change.Int(runsTable, "max_iterations")
	runSuspension    = change.Int(runsTable, "suspension")
	runTurnDigest    = change.Text[string](runsTable, "turn_digest")
	runRequest       = change.Sealed(runsTable, "request")
	runState         = change.Sealed(runsTable, "state")
	runLastInput     = change.Sealed(runsTable, "last_input")
	runExpiresAt     = change.Time(runsTable, "expires_at")
	runLeaseOwner    = change.Text[string](runsTable, "lease_owner")
	runLeaseUntil    = change.Time(runsTable, "lease_until")
	runAttempts      = change.Int(runsTable, "attempts")
	runNotBefore     = change.Time(runsTable, "not_before")
	runFence         = change.JSON[*Fence](runsTable, "fence")
	runUsage         = change.JSON[Consumption](runsTable, "usage")
	runPrivacy       = change.Text[run.Privacy](runsTable, "privacy_level")
	runWrites        = change.Int(runsTable, "writes")
	runCreatedAt     = change.Time(runsTable, "created_at")
	runStartedAt     = change.Time(runsTable, "started_at")
	runFinishedAt    = change.Time(runsTable, "finished_at")
)
