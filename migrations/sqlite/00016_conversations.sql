-- +goose Up
ALTER TABLE `runs` ADD COLUMN `conversation_id` uuid NULL;
ALTER TABLE `runs` ADD COLUMN `writes` integer NOT NULL DEFAULT 0;
CREATE TABLE `conversations` (`id` uuid NOT NULL, `title` text NOT NULL DEFAULT (''), `search` text NOT NULL DEFAULT (''), `status` text NOT NULL, `run_id` uuid NULL, `seen` integer NOT NULL DEFAULT (0), `skill_id` uuid NULL, `subject` text NULL, `started` bool NOT NULL DEFAULT (false), `card` text NULL, `input` text NULL, `queue` text NULL, `queued` integer NOT NULL DEFAULT (0), `pinned` bool NOT NULL DEFAULT (false), `archived_at` datetime NULL, `lease_owner` text NOT NULL DEFAULT (''), `lease_until` datetime NULL, `entries` integer NOT NULL DEFAULT (0), `created_at` datetime NOT NULL, `active_at` datetime NOT NULL, `owner_id` uuid NOT NULL, `configuration_id` uuid NOT NULL, PRIMARY KEY (`id`), CONSTRAINT `conversations_users_owner` FOREIGN KEY (`owner_id`) REFERENCES `users` (`id`) ON DELETE RESTRICT, CONSTRAINT `conversations_configurations_configuration` FOREIGN KEY (`configuration_id`) REFERENCES `configurations` (`id`) ON DELETE RESTRICT, CONSTRAINT `conversations_entries` CHECK ("entries" >= 0), CONSTRAINT `conversations_status` CHECK (status IN ('idle', 'queued', 'processing', 'awaiting_approval', 'awaiting_input', 'failed')));
CREATE INDEX `conversation_owner_id_id` ON `conversations` (`owner_id`, `id`);
CREATE INDEX `conversation_status` ON `conversations` (`status`);
CREATE INDEX `conversation_active_at` ON `conversations` (`active_at`);
CREATE INDEX `conversation_configuration_id` ON `conversations` (`configuration_id`);
CREATE TABLE `conversation_entries` (`id` uuid NOT NULL, `sequence` integer NOT NULL, `kind` text NOT NULL, `status` text NOT NULL, `run_id` uuid NULL, `text` text NULL, `data` text NOT NULL, `at` datetime NOT NULL, `conversation_id` uuid NOT NULL, PRIMARY KEY (`id`), CONSTRAINT `conversation_entries_conversations_conversation` FOREIGN KEY (`conversation_id`) REFERENCES `conversations` (`id`) ON DELETE CASCADE, CONSTRAINT `conversation_entries_kind` CHECK (kind IN ('MESSAGE', 'ANSWER', 'PROPOSAL', 'QUESTION', 'OUTCOME', 'NOTICE', 'PROGRESS', 'HIGHLIGHT', 'STATE')), CONSTRAINT `conversation_entries_sequence` CHECK ("sequence" >= 0), CONSTRAINT `conversation_entries_status` CHECK (status IN ('idle', 'queued', 'processing', 'awaiting_approval', 'awaiting_input', 'failed')));
CREATE UNIQUE INDEX `conversationentry_conversation_id_sequence` ON `conversation_entries` (`conversation_id`, `sequence`);
CREATE TABLE `open_points` (`id` uuid NOT NULL, `key` text NOT NULL, `skill_id` uuid NOT NULL, `subject` text NULL, `target_table` text NOT NULL, `target_id` text NOT NULL, `fields` text NOT NULL, `tool` text NOT NULL, `skipped_by` uuid NOT NULL, `conversation_id` uuid NOT NULL, `run_id` uuid NOT NULL, `skipped_at` datetime NOT NULL, `times` integer NOT NULL DEFAULT (0), `closed_at` datetime NULL, `closed_run_id` uuid NULL, `created_at` datetime NOT NULL, PRIMARY KEY (`id`));
CREATE UNIQUE INDEX `open_points_key_key` ON `open_points` (`key`);
CREATE INDEX `openpoint_target_table_target_id` ON `open_points` (`target_table`, `target_id`);
CREATE INDEX `openpoint_skill_id` ON `open_points` (`skill_id`);
-- An entry goes only with its conversation. Its text may be sealed with another key.
-- +goose StatementBegin
CREATE TRIGGER conversation_entries_no_update BEFORE UPDATE OF id, conversation_id, sequence, kind, status, run_id, data, at ON conversation_entries
BEGIN SELECT RAISE(ABORT, 'conversation_entries is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER conversation_entries_no_delete BEFORE DELETE ON conversation_entries WHEN EXISTS (SELECT 1 FROM conversations WHERE id = OLD.conversation_id)
BEGIN SELECT RAISE(ABORT, 'conversation_entries is append-only'); END;
-- +goose StatementEnd
