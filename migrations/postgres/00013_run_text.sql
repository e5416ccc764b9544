-- +goose Up
CREATE TABLE "run_texts" ("id" uuid NOT NULL, "owner" text NOT NULL, "part" bigint NOT NULL DEFAULT 0, "round" bigint NOT NULL DEFAULT 0, "text" text NULL, PRIMARY KEY ("id"), CONSTRAINT "run_texts_part" CHECK (part >= 0), CONSTRAINT "run_texts_round" CHECK (round >= 0));
