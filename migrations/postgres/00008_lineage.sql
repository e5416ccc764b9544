-- +goose Up
ALTER TABLE "runs" ADD COLUMN "subject" text NULL, ADD COLUMN "predecessor_id" uuid NULL;
UPDATE "runs" SET "subject" = (NULLIF("invocation", '')::jsonb -> 'subject')::text;
