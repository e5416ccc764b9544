-- +goose Up
ALTER TABLE `configurations` ADD COLUMN `approval_expiry_hours` integer NOT NULL DEFAULT 0;
ALTER TABLE `runs` ADD COLUMN `expires_at` datetime NULL;
CREATE INDEX `run_expires_at` ON `runs` (`expires_at`);
PRAGMA writable_schema = on;
UPDATE sqlite_schema SET sql = replace(sql, 'CONSTRAINT `runs_termination_reason` CHECK (termination_reason IN ('''', ''completed'', ''max_iterations'', ''budget_exhausted'', ''policy_denied'', ''approval_denied'', ''provider_failed'', ''cancelled'', ''retries_exhausted'', ''not_retryable'', ''context_truncated'', ''instruction_withdrawn'', ''second_approver_required'', ''suspend_failed'', ''guardrail_blocked'', ''guardrail_approval_required''))', 'CONSTRAINT `runs_termination_reason` CHECK (termination_reason IN ('''', ''completed'', ''max_iterations'', ''budget_exhausted'', ''policy_denied'', ''approval_denied'', ''approval_expired'', ''provider_failed'', ''cancelled'', ''retries_exhausted'', ''not_retryable'', ''context_truncated'', ''instruction_withdrawn'', ''second_approver_required'', ''suspend_failed'', ''guardrail_blocked'', ''guardrail_approval_required''))') WHERE type = 'table' AND name = 'runs';
PRAGMA writable_schema = reset;
CREATE TABLE reread_schema (id integer);
DROP TABLE reread_schema;
