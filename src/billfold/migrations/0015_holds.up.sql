-- Holds that callers place keep what was asked for and how they ended; those of ACH collections have no status. `amount`
-- is what is kept, or was before the hold ended. Rows written before have no number: no list shows them.
CREATE SEQUENCE hold_written_no_seq;
GRANT USAGE ON SEQUENCE hold_written_no_seq TO billfold_app;
ALTER TABLE hold
  ADD COLUMN placed bigint,
  ADD COLUMN captured bigint,
  ADD COLUMN status text,
  ADD COLUMN reason text,
  ADD COLUMN created_at timestamptz,
  ADD COLUMN updated_at timestamptz,
  ADD COLUMN written_no bigint,
  ADD CONSTRAINT hold_placed_check CHECK (status IS NULL OR (
    status IN ('ACTIVE', 'CAPTURED', 'RELEASED', 'EXPIRED') AND captured BETWEEN 0 AND placed
    AND CASE status WHEN 'CAPTURED' THEN captured = placed ELSE amount + captured = placed END)) NOT VALID;
ALTER TABLE hold ALTER COLUMN written_no SET DEFAULT nextval('hold_written_no_seq');
