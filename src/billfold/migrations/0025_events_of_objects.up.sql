-- The object that an event is about, by which events are listed, as by their kind; and what was refused, sealed, with
-- the idempotency key of the request. The release before leaves the new columns null. Outside a transaction, so that
-- nothing waits for the indexes, and because the objects of earlier events are filled in a thousand at a time.
-- Outside a transaction

ALTER TABLE event_sequence ADD COLUMN IF NOT EXISTS object_id uuid;
CREATE INDEX CONCURRENTLY IF NOT EXISTS event_sequence_object ON event_sequence (object_id) WHERE object_id IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS event_sequence_partner_kind
  ON event_sequence (partner_id, kind, partner_sequence) WHERE partner_sequence IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS event_sequence_customer_kind
  ON event_sequence (customer_id, kind, customer_sequence) WHERE customer_sequence IS NOT NULL;

-- The object is named by the first of these ids that a payload has. No line within the statement ends with a semicolon.
DO $$ DECLARE done bigint := 0; upto bigint; BEGIN LOOP
  upto := (SELECT max(global_sequence) FROM (SELECT global_sequence FROM event_sequence WHERE global_sequence > done
                                              ORDER BY global_sequence LIMIT 1000) n)
  ; EXIT WHEN upto IS NULL
  ; UPDATE event_sequence t SET object_id = (coalesce(
           p ->> 'application_id', p ->> 'dispute_id', p ->> 'card_id', p ->> 'ach_id', p ->> 'wire_id',
           p ->> 'reversal_request_id', p ->> 'on_us_id', p ->> 'crypto_transfer_id', p ->> 'hold_id',
           p ->> 'trade_id', p ->> 'series_id', p ->> 'batch_id', p ->> 'portal_id', p ->> 'counterparty_id',
           p ->> 'transfer_request_id', p ->> 'authorization_request_id', p ->> 'member_id', p ->> 'statement_id',
           p ->> 'report_request_id', p ->> 'pocket_id', p ->> 'customer_id'))::uuid
      FROM (SELECT customer_id, event_no, payload AS p FROM event) e
     WHERE e.customer_id = t.customer_id AND e.event_no = t.event_no AND t.object_id IS NULL
       AND t.global_sequence > done AND t.global_sequence <= upto
  ; done := upto; COMMIT; END LOOP; END $$;

ALTER TABLE request_log ADD COLUMN IF NOT EXISTS idempotency_key uuid, ADD COLUMN IF NOT EXISTS refusal bytea;
CREATE INDEX CONCURRENTLY IF NOT EXISTS request_log_of_key ON request_log (tenant_id, idempotency_key, requested_at, id)
  WHERE idempotency_key IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS audit_entry_resource ON audit_entry (customer_id, resource_id, entry_no)
  WHERE resource_id IS NOT NULL;
