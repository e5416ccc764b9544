-- +goose Up
ALTER TABLE "sources" ADD COLUMN "files_seen" bigint NOT NULL DEFAULT 0, ADD COLUMN "files_done" bigint NOT NULL DEFAULT 0, ADD COLUMN "files_failed" bigint NOT NULL DEFAULT 0;
