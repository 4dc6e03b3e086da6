-- What the rails need: appointments on the business clock, the files that go out and come in,
-- and an account for money whose owner is not found.

-- Things to do at an instant, besides those that a customer's holdings ask for.
CREATE TABLE agenda (
  kind         text NOT NULL,
  object_id    uuid NOT NULL,
  customer_id  uuid,
  at           timestamptz NOT NULL,
  PRIMARY KEY (kind, object_id)
);
CREATE INDEX agenda_at ON agenda (at);

-- A file is kept before anything is done with it: who goes on after a crash needs no folder.
CREATE TABLE rail_file (
  file_id     uuid PRIMARY KEY,
  rail        text NOT NULL CHECK (rail IN ('ACH', 'WIRE')),
  direction   text NOT NULL CHECK (direction IN ('OUT', 'IN')),
  name        text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
  content     bytea NOT NULL,
  sha256      bytea NOT NULL CHECK (length(sha256) = 32),
  state       text NOT NULL CHECK (state IN ('MADE', 'HANDED', 'ARRIVED', 'TAKEN', 'REFUSED')),
  report      json,
  created_at  timestamptz NOT NULL,
  done_at     timestamptz,
  CHECK ((direction = 'OUT') = (state IN ('MADE', 'HANDED'))),
  CHECK ((done_at IS NULL) = (state IN ('MADE', 'ARRIVED')))
);
-- The same content is not taken twice; what was refused may come again when it has been mended.
CREATE UNIQUE INDEX rail_file_arrived_once ON rail_file (rail, sha256) WHERE direction = 'IN' AND state <> 'REFUSED';
CREATE UNIQUE INDEX rail_file_named_once ON rail_file (rail, name) WHERE direction = 'OUT';
CREATE INDEX rail_file_unfinished ON rail_file (rail, direction, created_at) WHERE done_at IS NULL;
CREATE INDEX rail_file_list ON rail_file (created_at, file_id);

ALTER TABLE account DROP CONSTRAINT account_kind_check;
ALTER TABLE account ADD CONSTRAINT account_kind_check CHECK (kind IN ('bank', 'cash', 'lot', 'owed',
  'rail:ach', 'rail:wire', 'rail:card', 'rail:crypto', 'street', 'treasury',
  'on_us', 'fees', 'rounding', 'promotions', 'custodian', 'reserve', 'suspense'));

-- The fields of a counterparty's variant, as they were sent and normalised.
ALTER TABLE counterparty ADD COLUMN details json NOT NULL DEFAULT '{}';
