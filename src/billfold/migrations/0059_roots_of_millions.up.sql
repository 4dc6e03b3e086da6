-- Pages are kept while they are made, before their root. Hashes are not tried to be compressed.
ALTER TABLE daily_root_page ALTER CONSTRAINT daily_root_page_number_fkey DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE daily_root_page ALTER COLUMN tiles SET STORAGE EXTERNAL;

-- Roots whose pages are no longer kept: their proofs were given out, the signed roots stay.
CREATE TABLE daily_root_purge (
  number     int PRIMARY KEY REFERENCES daily_root,
  purged_at  timestamptz NOT NULL
);
CREATE TRIGGER daily_root_purge_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON daily_root_purge
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
REVOKE UPDATE, DELETE ON daily_root_purge FROM billfold_app;

DROP TRIGGER daily_root_page_stays ON daily_root_page;
CREATE TRIGGER daily_root_page_stays BEFORE UPDATE OR TRUNCATE ON daily_root_page
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE FUNCTION refuse_unpurged_page() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM daily_root_purge WHERE number = OLD.number) THEN
    RAISE EXCEPTION 'pages of root % are kept', OLD.number USING ERRCODE = 'insufficient_privilege';
  END IF;
  RETURN OLD;
END $$;
CREATE TRIGGER daily_root_page_is_purged BEFORE DELETE ON daily_root_page
  FOR EACH ROW EXECUTE FUNCTION refuse_unpurged_page();
GRANT DELETE ON daily_root_page TO billfold_app;

-- Keys that sign nothing from an instant of the business clock on: what was made with one later is not the bank's.
CREATE TABLE document_key_revocation (
  key_id      text PRIMARY KEY REFERENCES document_key (key_id),
  revoked_at  timestamptz NOT NULL,
  recorded_at timestamptz NOT NULL,
  reason      text NOT NULL CHECK (length(reason) BETWEEN 1 AND 500)
);
CREATE TRIGGER document_key_revocation_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON document_key_revocation
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
REVOKE UPDATE, DELETE ON document_key_revocation FROM billfold_app;
