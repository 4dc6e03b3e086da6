-- What a partner's customers and programs did, by day, which a worker counts again while the day is new; and the index by
-- which returned debits are counted. Outside a transaction, so that nothing waits for the index.
-- Outside a transaction

CREATE TABLE IF NOT EXISTS partner_day (
  partner_id  uuid NOT NULL REFERENCES partner,
  subject     text NOT NULL CHECK (subject IN ('ACH', 'WIRE', 'CARD', 'DEBITS', 'CUSTODY', 'REQUESTS', 'DELIVERIES')),
  day         date NOT NULL, -- in New York: of business time, of requests and deliveries of wall time
  items       bigint NOT NULL, -- payments, debits, customers, requests, attempts
  cents_in    bigint NOT NULL DEFAULT 0, -- of CUSTODY what is held
  cents_out   bigint NOT NULL DEFAULT 0,
  refused     bigint NOT NULL DEFAULT 0, -- requests with a status of 4xx, attempts that failed
  failed      bigint NOT NULL DEFAULT 0, -- requests with a status of 5xx
  counted_at  timestamptz NOT NULL, -- wall time
  PRIMARY KEY (partner_id, subject, day)
);
GRANT DELETE ON partner_day TO billfold_app;
CREATE INDEX CONCURRENTLY IF NOT EXISTS ach_entry_returned ON ach_entry (partner_id, created_at, return_code)
 WHERE way = 'ORIGINATION' AND direction = 'DEBIT' AND return_code IS NOT NULL;
