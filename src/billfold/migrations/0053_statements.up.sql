-- Statements of Pockets: each version once, its file among those that customers download. A later version corrects it.
CREATE TABLE statement (
  customer_id   uuid NOT NULL,
  statement_id  uuid PRIMARY KEY REFERENCES report_file (file_id),
  pocket_id     uuid NOT NULL,
  type          text NOT NULL CHECK (type IN ('BANK', 'BROKERAGE', '1099-INT', '1099-B')),
  key           text NOT NULL CHECK (key ~ '^[0-9]{4}(-(0[1-9]|1[0-2]))?$'),
  version       smallint NOT NULL CHECK (version > 0),
  reason        text,
  opening       bigint,
  closing       bigint,
  entry_no      bigint NOT NULL CHECK (entry_no >= 0),
  created_at    timestamptz NOT NULL,
  written_no    bigint GENERATED ALWAYS AS IDENTITY,
  UNIQUE (customer_id, pocket_id, type, key, version),
  FOREIGN KEY (customer_id, pocket_id) REFERENCES pocket,
  CHECK ((version = 1) = (reason IS NULL)),
  CHECK ((type IN ('BANK', 'BROKERAGE')) = (length(key) = 7)),
  CHECK ((type IN ('BANK', 'BROKERAGE')) = (opening IS NOT NULL AND closing IS NOT NULL))
);
CREATE INDEX statement_created ON statement (customer_id, created_at, written_no);

-- Months of which every statement is made.
CREATE TABLE statement_run (
  key          text PRIMARY KEY CHECK (key ~ '^[0-9]{4}-(0[1-9]|1[0-2])$'),
  finished_at  timestamptz NOT NULL
);
