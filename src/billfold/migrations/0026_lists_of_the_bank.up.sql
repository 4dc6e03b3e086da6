-- The newest of all customers for operators, by an index that a cluster has in each shard too.
-- Outside a transaction

CREATE INDEX CONCURRENTLY IF NOT EXISTS customer_of_bank ON customer (opened_at, written_no);
CREATE INDEX CONCURRENTLY IF NOT EXISTS wire_of_bank ON wire (created_at, written_no);
CREATE INDEX CONCURRENTLY IF NOT EXISTS ach_entry_of_bank ON ach_entry (created_at, written_no) WHERE way = 'ORIGINATION';
CREATE INDEX CONCURRENTLY IF NOT EXISTS card_of_bank ON card (created_at, written_no);
