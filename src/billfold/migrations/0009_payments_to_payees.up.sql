-- Outside a transaction
-- What was approved for a payee before, so that what is unusual can be shown.
CREATE INDEX CONCURRENTLY IF NOT EXISTS transfer_request_payee ON transfer_request (customer_id, counterparty_id, amount)
 WHERE status = 'APPROVED' AND reason IS NULL AND counterparty_id IS NOT NULL;
