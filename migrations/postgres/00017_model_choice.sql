-- +goose Up
ALTER TABLE "configurations" ADD COLUMN "max_output_tokens" bigint NOT NULL DEFAULT 0, ADD COLUMN "price" text NULL, ADD COLUMN "fallbacks" text NULL;
