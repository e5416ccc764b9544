-- +goose Up
ALTER TABLE "configurations" ADD COLUMN "approval_expiry_hours" bigint NOT NULL DEFAULT 0;
ALTER TABLE "runs" ADD COLUMN "expires_at" timestamptz NULL;
CREATE INDEX "run_expires_at" ON "runs" ("expires_at");
ALTER TABLE "runs" DROP CONSTRAINT "runs_termination_reason", ADD CONSTRAINT "runs_termination_reason" CHECK (termination_reason IN ('', 'completed', 'max_iterations', 'budget_exhausted', 'policy_denied', 'approval_denied', 'approval_expired', 'provider_failed', 'cancelled', 'retries_exhausted', 'not_retryable', 'context_truncated', 'instruction_withdrawn', 'second_approver_required', 'suspend_failed', 'guardrail_blocked', 'guardrail_approval_required'));
