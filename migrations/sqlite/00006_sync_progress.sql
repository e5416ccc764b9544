-- +goose Up
ALTER TABLE `sources` ADD COLUMN `files_seen` integer NOT NULL DEFAULT 0;
ALTER TABLE `sources` ADD COLUMN `files_done` integer NOT NULL DEFAULT 0;
ALTER TABLE `sources` ADD COLUMN `files_failed` integer NOT NULL DEFAULT 0;
