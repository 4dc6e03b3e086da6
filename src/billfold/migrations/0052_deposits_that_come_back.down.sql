DROP INDEX crypto_deposit_place;
ALTER TABLE crypto_deposit
  ADD CONSTRAINT crypto_deposit_chain_tx_hash_log_index_key UNIQUE (chain, tx_hash, log_index);
