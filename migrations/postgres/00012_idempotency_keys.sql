-- +goose Up
CREATE TABLE "idempotency_keys" ("id" uuid NOT NULL, "actor_id" uuid NOT NULL, "mutation" text NOT NULL, "input" text NULL, "status" text NOT NULL, "holder" text NOT NULL DEFAULT '', "lease_until" timestamptz NULL, "effect" text NULL, "answer" text NULL, "created_at" timestamptz NOT NULL, "expires_at" timestamptz NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "idempotency_keys_status" CHECK (status = ANY (ARRAY['claimed'::text, 'done'::text, 'answered'::text])));
CREATE INDEX "idempotencykey_expires_at" ON "idempotency_keys" ("expires_at");
