-- +goose Up
-- The trail's Merkle tree, the key that signs its checkpoints, and the floor below
-- which entries may be removed (RULES U2, U3).
CREATE TABLE "audit_key" ("id" bigint NOT NULL, "verifier" text NOT NULL, "signer" text NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "audit_key_id" CHECK (id = 1));
CREATE TABLE "audit_retention" ("id" bigint NOT NULL, "floor" bigint NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "audit_retention_floor" CHECK (floor >= 0), CONSTRAINT "audit_retention_id" CHECK (id = 1));
CREATE TABLE "audit_tiles" ("id" bigint NOT NULL, "hashes" bytea NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "audit_tiles_id" CHECK (id >= 0));
CREATE TABLE "audit_tree" ("id" bigint NOT NULL, "size" bigint NOT NULL, "latest" timestamptz NULL, "disorder" bigint NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "audit_tree_id" CHECK (id = 1), CONSTRAINT "audit_tree_size" CHECK (size >= 0));
-- +goose StatementBegin
-- An entry goes only below the floor, which was raised before.
CREATE FUNCTION immutable_above_floor() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD."index" >= (SELECT floor FROM audit_retention) THEN
        RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'CS001';
    END IF;
    RETURN OLD;
END
$$;
-- +goose StatementEnd
-- +goose StatementBegin
-- A tile grows at its end; what it holds stays.
CREATE FUNCTION immutable_beginning() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.id <> OLD.id OR length(NEW.hashes) <= length(OLD.hashes)
        OR substring(NEW.hashes FROM 1 FOR length(OLD.hashes)) <> OLD.hashes THEN
        RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'CS001';
    END IF;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION audit_tree_grows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.size < OLD.size THEN
        RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'CS001';
    END IF;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
-- +goose StatementBegin
-- The floor rises, and no higher than the tree, which keeps the hashes of what goes.
CREATE FUNCTION audit_floor_rises() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.floor < OLD.floor OR NEW.floor > (SELECT size FROM audit_tree) THEN
        RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'CS001';
    END IF;
    RETURN NEW;
END
$$;
-- +goose StatementEnd
DROP TRIGGER audit_entries_no_delete ON audit_entries;
CREATE TRIGGER audit_entries_no_delete BEFORE DELETE ON audit_entries FOR EACH ROW EXECUTE FUNCTION immutable_above_floor();
CREATE TRIGGER audit_tiles_no_update BEFORE UPDATE ON audit_tiles FOR EACH ROW EXECUTE FUNCTION immutable_beginning();
CREATE TRIGGER audit_tiles_no_delete BEFORE DELETE ON audit_tiles FOR EACH ROW EXECUTE FUNCTION immutable();
CREATE TRIGGER audit_tiles_no_truncate BEFORE TRUNCATE ON audit_tiles FOR EACH STATEMENT EXECUTE FUNCTION immutable();
CREATE TRIGGER audit_tree_no_update BEFORE UPDATE ON audit_tree FOR EACH ROW EXECUTE FUNCTION audit_tree_grows();
CREATE TRIGGER audit_tree_no_delete BEFORE DELETE ON audit_tree FOR EACH ROW EXECUTE FUNCTION immutable();
CREATE TRIGGER audit_tree_no_truncate BEFORE TRUNCATE ON audit_tree FOR EACH STATEMENT EXECUTE FUNCTION immutable();
CREATE TRIGGER audit_retention_no_update BEFORE UPDATE ON audit_retention FOR EACH ROW EXECUTE FUNCTION audit_floor_rises();
CREATE TRIGGER audit_retention_no_delete BEFORE DELETE ON audit_retention FOR EACH ROW EXECUTE FUNCTION immutable();
CREATE TRIGGER audit_retention_no_truncate BEFORE TRUNCATE ON audit_retention FOR EACH STATEMENT EXECUTE FUNCTION immutable();
-- No entry is in the tree yet, and none may go.
INSERT INTO audit_tree (id, size, disorder) VALUES (1, 0, 0);
INSERT INTO audit_retention (id, floor) VALUES (1, 0);
