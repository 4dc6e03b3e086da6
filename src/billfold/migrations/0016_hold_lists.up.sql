-- The holds in force, and the list of those that were placed. Outside a transaction, so that nothing waits for an index.
-- Outside a transaction

CREATE INDEX CONCURRENTLY IF NOT EXISTS hold_until ON hold (customer_id, pocket_id, until)
 WHERE status IS NULL OR status = 'ACTIVE';
CREATE INDEX CONCURRENTLY IF NOT EXISTS hold_placed ON hold (customer_id, pocket_id, created_at, written_no)
 WHERE status IS NOT NULL;
