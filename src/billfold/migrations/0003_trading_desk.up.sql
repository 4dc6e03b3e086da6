-- The trading desk: orders to dealers, what they executed, and the bank's own inventory of bills. All rows belong to the
-- bank's own customer.

-- A kind of account per dealer: `dealer:<name>`. Rows that are there satisfy the former condition, which is narrower.
-- The release before writes only kinds that both conditions allow.
-- squawk-ignore ban-drop-constraint
ALTER TABLE account DROP CONSTRAINT account_kind_check;
ALTER TABLE account ADD CONSTRAINT account_kind_check CHECK (
  kind IN ('bank', 'cash', 'lot', 'owed', 'rail:ach', 'rail:wire', 'rail:card', 'rail:crypto', 'street', 'treasury',
    'on_us', 'fees', 'rounding', 'promotions', 'custodian', 'reserve', 'suspense', 'losses', 'interchange', 'card_fees',
    'inventory', 'trading_gains')
  OR kind ~ '^dealer:[a-z0-9][a-z0-9-]{0,31}$') NOT VALID;

-- True if the bank met these trades from its inventory, false if a dealer is assumed to have filled them at their price.
ALTER TABLE settlement ADD COLUMN from_inventory boolean NOT NULL DEFAULT false;

-- One row per bank, from its first order on: the number of its last round of orders, and whether it is paused.
CREATE TABLE trading_desk (
  customer_id  uuid PRIMARY KEY REFERENCES customer,
  round_no     bigint NOT NULL CHECK (round_no >= 0),
  paused       boolean NOT NULL,
  reason       text,
  changed_at   timestamptz NOT NULL
);

CREATE TABLE dealer_order (
  customer_id    uuid NOT NULL REFERENCES customer,
  order_id       uuid NOT NULL,
  round_no       bigint NOT NULL,
  cusip          text NOT NULL,
  side           text NOT NULL CHECK (side IN ('BUY', 'SELL')),
  units          bigint NOT NULL CHECK (units > 0),
  filled_units   bigint NOT NULL CHECK (filled_units BETWEEN 0 AND units),
  settles_on     date NOT NULL,
  limit_micros   bigint NOT NULL CHECK (limit_micros > 0),
  mark_micros    bigint NOT NULL CHECK (mark_micros > 0),
  cause          text NOT NULL CHECK (cause IN ('INTERVAL', 'COVER_BY', 'HOUSE_LIMIT')),
  status         text NOT NULL CHECK (status IN ('NEW', 'SENT', 'WORKING', 'PARTIALLY_FILLED', 'FILLED', 'CANCELLED',
                   'REJECTED', 'EXPIRED', 'UNKNOWN')),
  status_reason  text,
  business_date  date NOT NULL,
  decided_at     timestamptz NOT NULL,
  updated_at     timestamptz NOT NULL,
  PRIMARY KEY (customer_id, order_id)
);
CREATE INDEX dealer_order_live ON dealer_order (customer_id, decided_at)
  WHERE status IN ('NEW', 'SENT', 'WORKING', 'PARTIALLY_FILLED', 'UNKNOWN');
CREATE INDEX dealer_order_list ON dealer_order (customer_id, decided_at, order_id);

-- Quotes of dealers for an order, all of them kept.
CREATE TABLE dealer_quote (
  customer_id   uuid NOT NULL,
  quote_id      uuid NOT NULL,
  order_id      uuid NOT NULL,
  dealer        text NOT NULL,
  price_micros  bigint NOT NULL CHECK (price_micros > 0),
  units         bigint NOT NULL CHECK (units > 0),
  quoted_at     timestamptz NOT NULL,
  expires_at    timestamptz NOT NULL,
  PRIMARY KEY (customer_id, quote_id),
  FOREIGN KEY (customer_id, order_id) REFERENCES dealer_order
);
CREATE INDEX dealer_quote_order ON dealer_quote (customer_id, order_id);

