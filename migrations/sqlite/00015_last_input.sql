-- +goose Up
ALTER TABLE `runs` ADD COLUMN `last_input` text NULL;
