-- Batches of Pockets, another kind: the release before fails to list a batch of it, and leaves it to this one. And the
-- index by which a customer's received ACH debits are listed, outside a transaction, so that nothing waits for it.
-- Outside a transaction

-- squawk-ignore ban-drop-constraint
ALTER TABLE batch DROP CONSTRAINT IF EXISTS batch_kind_check;
ALTER TABLE batch ADD CONSTRAINT batch_kind_check CHECK (kind IN ('TRANSFERS', 'COUNTERPARTIES', 'POCKETS')) NOT VALID;
CREATE INDEX CONCURRENTLY IF NOT EXISTS ach_entry_debit ON ach_entry (customer_id, created_at, written_no)
 WHERE way = 'RECEIVING' AND direction = 'DEBIT';
