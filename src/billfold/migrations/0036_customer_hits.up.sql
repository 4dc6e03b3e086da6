-- Customers are screened as well, whenever a list is imported.
ALTER TABLE sanctions_hit
  DROP CONSTRAINT sanctions_hit_subject_kind_check,
  ADD CONSTRAINT sanctions_hit_subject_kind_check CHECK (subject_kind IN ('APPLICATION', 'RELATED_PARTY', 'CUSTOMER'));
