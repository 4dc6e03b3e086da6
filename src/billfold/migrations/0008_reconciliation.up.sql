-- Days that are reconciled with the statements of others, and the breaks that they left. All rows belong to the bank's own
-- customer.

-- Statements come as files, like those of the rails. Rows that are there satisfy the former condition, which is narrower.
-- The release before writes only rails that both conditions allow.
-- squawk-ignore ban-drop-constraint
ALTER TABLE rail_file DROP CONSTRAINT rail_file_rail_check;
ALTER TABLE rail_file ADD CONSTRAINT rail_file_rail_check CHECK (rail IN ('ACH', 'WIRE', 'CARD', 'CUSTODY', 'STATEMENT')) NOT VALID;

-- Without a file the statement of the day is missing.
CREATE TABLE reconciled_day (
  customer_id    uuid NOT NULL REFERENCES customer,
  day_id         uuid NOT NULL,
  source         text NOT NULL CHECK (source IN ('RESERVE', 'CUSTODIAN', 'DEALER')),
  account        text NOT NULL,
  day            date NOT NULL,
  file_id        uuid REFERENCES rail_file,
  opening        bigint,
  closing        bigint,
  lines          int NOT NULL CHECK (lines >= 0),
  matched        int NOT NULL CHECK (matched BETWEEN 0 AND lines),
  reconciled_at  timestamptz NOT NULL,
  PRIMARY KEY (customer_id, day_id)
);
CREATE UNIQUE INDEX reconciled_day_once ON reconciled_day (customer_id, source, account, day);
CREATE INDEX reconciled_day_list ON reconciled_day (customer_id, day);

-- `stated` and `booked` are cents, of the custodian units of bills.
CREATE TABLE reconciliation_break (
  customer_id  uuid NOT NULL REFERENCES customer,
  break_id     uuid NOT NULL,
  source       text NOT NULL CHECK (source IN ('RESERVE', 'CUSTODIAN', 'DEALER')),
  account      text NOT NULL,
  day          date NOT NULL,
  file_id      uuid,
  cause        text NOT NULL CHECK (cause IN ('NO_STATEMENT', 'UNKNOWN_LINE', 'MISSING_LINE', 'DIFFERENT_AMOUNT',
                 'DIFFERENT_UNITS', 'DIFFERENT_TERMS', 'UNREADABLE_LINE', 'BALANCE')),
  subject      text NOT NULL,
  stated       bigint,
  booked       bigint,
  rail         text,
  reference    text,
  detail       text,
  line_no      int,
  seen_at      timestamptz NOT NULL,
  status       text NOT NULL CHECK (status IN ('OPEN', 'CLOSED')),
  owner        text,
  note         text,
  resolution   text CHECK (resolution IN ('MATCHED', 'EXPLAINED', 'LOSSES', 'INVENTORY')),
  entry_no     bigint,
  closed_at    timestamptz,
  PRIMARY KEY (customer_id, break_id),
  CHECK ((status = 'CLOSED') = (closed_at IS NOT NULL)),
  CHECK ((status = 'CLOSED') = (resolution IS NOT NULL)),
  CHECK ((entry_no IS NOT NULL) = coalesce(resolution IN ('LOSSES', 'INVENTORY'), false))
);
CREATE INDEX reconciliation_break_open ON reconciliation_break (customer_id, source, account, day)
  WHERE status = 'OPEN';
CREATE INDEX reconciliation_break_list ON reconciliation_break (customer_id, status, seen_at, break_id);

GRANT UPDATE ON reconciled_day, reconciliation_break TO billfold_app;
