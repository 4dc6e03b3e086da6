ALTER TABLE transfer_request DROP COLUMN version;
