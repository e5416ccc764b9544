-- +goose Up
ALTER TABLE "configurations" ADD COLUMN "arrangement" bigint NOT NULL DEFAULT 0;
ALTER TABLE "tasks" ADD COLUMN "arrangement" bigint NOT NULL DEFAULT 0;
