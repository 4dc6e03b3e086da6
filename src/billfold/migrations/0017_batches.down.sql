ALTER TABLE transfer_request DROP COLUMN batch_id;
DROP TABLE batch_row;
DROP TABLE batch;
