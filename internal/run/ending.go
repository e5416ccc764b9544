package run

// Outcome is what a segment ended with (RULES R1).
type Outcome string

// The outcomes.
const (
	OutcomeCompleted                 Outcome = "completed"
	OutcomeAwaitingApproval          Outcome = "awaiting_approval"
	OutcomeAwaitingInput             Outcome = "awaiting_input"
	OutcomeSuspendFailed             Outcome = "suspend_failed"
	OutcomeGuardrailBlocked          Outcome = "guardrail_blocked"
	OutcomeGuardrailApprovalRequired Outcome = "guardrail_approval_required"
	OutcomeFailed                    Outcome = "failed"
	OutcomeCancelled                 Outcome = "cancelled"
	OutcomeRequeued                  Outcome = "requeued"
	OutcomeLeaseLost                 Outcome = "lease_lost"
)

// Reason is why a run ended, stored beside its outcome (RULES R1).
type Reason string

// The reasons.
const (
	ReasonCompleted              Reason = "completed"
	ReasonMaxIterations          Reason = "max_iterations"
	ReasonBudgetExhausted        Reason = "budget_exhausted"
	ReasonPolicyDenied           Reason = "policy_denied"
	ReasonApprovalDenied         Reason = "approval_denied"
	ReasonApprovalExpired        Reason = "approval_expired"
	ReasonProviderFailed         Reason = "provider_failed"
	ReasonCancelled              Reason = "cancelled"
	ReasonRetriesExhausted       Reason = "retries_exhausted"
	ReasonNotRetryable           Reason = "not_retryable"
	ReasonContextTruncated       Reason = "context_truncated"
	ReasonInstructionWithdrawn   Reason = "instruction_withdrawn"
	ReasonSecondApproverRequired Reason = "second_approver_required"
	ReasonSuspendFailed          Reason = "suspend_failed"
	ReasonGuardrailBlocked       Reason = "guardrail_blocked"
	ReasonGuardrailApproval      Reason = "guardrail_approval_required"
)

// Ending is what a reason makes of a run.
type Ending struct {
	Status    Status
	Outcome   Outcome
	Truncated bool
}

// Endings maps every reason to its one status and outcome (RULES R1).
var Endings = map[Reason]Ending{
	ReasonCompleted:              {Completed, OutcomeCompleted, false},
	ReasonMaxIterations:          {Completed, OutcomeCompleted, true},
	ReasonBudgetExhausted:        {Completed, OutcomeCompleted, true},
	ReasonContextTruncated:       {Completed, OutcomeCompleted, true},
	ReasonPolicyDenied:           {Failed, OutcomeFailed, false},
	ReasonApprovalDenied:         {Completed, OutcomeCompleted, false},
	ReasonApprovalExpired:        {Cancelled, OutcomeCancelled, false},
	ReasonProviderFailed:         {Failed, OutcomeFailed, false},
	ReasonCancelled:              {Cancelled, OutcomeCancelled, false},
	ReasonRetriesExhausted:       {Failed, OutcomeLeaseLost, false},
	ReasonNotRetryable:           {Failed, OutcomeLeaseLost, false},
	ReasonInstructionWithdrawn:   {Failed, OutcomeFailed, false},
	ReasonSecondApproverRequired: {Failed, OutcomeFailed, false},
	ReasonSuspendFailed:          {Failed, OutcomeSuspendFailed, false},
	ReasonGuardrailBlocked:       {Failed, OutcomeGuardrailBlocked, false},
	ReasonGuardrailApproval:      {Failed, OutcomeGuardrailApprovalRequired, false},
}
