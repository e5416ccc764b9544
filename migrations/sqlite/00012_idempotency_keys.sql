-- +goose Up
CREATE TABLE `idempotency_keys` (`id` uuid NOT NULL, `actor_id` uuid NOT NULL, `mutation` text NOT NULL, `input` text NULL, `status` text NOT NULL, `holder` text NOT NULL DEFAULT (''), `lease_until` datetime NULL, `effect` text NULL, `answer` text NULL, `created_at` datetime NOT NULL, `expires_at` datetime NOT NULL, PRIMARY KEY (`id`), CONSTRAINT `idempotency_keys_status` CHECK (status IN ('claimed', 'done', 'answered')));
CREATE INDEX `idempotencykey_expires_at` ON `idempotency_keys` (`expires_at`);
