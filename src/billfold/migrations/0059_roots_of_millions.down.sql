DROP TABLE document_key_revocation;
REVOKE DELETE ON daily_root_page FROM billfold_app;
DROP TRIGGER daily_root_page_is_purged ON daily_root_page;
DROP FUNCTION refuse_unpurged_page();
DROP TRIGGER daily_root_page_stays ON daily_root_page;
CREATE TRIGGER daily_root_page_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON daily_root_page
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
DROP TABLE daily_root_purge;
ALTER TABLE daily_root_page ALTER COLUMN tiles SET STORAGE EXTENDED;
ALTER TABLE daily_root_page ALTER CONSTRAINT daily_root_page_number_fkey NOT DEFERRABLE;
