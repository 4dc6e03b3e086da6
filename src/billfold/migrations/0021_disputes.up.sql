-- Reversals of on-us transfers, and disputes of card payments (ADR 0144). `billfold disputes credit` and `win` are for
-- when all processes run this release: the one before does not know the account `disputes`. Outside a transaction, so that nothing waits
-- for the index.
-- Outside a transaction

-- The transfer that another one pays back; the release before writes none.
ALTER TABLE transfer ADD COLUMN IF NOT EXISTS reverses_id uuid;
CREATE INDEX CONCURRENTLY IF NOT EXISTS transfer_reverses ON transfer (reverses_id, customer_id)
  WHERE reverses_id IS NOT NULL;

-- `customer_id` was paid and is asked to pay back, `requester_id` paid.
CREATE TABLE IF NOT EXISTS reversal_request (
  customer_id   uuid NOT NULL REFERENCES customer,
  reversal_id   uuid NOT NULL,
  requester_id  uuid NOT NULL,
  transfer_id   uuid NOT NULL,
  amount        bigint NOT NULL CHECK (amount > 0),
  reason        text,
  status        text NOT NULL CHECK (status IN ('REQUESTED', 'ACCEPTED', 'DECLINED', 'CANCELLED', 'EXPIRED')),
  reversed_by   uuid,
  expires_at    timestamptz NOT NULL,
  created_at    timestamptz NOT NULL,
  updated_at    timestamptz NOT NULL,
  written_no    bigint GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (customer_id, reversal_id),
  CHECK ((status = 'ACCEPTED') = (reversed_by IS NOT NULL)),
  CHECK (customer_id <> requester_id)
);
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS reversal_request_reversed_by
  ON reversal_request (customer_id, reversed_by) WHERE reversed_by IS NOT NULL;
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS reversal_request_open ON reversal_request (customer_id, transfer_id)
  WHERE status = 'REQUESTED';
CREATE INDEX CONCURRENTLY IF NOT EXISTS reversal_request_transfer ON reversal_request (customer_id, transfer_id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS reversal_request_list ON reversal_request (customer_id, created_at, written_no);
CREATE INDEX CONCURRENTLY IF NOT EXISTS reversal_request_requester
  ON reversal_request (requester_id, created_at, written_no);
GRANT UPDATE ON reversal_request TO billfold_app;

-- Provisional credits. Rows that are there satisfy the former condition, which is narrower; the release before writes
-- only kinds that both allow.
-- squawk-ignore ban-drop-constraint
ALTER TABLE account DROP CONSTRAINT IF EXISTS account_kind_check;
ALTER TABLE account ADD CONSTRAINT account_kind_check CHECK (
  kind IN ('bank', 'cash', 'lot', 'owed', 'rail:ach', 'rail:wire', 'rail:card', 'rail:crypto', 'street', 'treasury',
    'on_us', 'fees', 'rounding', 'promotions', 'custodian', 'reserve', 'suspense', 'losses', 'interchange', 'card_fees',
    'inventory', 'trading_gains', 'redemptions', 'disputes')
  OR kind ~ '^dealer:[a-z0-9][a-z0-9-]{0,31}$') NOT VALID;
CREATE TABLE IF NOT EXISTS card_dispute (
  customer_id       uuid NOT NULL REFERENCES customer,
  dispute_id        uuid NOT NULL,
  record_id         uuid NOT NULL,
  authorization_id  uuid,
  card_id           uuid NOT NULL,
  pocket_id         uuid NOT NULL,
  merchant          text NOT NULL,
  amount            bigint NOT NULL CHECK (amount > 0),
  reason            text NOT NULL CHECK (reason IN ('FRAUD', 'AUTHORIZATION', 'DUPLICATE', 'INCORRECT_AMOUNT',
                      'NOT_RECEIVED', 'NOT_AS_DESCRIBED', 'CANCELLED', 'CREDIT_NOT_PROCESSED')),
  status            text NOT NULL CHECK (status IN ('OPENED', 'PROVISIONALLY_CREDITED', 'WON', 'LOST', 'WITHDRAWN',
                      'EXPIRED')),
  advanced          bigint NOT NULL CHECK (advanced >= 0),
  recovered         bigint NOT NULL CHECK (recovered >= 0),
  charged_back      bigint NOT NULL CHECK (charged_back BETWEEN 0 AND recovered),
  written_off       bigint CHECK (written_off >= 0),
  document_ids      text NOT NULL,
  credit_due_at     timestamptz NOT NULL,
  decide_by         timestamptz NOT NULL,
  created_at        timestamptz NOT NULL,
  updated_at        timestamptz NOT NULL,
  written_no        bigint GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (customer_id, dispute_id),
  FOREIGN KEY (customer_id, record_id) REFERENCES card_payment,
  CHECK (advanced + recovered <= amount),
  CHECK (advanced = 0 OR status = 'PROVISIONALLY_CREDITED'),
  CHECK (written_off IS NULL OR status = 'WON')
);
CREATE INDEX CONCURRENTLY IF NOT EXISTS card_dispute_list ON card_dispute (customer_id, created_at, written_no);
CREATE INDEX CONCURRENTLY IF NOT EXISTS card_dispute_card ON card_dispute (customer_id, card_id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS card_dispute_advanced ON card_dispute (customer_id) WHERE advanced > 0;
CREATE INDEX CONCURRENTLY IF NOT EXISTS card_dispute_undecided ON card_dispute (decide_by)
  WHERE status IN ('OPENED', 'PROVISIONALLY_CREDITED');
GRANT UPDATE ON card_dispute TO billfold_app;
-- The purchase of a transaction.
CREATE INDEX CONCURRENTLY IF NOT EXISTS card_payment_entry ON card_payment (customer_id, entry_no);
