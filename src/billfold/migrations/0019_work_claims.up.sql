-- Work that one process at a time does, claimed by name. No lock is held while it is done: a claim
-- that is not renewed in time is another's to take. Instants are of wall time.
CREATE TABLE work_claim (
  name     text PRIMARY KEY,
  owner_id uuid NOT NULL,
  until    timestamptz NOT NULL
);
