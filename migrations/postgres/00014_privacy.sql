-- +goose Up
ALTER TABLE "runs" ADD CONSTRAINT "runs_privacy_level" CHECK (privacy_level IN ('none', 'metadata', 'redacted', 'full')), ADD COLUMN "privacy_level" text NOT NULL DEFAULT 'metadata';
CREATE TABLE "run_contents" ("id" uuid NOT NULL, "sequence" bigint NOT NULL, "content" text NULL, "run_id" uuid NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "run_contents_runs_run" FOREIGN KEY ("run_id") REFERENCES "runs" ("id") ON UPDATE NO ACTION ON DELETE CASCADE, CONSTRAINT "run_contents_sequence" CHECK (sequence >= 0));
CREATE UNIQUE INDEX "runcontent_run_id_sequence" ON "run_contents" ("run_id", "sequence");
