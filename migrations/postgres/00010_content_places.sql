-- +goose Up
ALTER TABLE "content_records" ADD COLUMN "translation_of" text NULL;
CREATE INDEX "contentrecord_table_name_translation_of" ON "content_records" ("table_name", "translation_of");
ALTER TABLE "content_revisions" ADD COLUMN "parent_id" text NULL, ADD COLUMN "hidden" boolean NULL;
