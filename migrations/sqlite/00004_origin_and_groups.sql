-- +goose Up
ALTER TABLE `skills` ADD COLUMN `origin_counter` integer NOT NULL DEFAULT 0;
CREATE TABLE `tool_group_switches` (`id` uuid NOT NULL, `name` text NOT NULL, `enabled` bool NOT NULL DEFAULT (false), PRIMARY KEY (`id`));
CREATE UNIQUE INDEX `toolgroupswitch_name` ON `tool_group_switches` (`name`);
