-- +goose Up
-- Nothing refers to attachments and no trigger stands on it, so that it can be built
-- anew in goose's transaction: all of this happened, or none.
CREATE TABLE `snippets` (`id` uuid NOT NULL, `name` text NOT NULL, `text` text NOT NULL, `mark` text NOT NULL DEFAULT (''), `revision` integer NOT NULL DEFAULT (0), `editor_id` uuid NOT NULL, `created_at` datetime NOT NULL, `updated_at` datetime NOT NULL, PRIMARY KEY (`id`));
CREATE TABLE `tasks` (`id` uuid NOT NULL, `name` text NOT NULL, `prompt` text NOT NULL, `created_at` datetime NOT NULL, `configuration_id` uuid NOT NULL, PRIMARY KEY (`id`), CONSTRAINT `tasks_configurations_configuration` FOREIGN KEY (`configuration_id`) REFERENCES `configurations` (`id`) ON DELETE RESTRICT);
CREATE INDEX `task_configuration_id` ON `tasks` (`configuration_id`);
ALTER TABLE `configurations` ADD COLUMN `snippet_ids` text NULL;
ALTER TABLE `runs` ADD COLUMN `task_id` uuid NULL;
CREATE TABLE `new_attachments` (`id` uuid NOT NULL, `load_mode` text NOT NULL, `position` integer NOT NULL DEFAULT (0), `created_at` datetime NOT NULL, `skill_id` uuid NOT NULL, `configuration_id` uuid NULL, `task_id` uuid NULL, PRIMARY KEY (`id`), CONSTRAINT `attachments_skills_skill` FOREIGN KEY (`skill_id`) REFERENCES `skills` (`id`) ON DELETE RESTRICT, CONSTRAINT `attachments_configurations_configuration` FOREIGN KEY (`configuration_id`) REFERENCES `configurations` (`id`) ON DELETE CASCADE, CONSTRAINT `attachments_tasks_task` FOREIGN KEY (`task_id`) REFERENCES `tasks` (`id`) ON DELETE CASCADE, CONSTRAINT `attachments_load_mode` CHECK (load_mode IN ('always', 'on_demand')), CONSTRAINT `attachments_offerer` CHECK (task_id IS NULL AND configuration_id IS NOT NULL OR configuration_id IS NULL AND task_id IS NOT NULL), CONSTRAINT `attachments_task_mode` CHECK (task_id IS NULL OR load_mode = 'always'));
INSERT INTO `new_attachments` (`id`, `load_mode`, `position`, `created_at`, `skill_id`, `configuration_id`) SELECT `id`, `load_mode`, `position`, `created_at`, `skill_id`, `configuration_id` FROM `attachments`;
DROP TABLE `attachments`;
ALTER TABLE `new_attachments` RENAME TO `attachments`;
CREATE UNIQUE INDEX `attachment_skill_id_configuration_id` ON `attachments` (`skill_id`, `configuration_id`);
CREATE UNIQUE INDEX `attachment_skill_id_task_id` ON `attachments` (`skill_id`, `task_id`);
CREATE INDEX `attachment_configuration_id_position` ON `attachments` (`configuration_id`, `position`);
CREATE INDEX `attachment_task_id_position` ON `attachments` (`task_id`, `position`);
