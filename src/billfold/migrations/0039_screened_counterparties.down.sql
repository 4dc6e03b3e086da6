UPDATE scheduled_job SET kind = 'sanctions.confirmed' WHERE kind = 'sanctions.decided';
DELETE FROM scheduled_job WHERE kind = 'counterparty.screen';
ALTER TABLE sanctions_list DROP COLUMN is_enumerated;
DROP TABLE sanctions_backlog;
DELETE FROM sanctions_hit WHERE subject_kind = 'COUNTERPARTY';
ALTER TABLE sanctions_hit
  DROP CONSTRAINT sanctions_hit_subject_kind_check,
  ADD CONSTRAINT sanctions_hit_subject_kind_check CHECK (subject_kind IN ('APPLICATION', 'RELATED_PARTY', 'CUSTOMER'));
