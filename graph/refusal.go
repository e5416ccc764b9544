package graph

import (
	"github.com/google/uuid"

	"github.com/countersign/countersign/graph/model"
	"github.com/countersign/countersign/internal/agent"
	"github.com/countersign/countersign/internal/budget"
	"github.com/countersign/countersign/internal/content"
	"github.com/countersign/countersign/internal/fault"
	"github.com/countersign/countersign/internal/library"
	"github.com/countersign/countersign/internal/remote"
	"github.com/countersign/countersign/internal/skill"
)

// asData splits what a use case says: a refusal of the rules is data of the payload, everything else an error.
func asData(err error) (model.Refusal, error) {
	refused, ok := fault.AsRefusal(err)
	if !ok {
		return nil, err
	}
	return toRefusal(refused), nil
}

// toRefusal gives a refusal the type that carries its detail.
func toRefusal(r *fault.Refused) model.Refusal {
	code, message := refusalCodes.out(r.Code), r.Message
	switch d := r.Detail.(type) {
	case library.StaleVersion:
		s := toSkill(d.Current.Dossier)
		return model.StaleDigestRefusal{Code: code, Message: message, Current: s.Digest, Skill: s, Diff: toDiff(d.Current.Diff)}
	case library.StaleRevision:
		return model.StaleSkillRefusal{Code: code, Message: message, Current: toSkill(d.Current)}
	case library.StaleConfiguration:
		return model.StaleConfigurationRefusal{Code: code, Message: message, Current: toConfiguration(d.Current)}
	case library.StaleSnippet:
		return model.StaleSnippetRefusal{Code: code, Message: message, Current: toSnippet(d.Current)}
	case remote.StaleTool:
		return model.StaleToolRefusal{Code: code, Message: message, Current: toMcpTool(d.Tool)}
	case content.Record:
		return model.StaleRecordRefusal{Code: code, Message: message, Current: toRecord(d)}
	case []skill.Obstacle:
		return model.InvisibleCharactersRefusal{Code: code, Message: message, Obstacles: toObstacles(d)}
	case skill.Standing:
		return model.NotInstructionRefusal{Code: code, Message: message, Reasons: standingReasons.outs(d.Reasons)}
	case library.SyncHolder:
		return model.SyncRunningRefusal{Code: code, Message: message, StartedByID: userKind.maybe(d.ActorID), Until: d.Until}
	case []library.Use:
		return model.InUseRefusal{Code: code, Message: message, Uses: toUses(d)}
	case agent.OpenPredecessor:
		return model.PredecessorOpenRefusal{Code: code, Message: message, Status: runStatuses.out(d.Status)}
	case agent.InConversation:
		return model.DecidedInChatRefusal{Code: code, Message: message, ConversationID: conversationKind.id(d.ID)}
	case budget.Exhausted:
		return model.BudgetExhaustedRefusal{
			Code: code, Message: message, Scope: budgetScopes.out(d.Budget.Scope), Period: budgetPeriods.out(d.Budget.Period),
			Requests: limit(int64(d.Budget.Requests)), Tokens: limit(int64(d.Budget.Tokens)), Cost: limit(d.Budget.Cost), Used: toUse(d.Spent), ResetsAt: d.Resets,
		}
	case agent.ProcessRunning:
		return model.ProcessRunningRefusal{Code: code, Message: message, Process: toPin(d.Pin), Subject: toReference(d.Subject)}
	case agent.Decided:
		return model.AlreadyDecidedRefusal{
			Code: code, Message: message, DecidedByID: userKind.maybe(d.By), DecidedByUUID: d.By,
			Decision: toDecision(d.Approved), DenialReason: denialReasons.maybe(agent.Answer(d.Reason)), At: d.At,
		}
	}
	return model.SimpleRefusal{Code: code, Message: message}
}

// useKinds says what may need an object, and which kind of id names it.
var (
	useKinds = mapping[model.UseKind](library.UsedByApproval, library.UsedByAttachment, library.UsedByRevocation, library.UsedByRun)
	useIDs   = map[library.UseKind]kind{
		library.UsedByApproval: approvalKind, library.UsedByAttachment: attachmentKind,
		library.UsedByRevocation: revocationKind, library.UsedByRun: runKind,
	}
)

func toUses(uses []library.Use) []*model.Use {
	out := make([]*model.Use, len(uses))
	for i, u := range uses {
		out[i] = &model.Use{Kind: useKinds.out(u.Kind), ID: useIDs[u.Kind].id(u.ID), SkillID: skillKind.maybe(u.SkillID)}
	}
	return out
}

func toDecision(approved bool) model.Decision {
	if approved {
		return model.DecisionApprove
	}
	return model.DecisionDeny
}

// unless is the payload's object: none when the rules refused.
func unless[D, N any](refusal model.Refusal, node func(D) *N, d D) *N {
	if refusal != nil {
		return nil
	}
	return node(d)
}

// deleted is the id of what is gone: none when the rules refused.
func deleted(refusal model.Refusal, k kind, row uuid.UUID) *string {
	if refusal != nil {
		return nil
	}
	return k.maybe(row)
}

// given is a text that may be empty, which says that there is none.
func given[T ~string](text T) *string {
	if text == "" {
		return nil
	}
	s := string(text)
	return &s
}

// positive is a count or place that may be zero, which says that there is none.
func positive(n int) *int {
	if n <= 0 {
		return nil
	}
	return &n
}

// text is a text that need not be given.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// number is a number that need not be given.
func number(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}
