-- ACH entries: those that customers originate, those that reach their portals, the house's own
-- micro-deposits; what we answer as receiving bank; and the files both go out in.

CREATE TABLE ach_entry (
  customer_id     uuid NOT NULL,
  ach_id          uuid NOT NULL,
  pocket_id       uuid, -- null: an entry of the house itself
  partner_id      uuid,
  way             text NOT NULL CHECK (way IN ('ORIGINATION', 'RECEIVING')),
  direction       text NOT NULL CHECK (direction IN ('CREDIT', 'DEBIT')),
  status          text NOT NULL CHECK (status IN ('PENDING', 'APPROVED', 'IN_TRANSIT', 'PROCESSED',
                    'REJECTED', 'FAILED', 'CANCELLED')),
  reason          text,
  return_code     text,
  sec_code        text NOT NULL,
  company_name    text NOT NULL,
  description     text NOT NULL,
  lines           text[] NOT NULL DEFAULT '{}',
  amount          bigint NOT NULL CHECK (amount > 0),
  counterparty_id uuid,
  portal_id       uuid,
  routing_number  text NOT NULL, -- of the other bank
  account_number  text NOT NULL, -- there when we originate, ours when we receive
  account_type    text NOT NULL CHECK (account_type IN ('CHECKING', 'SAVINGS')),
  party_name      text NOT NULL,
  identification  text NOT NULL,
  trace_number    text,
  file_id         uuid,
  due_at          timestamptz,
  effective_on    date,
  settles_at      timestamptz,
  settled_at      timestamptz,
  held_until      timestamptz,
  journal_no      bigint, -- in which the money was booked
  reverses_id     uuid,
  times           smallint NOT NULL DEFAULT 0, -- how often it was presented before
  change_code     text,
  corrected       text,
  request         json,
  created_at      timestamptz NOT NULL,
  updated_at      timestamptz NOT NULL,
  PRIMARY KEY (customer_id, ach_id),
  CHECK (way = 'RECEIVING' OR status IN ('PENDING', 'REJECTED', 'CANCELLED') OR due_at IS NOT NULL)
) WITH (fillfactor = 80);
CREATE INDEX ach_entry_list ON ach_entry (customer_id, created_at, ach_id) WHERE way = 'ORIGINATION';
CREATE INDEX ach_entry_waits ON ach_entry (due_at) WHERE status = 'APPROVED' AND file_id IS NULL;
CREATE INDEX ach_entry_review ON ach_entry (created_at) WHERE status = 'PENDING';
CREATE INDEX ach_entry_trace ON ach_entry (trace_number) WHERE trace_number IS NOT NULL;
CREATE INDEX ach_entry_file ON ach_entry (file_id, customer_id, trace_number) WHERE file_id IS NOT NULL;
CREATE UNIQUE INDEX ach_entry_reversed_once ON ach_entry (customer_id, reverses_id) WHERE reverses_id IS NOT NULL AND status NOT IN ('REJECTED', 'CANCELLED');

-- What we send as receiving bank: returns, and returns of returns that do not hold. Moves no money
-- by itself: what it says has been booked, or was never taken.
CREATE TABLE ach_answer (
  answer_id    uuid PRIMARY KEY,
  customer_id  uuid NOT NULL,
  due_at       timestamptz NOT NULL,
  told         json NOT NULL,
  trace_number text,
  file_id      uuid,
  created_at   timestamptz NOT NULL
);
CREATE INDEX ach_answer_waits ON ach_answer (due_at) WHERE file_id IS NULL;
CREATE INDEX ach_answer_file ON ach_answer (file_id) WHERE file_id IS NOT NULL;
CREATE INDEX ach_answer_trace ON ach_answer (trace_number) WHERE trace_number IS NOT NULL;

-- A file of a window, from the moment its entries are numbered until everybody has been told.
CREATE TABLE ach_file (
  file_id     uuid PRIMARY KEY,
  name        text NOT NULL UNIQUE,
  day         date NOT NULL,
  number      int NOT NULL CHECK (number >= 0), -- of the day, from 0
  made_at     timestamptz NOT NULL,
  settles_at  timestamptz,
  settled_at  timestamptz,
  told_at     timestamptz,
  UNIQUE (day, number)
);
CREATE INDEX ach_file_untold ON ach_file (made_at) WHERE told_at IS NULL;

-- The last seven digits of the trace numbers, which begin again after ten million.
CREATE TABLE ach_counter (
  singleton  boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  traces     bigint NOT NULL CHECK (traces >= 0)
);
INSERT INTO ach_counter (traces) VALUES (0);
