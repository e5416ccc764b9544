-- +goose Up
ALTER TABLE `configurations` ADD COLUMN `arrangement` integer NOT NULL DEFAULT 0;
ALTER TABLE `tasks` ADD COLUMN `arrangement` integer NOT NULL DEFAULT 0;
