-- +goose Up
ALTER TABLE `runs` ADD COLUMN `subject` text NULL;
ALTER TABLE `runs` ADD COLUMN `predecessor_id` uuid NULL;
UPDATE `runs` SET `subject` = json_extract(NULLIF(`invocation`, ''), '$.subject');
