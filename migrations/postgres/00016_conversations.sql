-- +goose Up
ALTER TABLE "runs" ADD COLUMN "conversation_id" uuid NULL, ADD COLUMN "writes" bigint NOT NULL DEFAULT 0;
CREATE TABLE "open_points" ("id" uuid NOT NULL, "key" text NOT NULL, "skill_id" uuid NOT NULL, "subject" text NULL, "target_table" text NOT NULL, "target_id" text NOT NULL, "fields" text NOT NULL, "tool" text NOT NULL, "skipped_by" uuid NOT NULL, "conversation_id" uuid NOT NULL, "run_id" uuid NOT NULL, "skipped_at" timestamptz NOT NULL, "times" bigint NOT NULL DEFAULT 0, "closed_at" timestamptz NULL, "closed_run_id" uuid NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
CREATE UNIQUE INDEX "open_points_key_key" ON "open_points" ("key");
CREATE INDEX "openpoint_skill_id" ON "open_points" ("skill_id");
CREATE INDEX "openpoint_target_table_target_id" ON "open_points" ("target_table", "target_id");
CREATE TABLE "conversations" ("id" uuid NOT NULL, "title" text NOT NULL DEFAULT '', "search" text NOT NULL DEFAULT '', "status" text NOT NULL, "run_id" uuid NULL, "seen" bigint NOT NULL DEFAULT 0, "skill_id" uuid NULL, "subject" text NULL, "started" boolean NOT NULL DEFAULT false, "card" text NULL, "input" text NULL, "queue" text NULL, "queued" bigint NOT NULL DEFAULT 0, "pinned" boolean NOT NULL DEFAULT false, "archived_at" timestamptz NULL, "lease_owner" text NOT NULL DEFAULT '', "lease_until" timestamptz NULL, "entries" bigint NOT NULL DEFAULT 0, "created_at" timestamptz NOT NULL, "active_at" timestamptz NOT NULL, "owner_id" uuid NOT NULL, "configuration_id" uuid NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "conversations_configurations_configuration" FOREIGN KEY ("configuration_id") REFERENCES "configurations" ("id") ON UPDATE NO ACTION ON DELETE RESTRICT, CONSTRAINT "conversations_users_owner" FOREIGN KEY ("owner_id") REFERENCES "users" ("id") ON UPDATE NO ACTION ON DELETE RESTRICT, CONSTRAINT "conversations_entries" CHECK (entries >= 0), CONSTRAINT "conversations_status" CHECK (status = ANY (ARRAY['idle'::text, 'queued'::text, 'processing'::text, 'awaiting_approval'::text, 'awaiting_input'::text, 'failed'::text])));
CREATE INDEX "conversation_active_at" ON "conversations" ("active_at");
CREATE INDEX "conversation_configuration_id" ON "conversations" ("configuration_id");
CREATE INDEX "conversation_owner_id_id" ON "conversations" ("owner_id", "id");
CREATE INDEX "conversation_status" ON "conversations" ("status");
CREATE TABLE "conversation_entries" ("id" uuid NOT NULL, "sequence" bigint NOT NULL, "kind" text NOT NULL, "status" text NOT NULL, "run_id" uuid NULL, "text" text NULL, "data" text NOT NULL, "at" timestamptz NOT NULL, "conversation_id" uuid NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "conversation_entries_conversations_conversation" FOREIGN KEY ("conversation_id") REFERENCES "conversations" ("id") ON UPDATE NO ACTION ON DELETE CASCADE, CONSTRAINT "conversation_entries_kind" CHECK (kind = ANY (ARRAY['MESSAGE'::text, 'ANSWER'::text, 'PROPOSAL'::text, 'QUESTION'::text, 'OUTCOME'::text, 'NOTICE'::text, 'PROGRESS'::text, 'HIGHLIGHT'::text, 'STATE'::text])), CONSTRAINT "conversation_entries_sequence" CHECK (sequence >= 0), CONSTRAINT "conversation_entries_status" CHECK (status = ANY (ARRAY['idle'::text, 'queued'::text, 'processing'::text, 'awaiting_approval'::text, 'awaiting_input'::text, 'failed'::text])));
CREATE UNIQUE INDEX "conversationentry_conversation_id_sequence" ON "conversation_entries" ("conversation_id", "sequence");
-- An entry goes only with its conversation. Its text may be sealed with another key.
-- +goose StatementBegin
CREATE FUNCTION immutable_with_conversation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM conversations WHERE id = OLD.conversation_id) THEN
        RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'CS001';
    END IF;
    RETURN OLD;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER conversation_entries_no_update BEFORE UPDATE OF id, conversation_id, sequence, kind, status, run_id, data, at ON conversation_entries
    FOR EACH ROW EXECUTE FUNCTION immutable();
CREATE TRIGGER conversation_entries_no_delete BEFORE DELETE ON conversation_entries FOR EACH ROW EXECUTE FUNCTION immutable_with_conversation();
CREATE TRIGGER conversation_entries_no_truncate BEFORE TRUNCATE ON conversation_entries FOR EACH STATEMENT EXECUTE FUNCTION immutable();
