-- +goose Up
ALTER TABLE `configurations` ADD COLUMN `max_output_tokens` integer NOT NULL DEFAULT (0);
ALTER TABLE `configurations` ADD COLUMN `price` text NULL;
ALTER TABLE `configurations` ADD COLUMN `fallbacks` text NULL;
