-- The freeze that a proposal ends, by the entry of its owner's audit log that froze it.
ALTER TABLE freeze_proposal ADD COLUMN ends_entry_no bigint CHECK (ends_entry_no IS NULL OR NOT freezes);
