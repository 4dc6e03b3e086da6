DELETE FROM batch_row WHERE (customer_id, batch_id) IN (SELECT customer_id, request_id FROM batch WHERE kind <> 'TRANSFERS');
DELETE FROM batch WHERE kind <> 'TRANSFERS';
ALTER TABLE batch_row DROP CONSTRAINT batch_row_amount_check;
ALTER TABLE batch_row ADD CONSTRAINT batch_row_amount_check CHECK (amount > 0);
ALTER TABLE batch DROP CONSTRAINT batch_kind_check;
ALTER TABLE batch ADD CONSTRAINT batch_kind_check CHECK (kind IN ('TRANSFERS'));
