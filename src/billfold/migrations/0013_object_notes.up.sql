-- What integrators attach to objects of customers: their own id, and metadata. Both are sealed with the customer's data
-- key; external_key and terms are blind indexes under that key.
CREATE TABLE object_note (
  customer_id   uuid NOT NULL REFERENCES customer,
  object_id     uuid NOT NULL,
  kind          text NOT NULL CHECK (kind IN ('pocket', 'portal', 'counterparty', 'transfer', 'card')),
  external_id   text,
  external_key  uuid,
  metadata      text,
  terms         bigint[] NOT NULL CHECK (cardinality(terms) <= 50),
  updated_at    timestamptz NOT NULL,
  PRIMARY KEY (customer_id, object_id),
  CHECK ((external_id IS NULL) = (external_key IS NULL))
);
CREATE UNIQUE INDEX object_note_external_id ON object_note (customer_id, external_key) WHERE external_key IS NOT NULL;

GRANT UPDATE ON object_note TO billfold_app;
