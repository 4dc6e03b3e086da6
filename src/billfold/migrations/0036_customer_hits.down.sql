DELETE FROM scheduled_job WHERE kind = 'sanctions.screen';
DELETE FROM sanctions_hit WHERE subject_kind = 'CUSTOMER';
ALTER TABLE sanctions_hit
  DROP CONSTRAINT sanctions_hit_subject_kind_check,
  ADD CONSTRAINT sanctions_hit_subject_kind_check CHECK (subject_kind IN ('APPLICATION', 'RELATED_PARTY'));
