package graph

import (
	"strings"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/access"
	"github.com/countersign/countersign/internal/actor"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/audit"
	"github.com/countersign/countersign/internal/budget"
	"github.com/countersign/countersign/internal/chat"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/notify"
	"github.com/countersign/countersign/internal/prompt"
	"github.com/countersign/countersign/internal/remote"
	"github.com/countersign/countersign/internal/run"
	"github.com/countersign/countersign/internal/skill"
	"github.com/countersign/countersign/internal/tool"
	"github.com/countersign/countersign/internal/wording"
)

// enum maps the values of an enum of the API to the constants of a room and back. There is one way of writing: the constant in upper case, with an
// underscore where a permission has a colon.
type enum[G, D ~string] struct {
	in map[G]D
}

func mapping[G, D ~string](constants ...D) enum[G, D] {
	e := enum[G, D]{in: make(map[G]D, len(constants))}
	for _, d := range constants {
		e.in[e.out(d)] = d
	}
	return e
}

// out is a room's constant as the API writes it.
func (enum[G, D]) out(d D) G { return G(strings.ReplaceAll(strings.ToUpper(string(d)), ":", "_")) }

// maybe is out for a constant that may be empty, which says that there is none.
func (e enum[G, D]) maybe(d D) *G {
	if d == "" {
		return nil
	}
	g := e.out(d)
	return &g
}

// outs is out for a list.
func (e enum[G, D]) outs(ds []D) []G {
	out := make([]G, len(ds))
	for i, d := range ds {
		out[i] = e.out(d)
	}
	return out
}

// optional is the constant behind a value that need not be given.
func (e enum[G, D]) optional(g *G) *D {
	if g == nil {
		return nil
	}
	d := e.in[*g]
	return &d
}

// ins is the constants behind a list.
func (e enum[G, D]) ins(gs []G) []D {
	out := make([]D, len(gs))
	for i, g := range gs {
		out[i] = e.in[g]
	}
	return out
}

