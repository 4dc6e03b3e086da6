-- Needs a stop: the release before executes a series at once when it is approved there.
-- A transfer request with a schedule is a series: its state, and the last of its days that was taken care of. Each of its runs is a request of its own, one for a day of its rule. Rows that are there have none of these.
-- Outside a transaction

ALTER TABLE transfer_request ADD COLUMN IF NOT EXISTS series_state text;
ALTER TABLE transfer_request ADD COLUMN IF NOT EXISTS handled_through date;
ALTER TABLE transfer_request ADD COLUMN IF NOT EXISTS series_id uuid;
ALTER TABLE transfer_request ADD COLUMN IF NOT EXISTS run_on date;
ALTER TABLE transfer_request DROP CONSTRAINT IF EXISTS transfer_request_series;
ALTER TABLE transfer_request ADD CONSTRAINT transfer_request_series CHECK (
  series_state IN ('ACTIVE', 'PAUSED', 'CANCELLED', 'ENDED') AND (series_id IS NULL)
  AND (series_state = 'ACTIVE' OR status = 'APPROVED')
  OR series_state IS NULL AND handled_through IS NULL
     AND (series_id IS NULL) = (run_on IS NULL)) NOT VALID;
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS transfer_request_run ON transfer_request (customer_id, series_id, run_on)
  WHERE series_id IS NOT NULL;
