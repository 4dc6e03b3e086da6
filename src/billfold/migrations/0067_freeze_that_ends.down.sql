ALTER TABLE freeze_proposal DROP COLUMN ends_entry_no;
