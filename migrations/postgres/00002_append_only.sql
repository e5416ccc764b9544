-- +goose Up
-- What was countersigned, withdrawn, done and recorded stays as it was: the
-- database itself refuses to change it. An event goes only with its run. The store
-- checks at every start that these triggers exist (appendOnly in internal/store).
-- +goose StatementBegin
CREATE FUNCTION immutable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'CS001';
END
$$;
-- +goose StatementEnd
-- +goose StatementBegin
-- Deleting a run deletes its events; by then the run is gone.
CREATE FUNCTION immutable_with_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM runs WHERE id = OLD.run_id) THEN
        RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'CS001';
    END IF;
    RETURN OLD;
END
$$;
-- +goose StatementEnd
CREATE TRIGGER approvals_no_update BEFORE UPDATE ON approvals FOR EACH ROW EXECUTE FUNCTION immutable();
CREATE TRIGGER approvals_no_delete BEFORE DELETE ON approvals FOR EACH ROW EXECUTE FUNCTION immutable();
CREATE TRIGGER approvals_no_truncate BEFORE TRUNCATE ON approvals FOR EACH STATEMENT EXECUTE FUNCTION immutable();
CREATE TRIGGER revocations_no_update BEFORE UPDATE ON revocations FOR EACH ROW EXECUTE FUNCTION immutable();
CREATE TRIGGER revocations_no_delete BEFORE DELETE ON revocations FOR EACH ROW EXECUTE FUNCTION immutable();
CREATE TRIGGER revocations_no_truncate BEFORE TRUNCATE ON revocations FOR EACH STATEMENT EXECUTE FUNCTION immutable();
CREATE TRIGGER audit_entries_no_update BEFORE UPDATE ON audit_entries FOR EACH ROW EXECUTE FUNCTION immutable();
CREATE TRIGGER audit_entries_no_delete BEFORE DELETE ON audit_entries FOR EACH ROW EXECUTE FUNCTION immutable();
CREATE TRIGGER audit_entries_no_truncate BEFORE TRUNCATE ON audit_entries FOR EACH STATEMENT EXECUTE FUNCTION immutable();
CREATE TRIGGER run_events_no_update BEFORE UPDATE ON run_events FOR EACH ROW EXECUTE FUNCTION immutable();
CREATE TRIGGER run_events_no_delete BEFORE DELETE ON run_events FOR EACH ROW EXECUTE FUNCTION immutable_with_run();
CREATE TRIGGER run_events_no_truncate BEFORE TRUNCATE ON run_events FOR EACH STATEMENT EXECUTE FUNCTION immutable();
-- The trail is empty and its next index is 0.
INSERT INTO audit_head (id, size) VALUES (1, 0);
