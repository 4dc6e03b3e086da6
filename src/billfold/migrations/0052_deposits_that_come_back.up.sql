-- A deposit that was written off keeps the place that it had; on the chain again, another may have it.
ALTER TABLE crypto_deposit DROP CONSTRAINT crypto_deposit_chain_tx_hash_log_index_key;
CREATE UNIQUE INDEX crypto_deposit_place ON crypto_deposit (chain, tx_hash, log_index) WHERE status <> 'REORGED';
