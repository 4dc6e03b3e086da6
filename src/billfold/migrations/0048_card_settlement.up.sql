-- Files of the card processor, the settlement of the card and crypto rails, and cash back.
ALTER TABLE account DROP CONSTRAINT account_kind_check;
ALTER TABLE account ADD CONSTRAINT account_kind_check CHECK (kind IN ('bank', 'cash', 'lot', 'owed',
  'rail:ach', 'rail:wire', 'rail:card', 'rail:crypto', 'street', 'treasury', 'on_us', 'fees', 'rounding',
  'promotions', 'custodian', 'reserve', 'suspense', 'losses', 'interchange', 'card_fees'));
ALTER TABLE clearing DROP CONSTRAINT clearing_rail_check;
ALTER TABLE clearing ADD CONSTRAINT clearing_rail_check CHECK (rail IN ('ACH', 'WIRE', 'CARD', 'CRYPTO'));
ALTER TABLE rail_file DROP CONSTRAINT rail_file_rail_check;
ALTER TABLE rail_file ADD CONSTRAINT rail_file_rail_check CHECK (rail IN ('ACH', 'WIRE', 'CARD'));
ALTER TABLE suspense_item DROP CONSTRAINT suspense_item_status_check, DROP CONSTRAINT suspense_item_check2;
ALTER TABLE suspense_item
  ADD CONSTRAINT suspense_item_status_check CHECK (status IN ('HELD', 'RETURNED', 'ASSIGNED', 'WRITTEN_OFF')),
  ADD CONSTRAINT suspense_item_check2 CHECK ((status IN ('RETURNED', 'WRITTEN_OFF')) = (return_reason IS NOT NULL));

-- A file of the card processor that was accepted, with what its trailer states, in cents.
CREATE TABLE card_settlement_file (
  file_id         uuid PRIMARY KEY,
  reference       text NOT NULL UNIQUE CHECK (length(reference) BETWEEN 1 AND 40),
  settles_on      date NOT NULL,
  records         int NOT NULL CHECK (records >= 0),
  presentments    bigint NOT NULL CHECK (presentments >= 0),
  refunds         bigint NOT NULL CHECK (refunds >= 0),
  chargebacks     bigint NOT NULL CHECK (chargebacks >= 0),
  representments  bigint NOT NULL CHECK (representments >= 0),
  fees            bigint NOT NULL CHECK (fees >= 0),
  interchange     bigint NOT NULL,
  net_settlement  bigint NOT NULL,
  accepted_at     timestamptz NOT NULL,
  CHECK (net_settlement = presentments + representments + fees - refunds - chargebacks - interchange)
);
CREATE INDEX card_settlement_file_date ON card_settlement_file (settles_on);

-- Its records: what each moves. One that cannot be booked is held in suspense as `item_id`; `reason` says why, if the
-- record itself is wrong.
CREATE TABLE card_settlement_record (
  file_id      uuid NOT NULL REFERENCES card_settlement_file,
  line         int NOT NULL CHECK (line > 1),
  type         text NOT NULL CHECK (type IN ('PRESENTMENT', 'REFUND', 'CHARGEBACK', 'REPRESENTMENT', 'FEE', 'UNREADABLE')),
  record_id    uuid,
  card_id      uuid,
  direction    text NOT NULL CHECK (direction IN ('CREDIT', 'DEBIT')),
  amount       bigint NOT NULL CHECK (amount >= 0),
  interchange  bigint NOT NULL,
  item_id      uuid NOT NULL UNIQUE,
  reason       text,
  PRIMARY KEY (file_id, line),
  CHECK ((type = 'UNREADABLE') = (record_id IS NULL)),
  CHECK ((card_id IS NULL) = (type IN ('FEE', 'UNREADABLE'))),
  CHECK (type <> 'UNREADABLE' OR reason IS NOT NULL)
);
-- The same record in two files is booked once.
CREATE UNIQUE INDEX card_settlement_record_once ON card_settlement_record (record_id) WHERE reason IS NULL;
CREATE INDEX card_payment_settles ON card_payment (settles_on);
CREATE INDEX card_payment_created ON card_payment (created_at);

-- The rules by which partners give cash back: one holds from a month on, until a later one of its partner does.
CREATE TABLE cash_back_rule (
  customer_id          uuid NOT NULL, -- the partner's own
  version              int NOT NULL CHECK (version > 0),
  partner_id           uuid NOT NULL,
  from_month           text NOT NULL CHECK (from_month ~ '^[0-9]{4}-(0[1-9]|1[0-2])$'),
  basis_points         int NOT NULL CHECK (basis_points BETWEEN 0 AND 1000),
  excluded_categories  text[] NOT NULL,
  cap                  bigint CHECK (cap > 0),
  created_at           timestamptz NOT NULL,
  PRIMARY KEY (customer_id, version),
  UNIQUE (partner_id, version),
  CHECK (from_month >= to_char(created_at AT TIME ZONE 'America/New_York', 'YYYY-MM'))
);
CREATE TRIGGER cash_back_rule_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON cash_back_rule
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
REVOKE UPDATE, DELETE ON cash_back_rule FROM billfold_app;

-- Cash back of a card for a month, in cents. What is below zero in its end counts in the card's next row.
CREATE TABLE cash_back (
  customer_id   uuid NOT NULL REFERENCES customer,
  cash_back_id  uuid NOT NULL,
  card_id       uuid NOT NULL,
  period        text NOT NULL CHECK (period ~ '^[0-9]{4}-(0[1-9]|1[0-2])$'),
  rule_version  int NOT NULL,
  purchases     bigint NOT NULL CHECK (purchases >= 0),
  refunds       bigint NOT NULL CHECK (refunds >= 0),
  carried_in    bigint NOT NULL CHECK (carried_in <= 0),
  amount        bigint NOT NULL CHECK (amount >= 0),
  pocket_id     uuid,
  entry_no      bigint,
  created_at    timestamptz NOT NULL,
  PRIMARY KEY (customer_id, cash_back_id),
  UNIQUE (customer_id, card_id, period),
  FOREIGN KEY (customer_id, card_id) REFERENCES card,
  CHECK ((entry_no IS NULL) = (pocket_id IS NULL)),
  CHECK (amount > 0 OR entry_no IS NULL)
);