-- What dealers executed, never changed. A correction or a bust points at the row it replaces; of a bust only the pointer
-- counts. `entry_no` is the journal entry of the bank that posted it, `reference` the dealer's own id.
CREATE TABLE execution (
  customer_id    uuid NOT NULL,
  execution_id   uuid NOT NULL,
  order_id       uuid NOT NULL,
  dealer         text NOT NULL,
  reference      text NOT NULL,
  kind           text NOT NULL CHECK (kind IN ('FILL', 'CORRECTION', 'BUST')),
  corrects       uuid,
  side           text NOT NULL CHECK (side IN ('BUY', 'SELL')),
  cusip          text NOT NULL,
  units          bigint NOT NULL CHECK (units > 0),
  price_micros   bigint NOT NULL CHECK (price_micros > 0),
  money          bigint NOT NULL CHECK (money > 0),
  settles_on     date NOT NULL,
  executed_at    timestamptz NOT NULL,
  business_date  date NOT NULL,
  recorded_at    timestamptz NOT NULL,
  entry_no       bigint NOT NULL,
  flags          text,
  PRIMARY KEY (customer_id, execution_id),
  FOREIGN KEY (customer_id, order_id) REFERENCES dealer_order,
  FOREIGN KEY (customer_id, corrects) REFERENCES execution,
  CONSTRAINT execution_reference_once UNIQUE (customer_id, dealer, reference),
  CONSTRAINT execution_corrected_once UNIQUE (customer_id, corrects),
  CHECK ((kind = 'FILL') = (corrects IS NULL))
);
CREATE INDEX execution_order ON execution (customer_id, order_id);
CREATE INDEX execution_day ON execution (customer_id, business_date);

-- What each execution moved: bills that the bank received and cents that it owes, negative for sales. A correction moves
-- the execution it replaces back.
CREATE VIEW execution_movement AS
SELECT e.customer_id, e.execution_id, e.entry_no, e.business_date, m.dealer, m.cusip, m.settles_on,
       m.sign * m.units AS units, m.sign * m.money AS money
  FROM execution e
  LEFT JOIN execution o ON o.customer_id = e.customer_id AND o.execution_id = e.corrects
 CROSS JOIN LATERAL (
   SELECT e.dealer, e.cusip, e.settles_on, e.units, e.money, CASE e.side WHEN 'BUY' THEN 1 ELSE -1 END AS sign
    WHERE e.kind <> 'BUST'
   UNION ALL
   SELECT o.dealer, o.cusip, o.settles_on, o.units, o.money, CASE o.side WHEN 'BUY' THEN -1 ELSE 1 END
    WHERE o.execution_id IS NOT NULL) m;

-- What the bank settled with each dealer, per settlement date and bill; signs as in `execution_movement`.
CREATE TABLE dealer_settlement (
  customer_id  uuid NOT NULL,
  entry_no     bigint NOT NULL,
  dealer       text NOT NULL,
  cusip        text NOT NULL,
  settles_on   date NOT NULL,
  closed_on    date NOT NULL,
  units        bigint NOT NULL,
  money        bigint NOT NULL,
  PRIMARY KEY (customer_id, entry_no, dealer, cusip)
);
CREATE INDEX dealer_settlement_date ON dealer_settlement (customer_id, settles_on);

-- The inventory at each close at its mark, and what of it was redeemed; below zero it is what customers hold uncovered.
CREATE TABLE inventory_position (
  customer_id  uuid NOT NULL,
  closed_on    date NOT NULL,
  cusip        text NOT NULL,
  units        bigint NOT NULL,
  mark_micros  bigint NOT NULL CHECK (mark_micros > 0),
  redeemed     bigint NOT NULL,
  PRIMARY KEY (customer_id, closed_on, cusip),
  CHECK (units = 0 OR redeemed = 0)
);

GRANT UPDATE ON dealer_order, trading_desk TO billfold_app;
