-- The key of everything personal about one customer, itself encrypted with the bank's master key. A key that is
-- destroyed leaves its row: what was sealed with it cannot be read again, and no other key takes its place.
CREATE TABLE data_key (
  subject_id   uuid PRIMARY KEY, -- a customer, or who may become one
  wrapped      bytea,
  master_key   text NOT NULL CHECK (length(master_key) BETWEEN 1 AND 2048), -- which one encrypts it
  created_at   timestamptz NOT NULL DEFAULT clock_timestamp(), -- of wall time
  shredded_at  timestamptz, -- of business time
  CHECK ((wrapped IS NULL) = (shredded_at IS NOT NULL))
);
CREATE INDEX data_key_master ON data_key (master_key, subject_id) WHERE wrapped IS NOT NULL;
REVOKE DELETE ON data_key FROM billfold_app;
