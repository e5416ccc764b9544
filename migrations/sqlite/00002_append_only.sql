-- +goose Up
-- What was countersigned, withdrawn, done and recorded stays as it was: the
-- database itself refuses to change it. An event goes only with its run. The store
-- checks at every start that these triggers exist (appendOnly in internal/store).
-- +goose StatementBegin
CREATE TRIGGER approvals_no_update BEFORE UPDATE ON approvals
BEGIN SELECT RAISE(ABORT, 'approvals is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER approvals_no_delete BEFORE DELETE ON approvals
BEGIN SELECT RAISE(ABORT, 'approvals is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER revocations_no_update BEFORE UPDATE ON revocations
BEGIN SELECT RAISE(ABORT, 'revocations is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER revocations_no_delete BEFORE DELETE ON revocations
BEGIN SELECT RAISE(ABORT, 'revocations is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_entries_no_update BEFORE UPDATE ON audit_entries
BEGIN SELECT RAISE(ABORT, 'audit_entries is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER audit_entries_no_delete BEFORE DELETE ON audit_entries
BEGIN SELECT RAISE(ABORT, 'audit_entries is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER run_events_no_update BEFORE UPDATE ON run_events
BEGIN SELECT RAISE(ABORT, 'run_events is append-only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER run_events_no_delete BEFORE DELETE ON run_events WHEN EXISTS (SELECT 1 FROM runs WHERE id = OLD.run_id)
BEGIN SELECT RAISE(ABORT, 'run_events is append-only'); END;
-- +goose StatementEnd
-- The trail is empty and its next index is 0.
INSERT INTO audit_head (id, size) VALUES (1, 0);
