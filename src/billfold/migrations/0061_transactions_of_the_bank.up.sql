-- What the bank books by itself is little beside payments: found among a million of them without reading those.
-- Payments pay nothing for it.
CREATE INDEX transaction_of_bank ON transaction (customer_id, entry_no, posting_no)
 WHERE type IN ('FEE', 'CREDIT', 'GENERIC');
