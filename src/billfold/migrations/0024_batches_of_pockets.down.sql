DROP INDEX ach_entry_debit;
DELETE FROM batch_row WHERE (customer_id, batch_id) IN (SELECT customer_id, request_id FROM batch WHERE kind = 'POCKETS');
DELETE FROM batch WHERE kind = 'POCKETS';
ALTER TABLE batch DROP CONSTRAINT batch_kind_check;
ALTER TABLE batch ADD CONSTRAINT batch_kind_check CHECK (kind IN ('TRANSFERS', 'COUNTERPARTIES')) NOT VALID;
