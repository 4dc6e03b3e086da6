-- What is the house's own: suspense, the settlement of rails, bills that come from and go to
-- custodians elsewhere.

-- A payment for which no owner was found. It lies on the house's account of kind `suspense`.
CREATE TABLE suspense_item (
  customer_id      uuid NOT NULL, -- the house
  item_id          uuid NOT NULL,
  rail             text NOT NULL CHECK (rail IN ('ACH', 'WIRE')),
  direction        text NOT NULL CHECK (direction IN ('CREDIT', 'DEBIT')),
  amount           bigint NOT NULL CHECK (amount > 0),
  status           text NOT NULL CHECK (status IN ('HELD', 'RETURNED', 'ASSIGNED')),
  reason           text NOT NULL,
  details          json NOT NULL,
  journal_no       bigint NOT NULL,
  held_at          timestamptz NOT NULL,
  ended_at         timestamptz,
  ended_journal_no bigint,
  return_reason    text,
  owner_id         uuid,
  PRIMARY KEY (customer_id, item_id),
  CHECK ((status = 'HELD') = (ended_at IS NULL)),
  CHECK ((ended_at IS NULL) = (ended_journal_no IS NULL)),
  CHECK ((status = 'RETURNED') = (return_reason IS NOT NULL)),
  CHECK ((status = 'ASSIGNED') = (owner_id IS NOT NULL))
);
CREATE INDEX suspense_item_held ON suspense_item (held_at, item_id) WHERE status = 'HELD';

-- What the house has settled with each rail: one row per journal of kind `clearing`.
CREATE TABLE clearing (
  customer_id  uuid NOT NULL, -- the house
  journal_no   bigint NOT NULL,
  rail         text NOT NULL CHECK (rail IN ('ACH', 'WIRE')),
  settles_on   date NOT NULL,
  closed_on    date NOT NULL,
  came_in      bigint NOT NULL CHECK (came_in >= 0),
  went_out     bigint NOT NULL CHECK (went_out >= 0),
  PRIMARY KEY (customer_id, journal_no),
  CHECK (came_in + went_out > 0)
);
CREATE INDEX clearing_date ON clearing (settles_on, rail);

-- Bills that came from a custodian elsewhere, or went to one.
CREATE TABLE security_transfer (
  customer_id          uuid NOT NULL,
  transfer_id          uuid NOT NULL,
  pocket_id            uuid NOT NULL,
  direction            text NOT NULL CHECK (direction IN ('IN', 'OUT')),
  cusip                text NOT NULL,
  units                bigint NOT NULL CHECK (units > 0),
  market_value         bigint NOT NULL CHECK (market_value >= 0),
  status               text NOT NULL CHECK (status IN ('PENDING', 'COMPLETED', 'REJECTED')),
  counterparty_name    text NOT NULL,
  counterparty_account text NOT NULL,
  lots                 json NOT NULL,
  created_at           timestamptz NOT NULL,
  reason               text,
  ended_at             timestamptz,
  PRIMARY KEY (customer_id, transfer_id),
  CHECK ((status = 'REJECTED') = (reason IS NOT NULL)),
  CHECK (direction = 'OUT' OR status = 'COMPLETED')
);
CREATE INDEX security_transfer_list ON security_transfer (created_at, transfer_id);

-- Other kinds of activity cost this index nothing.
CREATE INDEX activity_of_rails ON activity (settles_at) WHERE type IN ('ACH', 'WIRE');
