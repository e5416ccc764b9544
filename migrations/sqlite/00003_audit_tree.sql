-- +goose Up
-- The trail's Merkle tree, the key that signs its checkpoints, and the floor below
-- which entries may be removed (RULES U2, U3).
CREATE TABLE `audit_key` (`id` integer NOT NULL, `verifier` text NOT NULL, `signer` text NOT NULL, PRIMARY KEY (`id`), CONSTRAINT `audit_key_id` CHECK (id = 1));
CREATE TABLE `audit_retention` (`id` integer NOT NULL, `floor` integer NOT NULL, PRIMARY KEY (`id`), CONSTRAINT `audit_retention_floor` CHECK ("floor" >= 0), CONSTRAINT `audit_retention_id` CHECK (id = 1));
CREATE TABLE `audit_tiles` (`id` integer NOT NULL, `hashes` blob NOT NULL, PRIMARY KEY (`id`), CONSTRAINT `audit_tiles_id` CHECK ("id" >= 0));
CREATE TABLE `audit_tree` (`id` integer NOT NULL, `size` integer NOT NULL, `latest` datetime NULL, `disorder` integer NOT NULL, PRIMARY KEY (`id`), CONSTRAINT `audit_tree_id` CHECK (id = 1), CONSTRAINT `audit_tree_size` CHECK ("size" >= 0));
DROP TRIGGER audit_entries_no_delete;
-- +goose StatementBegin
-- An entry goes only below the floor, which was raised before.
CREATE TRIGGER audit_entries_no_delete BEFORE DELETE ON audit_entries WHEN OLD."index" >= (SELECT floor FROM audit_retention)
BEGIN SELECT RAISE(ABORT, 'audit_entries is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
-- A tile grows at its end; what it holds stays.
CREATE TRIGGER audit_tiles_no_update BEFORE UPDATE ON audit_tiles WHEN NEW.id <> OLD.id OR length(NEW.hashes) <= length(OLD.hashes)
    OR substr(NEW.hashes, 1, length(OLD.hashes)) IS NOT OLD.hashes
BEGIN SELECT RAISE(ABORT, 'audit_tiles is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_tiles_no_delete BEFORE DELETE ON audit_tiles
BEGIN SELECT RAISE(ABORT, 'audit_tiles is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_tree_no_update BEFORE UPDATE ON audit_tree WHEN NEW.size < OLD.size
BEGIN SELECT RAISE(ABORT, 'audit_tree is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_tree_no_delete BEFORE DELETE ON audit_tree
BEGIN SELECT RAISE(ABORT, 'audit_tree is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
-- The floor rises, and no higher than the tree, which keeps the hashes of what goes.
CREATE TRIGGER audit_retention_no_update BEFORE UPDATE ON audit_retention WHEN NEW.floor < OLD.floor OR NEW.floor > (SELECT size FROM audit_tree)
BEGIN SELECT RAISE(ABORT, 'audit_retention is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_retention_no_delete BEFORE DELETE ON audit_retention
BEGIN SELECT RAISE(ABORT, 'audit_retention is append-only'); END;
-- +goose StatementEnd
-- No entry is in the tree yet, and none may go.
INSERT INTO audit_tree (id, size, disorder) VALUES (1, 0, 0);
INSERT INTO audit_retention (id, floor) VALUES (1, 0);
