-- Names that are like one of a sanctions list, until two operators say that they are another's. Whose name it is and
-- why it is like the listed one is sealed. The bank's own audit log proves each row: no customer is told of it.
CREATE TABLE sanctions_hit (
  customer_id  uuid NOT NULL REFERENCES customer, -- the bank itself
  hit_id       uuid PRIMARY KEY, -- derived from whose name it is, the name, the entry and its name
  subject_kind text NOT NULL CHECK (subject_kind IN ('APPLICATION', 'RELATED_PARTY')),
  subject_id   uuid NOT NULL,
  owner_id     uuid NOT NULL, -- the customer, or who may become one
  entry_uid    bigint NOT NULL,
  score        smallint NOT NULL CHECK (score BETWEEN 0 AND 100),
  status       text NOT NULL CHECK (status IN ('OPEN', 'CLEARED', 'CONFIRMED')),
  cleared_by   text[] NOT NULL DEFAULT '{}',
  confirmed_by text,
  content      bytea NOT NULL,
  found_at     timestamptz NOT NULL, -- business time
  decided_at   timestamptz, -- business time
  CHECK (CASE status WHEN 'CLEARED' THEN cardinality(cleared_by) = 2 ELSE cardinality(cleared_by) < 2 END),
  CHECK (cardinality(cleared_by) < 2 OR cleared_by[1] <> cleared_by[2]),
  CHECK ((status = 'CONFIRMED') = (confirmed_by IS NOT NULL)),
  CHECK ((status = 'OPEN') = (decided_at IS NULL))
);
CREATE INDEX sanctions_hit_owner ON sanctions_hit (owner_id) WHERE status <> 'CLEARED';
CREATE INDEX sanctions_hit_open ON sanctions_hit (found_at, hit_id) WHERE status = 'OPEN';
REVOKE DELETE ON sanctions_hit FROM billfold_app;
