-- Needs a stop: the release before settles with dealers by date, what this one settles when it is confirmed.
-- Settlement with the custodian: what it is told to receive and deliver, what it confirms, and what of that differs. All
-- rows belong to the bank's own customer.

-- What matured and the custodian has not paid yet: `redemptions`. Rows that are there satisfy the former condition, which
-- is narrower. The release before writes only kinds that both conditions allow.
-- squawk-ignore ban-drop-constraint
ALTER TABLE account DROP CONSTRAINT account_kind_check;
ALTER TABLE account ADD CONSTRAINT account_kind_check CHECK (
  kind IN ('bank', 'cash', 'lot', 'owed', 'rail:ach', 'rail:wire', 'rail:card', 'rail:crypto', 'street', 'treasury',
    'on_us', 'fees', 'rounding', 'promotions', 'custodian', 'reserve', 'suspense', 'losses', 'interchange', 'card_fees',
    'inventory', 'trading_gains', 'redemptions')
  OR kind ~ '^dealer:[a-z0-9][a-z0-9-]{0,31}$') NOT VALID;

-- Messages of the custodian come as files, like those of the rails. The same holds for this condition.
-- squawk-ignore ban-drop-constraint
ALTER TABLE rail_file DROP CONSTRAINT rail_file_rail_check;
ALTER TABLE rail_file ADD CONSTRAINT rail_file_rail_check CHECK (rail IN ('ACH', 'WIRE', 'CARD', 'CUSTODY')) NOT VALID;

-- Units to receive and cents to pay, negative for sales and redemptions. `counterparty` is the kind of the account that
-- it settles. A redemption is expected and never sent; its units are known at the close of the maturity date.
-- `withdrawn`: its execution was corrected or busted, and what of it settles all the same is sent back.
CREATE TABLE settlement_instruction (
  customer_id     uuid NOT NULL REFERENCES customer,
  instruction_id  uuid NOT NULL,
  execution_id    uuid,
  counterparty    text NOT NULL,
  cusip           text NOT NULL,
  units           bigint NOT NULL,
  money           bigint NOT NULL,
  settles_on      date NOT NULL,
  status          text NOT NULL CHECK (status IN ('NEW', 'SENT', 'MATCHED', 'PENDING', 'FAILING', 'REJECTED',
                    'CANCELLING', 'CANCELLED', 'SETTLED')),
  status_reason   text,
  attempt         int NOT NULL CHECK (attempt BETWEEN 0 AND 999),
  withdrawn       boolean NOT NULL,
  settled_units   bigint NOT NULL,
  settled_money   bigint NOT NULL,
  created_at      timestamptz NOT NULL,
  updated_at      timestamptz NOT NULL,
  PRIMARY KEY (customer_id, instruction_id),
  CHECK (units::numeric * money >= 0 AND settled_units::numeric * settled_money >= 0)
);
CREATE INDEX settlement_instruction_open ON settlement_instruction (customer_id, settles_on)
  WHERE status NOT IN ('SETTLED', 'CANCELLED');
CREATE INDEX settlement_instruction_list ON settlement_instruction (customer_id, updated_at);

-- What the custodian confirmed and the bank did not expect: it is booked when two people accept it.
CREATE TABLE settlement_difference (
  customer_id     uuid NOT NULL,
  difference_id   uuid NOT NULL,
  instruction_id  uuid NOT NULL,
  cusip           text NOT NULL,
  units           bigint NOT NULL,
  money           bigint NOT NULL,
  settled_on      date NOT NULL,
  reason          text NOT NULL,
  status          text NOT NULL CHECK (status IN ('HELD', 'ACCEPTED', 'DISMISSED')),
  held_at         timestamptz NOT NULL,
  decided_at      timestamptz,
  PRIMARY KEY (customer_id, difference_id),
  FOREIGN KEY (customer_id, instruction_id) REFERENCES settlement_instruction,
  CHECK ((status = 'HELD') = (decided_at IS NULL))
);
CREATE INDEX settlement_difference_held ON settlement_difference (customer_id, held_at) WHERE status = 'HELD';

-- Each row is one confirmation. `difference` is what was paid beyond `money` and accepted as a loss, below zero a gain.
ALTER TABLE dealer_settlement ADD COLUMN instruction_id uuid;
ALTER TABLE dealer_settlement ADD COLUMN difference bigint NOT NULL DEFAULT 0;

-- A confirmation names a delivery of a customer without the customer.
CREATE INDEX security_transfer_id ON security_transfer (transfer_id);

-- Executions of before. What the bank has settled with dealers by date stays settled; what is open is sent to the
-- custodian, as is the way back of what was corrected or busted after it had settled. Attempt 0 marks these rows, which no
-- command has left.
CREATE TEMPORARY TABLE instructed ON COMMIT DROP AS
SELECT e.customer_id, e.execution_id, e.dealer, e.cusip, e.settles_on, e.recorded_at, m.sign * e.units AS units,
       m.sign * e.money AS money, c.execution_id IS NOT NULL AS withdrawn, m.is_settled,
       encode(substr(sha256(uuid_send(e.execution_id)), 1, 16), 'hex')::uuid AS instruction_id
  FROM execution e
  JOIN ledger_head h ON h.customer_id = e.customer_id
  LEFT JOIN execution c ON c.customer_id = e.customer_id AND c.corrects = e.execution_id
 CROSS JOIN LATERAL (
   SELECT CASE e.side WHEN 'BUY' THEN 1 ELSE -1 END AS sign,
          greatest(e.settles_on, e.business_date) < h.business_date
          AND coalesce(c.business_date >= h.business_date, true) AS is_settled) m
 WHERE e.kind <> 'BUST';
INSERT INTO settlement_instruction
SELECT customer_id, instruction_id, execution_id, 'dealer:' || dealer, cusip, units, money, settles_on,
       CASE WHEN is_settled THEN 'SETTLED' WHEN withdrawn THEN 'CANCELLED' ELSE 'NEW' END, NULL, 0, withdrawn,
       CASE WHEN is_settled THEN units ELSE 0 END, CASE WHEN is_settled THEN money ELSE 0 END, recorded_at, recorded_at
  FROM instructed
 UNION ALL
SELECT customer_id, gen_random_uuid(), NULL, 'dealer:' || dealer, cusip, -units, -money, settles_on, 'NEW', NULL, 0,
       false, 0, 0, recorded_at, recorded_at
  FROM instructed WHERE is_settled AND withdrawn;
INSERT INTO scheduled_job (kind, object_id, due_at)
SELECT 'settlement-send', instruction_id, created_at FROM settlement_instruction WHERE status = 'NEW';

GRANT UPDATE ON settlement_instruction, settlement_difference TO billfold_app;
