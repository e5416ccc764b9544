-- +goose Up
ALTER TABLE "configurations" ADD COLUMN "snippet_ids" text NULL;
ALTER TABLE "runs" ADD COLUMN "task_id" uuid NULL;
CREATE TABLE "snippets" ("id" uuid NOT NULL, "name" text NOT NULL, "text" text NOT NULL, "mark" text NOT NULL DEFAULT '', "revision" bigint NOT NULL DEFAULT 0, "editor_id" uuid NOT NULL, "created_at" timestamptz NOT NULL, "updated_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
CREATE TABLE "tasks" ("id" uuid NOT NULL, "name" text NOT NULL, "prompt" text NOT NULL, "created_at" timestamptz NOT NULL, "configuration_id" uuid NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "tasks_configurations_configuration" FOREIGN KEY ("configuration_id") REFERENCES "configurations" ("id") ON UPDATE NO ACTION ON DELETE RESTRICT);
CREATE INDEX "task_configuration_id" ON "tasks" ("configuration_id");
ALTER TABLE "attachments" ADD CONSTRAINT "attachments_offerer" CHECK (((task_id IS NULL) AND (configuration_id IS NOT NULL)) OR ((configuration_id IS NULL) AND (task_id IS NOT NULL))), ADD CONSTRAINT "attachments_task_mode" CHECK ((task_id IS NULL) OR (load_mode = 'always'::text)), ALTER COLUMN "configuration_id" DROP NOT NULL, ADD COLUMN "task_id" uuid NULL, ADD CONSTRAINT "attachments_tasks_task" FOREIGN KEY ("task_id") REFERENCES "tasks" ("id") ON UPDATE NO ACTION ON DELETE CASCADE;
CREATE UNIQUE INDEX "attachment_skill_id_task_id" ON "attachments" ("skill_id", "task_id");
CREATE INDEX "attachment_task_id_position" ON "attachments" ("task_id", "position");
