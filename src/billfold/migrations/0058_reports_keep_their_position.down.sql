ALTER TABLE report_request DROP COLUMN entries_after, DROP COLUMN entry_no;
