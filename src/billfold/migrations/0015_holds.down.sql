DELETE FROM hold WHERE status <> 'ACTIVE';
ALTER TABLE hold
  DROP CONSTRAINT hold_placed_check,
  DROP COLUMN placed, DROP COLUMN captured, DROP COLUMN status, DROP COLUMN reason,
  DROP COLUMN created_at, DROP COLUMN updated_at, DROP COLUMN written_no;
DROP SEQUENCE hold_written_no_seq;
