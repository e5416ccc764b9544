-- +goose Up
ALTER TABLE `runs` ADD COLUMN `privacy_level` text NOT NULL DEFAULT 'metadata' CONSTRAINT `runs_privacy_level` CHECK (privacy_level IN ('none', 'metadata', 'redacted', 'full'));
CREATE TABLE `run_contents` (`id` uuid NOT NULL, `sequence` integer NOT NULL, `content` text NULL, `run_id` uuid NOT NULL, PRIMARY KEY (`id`), CONSTRAINT `run_contents_runs_run` FOREIGN KEY (`run_id`) REFERENCES `runs` (`id`) ON DELETE CASCADE, CONSTRAINT `run_contents_sequence` CHECK ("sequence" >= 0));
CREATE UNIQUE INDEX `runcontent_run_id_sequence` ON `run_contents` (`run_id`, `sequence`);
