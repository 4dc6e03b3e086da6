-- The list of on-us transfers of a customer; notes of customers, applications and card orders; the directories of
-- routing numbers that operators import. Outside a transaction, so that nothing waits for the index.
-- Outside a transaction

CREATE INDEX CONCURRENTLY IF NOT EXISTS transfer_list ON transfer (customer_id, created_at, transfer_id);
-- squawk-ignore ban-drop-constraint
ALTER TABLE object_note DROP CONSTRAINT IF EXISTS object_note_kind_check;
-- squawk-ignore ban-drop-constraint
ALTER TABLE object_note DROP CONSTRAINT IF EXISTS object_note_kinds;
ALTER TABLE object_note ADD CONSTRAINT object_note_kinds CHECK (kind IN ('pocket', 'portal', 'counterparty',
  'transfer', 'card', 'card_order', 'customer', 'application')) NOT VALID;
CREATE TABLE IF NOT EXISTS routing_directory (
  rail            text NOT NULL CHECK (rail IN ('ACH', 'WIRE')),
  routing_number  text NOT NULL CHECK (routing_number ~ '^[0-9]{9}$'),
  name            text NOT NULL,
  city            text,
  state           text,
  takes_payments  boolean NOT NULL,
  replaced_by     text,
  revised_on      date,
  PRIMARY KEY (routing_number, rail)
);
GRANT DELETE ON routing_directory TO billfold_app;
