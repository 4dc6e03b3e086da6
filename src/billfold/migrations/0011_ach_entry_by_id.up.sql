-- A received debit is read by its id alone. Outside a transaction, so that nothing waits for the index.
-- Outside a transaction

CREATE INDEX CONCURRENTLY IF NOT EXISTS ach_entry_id ON ach_entry (ach_id);