// The mappings. A test holds each against the constants that its room declares and the values that the schema has.
var (
	userKinds   = mapping[model.UserKind](actor.Person, actor.ServiceAccount)
	permissions = mapping[model.Permission](actor.Permissions...)
	comparisons = mapping[model.GovernanceComparison](access.Matches, access.Stricter, access.Looser)

	sourceTypes   = mapping[model.SourceType](library.SingleFile, library.Repo, library.Marketplace, library.Authored)
	syncStatuses  = mapping[model.SyncStatus](library.NeverSynced, library.Syncing, library.SyncOK, library.SyncPartial, library.SyncError)
	itemStatuses  = mapping[model.SyncItemStatus](library.ItemLoaded, library.ItemRepaired, library.ItemRejected, library.ItemSkipped, library.ItemUnchanged, library.ItemOrphaned)
	loadModes     = mapping[model.LoadMode](library.Always, library.OnDemand)
	providerKinds = mapping[model.ProviderKind](library.OpenAICompatible, library.Anthropic, library.Scripted)
	trustZones    = mapping[model.TrustZone](library.ZoneLocal, library.ZonePrivateHosted, library.ZoneEUExternal, library.ZoneGlobalExternal)

	trustLevels     = mapping[model.TrustLevel](skill.Untrusted, skill.Community, skill.Verified, skill.FirstParty)
	supportStatuses = mapping[model.SupportStatus](skill.SupportFull, skill.SupportPartial)
	parseStatuses   = mapping[model.ParseStatus](skill.ParseOK, skill.ParseRepaired)
	severities      = mapping[model.Severity](skill.SeverityInfo, skill.SeverityWarning, skill.SeverityHigh)
	standingReasons = mapping[model.StandingReason](skill.ReasonNoApproval, skill.ReasonRevoked, skill.ReasonBelowThreshold, skill.ReasonNotAdmitted,
		skill.ReasonIntegrityFailed, skill.ReasonLegacy, skill.ReasonBundleChanged)
	diffKinds     = mapping[model.DiffLineKind](skill.DiffHeading, skill.DiffContext, skill.DiffAdded, skill.DiffRemoved)
	obstacleCodes = mapping[model.ObstacleCode](skill.ObstacleOrphaned, skill.ObstacleIntegrityFailed, skill.ObstacleLegacy, skill.ObstacleStaleDigest,
		skill.ObstacleProcessUnreadable, skill.ObstacleInvisibleCharacters)

	toolEffects     = mapping[model.ToolEffect](tool.ReadOnly, tool.IdempotentWrite, tool.NonIdempotentWrite)
	mcpTransports   = mapping[model.McpTransport](remote.Stdio, remote.StreamableHTTP)
	mcpToolStatuses = mapping[model.McpToolStatus](remote.Pinned, remote.Drifted, remote.Gone)
	dataClasses     = mapping[model.ToolDataClass](remote.Classes()...)
	completeness    = mapping[model.WriteCompleteness](tool.Complete, tool.Partial)
	privacyLevels   = mapping[model.PrivacyLevel](run.Privacies...)
	messageRoles    = mapping[model.MessageRole](prompt.System, prompt.User, prompt.Assistant)

	runStatuses = mapping[model.RunStatus](run.Statuses...)
	runOutcomes = mapping[model.RunOutcome](run.OutcomeCompleted, run.OutcomeAwaitingApproval, run.OutcomeAwaitingInput, run.OutcomeSuspendFailed,
		run.OutcomeGuardrailBlocked, run.OutcomeGuardrailApprovalRequired, run.OutcomeFailed, run.OutcomeCancelled, run.OutcomeRequeued, run.OutcomeLeaseLost)
	runReasons = mapping[model.TerminationReason](run.ReasonCompleted, run.ReasonMaxIterations, run.ReasonBudgetExhausted, run.ReasonPolicyDenied,
		run.ReasonApprovalDenied, run.ReasonApprovalExpired, run.ReasonProviderFailed, run.ReasonCancelled, run.ReasonRetriesExhausted, run.ReasonNotRetryable,
		run.ReasonContextTruncated, run.ReasonInstructionWithdrawn, run.ReasonSecondApproverRequired, run.ReasonSuspendFailed,
		run.ReasonGuardrailBlocked, run.ReasonGuardrailApproval)
	pinWays     = mapping[model.RunPinWay](run.WayAlways, run.WayInvoked, run.WayForced, run.WayLoaded)
	noticeCodes = mapping[model.RunNoticeCode](run.Notices...)
	eventKinds  = mapping[model.RunEventKind](run.EventStarted, run.EventModelCall, run.EventToolCall, run.EventWrite, run.EventSuspended, run.EventEdited, run.EventDecision,
		run.EventInput, run.EventProgress, run.EventHighlight, run.EventNotice, run.EventSettled)
	conversationStatuses = mapping[model.ConversationStatus](chat.Idle, chat.Queued, chat.Processing, chat.AwaitingApproval, chat.AwaitingInput, chat.Failed)
	conversationKinds    = mapping[model.ConversationEntryKind](chat.KindMessage, chat.KindAnswer, chat.KindProposal, chat.KindQuestion, chat.KindOutcome,
		chat.KindNotice, chat.KindProgress, chat.KindHighlight, chat.KindState)
	cardOutcomes  = mapping[model.CardOutcome](chat.Applied, chat.CheckRecord, chat.NotApplied, chat.AskedVariant, chat.Skipped, chat.Denied, chat.Discarded)
	busyChoices   = mapping[model.WhenBusy](chat.RefuseWhenBusy, chat.QueueWhenBusy)
	cardAnswers   = mapping[model.CardAnswer](agent.Apply, agent.Variant, agent.Skip, agent.Approve, agent.Deny)
	budgetScopes  = mapping[model.BudgetScope](budget.OfUser, budget.OfEveryUser, budget.OfConfiguration)
	budgetPeriods = mapping[model.BudgetPeriod](budget.Day, budget.Month)
	notifyEvents  = mapping[model.NotificationEvent](notify.RunWaiting, notify.RunDecided, notify.RunFailed, notify.RunExpired, notify.Ping)
	notifyStatus  = mapping[model.NotificationDeliveryStatus](notify.Pending, notify.Delivered, notify.GivenUp)
	languages     = mapping[model.Language](wording.Languages...)
	denialReasons = mapping[model.DenialReason](agent.Variant, agent.Skip)

	// What the rules and the trail name is written in the API's way already; the schema is held against their constants.
	refusalCodes = mapping[model.RefusalCode, fault.Code]()
	auditEvents  = mapping[model.AuditEvent, audit.Event]()
)
