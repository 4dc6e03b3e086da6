-- The schema of release 0.1.0.
--
-- The database refuses what must never be (CHECK, UNIQUE, rights), so that a bug is an error and not a loss. Keys of
-- tenant tables begin with `customer_id`. Rows of the ledger and its logs are immutable: updates are of ledger heads,
-- accounts, and the state of things that are waiting.
--
-- Amounts of money are integer cents. Wall time, in a comment, is not the time of a sandbox's clock. What is sealed is
-- encrypted by the application: a column `sealed`, or a text that begins with `sealed:`.
--
-- `written_no` is the order in which rows were written. Lists use it to order rows of one instant: the clock of a
-- sandbox stands still, and ids are hashes.

-- Rights ------------------------------------------------------------------------------------------------------------

-- The application works as this role; whoever migrates owns the tables. Roles belong to the whole server, so another
-- database may have created it already.
DO $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'billfold_app') THEN
    CREATE ROLE billfold_app NOLOGIN;
  END IF;
EXCEPTION
  WHEN duplicate_object OR unique_violation THEN NULL;
  WHEN insufficient_privilege THEN
    RAISE EXCEPTION 'the role billfold_app is missing and % may not create it', current_user
      USING HINT = 'Let an administrator run: CREATE ROLE billfold_app NOLOGIN;',
            ERRCODE = 'insufficient_privilege';
END $$;
DO $$
BEGIN
  PERFORM set_config('role', 'billfold_app', true);
  PERFORM set_config('role', 'none', true);
EXCEPTION WHEN insufficient_privilege THEN
  EXECUTE format('GRANT billfold_app TO %I', current_user);
END $$;

-- The application may read a new table and add to it. Every further right is granted by the migration that creates the
-- table; the last part of this file has those of the tables here. Dumping a sequence requires SELECT.
GRANT USAGE ON SCHEMA public TO billfold_app;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT ON TABLES TO billfold_app;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO billfold_app;
GRANT SELECT ON schema_migration TO billfold_app;

-- For logs and publications, whose rows stay as they are whoever asks, the owner included.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'rows of % are added and never changed', TG_TABLE_NAME
    USING ERRCODE = 'insufficient_privilege';
END $$;

-- The bank ----------------------------------------------------------------------------------------------------------

-- The seed of its ids and what else is fixed when it is initialized. A process compares its settings with
-- `key_check`, a value sealed under the bank's key, and `domain`, which links, tokens and passkeys contain.
CREATE TABLE bank (
  singleton         boolean DEFAULT true PRIMARY KEY CHECK (singleton),
  seed              bytea NOT NULL,
  bank_customer_id  uuid NOT NULL,
  initialized_at    timestamptz NOT NULL,
  environment       text NOT NULL CHECK (environment IN ('sandbox', 'production')),
  key_check         bytea,
  domain            text
);

-- The business clock of a sandbox: one row, or none if business time is wall time.
CREATE TABLE clock (
  singleton        boolean DEFAULT true PRIMARY KEY CHECK (singleton),
  business_anchor  timestamptz NOT NULL,
  wall_anchor      timestamptz NOT NULL,
  frozen           boolean NOT NULL
);

-- What an operator changed about a day; null follows the calendars.
CREATE TABLE calendar_override (
  day          date PRIMARY KEY,
  bond_market  text,
  closes_at    time,
  fed          text CHECK (fed IN ('open', 'closed')),
  reason       text NOT NULL,
  CONSTRAINT calendar_override_bond_market CHECK (bond_market IN ('open', 'closed')),
  CONSTRAINT calendar_override_closes_at CHECK (closes_at IS NULL OR bond_market IS DISTINCT FROM 'closed'),
  CONSTRAINT calendar_override_names CHECK (num_nonnulls(bond_market, closes_at, fed) > 0)
);

-- Names from outside (account numbers, ids), resolved to their customer before a command is decided. Immutable, and the
-- only place of global uniqueness.
CREATE TABLE directory (
  kind         text NOT NULL,
  value        text NOT NULL,
  customer_id  uuid NOT NULL,
  object_id    uuid NOT NULL,
  PRIMARY KEY (kind, value)
);

-- Things to do at an instant, besides those that a customer's holdings require.
CREATE TABLE scheduled_job (
  kind         text NOT NULL,
  object_id    uuid NOT NULL,
  customer_id  uuid,
  due_at       timestamptz NOT NULL,
  PRIMARY KEY (kind, object_id)
);
CREATE INDEX scheduled_job_due ON scheduled_job (due_at);

-- Work that one process at a time does, claimed by name. No lock is held meanwhile: a claim that is not renewed in time
-- can be taken by another process. Wall time.
CREATE TABLE work_claim (
  name      text PRIMARY KEY,
  owner_id  uuid NOT NULL,
  until     timestamptz NOT NULL
);

-- Items of background work that failed and will be tried again, by kind of work. Wall time.
CREATE TABLE failed_work (
  kind       text NOT NULL,
  item       text NOT NULL,
  tries      int NOT NULL CHECK (tries > 0),
  error      text NOT NULL,
  failed_at  timestamptz NOT NULL,
  again_at   timestamptz NOT NULL,
  PRIMARY KEY (kind, item)
);

-- The key that encrypts everything personal about one customer, itself encrypted with the bank's master key. A
-- destroyed key leaves its row: what was sealed with it cannot be read again, and no other key takes its place.
CREATE TABLE data_key (
  subject_id   uuid PRIMARY KEY, -- a customer, or an applicant
  wrapped      bytea,
  master_key   text NOT NULL CHECK (length(master_key) BETWEEN 1 AND 2048), -- the one that encrypts it
  created_at   timestamptz NOT NULL DEFAULT clock_timestamp(), -- wall time
  shredded_at  timestamptz,
  CHECK ((wrapped IS NULL) = (shredded_at IS NOT NULL))
);
CREATE INDEX data_key_master ON data_key (master_key, subject_id) WHERE wrapped IS NOT NULL;

-- Partners and their requests ---------------------------------------------------------------------------------------

-- `allowed_networks` are those that a partner may call from; empty: from anywhere.
CREATE TABLE partner (
  partner_id        uuid PRIMARY KEY,
  slug              text NOT NULL UNIQUE CHECK (slug ~ '^[a-z][a-z0-9-]{0,62}$'),
  name              text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
  own_customer_id   uuid NOT NULL,
  features          text[] NOT NULL DEFAULT '{}',
  rate_per_minute   int NOT NULL CHECK (rate_per_minute > 0),
  money_per_minute  int NOT NULL CHECK (money_per_minute > 0),
  version           bigint NOT NULL DEFAULT 1,
  created_at        timestamptz NOT NULL,
  allowed_networks  cidr[] NOT NULL DEFAULT '{}'
);

-- Shared signing secrets are sealed, not hashed: a signature cannot be checked with a hash.
CREATE TABLE partner_secret (
  partner_id  uuid NOT NULL REFERENCES partner,
  secret_no   int NOT NULL,
  sealed      bytea NOT NULL,
  created_at  timestamptz NOT NULL,
  expires_at  timestamptz,
  PRIMARY KEY (partner_id, secret_no)
);

-- A disabled user's name stays taken: entries of logs contain it.
CREATE TABLE partner_user (
  user_id        uuid PRIMARY KEY,
  partner_id     uuid NOT NULL REFERENCES partner,
  username       text NOT NULL UNIQUE CHECK (length(username) BETWEEN 1 AND 128),
  password_hash  text NOT NULL,
  created_at     timestamptz NOT NULL,
  disabled_at    timestamptz
);

CREATE TABLE partner_key (
  key_id      text PRIMARY KEY,
  user_id     uuid NOT NULL REFERENCES partner_user,
  algorithm   text NOT NULL CHECK (algorithm IN ('ES256', 'PS256', 'RS256', 'EdDSA')),
  public_pem  text NOT NULL,
  created_at  timestamptz NOT NULL,
  revoked_at  timestamptz
);

CREATE TABLE partner_token (
  token_hash  bytea PRIMARY KEY,
  partner_id  uuid NOT NULL REFERENCES partner,
  user_id     uuid NOT NULL REFERENCES partner_user,
  issued_at   timestamptz NOT NULL,
  expires_at  timestamptz NOT NULL
);

CREATE TABLE consumed_assertion (
  issuer      text NOT NULL,
  jti_hash    bytea NOT NULL,
  expires_at  timestamptz NOT NULL,
  PRIMARY KEY (issuer, jti_hash)
);

-- The request that a caller sent under an idempotency key, and its response, for 24 hours of wall time.
CREATE TABLE idempotency_key (
  caller         uuid NOT NULL,
  key            uuid NOT NULL,
  fingerprint    bytea NOT NULL,
  claimed_at     timestamptz NOT NULL,
  lease_until    timestamptz NOT NULL,
  status         smallint,
  content_type   text,
  response_body  bytea,
  PRIMARY KEY (caller, key)
) WITH (fillfactor = 70);
CREATE INDEX idempotency_key_age ON idempotency_key USING brin (claimed_at);

-- Requests in the current minute. Unlogged: losing the counts in a crash costs nothing.
CREATE UNLOGGED TABLE rate_limit_window (
  caller     uuid NOT NULL,
  kind       text NOT NULL,
  starts_at  timestamptz NOT NULL,
  used       int NOT NULL,
  PRIMARY KEY (caller, kind, starts_at)
) WITH (fillfactor = 50);

-- How often something was done that costs the bank or a stranger. The subject is a customer, a partner, or a keyed hash
-- of an account or an e-mail address. The count is dropped at `expires_at`, wall time.
CREATE TABLE usage_count (
  subject     uuid NOT NULL,
  kind        text NOT NULL,
  used        int NOT NULL CHECK (used > 0),
  expires_at  timestamptz NOT NULL,
  PRIMARY KEY (subject, kind)
);

CREATE TABLE deprecated_call (
  caller     uuid NOT NULL,
  operation  text NOT NULL,
  calls      bigint NOT NULL,
  first_at   timestamptz NOT NULL,
  last_at    timestamptz NOT NULL,
  PRIMARY KEY (caller, operation)
);

-- Requests to the APIs, kept for some days to find mistakes, not as evidence. A tenant is a partner or a customer.
-- Several requests may belong to one trace: its id is the caller's.
CREATE TABLE request_log (
  tenant_id            uuid NOT NULL,
  requested_at         timestamptz NOT NULL,
  trace_id             uuid NOT NULL,
  method               text NOT NULL,
  path                 text NOT NULL,
  operation            text NOT NULL,
  status               smallint NOT NULL CHECK (status BETWEEN 100 AND 599),
  error_code           text,
  fields               text[] NOT NULL,
  has_idempotency_key  boolean NOT NULL,
  is_replayed          boolean NOT NULL,
  client_id            text,
  member_id            uuid,
  user_id              uuid,
  ip_address           text NOT NULL,
  duration_ms          int NOT NULL,
  id                   uuid PRIMARY KEY,
  CHECK ((status >= 400) = (error_code IS NOT NULL))
);
-- Old rows are found by their blocks, since rows are written in order of time.
CREATE INDEX request_log_by_age ON request_log USING brin (requested_at) WITH (autosummarize = on);
CREATE INDEX request_log_of_tenant ON request_log (tenant_id, requested_at, id);
CREATE INDEX request_log_of_operation ON request_log (tenant_id, operation, requested_at, id);
CREATE INDEX request_log_errors ON request_log (tenant_id, requested_at, id, operation, error_code) WHERE status >= 400;
CREATE INDEX request_log_of_trace ON request_log (trace_id);

-- The market --------------------------------------------------------------------------------------------------------

CREATE TABLE security (
  cusip          char(9) PRIMARY KEY,
  isin           char(12) NOT NULL,
  maturity       date NOT NULL,
  first_issue    date NOT NULL,
  original_term  text NOT NULL,
  CHECK (first_issue < maturity)
);

CREATE TABLE auction (
  cusip             char(9) NOT NULL REFERENCES security,
  issue_date        date NOT NULL,
  term              text NOT NULL,
  auction_date      date NOT NULL,
  announced_on      date,
  high_rate_milli   int,
  price_micros      bigint,
  investment_milli  int,
  reopening         boolean,
  cash_management   boolean NOT NULL,
  basis             text NOT NULL,
  PRIMARY KEY (cusip, issue_date)
);

CREATE TABLE bill_rate (
  day             date NOT NULL,
  weeks           smallint NOT NULL,
  discount_milli  int NOT NULL,
  coupon_milli    int NOT NULL,
  PRIMARY KEY (day, weeks)
);

-- Written by the bank when its day is closed.
CREATE TABLE closing_price (
  business_date  date NOT NULL,
  cusip          char(9) NOT NULL,
  bid_micros     bigint NOT NULL,
  ask_micros     bigint NOT NULL,
  mark_micros    bigint NOT NULL,
  PRIMARY KEY (business_date, cusip)
);

-- Customers and Pockets ---------------------------------------------------------------------------------------------

-- `agreement_version` is the version that the customer accepted last.
CREATE TABLE customer (
  customer_id        uuid PRIMARY KEY,
  partner_id         uuid,
  role               text NOT NULL CHECK (role IN ('customer', 'partner', 'house')),
  type               text NOT NULL CHECK (type IN ('INDIVIDUAL', 'BUSINESS')),
  name               text NOT NULL,
  account_status     text NOT NULL CHECK (account_status IN ('PENDING', 'OPEN', 'FROZEN', 'CLOSED')),
  profile            json NOT NULL,
  opened_at          timestamptz NOT NULL,
  closed_at          timestamptz,
  closure_reason     text,
  written_no         bigint GENERATED ALWAYS AS IDENTITY,
  agreement_version  text CHECK (agreement_version ~ '^\d{4}-\d{2}-\d{2}$')
);
CREATE INDEX customer_partner ON customer (partner_id, opened_at, written_no);
-- For a search by the beginning of a name.
CREATE INDEX customer_by_name ON customer (partner_id, lower(name) text_pattern_ops);

-- Features that were switched for one customer, whatever its partner has.
CREATE TABLE customer_feature (
  customer_id  uuid NOT NULL REFERENCES customer,
  feature      text NOT NULL CHECK (length(feature) BETWEEN 1 AND 50),
  enabled      boolean NOT NULL,
  PRIMARY KEY (customer_id, feature)
);

-- The features of a customer: its own switches first, then its partner's.
CREATE FUNCTION customer_features(of_customer uuid) RETURNS text[] LANGUAGE sql STABLE AS $$
  SELECT array(
    SELECT f.feature FROM customer c JOIN partner p USING (partner_id) CROSS JOIN unnest(p.features) AS f(feature)
     WHERE c.customer_id = of_customer
       AND NOT EXISTS (SELECT 1 FROM customer_feature o WHERE o.customer_id = of_customer AND o.feature = f.feature)
     UNION
    SELECT o.feature FROM customer_feature o WHERE o.customer_id = of_customer AND o.enabled
     ORDER BY 1)
$$;

-- `unsettled` is cash that settles later, such as the proceeds of a sale for the next day, and `unsettled_discount`
-- what it costs to use it before `unsettled_on`.
CREATE TABLE pocket (
  customer_id         uuid NOT NULL,
  pocket_id           uuid NOT NULL,
  partner_id          uuid NOT NULL,
  name                text NOT NULL CHECK (length(name) BETWEEN 1 AND 128),
  type                text NOT NULL CHECK (type IN ('STANDARD', 'NETWORK', 'FACILITATION')),
  status              text NOT NULL CHECK (status IN ('PENDING', 'OPEN', 'FROZEN', 'CLOSED')),
  deposit_weeks       smallint NOT NULL,
  reinvestment_weeks  smallint,
  real_time_yield     boolean NOT NULL DEFAULT false,
  opened_at           timestamptz NOT NULL,
  closed_at           timestamptz,
  closure_reason      text,
  inflow              bigint NOT NULL DEFAULT 0 CHECK (inflow >= 0),
  outflow             bigint NOT NULL DEFAULT 0 CHECK (outflow >= 0),
  fees                bigint NOT NULL DEFAULT 0 CHECK (fees >= 0),
  realised            bigint NOT NULL DEFAULT 0,
  fee_accrued         bigint NOT NULL DEFAULT 0 CHECK (fee_accrued >= 0),
  uninvested          bigint NOT NULL DEFAULT 0 CHECK (uninvested >= 0),
  accrued_through     date NOT NULL,
  next_fee_date       date NOT NULL,
  last_activity_date  date,
  unsettled_until     date,
  invest_at           timestamptz,
  written_no          bigint GENERATED ALWAYS AS IDENTITY,
  unsettled           bigint NOT NULL DEFAULT 0,
  unsettled_discount  bigint NOT NULL DEFAULT 0,
  unsettled_on        date,
  PRIMARY KEY (customer_id, pocket_id),
  CHECK ((status = 'CLOSED') = (closed_at IS NOT NULL))
) WITH (fillfactor = 60);
-- Cash that waits for the market to open is found here when newer market data has been imported.
CREATE INDEX pocket_invest_at ON pocket (invest_at) WHERE invest_at IS NOT NULL;
CREATE INDEX pocket_partner ON pocket (partner_id, opened_at, written_no);

-- A Pocket at the close of a day.
CREATE TABLE snapshot (
  customer_id     uuid NOT NULL,
  pocket_id       uuid NOT NULL,
  business_date   date NOT NULL,
  entry_no        bigint NOT NULL,
  cash            bigint NOT NULL CHECK (cash >= 0),
  positions       json NOT NULL,
  earnings_basis  bigint NOT NULL,
  inflow          bigint NOT NULL,
  outflow         bigint NOT NULL,
  fees            bigint NOT NULL,
  realised        bigint NOT NULL,
  PRIMARY KEY (customer_id, pocket_id, business_date)
);

CREATE TABLE hold (
  customer_id  uuid NOT NULL,
  hold_id      uuid NOT NULL,
  pocket_id    uuid NOT NULL,
  amount       bigint NOT NULL CHECK (amount > 0),
  until        timestamptz NOT NULL,
  cause        text NOT NULL,
  PRIMARY KEY (customer_id, hold_id)
);

-- Extended public keys from which the addresses of wallets derive. An index is never used twice, not even after a
-- rollback, so it comes from a sequence.
CREATE SEQUENCE wallet_index MINVALUE 0 MAXVALUE 2147483647 START 0;
CREATE TABLE wallet_xpub (
  xpub_id          int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  xpub             text NOT NULL,
  derivation_path  text NOT NULL,
  UNIQUE (xpub, derivation_path)
);

CREATE TABLE portal (
  customer_id      uuid NOT NULL,
  portal_id        uuid NOT NULL,
  pocket_id        uuid NOT NULL,
  type             text NOT NULL CHECK (type IN ('BANK_VIRTUAL_ACCOUNT_PORTAL', 'CRYPTO_DEPOSIT_ADDRESS_PORTAL')),
  name             text NOT NULL CHECK (length(name) BETWEEN 1 AND 128),
  status           text NOT NULL CHECK (status IN ('PENDING', 'OPEN', 'CLOSED')),
  routing_number   text,
  account_number   text,
  network_address  text,
  payment_rails    text[] NOT NULL,
  created_at       timestamptz NOT NULL,
  updated_at       timestamptz NOT NULL,
  written_no       bigint GENERATED ALWAYS AS IDENTITY,
  chain            text,
  wallet_address   text,
  asset            text,
  xpub_id          int REFERENCES wallet_xpub,
  address_index    bigint,
  PRIMARY KEY (customer_id, portal_id),
  CHECK ((type = 'BANK_VIRTUAL_ACCOUNT_PORTAL') = (account_number IS NOT NULL AND routing_number IS NOT NULL)),
  CONSTRAINT portal_wallet CHECK (num_nonnulls(chain, wallet_address, asset, xpub_id, address_index)
    = CASE type WHEN 'CRYPTO_DEPOSIT_ADDRESS_PORTAL' THEN 5 ELSE 0 END)
);
CREATE INDEX portal_pocket ON portal (customer_id, pocket_id, created_at, written_no);
CREATE UNIQUE INDEX portal_address_index ON portal (address_index) WHERE address_index IS NOT NULL;
CREATE UNIQUE INDEX portal_wallet_address ON portal (lower(wallet_address)) WHERE wallet_address IS NOT NULL;

-- `details` are the fields of the counterparty's variant, as they were sent and normalized.
CREATE TABLE counterparty (
  customer_id         uuid NOT NULL,
  counterparty_id     uuid NOT NULL,
  type                text NOT NULL CHECK (type IN ('ach', 'wire', 'on_us', 'international_wire',
                    'crypto_wallet_address')),
  status              text NOT NULL CHECK (status IN ('PENDING', 'LINKED', 'UNLINKED', 'VERIFIED')),
  counterparty_name   json NOT NULL,
  display_name        text,
  account_number      text,
  target_customer_id  uuid,
  target_pocket_id    uuid,
  verification        json NOT NULL,
  created_at          timestamptz NOT NULL,
  updated_at          timestamptz NOT NULL,
  details             json NOT NULL,
  written_no          bigint GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (customer_id, counterparty_id),
  CHECK (type <> 'on_us' OR target_customer_id IS NOT NULL AND target_pocket_id IS NOT NULL),
  CONSTRAINT counterparty_verification CHECK (
    verification->>'status' IN ('PENDING_REVIEW', 'APPROVED', 'REJECTED', 'EXPIRED', 'NOT_REQUIRED')
    AND (status <> 'PENDING' OR verification->>'status' = 'PENDING_REVIEW')
    AND (status <> 'VERIFIED' OR verification->>'status' = 'APPROVED')
    AND (status <> 'LINKED' OR verification->>'status' IN ('APPROVED', 'NOT_REQUIRED')))
);
CREATE INDEX counterparty_review ON counterparty (created_at, counterparty_id) WHERE status = 'PENDING';
CREATE INDEX counterparty_list ON counterparty (customer_id, created_at, written_no);

-- A public token of a linking provider is exchanged once. Its secret is kept until the accounts are linked, so that a
-- request that was interrupted in between can be sent again.
CREATE TABLE linking_exchange (
  customer_id   uuid NOT NULL REFERENCES customer,
  exchange_id   uuid NOT NULL,
  access        text NOT NULL CHECK (starts_with(access, 'sealed:')),
  exchanged_at  timestamptz NOT NULL,
  PRIMARY KEY (customer_id, exchange_id)
);

-- The ledger --------------------------------------------------------------------------------------------------------

-- A customer is the unit of order, concurrency and proof.
CREATE TABLE ledger_head (
  customer_id      uuid PRIMARY KEY,
  version          bigint NOT NULL DEFAULT 0,
  entry_no         bigint NOT NULL DEFAULT 0,
  event_no         bigint NOT NULL DEFAULT 0,
  account_no       int NOT NULL DEFAULT 0,
  booked_at        timestamptz NOT NULL,
  business_date    date NOT NULL,
  due_at           timestamptz,
  chain            bytea NOT NULL DEFAULT '\x',
  serialized_book  bytea, -- the book of this version, so that no other row need be read; null: read them
  CHECK (version >= 0 AND entry_no >= 0 AND event_no >= 0 AND account_no >= 0)
) WITH (fillfactor = 60);
ALTER TABLE ledger_head ALTER COLUMN serialized_book SET STORAGE EXTERNAL;
CREATE INDEX ledger_head_due ON ledger_head (due_at) WHERE due_at IS NOT NULL;

-- Balances are kept where a rule or a report needs them. Of the `derived` kinds only `billfold verify` asks, so a
-- transfer moves four balances instead of twelve; what those accounts hold is the sum of their postings.
CREATE TABLE account (
  customer_id     uuid NOT NULL,
  account_no      int NOT NULL,
  kind            text NOT NULL CHECK (kind IN ('bank', 'cash', 'lot', 'owed', 'rail:ach', 'rail:wire', 'rail:card',
                    'rail:crypto', 'street', 'treasury', 'on_us', 'fees', 'rounding', 'promotions', 'custodian',
                    'reserve', 'suspense', 'losses', 'interchange', 'card_fees')),
  pocket_id       uuid,
  asset           text NOT NULL,
  acquired_on     date,
  live            boolean NOT NULL DEFAULT true,
  debits          bigint NOT NULL DEFAULT 0,
  credits         bigint NOT NULL DEFAULT 0,
  reserved        bigint NOT NULL DEFAULT 0,
  tax_basis       bigint NOT NULL DEFAULT 0,
  earnings_basis  bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (customer_id, account_no),
  CONSTRAINT account_is_one UNIQUE NULLS NOT DISTINCT (customer_id, kind, pocket_id, asset, acquired_on),
  CONSTRAINT account_counts_up CHECK (debits >= 0 AND credits >= 0 AND reserved >= 0),
  CONSTRAINT account_never_negative CHECK (kind NOT IN ('cash', 'lot') OR credits - debits - reserved >= 0),
  CONSTRAINT account_owed_by_customer CHECK (kind <> 'owed' OR debits >= credits),
  CONSTRAINT account_basis_of_lots CHECK (
    CASE WHEN kind <> 'lot' THEN tax_basis = 0 AND earnings_basis = 0
         WHEN credits = debits THEN tax_basis = 0 AND earnings_basis = 0
         ELSE tax_basis >= 0 AND earnings_basis >= 0 AND live END),
  CONSTRAINT account_owner CHECK ((kind IN ('bank', 'cash', 'lot', 'owed')) = (pocket_id IS NOT NULL)),
  CONSTRAINT account_lot_dated CHECK ((kind = 'lot') = (acquired_on IS NOT NULL)),
  CONSTRAINT account_cash_is_usd CHECK (kind NOT IN ('bank', 'cash', 'owed') OR asset = 'USD'),
  CONSTRAINT account_derived CHECK (
    kind NOT IN ('bank', 'on_us', 'street', 'treasury') OR (debits = 0 AND credits = 0 AND reserved = 0))
) WITH (fillfactor = 50);
CREATE INDEX account_live ON account (customer_id, pocket_id) WHERE live;

-- Postings in the order of fields that takes the least room. Phase: 0 posted, 1 reserved, 2 released.
CREATE TYPE packed_posting AS (amount bigint, debit int, credit int, phase smallint, asset text);

-- One debit, one credit, one asset: an unbalanced entry cannot be written down.
CREATE FUNCTION postings_are_valid(postings packed_posting[]) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  each record;
BEGIN
  IF array_ndims(postings) > 1 THEN RETURN false; END IF;
  FOREACH each IN ARRAY postings LOOP
    IF (each.amount > 0 AND each.debit <> each.credit AND each.phase IN (0, 1, 2) AND each.asset IS NOT NULL) IS NOT TRUE
    THEN RETURN false; END IF;
  END LOOP;
  RETURN true;
END $$;

-- The postings of an entry lie in its row: one row and one index entry where there would be five of each. A posting is
-- found by its place, counted from 1.
CREATE TABLE journal_entry (
  customer_id     uuid NOT NULL,
  entry_no        bigint NOT NULL,
  kind            text NOT NULL,
  command_id      uuid NOT NULL,
  booked_at       timestamptz NOT NULL,
  business_date   date NOT NULL,
  effective_date  date NOT NULL,
  settles_on      date NOT NULL,
  reverses        bigint,
  postings        packed_posting[] NOT NULL CHECK (postings_are_valid(postings)),
  PRIMARY KEY (customer_id, entry_no)
);
-- A double return cannot be booked. Ordinary entries cost this index nothing.
CREATE UNIQUE INDEX journal_entry_reversed_once ON journal_entry (customer_id, reverses) WHERE reverses IS NOT NULL;

CREATE VIEW posting AS
SELECT e.customer_id, e.entry_no, p.posting_no::smallint AS posting_no, p.debit, p.credit, p.asset, p.amount, p.phase
  FROM journal_entry e
 CROSS JOIN LATERAL unnest(e.postings) WITH ORDINALITY AS p(amount, debit, credit, phase, asset, posting_no);

CREATE TABLE trade (
  customer_id        uuid NOT NULL,
  pocket_id          uuid NOT NULL,
  entry_no           bigint NOT NULL,
  trade_no           smallint NOT NULL,
  trade_id           uuid NOT NULL,
  partner_id         uuid NOT NULL,
  activity           text NOT NULL CHECK (activity IN ('BUY', 'SELL', 'MATURITY', 'SAME_ENTITY_SECURITY_TRANSFER',
                    'EXTERNAL_SECURITY_TRANSFER')),
  incoming           boolean NOT NULL,
  cusip              text NOT NULL,
  units              bigint NOT NULL CHECK (units > 0),
  price_micros       bigint NOT NULL CHECK (price_micros > 0),
  notional           bigint NOT NULL CHECK (notional >= 0),
  tax_basis          bigint NOT NULL,
  earnings_basis     bigint NOT NULL,
  traded_at          timestamptz NOT NULL,
  book_date          date NOT NULL,
  settles_on         date NOT NULL,
  counter_pocket_id  uuid,
  transfer_id        uuid,
  PRIMARY KEY (customer_id, pocket_id, entry_no, trade_no)
);
CREATE INDEX trade_settles ON trade USING brin (settles_on);

CREATE TABLE transaction (
  customer_id     uuid NOT NULL,
  pocket_id       uuid NOT NULL,
  entry_no        bigint NOT NULL,
  posting_no      smallint NOT NULL,
  activity_id     uuid NOT NULL,
  transaction_id  uuid NOT NULL,
  partner_id      uuid NOT NULL,
  type            text NOT NULL CHECK (type IN ('ACH', 'WIRE', 'CARD', 'ON_US', 'FEE', 'CREDIT', 'GENERIC')),
  direction       text NOT NULL CHECK (direction IN ('DEBIT', 'CREDIT')),
  amount          bigint NOT NULL CHECK (amount > 0),
  swept           boolean NOT NULL,
  title           text NOT NULL,
  description     text NOT NULL,
  booked_at       timestamptz NOT NULL,
  business_date   date NOT NULL,
  settles_at      timestamptz NOT NULL,
  details         json NOT NULL,
  remittance      json,
  written_no      bigint GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (customer_id, pocket_id, entry_no, posting_no)
);
CREATE INDEX transaction_activity_id ON transaction (customer_id, activity_id);
-- Other types of transactions cost this index nothing.
CREATE INDEX transaction_of_rails ON transaction (settles_at) WHERE type IN ('ACH', 'WIRE');
CREATE INDEX transaction_partner ON transaction (partner_id, booked_at, written_no);
-- What the bank itself books is rare among payments, which cost this index nothing.
CREATE INDEX transaction_of_bank ON transaction (customer_id, entry_no, posting_no)
  WHERE type IN ('FEE', 'CREDIT', 'GENERIC');

-- A command that was decided, with its outcome.
CREATE TABLE command (
  customer_id   uuid NOT NULL,
  command_id    uuid NOT NULL,
  caller        text NOT NULL,
  key           uuid NOT NULL,
  kind          text NOT NULL,
  request_hash  bytea NOT NULL,
  accepted      boolean NOT NULL,
  outcome       json NOT NULL,
  version       bigint NOT NULL,
  booked_at     timestamptz NOT NULL,
  PRIMARY KEY (customer_id, command_id)
);

-- One row per customer and commit: hash = sha256(previous hash || encoded rows), and a checksum per row, so that a
-- damaged row can be named.
CREATE TABLE chain_entry (
  customer_id    uuid NOT NULL,
  version        bigint NOT NULL,
  entry_no       bigint NOT NULL,
  event_no       bigint NOT NULL,
  row_checksums  bytea NOT NULL,
  hash           bytea NOT NULL,
  PRIMARY KEY (customer_id, version)
);

-- The transaction id `xid` tells a reader of events what is new: rows that are visible now and were not in the snapshot
-- that the reader kept, in whatever order transactions were committed.
CREATE TABLE event (
  customer_id  uuid NOT NULL,
  event_no     bigint NOT NULL,
  event_id     uuid NOT NULL,
  kind         text NOT NULL,
  payload      json NOT NULL,
  raised_at    timestamptz NOT NULL,
  xid          xid8 NOT NULL DEFAULT pg_current_xact_id(),
  PRIMARY KEY (customer_id, event_no)
);
CREATE INDEX event_xid ON event (xid);

-- Transfers and the settlement of trades ----------------------------------------------------------------------------

CREATE TABLE transfer (
  customer_id     uuid NOT NULL,
  transfer_id     uuid NOT NULL,
  partner_id      uuid NOT NULL,
  type            text NOT NULL CHECK (type IN ('PARTNER_CUSTOMER_FUNDING', 'PARTNER_CUSTOMER_DEFUNDING',
                    'INTERNAL_REALLOCATION', 'PEER_TO_PEER')),
  status          text NOT NULL CHECK (status IN ('PENDING', 'COMPLETED', 'REJECTED')),
  reason          text,
  from_pocket_id  uuid NOT NULL,
  to_pocket_id    uuid,
  amount          bigint NOT NULL CHECK (amount >= 0),
  request         json NOT NULL,
  created_at      timestamptz NOT NULL,
  PRIMARY KEY (customer_id, transfer_id)
);
CREATE INDEX transfer_pending ON transfer (customer_id, created_at) WHERE status = 'PENDING';

-- Settled trades per date and bill, which explain the account `street` to zero. A trade that was committed while its
-- day was being closed is settled with the next day that closes.
CREATE TABLE settlement (
  settles_on       date NOT NULL,
  cusip            text NOT NULL,
  price_micros     bigint NOT NULL,
  side             text NOT NULL CHECK (side IN ('BUY', 'SELL', 'MATURITY')),
  closed_on        date NOT NULL,
  units            bigint NOT NULL,
  customers_cents  bigint NOT NULL,
  block_cents      bigint NOT NULL,
  PRIMARY KEY (settles_on, cusip, price_micros, side, closed_on)
);

-- Bills that came from a custodian elsewhere, or went to one.
CREATE TABLE security_transfer (
  customer_id           uuid NOT NULL,
  transfer_id           uuid NOT NULL,
  pocket_id             uuid NOT NULL,
  direction             text NOT NULL CHECK (direction IN ('IN', 'OUT')),
  cusip                 text NOT NULL,
  units                 bigint NOT NULL CHECK (units > 0),
  market_value          bigint NOT NULL CHECK (market_value >= 0),
  status                text NOT NULL CHECK (status IN ('PENDING', 'COMPLETED', 'REJECTED')),
  counterparty_name     text NOT NULL,
  counterparty_account  text NOT NULL,
  lots                  json NOT NULL,
  created_at            timestamptz NOT NULL,
  reason                text,
  ended_at              timestamptz,
  written_no            bigint GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (customer_id, transfer_id),
  CHECK ((status = 'REJECTED') = (reason IS NOT NULL)),
  CHECK (direction = 'OUT' OR status = 'COMPLETED')
);
CREATE INDEX security_transfer_list ON security_transfer (created_at, written_no);

-- Files of payment rails and money without an owner -----------------------------------------------------------------

-- A file is stored before anything is done with it: after a crash another process continues without the folder.
-- `content` is encrypted with the bank's own data key and `sha256` is the hash of it; `digest` is a keyed hash of the
-- plain content, by which a file that is sent again is recognized.
CREATE TABLE rail_file (
  file_id     uuid PRIMARY KEY,
  rail        text NOT NULL CHECK (rail IN ('ACH', 'WIRE', 'CARD')),
  direction   text NOT NULL CHECK (direction IN ('OUT', 'IN')),
  name        text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
  content     bytea NOT NULL,
  sha256      bytea NOT NULL CHECK (length(sha256) = 32),
  state       text NOT NULL CHECK (state IN ('CREATED', 'TRANSMITTED', 'ARRIVED', 'PROCESSED', 'REFUSED')),
  report      json,
  created_at  timestamptz NOT NULL,
  done_at     timestamptz,
  written_no  bigint GENERATED ALWAYS AS IDENTITY,
  digest      bytea CHECK (length(digest) = 32),
  CHECK ((direction = 'OUT') = state IN ('CREATED', 'TRANSMITTED')),
  CHECK ((done_at IS NULL) = state IN ('CREATED', 'ARRIVED'))
);
CREATE UNIQUE INDEX rail_file_named_once ON rail_file (rail, name) WHERE direction = 'OUT';
CREATE INDEX rail_file_unfinished ON rail_file (rail, direction, created_at) WHERE done_at IS NULL;
CREATE INDEX rail_file_list ON rail_file (created_at, written_no);
-- The same content is not processed twice. A refused file may be sent again.
CREATE UNIQUE INDEX rail_file_arrived_once ON rail_file (rail, COALESCE(digest, sha256))
  WHERE direction = 'IN' AND state <> 'REFUSED';
CREATE INDEX rail_file_unsealed ON rail_file (file_id) WHERE digest IS NULL;

-- A payment whose owner was not found. It lies on the bank's account of kind `suspense`.
CREATE TABLE suspense_item (
  customer_id     uuid NOT NULL, -- the bank itself
  item_id         uuid NOT NULL,
  rail            text NOT NULL CHECK (rail IN ('ACH', 'WIRE', 'CARD', 'CRYPTO')),
  direction       text NOT NULL CHECK (direction IN ('CREDIT', 'DEBIT')),
  amount          bigint NOT NULL CHECK (amount > 0),
  status          text NOT NULL CHECK (status IN ('HELD', 'RETURNED', 'ASSIGNED', 'WRITTEN_OFF')),
  reason          text NOT NULL,
  details         json NOT NULL,
  entry_no        bigint NOT NULL,
  created_at      timestamptz NOT NULL,
  ended_at        timestamptz,
  ended_entry_no  bigint,
  return_reason   text,
  owner_id        uuid,
  written_no      bigint GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (customer_id, item_id),
  CHECK ((status = 'HELD') = (ended_at IS NULL)),
  CHECK ((ended_at IS NULL) = (ended_entry_no IS NULL)),
  CHECK ((status IN ('RETURNED', 'WRITTEN_OFF')) = (return_reason IS NOT NULL)),
  CHECK ((status = 'ASSIGNED') = (owner_id IS NOT NULL))
);
CREATE INDEX suspense_item_held ON suspense_item (created_at, item_id) WHERE status = 'HELD';
CREATE INDEX suspense_item_original_wire ON suspense_item ((details ->> 'original_wire_id'::text))
  WHERE details->>'original_wire_id' IS NOT NULL;

-- What the bank has settled with each rail: one row per journal entry of kind `clearing`.
CREATE TABLE clearing (
  customer_id  uuid NOT NULL, -- the bank itself
  entry_no     bigint NOT NULL,
  rail         text NOT NULL CHECK (rail IN ('ACH', 'WIRE', 'CARD', 'CRYPTO')),
  settles_on   date NOT NULL,
  closed_on    date NOT NULL,
  inflow       bigint NOT NULL CHECK (inflow >= 0),
  outflow      bigint NOT NULL CHECK (outflow >= 0),
  PRIMARY KEY (customer_id, entry_no),
  CHECK ((inflow + outflow) > 0)
);
CREATE INDEX clearing_date ON clearing (settles_on, rail);

-- Wires -------------------------------------------------------------------------------------------------------------

CREATE TABLE wire (
  customer_id                uuid NOT NULL,
  wire_id                    uuid NOT NULL,
  partner_id                 uuid NOT NULL,
  pocket_id                  uuid NOT NULL,
  portal_id                  uuid,
  direction                  text NOT NULL CHECK (direction IN ('INCOMING', 'OUTGOING')),
  wire_type                  text NOT NULL CHECK (wire_type IN ('PAYMENT', 'REVERSAL', 'RETURN')),
  original_wire_id           uuid,
  status                     text NOT NULL CHECK (status IN ('PENDING', 'PROCESSING', 'COMPLETED', 'REJECTED')),
  reason                     text,
  amount                     bigint NOT NULL CHECK (amount > 0),
  fee                        bigint NOT NULL CHECK (fee >= 0),
  counterparty_id            uuid,
  counterparty_name          text NOT NULL,
  reference_number           text NOT NULL,
  uetr                       text NOT NULL,
  imad                       text,
  omad                       text,
  description                text,
  wire_instructions          text,
  end_to_end_identification  text,
  created_by                 text,
  request                    json NOT NULL,
  message                    json, -- the message that brought an incoming wire
  transaction_id             uuid,
  entry_no                   bigint, -- where it is booked; null if no money moved
  send_at                    timestamptz,
  created_at                 timestamptz NOT NULL,
  settled_at                 timestamptz,
  updated_at                 timestamptz NOT NULL,
  written_no                 bigint GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (customer_id, wire_id),
  CONSTRAINT wire_return_of CHECK ((wire_type = 'RETURN') = (original_wire_id IS NOT NULL)),
  CONSTRAINT wire_rejected_for CHECK ((status = 'REJECTED') = (reason IS NOT NULL)),
  CONSTRAINT wire_settled CHECK ((status = 'COMPLETED') = (settled_at IS NOT NULL))
);
CREATE INDEX wire_uetr ON wire (uetr);
-- A wire of the bank may come back in parts, and each incoming return has its own number. A return by the bank is in
-- full, so there is one that is not rejected. The sum of returns is checked by the rule and by `billfold verify`.
CREATE UNIQUE INDEX wire_returned_once ON wire (customer_id, original_wire_id, (
CASE direction
    WHEN 'INCOMING'::text THEN imad
    ELSE NULL::text
END)) NULLS NOT DISTINCT
  WHERE original_wire_id IS NOT NULL AND status <> 'REJECTED';
CREATE INDEX wire_partner ON wire (partner_id, created_at, written_no);
CREATE INDEX wire_customer ON wire (customer_id, created_at, written_no);

-- Messages to Fedwire. `terms` is the content; number, file and instant are filled in when it is sent.
CREATE TABLE wire_message (
  message_id   uuid PRIMARY KEY,
  customer_id  uuid NOT NULL,
  wire_id      uuid NOT NULL,
  kind         text NOT NULL CHECK (kind IN ('pacs.008', 'pacs.004', 'camt.056', 'camt.029')),
  send_at      timestamptz NOT NULL,
  terms        json NOT NULL,
  imad         text UNIQUE,
  file_id      uuid,
  sent_at      timestamptz,
  CHECK ((imad IS NULL) = (file_id IS NULL) AND (imad IS NULL) = (sent_at IS NULL))
);
CREATE INDEX wire_message_waits ON wire_message (send_at, message_id) WHERE file_id IS NULL;
CREATE INDEX wire_message_wire ON wire_message (wire_id);
CREATE INDEX wire_message_file ON wire_message (file_id) WHERE file_id IS NOT NULL;

-- How many messages have been numbered on a day of Fedwire.
CREATE TABLE wire_sequence (
  day   date PRIMARY KEY,
  last  int NOT NULL CHECK (last BETWEEN 0 AND 999999)
);

-- Messages that arrived, by their own numbers: none is processed twice.
CREATE TABLE received_wire_message (
  number      text PRIMARY KEY,
  file_id     uuid NOT NULL,
  arrived_at  timestamptz NOT NULL
);

-- Somebody requests the return of a wire: the bank of one that it sent (OUTGOING), or the sender of one that it
-- received.
CREATE TABLE wire_case (
  case_id      text NOT NULL,
  direction    text NOT NULL CHECK (direction IN ('INCOMING', 'OUTGOING')),
  customer_id  uuid NOT NULL,
  wire_id      uuid NOT NULL,
  status       text NOT NULL CHECK (status IN ('OPEN', 'ACCEPTED', 'REFUSED')),
  reason       text NOT NULL,
  information  text,
  message      json NOT NULL,
  opened_at    timestamptz NOT NULL,
  closed_at    timestamptz,
  written_no   bigint GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (direction, case_id),
  CHECK ((status = 'OPEN') = (closed_at IS NULL))
);
CREATE INDEX wire_case_wire ON wire_case (wire_id);
CREATE UNIQUE INDEX wire_case_open_once ON wire_case (wire_id) WHERE status = 'OPEN';

-- ACH ---------------------------------------------------------------------------------------------------------------

-- Entries that customers originate, entries that reach their portals, and the bank's own micro-deposits.
CREATE TABLE ach_entry (
  customer_id      uuid NOT NULL,
  ach_id           uuid NOT NULL,
  pocket_id        uuid, -- null: an entry of the bank itself
  partner_id       uuid,
  way              text NOT NULL CHECK (way IN ('ORIGINATION', 'RECEIVING')),
  direction        text NOT NULL CHECK (direction IN ('CREDIT', 'DEBIT')),
  status           text NOT NULL CHECK (status IN ('PENDING', 'APPROVED', 'IN_TRANSIT', 'PROCESSED', 'REJECTED',
                    'FAILED', 'CANCELLED')),
  reason           text,
  return_code      text,
  sec_code         text NOT NULL,
  company_name     text NOT NULL,
  description      text NOT NULL,
  lines            text[] NOT NULL DEFAULT '{}',
  amount           bigint NOT NULL CHECK (amount > 0),
  counterparty_id  uuid,
  portal_id        uuid,
  routing_number   text NOT NULL, -- of the other bank
  account_number   text NOT NULL, -- there when the bank originates, here when it receives
  account_type     text NOT NULL CHECK (account_type IN ('CHECKING', 'SAVINGS')),
  party_name       text NOT NULL,
  identification   text NOT NULL,
  trace_number     text,
  file_id          uuid,
  due_at           timestamptz,
  effective_on     date,
  settles_at       timestamptz,
  settled_at       timestamptz,
  held_until       timestamptz,
  entry_no         bigint, -- in which the money was booked
  reverses_id      uuid,
  times            smallint NOT NULL DEFAULT 0, -- how often it was presented before
  change_code      text,
  corrected        text,
  request          json,
  created_at       timestamptz NOT NULL,
  updated_at       timestamptz NOT NULL,
  written_no       bigint GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (customer_id, ach_id),
  CHECK (way = 'RECEIVING' OR status IN ('PENDING', 'REJECTED', 'CANCELLED') OR due_at IS NOT NULL)
) WITH (fillfactor = 80);
CREATE INDEX ach_entry_waits ON ach_entry (due_at) WHERE status = 'APPROVED' AND file_id IS NULL;
CREATE INDEX ach_entry_review ON ach_entry (created_at) WHERE status = 'PENDING';
CREATE INDEX ach_entry_trace ON ach_entry (trace_number) WHERE trace_number IS NOT NULL;
CREATE INDEX ach_entry_file ON ach_entry (file_id, customer_id, trace_number) WHERE file_id IS NOT NULL;
CREATE UNIQUE INDEX ach_entry_reversed_once ON ach_entry (customer_id, reverses_id)
  WHERE reverses_id IS NOT NULL AND status NOT IN ('REJECTED', 'CANCELLED');
CREATE INDEX ach_entry_list ON ach_entry (customer_id, created_at, written_no) WHERE way = 'ORIGINATION';
CREATE INDEX ach_entry_partner ON ach_entry (partner_id, created_at, written_no) WHERE way = 'ORIGINATION';

-- Returns that the bank sends as receiving bank, and returns of its own entries that it dishonors. They move no money:
-- what they say has been booked, or was never accepted.
CREATE TABLE ach_return_entry (
  return_entry_id  uuid PRIMARY KEY,
  customer_id      uuid NOT NULL,
  due_at           timestamptz NOT NULL,
  payload          json NOT NULL,
  trace_number     text,
  file_id          uuid,
  created_at       timestamptz NOT NULL
);
CREATE INDEX ach_return_entry_waits ON ach_return_entry (due_at) WHERE file_id IS NULL;
CREATE INDEX ach_return_entry_file ON ach_return_entry (file_id) WHERE file_id IS NOT NULL;
CREATE INDEX ach_return_entry_trace ON ach_return_entry (trace_number) WHERE trace_number IS NOT NULL;

-- A file of a window, from the moment its entries are numbered until everybody has been notified.
CREATE TABLE ach_file (
  file_id       uuid PRIMARY KEY,
  name          text NOT NULL UNIQUE,
  day           date NOT NULL,
  number        int NOT NULL CHECK (number >= 0), -- of the day, from 0
  made_at       timestamptz NOT NULL,
  settles_at    timestamptz,
  settled_at    timestamptz,
  confirmed_at  timestamptz,
  UNIQUE (day, number)
);
CREATE INDEX ach_file_unconfirmed ON ach_file (made_at) WHERE confirmed_at IS NULL;

-- The last seven digits of trace numbers, which start again after ten million.
CREATE TABLE ach_counter (
  singleton  boolean DEFAULT true PRIMARY KEY CHECK (singleton),
  traces     bigint NOT NULL CHECK (traces >= 0)
);
INSERT INTO ach_counter (traces) VALUES (0);

-- Cards -------------------------------------------------------------------------------------------------------------

-- Cards as the bank knows them: no card number, no CVV, no PIN. Those stay with the card processor.
CREATE TABLE card (
  customer_id       uuid NOT NULL REFERENCES customer,
  card_id           uuid NOT NULL,
  pocket_id         uuid NOT NULL,
  card_order_id     uuid,
  type              text NOT NULL CHECK (type IN ('VIRTUAL', 'PHYSICAL')),
  name              text NOT NULL,
  status            text NOT NULL CHECK (status IN ('NOT_ACTIVATED', 'ONLINE', 'OFFLINE', 'FROZEN', 'CLOSED')),
  magstripe_status  text NOT NULL CHECK (magstripe_status IN ('ON', 'OFF')),
  last_four         text NOT NULL CHECK (last_four ~ '^[0-9]{4}$'),
  expires_on        date NOT NULL,
  has_pin           boolean NOT NULL,
  created_at        timestamptz NOT NULL,
  updated_at        timestamptz NOT NULL,
  closure_reason    text,
  lost_stolen_on    date,
  written_no        bigint GENERATED ALWAYS AS IDENTITY,
  partner_id        uuid,
  PRIMARY KEY (customer_id, card_id),
  FOREIGN KEY (customer_id, pocket_id) REFERENCES pocket,
  CHECK ((type = 'PHYSICAL') = (card_order_id IS NOT NULL)),
  CHECK (magstripe_status = 'OFF' OR status = 'ONLINE'),
  CHECK (has_pin OR type = 'VIRTUAL' OR status IN ('NOT_ACTIVATED', 'CLOSED')),
  CHECK (closure_reason IS NULL OR status = 'CLOSED')
);
CREATE INDEX card_list ON card (customer_id, created_at, written_no);
CREATE INDEX card_pocket ON card (customer_id, pocket_id, created_at, written_no);
CREATE INDEX card_partner ON card (partner_id, created_at, written_no);

-- Orders of physical cards. The shipping address is sealed.
CREATE TABLE card_order (
  customer_id       uuid NOT NULL REFERENCES customer,
  card_order_id     uuid NOT NULL,
  pocket_id         uuid NOT NULL,
  status            text NOT NULL CHECK (status IN ('INITIAL', 'ORDERED', 'CARD_CREATED', 'RECEIVED')),
  name_on_card      text NOT NULL,
  shipping_address  text NOT NULL,
  card_id           uuid,
  created_at        timestamptz NOT NULL,
  updated_at        timestamptz NOT NULL,
  written_no        bigint GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (customer_id, card_order_id),
  FOREIGN KEY (customer_id, pocket_id) REFERENCES pocket,
  CHECK ((card_id IS NOT NULL) = status IN ('CARD_CREATED', 'RECEIVED'))
);
CREATE INDEX card_order_list ON card_order (customer_id, created_at, written_no);
CREATE INDEX card_order_pocket ON card_order (customer_id, pocket_id, created_at, written_no);

-- Public keys to which card details were encrypted: each is used for one request.
CREATE TABLE card_detail_key (
  fingerprint  bytea PRIMARY KEY,
  command_id   uuid NOT NULL,
  used_at      timestamptz NOT NULL
);

-- The daily limits of a card, in cents: in all, and by merchant category.
CREATE TABLE card_limits (
  customer_id  uuid NOT NULL REFERENCES customer,
  card_id      uuid NOT NULL,
  daily        bigint CHECK (daily >= 0),
  categories   json NOT NULL,
  created_at   timestamptz NOT NULL,
  updated_at   timestamptz NOT NULL,
  PRIMARY KEY (customer_id, card_id),
  FOREIGN KEY (customer_id, card_id) REFERENCES card
);

-- Authorized purchases. `remaining` cents are reserved by the journal entry `hold_entry_no`.
CREATE TABLE card_authorization (
  customer_id          uuid NOT NULL REFERENCES customer,
  authorization_id     uuid NOT NULL,
  card_id              uuid NOT NULL,
  pocket_id            uuid NOT NULL,
  network_reference    text NOT NULL CHECK (length(network_reference) BETWEEN 1 AND 40),
  status               text NOT NULL CHECK (status IN ('PENDING', 'CLEARED', 'REVERSED', 'EXPIRED', 'DECLINED')),
  reason               text,
  approved             bigint NOT NULL CHECK (approved >= 0),
  reversed             bigint NOT NULL CHECK (reversed BETWEEN 0 AND approved),
  cleared              bigint NOT NULL CHECK (cleared >= 0),
  remaining            bigint NOT NULL CHECK (remaining >= 0),
  entry_mode           text,
  is_preauthorization  boolean NOT NULL,
  category_code        text NOT NULL CHECK (category_code ~ '^[0-9]{4}$'),
  merchant             json NOT NULL,
  authorized_on        date NOT NULL,
  spent_before         bigint NOT NULL CHECK (spent_before >= 0),
  expires_at           timestamptz NOT NULL,
  transaction_id       uuid NOT NULL,
  places               int NOT NULL,
  hold_entry_no        bigint,
  created_at           timestamptz NOT NULL,
  updated_at           timestamptz NOT NULL,
  PRIMARY KEY (customer_id, authorization_id),
  FOREIGN KEY (customer_id, card_id) REFERENCES card,
  FOREIGN KEY (customer_id, pocket_id) REFERENCES pocket,
  CHECK ((status = 'PENDING') = (remaining > 0)),
  CHECK ((remaining > 0) = (hold_entry_no IS NOT NULL)),
  CHECK (status <> 'PENDING' OR remaining = approved - reversed - cleared),
  CHECK ((status = 'DECLINED') = (reason IS NOT NULL))
);
CREATE UNIQUE INDEX card_authorization_hold ON card_authorization (customer_id, hold_entry_no)
  WHERE hold_entry_no IS NOT NULL;
CREATE INDEX card_authorization_day ON card_authorization (customer_id, card_id, authorized_on);

-- Messages of the card processor that were declined because the bank did not decide in time.
CREATE TABLE card_late_message (
  message_id   uuid PRIMARY KEY,
  customer_id  uuid NOT NULL REFERENCES customer,
  message      json NOT NULL
);

-- Money that a record of the processor's settlement moved. `disputed` cents of a purchase are charged back.
CREATE TABLE card_payment (
  customer_id       uuid NOT NULL REFERENCES customer,
  record_id         uuid NOT NULL,
  kind              text NOT NULL CHECK (kind IN ('PURCHASE', 'REFUND', 'CHARGEBACK', 'REPRESENTMENT')),
  card_id           uuid NOT NULL,
  pocket_id         uuid NOT NULL,
  authorization_id  uuid,
  original_id       uuid,
  amount            bigint NOT NULL CHECK (amount > 0),
  disputed          bigint NOT NULL CHECK (disputed BETWEEN 0 AND amount),
  interchange       bigint NOT NULL,
  merchant          json NOT NULL,
  settles_on        date NOT NULL,
  entry_no          bigint NOT NULL,
  transaction_id    uuid NOT NULL,
  created_at        timestamptz NOT NULL,
  updated_at        timestamptz NOT NULL,
  PRIMARY KEY (customer_id, record_id),
  FOREIGN KEY (customer_id, card_id) REFERENCES card,
  FOREIGN KEY (customer_id, pocket_id) REFERENCES pocket,
  FOREIGN KEY (customer_id, original_id) REFERENCES card_payment,
  CHECK (disputed = 0 OR kind = 'PURCHASE'),
  CHECK ((kind IN ('CHARGEBACK', 'REPRESENTMENT')) = (original_id IS NOT NULL)),
  CHECK (authorization_id IS NULL OR kind = 'PURCHASE')
);
CREATE INDEX card_payment_authorization ON card_payment (customer_id, authorization_id)
  WHERE authorization_id IS NOT NULL;
CREATE INDEX card_payment_card ON card_payment (customer_id, card_id, created_at);
CREATE INDEX card_payment_settles ON card_payment (settles_on);
CREATE INDEX card_payment_created ON card_payment (created_at);

-- An accepted file of the card processor, with the totals that its trailer states.
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

-- Its records. One that cannot be booked is held in suspense as `item_id`; `reason` says why, if the record itself is
-- wrong.
CREATE TABLE card_settlement_record (
  file_id      uuid NOT NULL REFERENCES card_settlement_file,
  line         int NOT NULL CHECK (line > 1),
  type         text NOT NULL CHECK (type IN ('PRESENTMENT', 'REFUND', 'CHARGEBACK', 'REPRESENTMENT', 'FEE',
                    'UNREADABLE')),
  record_id    uuid,
  card_id      uuid,
  direction    text NOT NULL CHECK (direction IN ('CREDIT', 'DEBIT')),
  amount       bigint NOT NULL CHECK (amount >= 0),
  interchange  bigint NOT NULL,
  item_id      uuid NOT NULL UNIQUE,
  reason       text,
  PRIMARY KEY (file_id, line),
  CHECK ((type = 'UNREADABLE') = (record_id IS NULL)),
  CHECK ((card_id IS NULL) = type IN ('FEE', 'UNREADABLE')),
  CHECK (type <> 'UNREADABLE' OR reason IS NOT NULL)
);
-- The same record in two files is booked once.
CREATE UNIQUE INDEX card_settlement_record_once ON card_settlement_record (record_id) WHERE reason IS NULL;

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

-- Cash back of a card for a month. `carried_in`: what refunds of the customer's other cards, and before, take off it.
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

-- Stablecoins -------------------------------------------------------------------------------------------------------

-- `wallet_address` is sealed; `transaction_hash` is that of the transaction that became final.
CREATE TABLE crypto_withdrawal (
  customer_id        uuid NOT NULL,
  withdrawal_id      uuid NOT NULL,
  partner_id         uuid NOT NULL,
  pocket_id          uuid NOT NULL,
  counterparty_id    uuid NOT NULL,
  counterparty_name  text NOT NULL,
  chain              text NOT NULL,
  asset              text NOT NULL,
  wallet_address     text NOT NULL,
  amount             bigint NOT NULL CHECK (amount > 0),
  status             text NOT NULL CHECK (status IN ('PENDING', 'PROCESSING', 'COMPLETED', 'REJECTED')),
  reason             text,
  transaction_hash   text,
  transaction_id     uuid NOT NULL,
  entry_no           bigint NOT NULL,
  return_entry_no    bigint,
  created_at         timestamptz NOT NULL,
  settled_at         timestamptz,
  updated_at         timestamptz NOT NULL,
  written_no         bigint GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (customer_id, withdrawal_id),
  FOREIGN KEY (customer_id, pocket_id) REFERENCES pocket,
  CONSTRAINT crypto_withdrawal_rejected_for CHECK ((status = 'REJECTED') = (reason IS NOT NULL)),
  CONSTRAINT crypto_withdrawal_returned CHECK ((status = 'REJECTED') = (return_entry_no IS NOT NULL)),
  CONSTRAINT crypto_withdrawal_settled CHECK ((status = 'COMPLETED') = (settled_at IS NOT NULL)),
  CONSTRAINT crypto_withdrawal_paid_by CHECK (status <> 'COMPLETED' OR transaction_hash IS NOT NULL)
);
CREATE INDEX crypto_withdrawal_open ON crypto_withdrawal (chain, written_no) WHERE status IN ('PENDING', 'PROCESSING');
-- The clearing of the rail reads these two.
CREATE INDEX crypto_withdrawal_sent ON crypto_withdrawal (created_at);
CREATE INDEX crypto_withdrawal_returned ON crypto_withdrawal (updated_at) WHERE status = 'REJECTED';

-- The wallets from which the bank pays, each with the next free nonce, and the problem that keeps it from paying.
CREATE TABLE crypto_wallet (
  chain           text NOT NULL,
  address         text NOT NULL,
  first_nonce     bigint NOT NULL CHECK (first_nonce >= 0),
  next_nonce      bigint NOT NULL CHECK (next_nonce >= first_nonce),
  problem         text,
  problem_detail  text,
  problem_since   timestamptz,
  PRIMARY KEY (chain, address),
  CHECK ((problem IS NULL) = (problem_since IS NULL))
);

-- What is done for a withdrawal on its chain: a nonce of the wallet, once, or a refusal, which has none.
CREATE TABLE crypto_transaction (
  customer_id       uuid NOT NULL,
  withdrawal_id     uuid NOT NULL,
  chain             text NOT NULL,
  state             text NOT NULL CHECK (state IN ('REFUSED', 'RESERVED', 'SIGNED', 'SUBMITTED', 'MINED', 'CONFIRMED',
                    'REVERTED', 'CANCELED', 'DISPLACED')),
  wallet            text,
  nonce             bigint,
  token             text,
  gas_limit         bigint,
  requested         text CHECK (requested IN ('REPLACE', 'CANCEL')),
  reason            text,
  transaction_hash  text,
  block_number      bigint,
  block_hash        text,
  fee_wei           numeric(78,0),
  reserved_at       timestamptz NOT NULL,
  updated_at        timestamptz NOT NULL,
  PRIMARY KEY (customer_id, withdrawal_id),
  UNIQUE (chain, wallet, nonce),
  FOREIGN KEY (customer_id, withdrawal_id) REFERENCES crypto_withdrawal,
  FOREIGN KEY (chain, wallet) REFERENCES crypto_wallet,
  CONSTRAINT crypto_transaction_refused CHECK (
    CASE WHEN state = 'REFUSED' THEN wallet IS NULL AND nonce IS NULL AND reason IS NOT NULL
         ELSE wallet IS NOT NULL AND nonce IS NOT NULL AND token IS NOT NULL AND gas_limit IS NOT NULL END),
  CONSTRAINT crypto_transaction_final CHECK (
    state NOT IN ('CONFIRMED', 'REVERTED', 'CANCELED', 'DISPLACED')
    OR (transaction_hash IS NOT NULL AND block_number IS NOT NULL AND block_hash IS NOT NULL))
);
CREATE INDEX crypto_transaction_open ON crypto_transaction (chain, nonce)
  WHERE state IN ('RESERVED', 'SIGNED', 'SUBMITTED', 'MINED');

-- Each signed transaction of a nonce, in the order of signing. `raw` is sealed.
CREATE TABLE crypto_signature (
  customer_id       uuid NOT NULL,
  withdrawal_id     uuid NOT NULL,
  attempt           int NOT NULL CHECK (attempt >= 1),
  intent            text NOT NULL CHECK (intent IN ('PAY', 'CANCEL')),
  transaction_hash  text NOT NULL UNIQUE,
  max_fee           bigint NOT NULL CHECK (max_fee > 0),
  priority_fee      bigint NOT NULL CHECK (priority_fee >= 0),
  raw               text NOT NULL,
  signed_at         timestamptz NOT NULL,
  sent_at           timestamptz,
  PRIMARY KEY (customer_id, withdrawal_id, attempt),
  FOREIGN KEY (customer_id, withdrawal_id) REFERENCES crypto_transaction
);

-- How far a chain has been read: `seen` by one node, `final` by all nodes that must agree. Wall time.
CREATE TABLE chain_cursor (
  chain         text PRIMARY KEY,
  seen_number   bigint NOT NULL CHECK (seen_number >= final_number),
  final_number  bigint NOT NULL CHECK (final_number >= 0),
  final_hash    text NOT NULL,
  agreed_at     timestamptz NOT NULL,
  problems      json NOT NULL DEFAULT '{}' -- by node, since the last round
);

CREATE TABLE chain_block (
  chain        text NOT NULL,
  number       bigint NOT NULL,
  hash         text NOT NULL,
  parent_hash  text NOT NULL,
  PRIMARY KEY (chain, number)
);

-- Transfers seen on chains to addresses of portals. `units` are the token's smallest.
CREATE TABLE chain_transfer (
  chain         text NOT NULL,
  tx_hash       text NOT NULL,
  log_index     int NOT NULL CHECK (log_index >= 0),
  block_number  bigint NOT NULL,
  block_hash    text NOT NULL,
  token         text NOT NULL,
  sender        text NOT NULL,
  recipient     text NOT NULL,
  units         text NOT NULL CHECK (units ~ '^[0-9]{1,78}$'),
  status        text NOT NULL CHECK (status IN ('PENDING', 'FINAL', 'REORGED', 'WRONG_TOKEN')),
  seen_at       timestamptz NOT NULL, -- wall time
  PRIMARY KEY (chain, tx_hash, log_index)
);
CREATE INDEX chain_transfer_block ON chain_transfer (chain, block_number);
CREATE INDEX chain_transfer_recipient ON chain_transfer (recipient, seen_at);

-- Final transfers of tokens that the bank accepts. `amount` cents were booked; units that are not booked yet are
-- carried.
CREATE TABLE crypto_deposit (
  customer_id   uuid NOT NULL REFERENCES customer,
  deposit_id    uuid NOT NULL,
  portal_id     uuid NOT NULL,
  pocket_id     uuid NOT NULL,
  chain         text NOT NULL,
  tx_hash       text NOT NULL,
  log_index     int NOT NULL,
  block_number  bigint NOT NULL,
  block_hash    text NOT NULL,
  token         text NOT NULL,
  asset         text NOT NULL,
  decimals      smallint NOT NULL CHECK (decimals BETWEEN 2 AND 36),
  sender        text NOT NULL,
  recipient     text NOT NULL,
  units         text NOT NULL CHECK (units ~ '^[0-9]{1,78}$'),
  amount        bigint NOT NULL CHECK (amount >= 0),
  status        text NOT NULL CHECK (status IN ('CREDITED', 'CARRIED', 'HELD', 'QUESTIONED', 'REORGED')),
  reason        text,
  created_at    timestamptz NOT NULL,
  updated_at    timestamptz NOT NULL,
  PRIMARY KEY (customer_id, deposit_id),
  FOREIGN KEY (customer_id, portal_id) REFERENCES portal,
  CHECK (status NOT IN ('CREDITED', 'HELD') OR amount > 0),
  CHECK (status NOT IN ('CARRIED', 'QUESTIONED') OR amount = 0),
  CHECK ((status IN ('HELD', 'QUESTIONED')) <= (reason IS NOT NULL))
);
CREATE INDEX crypto_deposit_portal ON crypto_deposit (customer_id, portal_id);
CREATE INDEX crypto_deposit_list ON crypto_deposit (created_at, deposit_id);
-- A deposit that was written off keeps its place on the chain; if it returns there, another row may have the place.
CREATE UNIQUE INDEX crypto_deposit_place ON crypto_deposit (chain, tx_hash, log_index) WHERE status <> 'REORGED';

-- Identity ----------------------------------------------------------------------------------------------------------
-- Everything here is wall time, but for the days of an invitation.

-- E-mail addresses and telephone numbers are sealed. An address is found by `email_index`, a keyed hash of it.
CREATE TABLE user_account (
  user_id            uuid PRIMARY KEY,
  email              text NOT NULL,
  email_verified_at  timestamptz,
  first_name         text NOT NULL CHECK (length(first_name) BETWEEN 1 AND 50),
  last_name          text NOT NULL CHECK (length(last_name) BETWEEN 1 AND 50),
  phone_number       text CHECK (phone_number ~ '^\+[1-9][0-9]{1,14}$' OR starts_with(phone_number, 'sealed:')),
  phone_verified_at  timestamptz,
  time_zone          text NOT NULL DEFAULT 'America/New_York',
  status             text NOT NULL DEFAULT 'ACTIVE' CHECK (status IN ('ACTIVE', 'DEACTIVATED')),
  created_at         timestamptz NOT NULL,
  last_login_at      timestamptz,
  email_index        bytea UNIQUE,
  CONSTRAINT user_account_email_check CHECK (
    CASE WHEN email_index IS NULL
      THEN email = lower(email) AND email ~ '^[^@\s]+@[^@\s]+$' AND length(email) <= 254
      ELSE starts_with(email, 'sealed:') END)
);
CREATE UNIQUE INDEX user_account_plain_email ON user_account (email) WHERE email_index IS NULL;

-- One row per customer and user. A deactivated member keeps the row and loses everything else.
CREATE TABLE membership (
  customer_id  uuid NOT NULL REFERENCES customer,
  user_id      uuid NOT NULL REFERENCES user_account,
  member_id    uuid NOT NULL UNIQUE,
  role         text NOT NULL CHECK (role IN ('ADMIN', 'MANAGER', 'APPROVER', 'INITIATOR', 'VIEWER', 'SERVICE')),
  status       text NOT NULL CHECK (status IN ('PENDING', 'ACTIVE', 'DEACTIVATED')),
  created_at   timestamptz NOT NULL,
  changed_at   timestamptz NOT NULL,
  PRIMARY KEY (customer_id, user_id)
);
CREATE INDEX membership_user ON membership (user_id);

-- An invited person is no user, member or name that another company could see before accepting, and then becomes a
-- member under this id. `expires_at` is of business time; the link also ends by wall time.
CREATE TABLE invitation (
  member_id        uuid PRIMARY KEY,
  customer_id      uuid NOT NULL REFERENCES customer,
  email            text NOT NULL,
  first_name       text NOT NULL CHECK (length(first_name) BETWEEN 1 AND 50),
  last_name        text NOT NULL CHECK (length(last_name) BETWEEN 1 AND 50),
  phone_number     text CHECK (phone_number ~ '^\+[1-9][0-9]{1,14}$' OR starts_with(phone_number, 'sealed:')),
  role             text NOT NULL CHECK (role IN ('ADMIN', 'MANAGER', 'APPROVER', 'INITIATOR', 'VIEWER')),
  created_at       timestamptz NOT NULL,
  expires_at       timestamptz NOT NULL CHECK (expires_at > created_at),
  link_hash        bytea NOT NULL UNIQUE,
  link_expires_at  timestamptz NOT NULL,
  email_index      bytea,
  UNIQUE (customer_id, email_index),
  CONSTRAINT invitation_email_check CHECK (
    CASE WHEN email_index IS NULL
      THEN email = lower(email) AND email ~ '^[^@\s]+@[^@\s]+$' AND length(email) <= 254
      ELSE starts_with(email, 'sealed:') END)
);
CREATE UNIQUE INDEX invitation_plain_email ON invitation (customer_id, email) WHERE email_index IS NULL;

CREATE TABLE user_password (
  user_id        uuid PRIMARY KEY REFERENCES user_account,
  password_hash  text NOT NULL,
  changed_at     timestamptz NOT NULL
);

CREATE TABLE passkey (
  credential_id  bytea PRIMARY KEY,
  passkey_id     uuid NOT NULL UNIQUE,
  user_id        uuid NOT NULL REFERENCES user_account,
  public_key     bytea NOT NULL,
  sign_count     bigint NOT NULL CHECK (sign_count >= 0),
  name           text NOT NULL CHECK (length(name) BETWEEN 1 AND 60),
  created_at     timestamptz NOT NULL,
  used_at        timestamptz
);
CREATE INDEX passkey_user ON passkey (user_id);

-- A secret that was never confirmed by a code does not count. No step is accepted twice.
CREATE TABLE authenticator (
  user_id       uuid PRIMARY KEY REFERENCES user_account,
  sealed        bytea NOT NULL,
  last_step     bigint NOT NULL DEFAULT 0,
  created_at    timestamptz NOT NULL,
  confirmed_at  timestamptz
);

CREATE TABLE passkey_challenge (
  challenge    bytea PRIMARY KEY,
  cookie_hash  bytea NOT NULL,
  expires_at   timestamptz NOT NULL
);

-- Failures by subject (a hash of an e-mail address, known or not, or of a network address) and factor.
CREATE UNLOGGED TABLE login_attempt (
  subject         uuid NOT NULL,
  factor          text NOT NULL CHECK (factor IN ('password', 'code', 'address', 'partner')),
  failures        int NOT NULL CHECK (failures >= 0),
  last_failed_at  timestamptz NOT NULL,
  PRIMARY KEY (subject, factor)
) WITH (fillfactor = 70);

-- `auth_methods` are in the words of RFC 8176. A session without a second factor opens nothing but the page that
-- requests it.
CREATE TABLE session (
  session_hash      bytea PRIMARY KEY,
  session_id        uuid NOT NULL UNIQUE,
  user_id           uuid NOT NULL REFERENCES user_account,
  auth_methods      text[] NOT NULL,
  complete          boolean NOT NULL,
  authenticated_at  timestamptz NOT NULL,
  started_at        timestamptz NOT NULL,
  last_seen_at      timestamptz NOT NULL,
  ends_at           timestamptz NOT NULL,
  address           text NOT NULL,
  device            text NOT NULL CHECK (length(device) <= 120)
) WITH (fillfactor = 70);
CREATE INDEX session_user_id ON session (user_id);

CREATE TABLE known_device (
  device_hash   bytea NOT NULL,
  user_id       uuid NOT NULL REFERENCES user_account,
  last_seen_at  timestamptz NOT NULL,
  PRIMARY KEY (user_id, device_hash)
);

CREATE TABLE email_link (
  link_hash   bytea PRIMARY KEY,
  user_id     uuid NOT NULL REFERENCES user_account,
  purpose     text NOT NULL CHECK (purpose IN ('welcome', 'reset')),
  created_at  timestamptz NOT NULL,
  expires_at  timestamptz NOT NULL,
  used_at     timestamptz
);
CREATE INDEX email_link_user ON email_link (user_id);

-- An e-mail is written in the transaction of its cause and sent afterwards. Its text is sealed, for it may contain a
-- link that opens a door; text, recipient and subject are deleted once it is sent.
CREATE TABLE outbound_email (
  email_id    uuid PRIMARY KEY,
  recipient   text,
  subject     text,
  sealed      bytea,
  created_at  timestamptz NOT NULL,
  due_at      timestamptz NOT NULL,
  attempts    int NOT NULL DEFAULT 0,
  sent_at     timestamptz,
  CHECK ((sent_at IS NULL) = (sealed IS NOT NULL))
);
CREATE INDEX outbound_email_due ON outbound_email (due_at) WHERE sent_at IS NULL;

-- OAuth -------------------------------------------------------------------------------------------------------------
-- Clients, what users granted them, and the tokens that were issued. Everything is wall time. Secrets are hashes; only
-- signing keys are sealed.

-- `owner_id` is the company whose administrator registered the client: it works for nobody else. A service user is the
-- client it acts as: its name, its scopes, its keys, and whether it is in use.
CREATE TABLE oauth_client (
  client_id                  text PRIMARY KEY CHECK (client_id ~ '^[A-Za-z0-9._-]{1,128}$'),
  name                       text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
  description                text NOT NULL DEFAULT '' CHECK (length(description) <= 500),
  profile                    text NOT NULL CHECK (profile IN ('fapi2', 'documented')),
  redirect_uris              text[] NOT NULL DEFAULT '{}',
  post_logout_redirect_uris  text[] NOT NULL DEFAULT '{}',
  scopes                     text[] NOT NULL CHECK (cardinality(scopes) > 0),
  grant_types                text[] NOT NULL CHECK (
    cardinality(grant_types) > 0 AND grant_types <@ ARRAY['authorization_code', 'refresh_token', 'client_credentials']),
  -- Whom it acts for by itself; only a client with client_credentials, a service user, has one.
  customer_id                uuid REFERENCES customer,
  dpop_bound                 boolean NOT NULL,
  requires_nonce             boolean NOT NULL,
  requires_signature         boolean NOT NULL DEFAULT false,
  created_at                 timestamptz NOT NULL,
  revoked_at                 timestamptz,
  member_id                  uuid UNIQUE,
  owner_id                   uuid REFERENCES customer,
  CHECK (NOT 'refresh_token' = ANY (grant_types) OR 'authorization_code' = ANY (grant_types)),
  CHECK (('client_credentials' = ANY (grant_types)) = (customer_id IS NOT NULL)),
  CHECK (('authorization_code' = ANY (grant_types)) = (cardinality(redirect_uris) > 0)),
  CHECK (profile <> 'fapi2' OR dpop_bound),
  CONSTRAINT oauth_client_is_member CHECK ((member_id IS NULL) = (customer_id IS NULL)),
  CONSTRAINT oauth_client_owner_asks_people CHECK (owner_id IS NULL OR customer_id IS NULL)
);
CREATE INDEX oauth_client_customer ON oauth_client (customer_id) WHERE customer_id IS NOT NULL;
CREATE INDEX oauth_client_owner ON oauth_client (owner_id) WHERE owner_id IS NOT NULL;

-- `registered_by` is the member, a user or a client, that gave the client its key and so can act as it; null: the
-- operator.
CREATE TABLE client_key (
  client_id      text NOT NULL REFERENCES oauth_client,
  key_id         text NOT NULL CHECK (length(key_id) BETWEEN 1 AND 128),
  algorithm      text NOT NULL CHECK (algorithm IN ('ES256', 'PS256', 'EdDSA')),
  public_pem     text NOT NULL,
  created_at     timestamptz NOT NULL,
  expires_at     timestamptz,
  registered_by  uuid,
  PRIMARY KEY (client_id, key_id)
);

-- What a client requested of a user, pushed or by the browser, until the user has decided.
CREATE TABLE oauth_authorization_request (
  request_id      uuid PRIMARY KEY,
  client_id       text NOT NULL REFERENCES oauth_client,
  uri_hash        bytea UNIQUE,
  uri_expires_at  timestamptz,
  redirect_uri    text NOT NULL,
  scopes          text[] NOT NULL,
  state           text,
  nonce           text,
  response_mode   text NOT NULL CHECK (response_mode IN ('query', 'form_post')),
  code_challenge  text NOT NULL CHECK (code_challenge ~ '^[A-Za-z0-9_-]{43}$'),
  jkt             text,
  prompts         text[] NOT NULL DEFAULT '{}',
  max_age         int CHECK (max_age >= 0),
  login_hint      text,
  created_at      timestamptz NOT NULL,
  expires_at      timestamptz NOT NULL,
  decided_at      timestamptz,
  CHECK ((uri_hash IS NULL) = (uri_expires_at IS NULL))
);
CREATE INDEX oauth_authorization_request_age ON oauth_authorization_request (expires_at);

-- What a user lets a client do for one customer, until the user revokes it.
CREATE TABLE oauth_grant (
  grant_id      uuid PRIMARY KEY,
  client_id     text NOT NULL REFERENCES oauth_client,
  user_id       uuid NOT NULL REFERENCES user_account,
  customer_id   uuid NOT NULL REFERENCES customer,
  scopes        text[] NOT NULL,
  created_at    timestamptz NOT NULL,
  renewed_at    timestamptz NOT NULL,
  revoked_at    timestamptz,
  last_used_at  timestamptz
);
CREATE UNIQUE INDEX oauth_grant_in_force ON oauth_grant (client_id, user_id, customer_id) WHERE revoked_at IS NULL;
CREATE INDEX oauth_grant_of_user ON oauth_grant (user_id);

-- A code and all tokens issued for it are one family: a second use of the code ends them all.
CREATE TABLE authorization_code (
  code_hash       bytea PRIMARY KEY,
  family_id       uuid NOT NULL UNIQUE,
  grant_id        uuid NOT NULL REFERENCES oauth_grant,
  client_id       text NOT NULL REFERENCES oauth_client,
  user_id         uuid NOT NULL REFERENCES user_account,
  customer_id     uuid NOT NULL REFERENCES customer,
  redirect_uri    text NOT NULL,
  scopes          text[] NOT NULL,
  nonce           text,
  code_challenge  text NOT NULL,
  jkt             text,
  auth_time       timestamptz NOT NULL,
  session_id      uuid NOT NULL,
  issued_at       timestamptz NOT NULL,
  expires_at      timestamptz NOT NULL,
  used_at         timestamptz
);
CREATE INDEX authorization_code_age ON authorization_code (expires_at);

CREATE TABLE access_token (
  token_hash   bytea PRIMARY KEY,
  client_id    text NOT NULL REFERENCES oauth_client,
  user_id      uuid REFERENCES user_account,
  customer_id  uuid NOT NULL REFERENCES customer,
  grant_id     uuid REFERENCES oauth_grant,
  family_id    uuid NOT NULL,
  scopes       text[] NOT NULL,
  jkt          text,
  auth_time    timestamptz,
  session_id   uuid,
  issued_at    timestamptz NOT NULL,
  expires_at   timestamptz NOT NULL CHECK (expires_at > issued_at),
  CHECK (grant_id IS NULL OR user_id IS NOT NULL)
);
CREATE INDEX access_token_family ON access_token (family_id);
CREATE INDEX access_token_grant ON access_token (grant_id);
CREATE INDEX access_token_user ON access_token (user_id);
CREATE INDEX access_token_client ON access_token (client_id);
CREATE INDEX access_token_session ON access_token (session_id);
CREATE INDEX access_token_age ON access_token (expires_at);

-- `used_at` is set when a bearer token was exchanged for the next one; sender-bound ones stay as they are.
CREATE TABLE refresh_token (
  token_hash   bytea PRIMARY KEY,
  client_id    text NOT NULL REFERENCES oauth_client,
  user_id      uuid NOT NULL REFERENCES user_account,
  customer_id  uuid NOT NULL REFERENCES customer,
  grant_id     uuid NOT NULL REFERENCES oauth_grant,
  family_id    uuid NOT NULL,
  scopes       text[] NOT NULL,
  jkt          text,
  auth_time    timestamptz NOT NULL,
  session_id   uuid NOT NULL,
  issued_at    timestamptz NOT NULL,
  expires_at   timestamptz NOT NULL,
  used_at      timestamptz,
  CHECK (jkt IS NULL OR used_at IS NULL)
);
CREATE INDEX refresh_token_family ON refresh_token (family_id);
CREATE INDEX refresh_token_grant ON refresh_token (grant_id);
CREATE INDEX refresh_token_user ON refresh_token (user_id);
CREATE INDEX refresh_token_client ON refresh_token (client_id);
CREATE INDEX refresh_token_age ON refresh_token (expires_at);

-- Proofs seen in the last seconds, by all processes. Unlogged: after a crash they are too old anyway.
CREATE UNLOGGED TABLE consumed_dpop_proof (
  jkt         text NOT NULL,
  jti_hash    bytea NOT NULL,
  expires_at  timestamptz NOT NULL,
  PRIMARY KEY (jkt, jti_hash)
);
CREATE INDEX consumed_dpop_proof_age ON consumed_dpop_proof (expires_at);

-- The keys that sign ID tokens: published from their creation, used from `active_at`.
CREATE TABLE signing_key (
  key_id      text PRIMARY KEY,
  algorithm   text NOT NULL CHECK (algorithm IN ('PS256', 'RS256')),
  public_jwk  jsonb NOT NULL,
  sealed      bytea NOT NULL,
  created_at  timestamptz NOT NULL,
  active_at   timestamptz NOT NULL,
  retires_at  timestamptz
);

-- Approvals ---------------------------------------------------------------------------------------------------------
-- Dual control: one person requests and another decides. Nothing here moves money; what is approved is carried out by
-- commands of the engine under the request's id.

-- What a customer has agreed with the operator. No row: the defaults.
CREATE TABLE dual_control (
  customer_id  uuid PRIMARY KEY REFERENCES customer,
  -- Whether every reviewer must present a fresh proof, even with a client that does not ask for one.
  step_up      boolean NOT NULL
);

-- The rules that require approvals. Empty lists mean everything, everybody. A rule changes only after a second person
-- has confirmed the change.
CREATE TABLE approval_rule (
  customer_id         uuid NOT NULL REFERENCES customer,
  rule_id             uuid NOT NULL UNIQUE,
  name                text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
  actions             text[] NOT NULL CHECK (cardinality(actions) > 0),
  transfer_types      text[] NOT NULL,
  min_amount          bigint CHECK (min_amount > 0),
  daily_cap           bigint CHECK (daily_cap > 0),
  required_approvals  smallint NOT NULL CHECK (required_approvals BETWEEN 0 AND 5),
  approver_roles      text[] NOT NULL,
  approver_ids        uuid[] NOT NULL,
  ordered             boolean NOT NULL,
  enabled             boolean NOT NULL,
  version             int NOT NULL CHECK (version > 0),
  created_at          timestamptz NOT NULL,
  updated_at          timestamptz NOT NULL,
  written_no          bigint GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (customer_id, rule_id),
  CHECK (NOT ordered OR (approver_roles = '{}' AND cardinality(approver_ids) = required_approvals)
                     OR (approver_ids = '{}' AND cardinality(approver_roles) = required_approvals))
);

-- `content` is the exact text that is approved, `content_hash` its SHA-256; a change replaces both, and approvals of
-- another hash do not count. `terms` are those of the rule when the request was made or changed; `reason` says why it
-- could not be carried out. `version` counts contents from the second on; null is the first.
CREATE TABLE transfer_request (
  customer_id      uuid NOT NULL REFERENCES customer,
  request_id       uuid NOT NULL UNIQUE,
  type             text NOT NULL CHECK (type IN ('ON_US', 'WIRE', 'USDC')),
  pocket_id        uuid NOT NULL,
  counterparty_id  uuid,
  amount           bigint NOT NULL CHECK (amount > 0),
  content          json NOT NULL,
  content_hash     bytea NOT NULL CHECK (length(content_hash) = 32),
  asked            bytea NOT NULL CHECK (length(asked) = 32),
  member_id        uuid NOT NULL,
  user_id          uuid,
  client_id        text NOT NULL,
  reviewers        uuid[] NOT NULL,
  rule_id          uuid,
  terms            json NOT NULL,
  business_date    date NOT NULL,
  status           text NOT NULL CHECK (status IN ('PENDING', 'APPROVED', 'DENIED', 'CANCELLED', 'EXPIRED')),
  reason           text,
  created_at       timestamptz NOT NULL,
  updated_at       timestamptz NOT NULL,
  expires_at       timestamptz NOT NULL CHECK (expires_at > created_at),
  version          int CHECK (version > 1),
  written_no       bigint GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (customer_id, request_id),
  CHECK (reason IS NULL OR status = 'APPROVED')
);
CREATE INDEX transfer_request_cap ON transfer_request (rule_id, business_date) WHERE rule_id IS NOT NULL;
CREATE INDEX transfer_request_list ON transfer_request (customer_id, created_at, written_no);

-- A request for a sensitive change: of a rule, of a member's role, a new counterparty.
CREATE TABLE authorization_request (
  customer_id    uuid NOT NULL REFERENCES customer,
  request_id     uuid NOT NULL UNIQUE,
  action         text NOT NULL,
  resource_type  text NOT NULL,
  resource_id    uuid,
  content        json NOT NULL,
  content_hash   bytea NOT NULL CHECK (length(content_hash) = 32),
  member_id      uuid NOT NULL,
  user_id        uuid,
  client_id      text NOT NULL,
  terms          json NOT NULL,
  status         text NOT NULL CHECK (status IN ('PENDING', 'APPROVED', 'DENIED', 'EXPIRED')),
  applied_at     timestamptz,
  refused        text,
  created_at     timestamptz NOT NULL,
  updated_at     timestamptz NOT NULL,
  expires_at     timestamptz NOT NULL CHECK (expires_at > created_at),
  written_no     bigint GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (customer_id, request_id),
  CHECK (status = 'APPROVED' OR applied_at IS NULL AND refused IS NULL)
);
CREATE INDEX authorization_request_list ON authorization_request (customer_id, created_at, written_no);

-- One decision of one user about one content. `member_since` is when the membership last changed: the decision of a
-- reviewer who got another role since, or was deactivated, does not count any more.
CREATE TABLE review (
  customer_id   uuid NOT NULL,
  request_id    uuid NOT NULL,
  review_no     int NOT NULL CHECK (review_no > 0),
  member_id     uuid NOT NULL,
  user_id       uuid NOT NULL REFERENCES user_account,
  role          text NOT NULL,
  member_since  timestamptz NOT NULL,
  decision      text NOT NULL CHECK (decision IN ('APPROVED', 'DENIED')),
  comment       text CHECK (length(comment) <= 500),
  content_hash  bytea NOT NULL CHECK (length(content_hash) = 32),
  created_at    timestamptz NOT NULL,
  voided_at     timestamptz,
  PRIMARY KEY (customer_id, request_id, review_no)
);
CREATE UNIQUE INDEX review_once_per_user ON review (customer_id, request_id, user_id) WHERE voided_at IS NULL;

-- A freeze, its end (`freezes` is false), or a movement of money (`movement`, the command as JSON) that one operator
-- proposes and another confirms. Each write leaves the row's fingerprint in the bank's audit log. `ends_entry_no` is
-- the entry of the owner's audit log that recorded the freeze which the proposal ends.
CREATE TABLE freeze_proposal (
  proposal_id    uuid PRIMARY KEY,
  customer_id    uuid NOT NULL REFERENCES customer, -- the bank itself
  owner_id       uuid NOT NULL REFERENCES customer, -- the customer that it is about
  subject        text CHECK (subject IN ('CUSTOMER', 'POCKET', 'CARD')),
  subject_id     uuid NOT NULL,
  freezes        boolean NOT NULL,
  reason         text NOT NULL CHECK (length(reason) BETWEEN 1 AND 500),
  status         text NOT NULL CHECK (status IN ('PROPOSED', 'CONFIRMED', 'APPLIED', 'REFUSED', 'WITHDRAWN')),
  proposed_by    text NOT NULL,
  proposed_at    timestamptz NOT NULL,
  decided_by     text,
  decided_at     timestamptz,
  ends_entry_no  bigint,
  movement       text,
  CHECK ((status = 'PROPOSED') = (decided_by IS NULL)),
  CHECK ((decided_by IS NULL) = (decided_at IS NULL)),
  CHECK (status NOT IN ('CONFIRMED', 'APPLIED', 'REFUSED') OR decided_by <> proposed_by),
  CHECK (ends_entry_no IS NULL OR NOT freezes),
  CONSTRAINT freeze_proposal_movement CHECK (
    (subject IS NULL) = (movement IS NOT NULL) AND NOT (movement IS NOT NULL AND freezes))
);
CREATE UNIQUE INDEX freeze_proposal_open ON freeze_proposal (subject_id) WHERE status IN ('PROPOSED', 'CONFIRMED');
CREATE INDEX freeze_proposal_list ON freeze_proposal (customer_id, (status = ANY (ARRAY['PROPOSED'::text,
    'CONFIRMED'::text])), proposed_at, proposal_id);

-- Onboarding --------------------------------------------------------------------------------------------------------

-- Applications of businesses and individuals. `content`, what applicants say of themselves, is sealed. An application
-- belongs to its author: a partner's own customer, or the customer that applies through the Customer API.
-- `submitted_invite_id` is the invite by which it was submitted.
CREATE TABLE application (
  customer_id          uuid NOT NULL REFERENCES customer,
  application_id       uuid NOT NULL,
  applicant_id         uuid NOT NULL UNIQUE,
  partner_id           uuid NOT NULL,
  kind                 text NOT NULL CHECK (kind IN ('BUSINESS', 'INDIVIDUAL')),
  status               text NOT NULL CHECK (status IN ('CREATED', 'SUBMITTED', 'PENDING', 'MANUAL_REVIEW',
                    'DOCUMENTS_NEEDED', 'APPROVED', 'REJECTED', 'CLOSED')),
  is_approved          boolean NOT NULL DEFAULT false,
  content              bytea NOT NULL,
  request_mac          bytea NOT NULL,
  requested_documents  text[] NOT NULL DEFAULT '{}',
  exception_reasons    text[] NOT NULL DEFAULT '{}',
  move_no              int NOT NULL DEFAULT 0 CHECK (move_no >= 0),
  created_at           timestamptz NOT NULL,
  updated_at           timestamptz NOT NULL,
  submitted_at         timestamptz,
  submitted_by         uuid,
  submitted_address    text,
  submitted_agent      text,
  written_no           bigint GENERATED ALWAYS AS IDENTITY,
  submitted_invite_id  uuid,
  PRIMARY KEY (customer_id, application_id),
  CHECK (status <> 'APPROVED' OR is_approved),
  CHECK (NOT is_approved OR status IN ('SUBMITTED', 'PENDING', 'MANUAL_REVIEW', 'APPROVED')),
  CHECK (status IN ('CREATED', 'CLOSED') OR submitted_at IS NOT NULL)
);
CREATE INDEX application_list ON application (customer_id, kind, created_at, written_no);
CREATE INDEX application_review ON application (submitted_at, application_id) WHERE status = 'MANUAL_REVIEW';

-- Every change of a status.
CREATE TABLE application_move (
  customer_id     uuid NOT NULL,
  move_id         uuid PRIMARY KEY,
  application_id  uuid NOT NULL,
  move_no         int NOT NULL,
  status          text NOT NULL,
  moved_at        timestamptz NOT NULL,
  FOREIGN KEY (customer_id, application_id) REFERENCES application
);

CREATE TABLE related_party_application (
  customer_id       uuid NOT NULL,
  application_id    uuid NOT NULL,
  related_party_id  uuid NOT NULL,
  content           bytea NOT NULL,
  created_at        timestamptz NOT NULL,
  updated_at        timestamptz NOT NULL,
  written_no        bigint GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (customer_id, application_id, related_party_id),
  FOREIGN KEY (customer_id, application_id) REFERENCES application
);

-- Invites to fill in, review or submit an application. `content`, the invited person, is sealed with the key of the
-- applicant.
CREATE TABLE application_invite (
  customer_id       uuid NOT NULL,
  invite_id         uuid PRIMARY KEY,
  application_id    uuid NOT NULL,
  invitation_type   text NOT NULL CHECK (invitation_type IN ('COLLABORATOR', 'AUTHORIZED_PERSON', 'RELATED_PARTY')),
  related_party_id  uuid,
  requested_fields  text[] NOT NULL DEFAULT '{}',
  content           bytea NOT NULL,
  created_at        timestamptz NOT NULL,
  expires_at        timestamptz NOT NULL CHECK (expires_at > created_at),
  sent_at           timestamptz NOT NULL, -- wall time, as the next two
  link_hash         bytea NOT NULL UNIQUE,
  link_expires_at   timestamptz NOT NULL,
  accepted_at       timestamptz,
  written_no        bigint GENERATED ALWAYS AS IDENTITY,
  FOREIGN KEY (customer_id, application_id) REFERENCES application,
  CHECK ((invitation_type = 'RELATED_PARTY') = (related_party_id IS NOT NULL)),
  CHECK (invitation_type = 'RELATED_PARTY' OR requested_fields = '{}')
);
CREATE INDEX application_invite_list ON application_invite (customer_id, application_id, written_no);

-- Links that were mailed before the newest one: they stay valid side by side until one is used, and go with their
-- invitation. Wall time.
CREATE TABLE earlier_link (
  link_hash   bytea PRIMARY KEY,
  member_id   uuid REFERENCES invitation ON DELETE CASCADE, -- of an invitation into a team
  invite_id   uuid REFERENCES application_invite ON DELETE CASCADE, -- of an invite to an application
  expires_at  timestamptz NOT NULL,
  CHECK (num_nonnulls(member_id, invite_id) = 1)
);
CREATE INDEX earlier_link_member ON earlier_link (member_id);
CREATE INDEX earlier_link_invite ON earlier_link (invite_id);

-- Browsers in which the link of an invite was opened. Wall time.
CREATE TABLE invite_session (
  session_hash  bytea PRIMARY KEY,
  invite_id     uuid NOT NULL REFERENCES application_invite ON DELETE CASCADE,
  last_seen_at  timestamptz NOT NULL,
  ends_at       timestamptz NOT NULL
);
CREATE INDEX invite_session_invite ON invite_session (invite_id);
CREATE INDEX invite_session_end ON invite_session (ends_at);

-- What was typed in a step that is not complete; sealed.
CREATE TABLE invite_draft (
  invite_id  uuid NOT NULL REFERENCES application_invite ON DELETE CASCADE,
  step       text NOT NULL,
  content    bytea NOT NULL,
  PRIMARY KEY (invite_id, step)
);

-- Who is invited into the team of a company when its application is approved; `content` is sealed.
CREATE TABLE awaited_team_member (
  customer_id     uuid NOT NULL,
  application_id  uuid NOT NULL,
  member_id       uuid NOT NULL UNIQUE,
  content         bytea NOT NULL,
  created_at      timestamptz NOT NULL,
  written_no      bigint GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (customer_id, application_id, member_id),
  FOREIGN KEY (customer_id, application_id) REFERENCES application
);

-- Versions of the agreements: their texts and files as they were published, for good. A version is the day from
-- which it is in force. The bank's own audit log proves the rows.
CREATE TABLE agreement_version (
  customer_id   uuid NOT NULL, -- the bank itself
  version       text PRIMARY KEY CHECK (version = to_char(release_date, 'YYYY-MM-DD')),
  release_date  date NOT NULL,
  required_by   date CHECK (required_by >= release_date),
  published_at  timestamptz NOT NULL -- wall time
);
CREATE TRIGGER agreement_version_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON agreement_version
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TABLE agreement_document (
  customer_id  uuid NOT NULL, -- the bank itself
  version      text NOT NULL REFERENCES agreement_version,
  type         text NOT NULL,
  document_no  int NOT NULL CHECK (document_no >= 0),
  title        text NOT NULL,
  category     text NOT NULL CHECK (category IN ('BANK', 'BROKERAGE', 'GENERAL', 'E-SIGN')),
  content      text NOT NULL, -- JSON
  pdf          bytea NOT NULL,
  PRIMARY KEY (version, type)
);
CREATE TRIGGER agreement_document_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON agreement_document
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Acceptances are written by commands, whose outcomes prove them. The foreign key is deferred because rows of one
-- commit are not written in the order of their tables.
CREATE TABLE agreement_acceptance (
  customer_id     uuid NOT NULL REFERENCES customer DEFERRABLE INITIALLY DEFERRED,
  application_id  uuid,
  version         text NOT NULL,
  accepted_at     timestamptz NOT NULL,
  recorded_at     timestamptz NOT NULL,
  ip_address      text,
  user_agent      text,
  acceptance_id   uuid NOT NULL DEFAULT gen_random_uuid() UNIQUE,
  accepted_by     text CHECK (accepted_by IN ('USER', 'PARTNER', 'INVITED', 'OPERATOR')),
  accepted_by_id  uuid,
  PRIMARY KEY (customer_id, version)
);
CREATE TRIGGER agreement_acceptance_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON agreement_acceptance
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Imported sanctions lists. One is in force and its entries are kept; of the others only this row is left.
CREATE TABLE sanctions_list (
  list_id        uuid PRIMARY KEY,
  published_on   date NOT NULL,
  digest         text NOT NULL CHECK (length(digest) = 64), -- of its content
  entry_count    int NOT NULL CHECK (entry_count > 0),
  name_count     int NOT NULL CHECK (name_count >= entry_count),
  is_current     boolean NOT NULL,
  imported_at    timestamptz NOT NULL, -- wall time
  is_enumerated  boolean NOT NULL DEFAULT false
);
CREATE UNIQUE INDEX sanctions_list_current ON sanctions_list (is_current) WHERE is_current;

CREATE TABLE sanctions_entry (
  list_id  uuid NOT NULL REFERENCES sanctions_list,
  uid      bigint NOT NULL, -- the publisher's number
  content  bytea NOT NULL, -- JSON
  PRIMARY KEY (list_id, uid)
);

-- Names that are similar to one of a sanctions list, until two operators say that they are somebody else's. The name
-- and the reason are sealed. The bank's own audit log proves each row: no customer is told of it.
CREATE TABLE sanctions_hit (
  customer_id   uuid NOT NULL REFERENCES customer, -- the bank itself
  hit_id        uuid PRIMARY KEY, -- derived from the subject, the name, the entry and its name
  subject_kind  text NOT NULL CHECK (subject_kind IN ('APPLICATION', 'RELATED_PARTY', 'CUSTOMER', 'COUNTERPARTY')),
  subject_id    uuid NOT NULL,
  owner_id      uuid NOT NULL, -- the customer or the applicant
  entry_uid     bigint NOT NULL,
  score         smallint NOT NULL CHECK (score BETWEEN 0 AND 100),
  status        text NOT NULL CHECK (status IN ('OPEN', 'CLEARED', 'CONFIRMED')),
  cleared_by    text[] NOT NULL DEFAULT '{}' CHECK (cardinality(cleared_by) < 2 OR cleared_by[1] <> cleared_by[2]),
  confirmed_by  text,
  content       bytea NOT NULL,
  found_at      timestamptz NOT NULL,
  decided_at    timestamptz,
  CHECK (CASE status WHEN 'CLEARED' THEN cardinality(cleared_by) = 2 ELSE cardinality(cleared_by) < 2 END),
  CHECK ((status = 'CONFIRMED') = (confirmed_by IS NOT NULL)),
  CHECK ((status = 'OPEN') = (decided_at IS NULL))
);
CREATE INDEX sanctions_hit_owner ON sanctions_hit (owner_id) WHERE status <> 'CLEARED';
CREATE INDEX sanctions_hit_open ON sanctions_hit (found_at, hit_id) WHERE status = 'OPEN';

-- Subjects that the list in force is still to be compared with, in turns: the nth of each customer, then the next.
CREATE TABLE sanctions_backlog (
  subject_id       uuid PRIMARY KEY,
  is_counterparty  boolean NOT NULL, -- else a customer or an applicant, with related parties
  customer_id      uuid NOT NULL,
  turn             bigint NOT NULL
);
CREATE INDEX sanctions_backlog_turn ON sanctions_backlog (turn, subject_id);

-- Events, webhooks and notifications --------------------------------------------------------------------------------
-- Everything but `raised_at` is wall time.

CREATE TABLE event_reader (
  name      text PRIMARY KEY,
  position  pg_snapshot NOT NULL
);
INSERT INTO event_reader VALUES ('sequencer', '1:1:');

-- The place of an event among all those of a partner, and of a customer: without gaps. `global_sequence` has gaps,
-- but a reader that continues after it misses nothing, since one process at a time writes here.
CREATE TABLE event_sequence (
  customer_id        uuid NOT NULL,
  event_no           bigint NOT NULL,
  event_id           uuid NOT NULL,
  partner_id         uuid NOT NULL,
  kind               text NOT NULL,
  raised_at          timestamptz NOT NULL,
  partner_sequence   bigint CHECK (partner_sequence > 0),
  customer_sequence  bigint CHECK (customer_sequence > 0),
  global_sequence    bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  PRIMARY KEY (customer_id, event_no),
  UNIQUE (partner_id, partner_sequence),
  UNIQUE (customer_id, customer_sequence)
);
CREATE INDEX event_sequence_partner_time ON event_sequence (partner_id, raised_at);
CREATE INDEX event_sequence_customer_time ON event_sequence (customer_id, raised_at);

-- A partner's, or with `customer_id` a customer's own. Events raised before `enabled_since_xid` are not sent.
CREATE TABLE subscription (
  subscription_id    uuid PRIMARY KEY,
  partner_id         uuid NOT NULL,
  customer_id        uuid,
  url                text NOT NULL CHECK (length(url) BETWEEN 1 AND 2083),
  description        text NOT NULL DEFAULT '',
  events             text[] NOT NULL CHECK (cardinality(events) > 0),
  status             text NOT NULL CHECK (status IN ('enabled', 'disabled')),
  disabled_because   text CHECK (disabled_because IS NULL OR status = 'disabled'),
  retry_policy       json,
  enabled_since_xid  xid8 NOT NULL DEFAULT pg_current_xact_id(),
  created_at         timestamptz NOT NULL,
  updated_at         timestamptz NOT NULL,
  deleted_at         timestamptz,
  CHECK (deleted_at IS NULL OR status = 'disabled')
);
CREATE INDEX subscription_partner ON subscription (partner_id, created_at, subscription_id)
  WHERE customer_id IS NULL AND deleted_at IS NULL;
CREATE INDEX subscription_customer ON subscription (customer_id, created_at, subscription_id)
  WHERE customer_id IS NOT NULL AND deleted_at IS NULL;

-- Sealed, since a hash cannot sign. Two while one is being replaced.
CREATE TABLE subscription_secret (
  subscription_id  uuid NOT NULL REFERENCES subscription,
  secret_no        int NOT NULL,
  sealed           bytea NOT NULL,
  created_at       timestamptz NOT NULL,
  expires_at       timestamptz,
  PRIMARY KEY (subscription_id, secret_no)
);

-- A process that delivers. It holds an advisory lock of its number as long as it lives.
CREATE TABLE webhook_worker (
  worker_no     int PRIMARY KEY,
  last_seen_at  timestamptz NOT NULL
);

-- One per subscription: one worker at a time reads it, which keeps the order. `sequence` is the last that was queued,
-- `due_at` when the next delivery is due, `failures` those in a row.
CREATE TABLE subscription_queue (
  subscription_id  uuid PRIMARY KEY REFERENCES subscription,
  sequence         bigint NOT NULL CHECK (sequence >= 0),
  queued_at        timestamptz NOT NULL,
  due_at           timestamptz,
  paused_until     timestamptz,
  worker_no        int,
  failures         int NOT NULL DEFAULT 0 CHECK (failures >= 0)
) WITH (fillfactor = 50);
CREATE INDEX subscription_queue_due ON subscription_queue (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX subscription_queue_worker ON subscription_queue (worker_no) WHERE worker_no IS NOT NULL;

-- Events that a sandbox, or a test of one subscription, simulates. They are in no log.
CREATE TABLE simulated_event (
  serial           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  event_id         uuid NOT NULL,
  partner_id       uuid NOT NULL,
  customer_id      uuid,
  subscription_id  uuid REFERENCES subscription,
  kind             text NOT NULL,
  payload          json NOT NULL,
  raised_at        timestamptz NOT NULL,
  queued_at        timestamptz NOT NULL,
  UNIQUE NULLS NOT DISTINCT (partner_id, customer_id, event_id)
);

-- One event for one subscription: of the log, or simulated. `attempts` counts since it was last queued.
CREATE TABLE delivery (
  subscription_id    uuid NOT NULL REFERENCES subscription,
  event_id           uuid NOT NULL,
  customer_id        uuid,
  event_no           bigint,
  sequence           bigint,
  previous_sequence  bigint,
  simulated          bigint REFERENCES simulated_event,
  state              text NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
  attempts           int NOT NULL DEFAULT 0 CHECK (attempts >= 0),
  due_at             timestamptz,
  queued_at          timestamptz NOT NULL,
  PRIMARY KEY (subscription_id, event_id),
  CHECK ((state = 'pending') = (due_at IS NOT NULL)),
  CHECK ((simulated IS NULL) = (event_no IS NOT NULL)),
  CHECK ((event_no IS NULL) = (sequence IS NULL) AND (sequence IS NULL) = (previous_sequence IS NULL)),
  CHECK (event_no IS NULL OR customer_id IS NOT NULL),
  CHECK (previous_sequence < sequence)
) WITH (fillfactor = 80);
CREATE INDEX delivery_due ON delivery (subscription_id, due_at, sequence) WHERE due_at IS NOT NULL;
CREATE INDEX delivery_failed ON delivery (subscription_id, queued_at) WHERE state = 'failed';

-- `response_code` is 0 if there was no response. Its body is not kept.
CREATE TABLE delivery_attempt (
  event_id          uuid NOT NULL,
  subscription_id   uuid NOT NULL,
  attempt_id        uuid NOT NULL,
  success           boolean NOT NULL,
  response_code     int NOT NULL CHECK (response_code = 0 OR response_code BETWEEN 100 AND 999),
  response_message  text NOT NULL,
  called_at         timestamptz NOT NULL,
  duration_ms       int NOT NULL CHECK (duration_ms >= 0),
  PRIMARY KEY (event_id, subscription_id, attempt_id)
);
CREATE INDEX delivery_attempt_time ON delivery_attempt (subscription_id, called_at, attempt_id);

CREATE TABLE notification (
  customer_id      uuid NOT NULL REFERENCES customer,
  notification_id  uuid NOT NULL,
  type             text NOT NULL,
  title            text NOT NULL CHECK (length(title) BETWEEN 1 AND 200),
  description      text NOT NULL CHECK (length(description) <= 2000 OR starts_with(description, 'sealed:')),
  metadata         json,
  created_at       timestamptz NOT NULL,
  PRIMARY KEY (customer_id, notification_id)
);
CREATE INDEX notification_list ON notification (customer_id, created_at, notification_id);

-- One row per user who was in the audience when it happened.
CREATE TABLE notification_recipient (
  customer_id      uuid NOT NULL,
  user_id          uuid NOT NULL REFERENCES user_account,
  created_at       timestamptz NOT NULL,
  notification_id  uuid NOT NULL,
  read_at          timestamptz,
  PRIMARY KEY (customer_id, user_id, created_at, notification_id),
  FOREIGN KEY (customer_id, notification_id) REFERENCES notification
);
CREATE INDEX notification_unread ON notification_recipient (customer_id, user_id, created_at, notification_id)
  WHERE read_at IS NULL;

-- The audience that a team has chosen. No row: the default. Empty lists: nobody.
CREATE TABLE notification_audience (
  customer_id  uuid NOT NULL REFERENCES customer,
  type         text NOT NULL,
  roles        text[] NOT NULL,
  user_ids     uuid[] NOT NULL,
  changed_at   timestamptz NOT NULL,
  PRIMARY KEY (customer_id, type)
);

-- How far notifications have followed the sequenced events.
CREATE TABLE notification_cursor (
  singleton        boolean DEFAULT true PRIMARY KEY CHECK (singleton),
  global_sequence  bigint NOT NULL
);
INSERT INTO notification_cursor (global_sequence) VALUES (0);

-- Events up to `event_no` of a customer notify nobody.
CREATE TABLE notification_baseline (
  customer_id  uuid PRIMARY KEY,
  event_no     bigint NOT NULL
);

-- The audit log -----------------------------------------------------------------------------------------------------
-- Entries are added in the commit of their cause. Wall time.

-- Where a customer's chain ends: this row is locked, and so the entries have one order.
CREATE TABLE audit_chain_head (
  customer_id  uuid PRIMARY KEY,
  entry_no     bigint NOT NULL CHECK (entry_no >= 0),
  hash         bytea NOT NULL,
  recorded_at  timestamptz NOT NULL,
  sealed_no    bigint NOT NULL DEFAULT 0 CHECK (sealed_no BETWEEN 0 AND entry_no)
) WITH (fillfactor = 50);
CREATE INDEX audit_chain_head_unsealed ON audit_chain_head (customer_id) WHERE entry_no > sealed_no;

-- hash: the id of the key, then HMAC-SHA256 under it over the hash of the entry before and all columns of this one.
CREATE TABLE audit_entry (
  customer_id    uuid NOT NULL,
  entry_no       bigint NOT NULL CHECK (entry_no > 0),
  entry_id       uuid NOT NULL,
  recorded_at    timestamptz NOT NULL,
  actor          text NOT NULL CHECK (actor IN ('MEMBER', 'CLIENT', 'PARTNER', 'OPERATOR', 'SYSTEM', 'INVITED')),
  member_id      uuid,
  actor_name     text NOT NULL,
  client_id      text,
  action         text NOT NULL CHECK (action ~ '^[a-z_]+\.[a-z_]+$'),
  resource_type  text NOT NULL,
  resource_id    text,
  outcome        text NOT NULL CHECK (outcome IN ('SUCCESS', 'FAILURE')),
  ip_address     text,
  user_agent     text,
  details        json NOT NULL,
  hash           bytea NOT NULL,
  PRIMARY KEY (customer_id, entry_no)
);
CREATE INDEX audit_entry_time ON audit_entry (customer_id, recorded_at, entry_no);
CREATE INDEX audit_entry_member ON audit_entry (customer_id, member_id, recorded_at, entry_no)
  WHERE member_id IS NOT NULL;
-- The operator console shows what the last verification found.
CREATE INDEX audit_entry_verification ON audit_entry (recorded_at) WHERE action = 'ledger.verified';
-- The last freeze of something is found in one read, however much its owner's audit log has.
CREATE INDEX audit_entry_freeze ON audit_entry (customer_id, resource_type, resource_id, entry_no)
  WHERE outcome = 'SUCCESS' AND (action IN ('customer.frozen', 'pocket.frozen',
    'card.frozen') OR action = 'pocket.updated' AND details->>'status' = 'FROZEN');
CREATE TRIGGER audit_entry_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entry
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- The ends of all chains that moved since the seal before, signed; a copy leaves the database.
CREATE TABLE audit_seal (
  seal_no    bigint PRIMARY KEY CHECK (seal_no > 0),
  sealed_at  timestamptz NOT NULL,
  line       text NOT NULL
);
CREATE TRIGGER audit_seal_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_seal
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Documents, reports and statements ---------------------------------------------------------------------------------

-- Files that customers upload. `file_sealed`: the file is encrypted in the store. Those of an application are sealed
-- with the key of the applicant, `subject_id`; null: of the owner.
CREATE TABLE document (
  customer_id       uuid NOT NULL,
  document_id       uuid NOT NULL UNIQUE,
  type              text NOT NULL,
  status            text NOT NULL CHECK (status IN ('PENDING_UPLOAD', 'PENDING_REVIEW', 'APPROVED', 'INVALID')),
  exception_reason  text,
  name              text CHECK (length(name) <= 255 OR starts_with(name, 'sealed:')),
  media_type        text,
  file_key          text,
  size_bytes        bigint CHECK (size_bytes > 0),
  sha256            text,
  created_at        timestamptz NOT NULL,
  uploaded_at       timestamptz,
  file_sealed       boolean NOT NULL DEFAULT false,
  subject_id        uuid,
  application_id    uuid,
  related_party_id  uuid,
  PRIMARY KEY (customer_id, document_id),
  FOREIGN KEY (customer_id, application_id) REFERENCES application,
  CHECK ((status = 'PENDING_UPLOAD') <= (file_key IS NULL)),
  CHECK (num_nulls(media_type, file_key, size_bytes, sha256, uploaded_at) IN (0, 5)),
  CHECK (status = 'INVALID' OR exception_reason IS NULL),
  CHECK (related_party_id IS NULL OR application_id IS NOT NULL),
  CHECK ((subject_id IS NULL) = (application_id IS NULL))
);
CREATE INDEX document_unsealed ON document (document_id) WHERE file_key IS NOT NULL AND NOT file_sealed;
CREATE INDEX document_application ON document (customer_id, application_id) WHERE application_id IS NOT NULL;

-- A file that the bank made for a customer, downloaded by temporary URLs. Size and hash are those of its content.
-- `proof` is the signature of a file that has no place for it, such as a table.
CREATE TABLE report_file (
  customer_id  uuid NOT NULL REFERENCES customer,
  file_id      uuid PRIMARY KEY,
  name         text NOT NULL CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,119}$'),
  media_type   text NOT NULL,
  size_bytes   bigint NOT NULL CHECK (size_bytes >= 0),
  sha256       text NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  created_at   timestamptz NOT NULL,
  proof        text
);
CREATE INDEX report_file_customer ON report_file (customer_id);

-- Its parts in the file store, each sealed with the customer's data key. Size and hash are those of what is stored.
CREATE TABLE report_file_part (
  file_id     uuid NOT NULL REFERENCES report_file ON DELETE CASCADE,
  part_no     int NOT NULL CHECK (part_no > 0),
  key         text NOT NULL UNIQUE,
  size_bytes  bigint NOT NULL CHECK (size_bytes > 0),
  sha256      text NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  PRIMARY KEY (file_id, part_no)
);

-- The report shows the customer as it was at `created_at`, whenever it is made: up to `entry_no`, since entries booked
-- later may have the same instant in a sandbox, and for a notification after `entries_after`, the last entry that an
-- earlier one showed.
CREATE TABLE report_request (
  customer_id        uuid NOT NULL REFERENCES customer,
  report_request_id  uuid NOT NULL UNIQUE,
  partner_id         uuid NOT NULL,
  report_id          uuid NOT NULL UNIQUE,
  type               text NOT NULL CHECK (type IN ('BANK_STATEMENT_REPORT', 'BROKERAGE_STATEMENT_REPORT',
                    'TRADE_REPORT', 'SECURITY_PRICE_REPORT', 'POSITION_SUMMARY_REPORT')),
  parameters         json NOT NULL,
  output_formats     text[] NOT NULL CHECK (cardinality(output_formats) > 0),
  status             text NOT NULL CHECK (status IN ('PENDING', 'PROCESSING', 'COMPLETED', 'FAILED')),
  failure_reason     text,
  requested_by       text NOT NULL,
  created_at         timestamptz NOT NULL,
  updated_at         timestamptz NOT NULL,
  expires_at         timestamptz NOT NULL,
  written_no         bigint GENERATED ALWAYS AS IDENTITY,
  entry_no           bigint NOT NULL CHECK (entry_no >= 0),
  entries_after      bigint,
  PRIMARY KEY (customer_id, report_request_id),
  CHECK ((status = 'FAILED') = (failure_reason IS NOT NULL)),
  CHECK (expires_at > created_at),
  CHECK (entries_after BETWEEN 0 AND entry_no)
);
CREATE INDEX report_request_created ON report_request (customer_id, created_at, written_no);
CREATE INDEX report_request_of_partner ON report_request (partner_id, created_at, written_no);
CREATE INDEX report_request_expires ON report_request (expires_at);

-- The formats of a report. A worker that makes one holds it until `claimed_until`, wall time as `due_at`. Formats that
-- were requested at once share a batch, and the requester is notified when all of a batch are made.
CREATE TABLE report_format (
  customer_id     uuid NOT NULL,
  report_id       uuid NOT NULL REFERENCES report_request (report_id) ON DELETE CASCADE,
  output_format   text NOT NULL,
  batch_id        uuid NOT NULL,
  tenant_id       uuid NOT NULL,
  status          text NOT NULL CHECK (status IN ('PENDING', 'PROCESSING', 'COMPLETED', 'FAILED')),
  failure_reason  text,
  progress        smallint NOT NULL CHECK (progress BETWEEN 0 AND 100),
  attempts        int NOT NULL CHECK (attempts >= 0),
  due_at          timestamptz NOT NULL,
  started_at      timestamptz,
  owner_id        uuid,
  claimed_until   timestamptz,
  file_id         uuid UNIQUE REFERENCES report_file,
  PRIMARY KEY (report_id, output_format),
  CHECK ((status = 'PROCESSING') = (owner_id IS NOT NULL)),
  CHECK ((owner_id IS NULL) = (claimed_until IS NULL)),
  CHECK ((status = 'COMPLETED') = (file_id IS NOT NULL)),
  CHECK ((status = 'FAILED') = (failure_reason IS NOT NULL))
);
CREATE INDEX report_format_batch ON report_format (batch_id);
CREATE INDEX report_format_waiting ON report_format (tenant_id, due_at) WHERE status IN ('PENDING', 'PROCESSING');
CREATE INDEX report_format_started ON report_format (tenant_id, started_at);
CREATE INDEX report_format_unfinished ON report_format (customer_id) WHERE status IN ('PENDING', 'PROCESSING');

-- The keys that documents are signed with, one from its `active_at` until that of the next. They stay, so that every
-- signature can be verified for good.
CREATE TABLE document_key (
  key_no      int PRIMARY KEY CHECK (key_no > 0),
  key_id      text NOT NULL UNIQUE CHECK (key_id ~ '^[A-Za-z0-9_-]{43}$'),
  public_key  bytea NOT NULL UNIQUE CHECK (length(public_key) = 32),
  sealed      bytea NOT NULL,
  created_at  timestamptz NOT NULL,
  active_at   timestamptz NOT NULL CHECK (active_at >= created_at)
);
CREATE TRIGGER document_key_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON document_key
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Keys that sign nothing from an instant on: a document that was made with one later is not the bank's.
CREATE TABLE document_key_revocation (
  key_id       text PRIMARY KEY REFERENCES document_key (key_id),
  revoked_at   timestamptz NOT NULL,
  recorded_at  timestamptz NOT NULL,
  reason       text NOT NULL CHECK (length(reason) BETWEEN 1 AND 500)
);
CREATE TRIGGER document_key_revocation_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON document_key_revocation
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Statements of Pockets: each version once, its file among those that customers download. A later version is a
-- correction.
CREATE TABLE statement (
  customer_id   uuid NOT NULL,
  statement_id  uuid PRIMARY KEY REFERENCES report_file,
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

-- Months of which every statement has been made.
CREATE TABLE statement_run (
  key          text PRIMARY KEY CHECK (key ~ '^[0-9]{4}-(0[1-9]|1[0-2])$'),
  finished_at  timestamptz NOT NULL
);

-- A customer's status for the Internal Revenue Service, as the customer or the Service stated it. The last version
-- holds.
CREATE TABLE tax_status (
  customer_id        uuid NOT NULL REFERENCES customer,
  version            int NOT NULL CHECK (version > 0),
  exempt             boolean, -- null: the type of business decides
  withholding_from   date,
  withholding_until  date CHECK (withholding_until > withholding_from),
  created_at         timestamptz NOT NULL,
  PRIMARY KEY (customer_id, version),
  CHECK (withholding_until IS NULL OR withholding_from IS NOT NULL)
);
CREATE TRIGGER tax_status_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON tax_status
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Calendar years of which every tax form has been made.
CREATE TABLE tax_run (
  year         int PRIMARY KEY CHECK (year BETWEEN 2000 AND 2999),
  finished_at  timestamptz NOT NULL
);

-- Daily roots -------------------------------------------------------------------------------------------------------

-- What the bank owed at the close of a day: a signed root, chained to the one before. `secret` is sealed; the salts
-- of all leaves derive from it.
CREATE TABLE daily_root (
  number   int PRIMARY KEY CHECK (number > 0),
  day      date NOT NULL UNIQUE,
  jws      text NOT NULL,
  secret   bytea NOT NULL,
  made_at  timestamptz NOT NULL
);
CREATE TRIGGER daily_root_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON daily_root
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE FUNCTION refuse_unpurged_page() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM daily_root_purge WHERE number = OLD.number) THEN
    RAISE EXCEPTION 'pages of root % are kept', OLD.number USING ERRCODE = 'insufficient_privilege';
  END IF;
  RETURN OLD;
END $$;

-- The trees below it, in pages of eight levels: per tile one byte for the power of two of its units and 32 for its
-- hash. The lowest pages of the tree of customers contain the text of their leaves, one per line. Pages are written
-- before their root, hence the deferred foreign key. Hashes do not compress.
CREATE TABLE daily_root_page (
  number             int NOT NULL REFERENCES daily_root DEFERRABLE INITIALLY DEFERRED,
  tree               text NOT NULL,
  height             int NOT NULL CHECK (height > 0 AND height % 8 = 0),
  page_no            bigint NOT NULL CHECK (page_no >= 0),
  tiles              bytea NOT NULL CHECK (length(tiles) > 0 AND (length(tiles) % 33) = 0),
  leaves             bytea,
  first_customer_id  uuid,
  PRIMARY KEY (number, tree, height, page_no),
  CHECK ((leaves IS NULL) = (first_customer_id IS NULL))
);
ALTER TABLE daily_root_page ALTER COLUMN tiles SET STORAGE EXTERNAL;
CREATE INDEX daily_root_page_customer ON daily_root_page (number, first_customer_id)
  WHERE first_customer_id IS NOT NULL;
CREATE TRIGGER daily_root_page_stays BEFORE UPDATE OR TRUNCATE ON daily_root_page
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER daily_root_page_is_purged BEFORE DELETE ON daily_root_page
  FOR EACH ROW EXECUTE FUNCTION refuse_unpurged_page();

-- Roots whose pages are no longer kept: their proofs were given out, the signed roots stay.
CREATE TABLE daily_root_purge (
  number     int PRIMARY KEY REFERENCES daily_root,
  purged_at  timestamptz NOT NULL
);
CREATE TRIGGER daily_root_purge_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON daily_root_purge
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Days for which nothing was published, because more was owed than there was.
CREATE TABLE daily_root_refusal (
  day         date PRIMARY KEY,
  reason      text NOT NULL,
  refused_at  timestamptz NOT NULL
);

-- Writing the ledger ------------------------------------------------------------------------------------------------
-- The settings of these functions keep a plan that was made on empty tables from scanning full ones. Batches are
-- passed as rows, not as one array per column: the driver looks at every element of an array, and at a row only
-- once.

-- A customer's head as it was and as it is after the batch.
CREATE TYPE ledger_head_move AS (
  customer uuid, was bigint, entry_was bigint, entry bigint, event_was bigint, event bigint,
  account int, booked timestamptz, on_date date, due timestamptz, chain bytea, serialized_book bytea
);
-- The bases of a lot as they are after the batch.
CREATE TYPE lot_basis AS (
  customer uuid, account int, asset text, tax bigint, earnings bigint, live boolean
);
-- The counters of a Pocket as they are after the batch.
CREATE TYPE pocket_counters AS (
  customer uuid, pocket uuid, inflow bigint, outflow bigint, fees bigint, realised bigint,
  fee_accrued bigint, uninvested bigint, accrued_through date, next_fee_date date, last_activity_date date,
  unsettled_until date, invest_at timestamptz
);
-- Rows without the columns that their tables fill.
CREATE TYPE new_account AS (
  customer_id uuid, account_no int, kind text, pocket_id uuid, asset text, acquired_on date
);
CREATE TYPE new_event AS (
  customer_id uuid, event_no bigint, event_id uuid, kind text, payload json, raised_at timestamptz
);
CREATE TYPE new_transaction AS (
  customer_id uuid, pocket_id uuid, entry_no bigint, posting_no smallint, activity_id uuid, transaction_id uuid,
  partner_id uuid, type text, direction text, amount bigint, swept boolean, title text, description text,
  booked_at timestamptz, business_date date, settles_at timestamptz, details json, remittance json
);

CREATE FUNCTION pockets_move(moved pocket_counters[]) RETURNS void LANGUAGE plpgsql
  SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
  UPDATE pocket p
     SET inflow = n.inflow, outflow = n.outflow, fees = n.fees, realised = n.realised, fee_accrued = n.fee_accrued,
         uninvested = n.uninvested, accrued_through = n.accrued_through, next_fee_date = n.next_fee_date, last_activity_date = n.last_activity_date,
         unsettled_until = n.unsettled_until, invest_at = n.invest_at
    FROM unnest(moved) AS n
   WHERE p.customer_id = n.customer AND p.pocket_id = n.pocket;
END $$;

-- A job is removed by its key; one that was rescheduled meanwhile stays.
CREATE FUNCTION scheduled_job_complete(of_kind text, objects uuid[], instants timestamptz[]) RETURNS void
LANGUAGE sql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
  DELETE FROM scheduled_job WHERE ctid = ANY(ARRAY(
    SELECT a.ctid FROM unnest(objects, instants) AS k(object_id, due_at)
     CROSS JOIN LATERAL (
           SELECT b.ctid FROM scheduled_job b
            WHERE b.kind = of_kind AND b.object_id = k.object_id AND (k.due_at IS NULL OR b.due_at = k.due_at)
            LIMIT 1) a));
$$;

-- The earliest instant holds.
CREATE FUNCTION scheduled_job_set(jobs scheduled_job[]) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  INSERT INTO scheduled_job (kind, object_id, customer_id, due_at)
  SELECT DISTINCT ON (kind, object_id) * FROM unnest(jobs) ORDER BY kind, object_id, due_at
  ON CONFLICT (kind, object_id) DO UPDATE SET due_at = excluded.due_at;
END $$;

-- The one writer of balances. The entries have been written; balances are derived from those rows. A posting whose
-- account does not exist under its customer, or holds another asset, finds no row, and rows outside the numbers that
-- the heads cover are counted and missed: either fails the whole batch. Every account must exist and only some have
-- a balance. A `bank` account is at zero after each batch. Sides of accounts are summed in the order of accounts, so
-- that these are found and written side by side.
CREATE FUNCTION ledger_move(entries bigint, heads ledger_head_move[], bases lot_basis[]) RETURNS void LANGUAGE plpgsql
  SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_hashagg = off
AS $$
DECLARE
  seen bigint;
  wanted bigint;
  found bigint;
  refused bigint;
BEGIN
  UPDATE ledger_head h
     SET version = h.version + 1, entry_no = n.entry, event_no = n.event, account_no = n.account,
         booked_at = n.booked, business_date = n.on_date, due_at = n.due, chain = n.chain, serialized_book = n.serialized_book
    FROM unnest(heads) AS n
   WHERE h.customer_id = n.customer AND h.version = n.was AND h.entry_no = n.entry_was AND h.event_no = n.event_was
     AND h.booked_at <= n.booked AND h.business_date <= n.on_date AND n.entry >= n.entry_was AND n.event >= n.event_was
     AND h.account_no <= n.account;
  GET DIAGNOSTICS seen = ROW_COUNT;
  IF seen <> cardinality(heads) THEN
    RAISE EXCEPTION 'ledger heads have moved: % of % are as planned', seen, cardinality(heads) USING ERRCODE = '40001';
  END IF;

  WITH entry AS MATERIALIZED (
    SELECT j.customer_id, j.postings
      FROM unnest(heads) AS n
      JOIN journal_entry j ON j.customer_id = n.customer AND j.entry_no > n.entry_was AND j.entry_no <= n.entry
     WHERE n.entry > n.entry_was
  ), l AS MATERIALIZED (
    SELECT entry.customer_id, p.debit, p.credit, p.asset, p.amount, p.phase
      FROM entry CROSS JOIN LATERAL unnest(entry.postings) AS p
  ), side AS (
    SELECT customer_id, account_no, asset, sum(debit)::bigint AS debit, sum(credit)::bigint AS credit, sum(reserve)::bigint AS reserve,
           max(tax) AS tax, max(earnings) AS earnings, bool_and(live) AS live
      FROM (
        SELECT customer_id, debit AS account_no, asset, CASE phase WHEN 0 THEN amount ELSE 0 END AS debit, 0::bigint AS credit,
               CASE phase WHEN 1 THEN amount WHEN 2 THEN -amount ELSE 0 END AS reserve,
               NULL::bigint AS tax, NULL::bigint AS earnings, NULL::boolean AS live FROM l
        UNION ALL
        SELECT customer_id, credit, asset, 0, CASE phase WHEN 0 THEN amount ELSE 0 END, 0, NULL, NULL, NULL FROM l
        UNION ALL
        SELECT customer, account, asset, 0, 0, 0, tax, earnings, live
          FROM unnest(bases) AS b
      ) s GROUP BY customer_id, account_no, asset
  ), named AS MATERIALIZED (
    SELECT s.*, a.kind, a.kind IN ('bank', 'on_us', 'street', 'treasury') AS derived
      FROM side s
      JOIN account a ON a.customer_id = s.customer_id AND a.account_no = s.account_no AND a.asset = s.asset
  ), moved AS (
    UPDATE account a
       SET debits = a.debits + s.debit, credits = a.credits + s.credit, reserved = a.reserved + s.reserve,
           tax_basis = coalesce(s.tax, a.tax_basis), earnings_basis = coalesce(s.earnings, a.earnings_basis),
           live = coalesce(s.live, a.live)
      FROM named s
     WHERE NOT s.derived AND a.customer_id = s.customer_id AND a.account_no = s.account_no
  )
  SELECT (SELECT count(*) FROM named), (SELECT count(*) FROM side), (SELECT count(*) FROM entry),
         (SELECT count(*) FROM named s
           WHERE s.derived AND (s.reserve <> 0 OR s.live IS NOT NULL OR s.kind = 'bank' AND s.debit <> s.credit))
    INTO seen, wanted, found, refused;
  IF seen <> wanted THEN
    RAISE EXCEPTION 'a posting has no account: % of % sides found theirs', seen, wanted USING ERRCODE = '23503';
  END IF;
  IF refused > 0 THEN
    RAISE EXCEPTION 'money is left on a bank account, or % accounts without a balance reserve or cost something', refused
      USING ERRCODE = '23514';
  END IF;
  -- Numbers without gaps: what was written is exactly what the heads now say.
  SELECT coalesce(sum(n.entry - n.entry_was), 0) INTO wanted FROM unnest(heads) AS n;
  IF found <> entries OR wanted <> entries THEN
    RAISE EXCEPTION 'entry numbers have a gap: % written, % found, % announced', entries, found, wanted USING ERRCODE = '23514';
  END IF;
END $$;

-- Lots whose bill has matured leave the book.
CREATE FUNCTION ledger_retire(r_customer uuid[], r_account int[]) RETURNS void LANGUAGE sql AS $$
  UPDATE account a SET live = false FROM unnest(r_customer, r_account) AS r(customer, no)
   WHERE a.customer_id = r.customer AND a.account_no = r.no AND a.live AND a.kind = 'lot' AND a.credits = a.debits;
$$;

-- For batches of many books, whose rows were copied before: planned for the batch at hand, which takes a quarter to
-- a half less than a plan for few.
CREATE FUNCTION ledger_apply(
  entries bigint, heads ledger_head_move[], bases lot_basis[], moved pocket_counters[], jobs scheduled_job[]
) RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
BEGIN
  PERFORM ledger_move(entries, heads, bases);
  PERFORM pockets_move(moved);
  IF cardinality(jobs) > 0 THEN PERFORM scheduled_job_set(jobs); END IF;
END $$;

-- For batches of few books, with all their rows in one call, where planning would take longer than the work: plans are
-- kept.
CREATE FUNCTION ledger_book(
  heads ledger_head_move[], bases lot_basis[], moved pocket_counters[], jobs scheduled_job[], accounts new_account[],
  entries journal_entry[], chain_entries chain_entry[], trades trade[], transactions new_transaction[],
  events new_event[], commands command[], names directory[], transfers transfer[], authorizations card_authorization[]
) RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  INSERT INTO account (customer_id, account_no, kind, pocket_id, asset, acquired_on) SELECT * FROM unnest(accounts);
  INSERT INTO journal_entry SELECT * FROM unnest(entries);
  PERFORM ledger_move(cardinality(entries), heads, bases);
  PERFORM pockets_move(moved);
  IF cardinality(jobs) > 0 THEN PERFORM scheduled_job_set(jobs); END IF;
  INSERT INTO chain_entry SELECT * FROM unnest(chain_entries);
  INSERT INTO trade SELECT * FROM unnest(trades);
  INSERT INTO transaction (
    customer_id, pocket_id, entry_no, posting_no, activity_id, transaction_id, partner_id, type, direction, amount,
    swept, title, description, booked_at, business_date, settles_at, details, remittance
  ) SELECT * FROM unnest(transactions);
  INSERT INTO event (customer_id, event_no, event_id, kind, payload, raised_at) SELECT * FROM unnest(events);
  INSERT INTO command SELECT * FROM unnest(commands);
  INSERT INTO directory SELECT * FROM unnest(names);
  INSERT INTO transfer SELECT * FROM unnest(transfers);
  IF cardinality(authorizations) > 0 THEN INSERT INTO card_authorization SELECT * FROM unnest(authorizations); END IF;
END $$;

-- A dump contains transaction ids of a server that had counted further than the one it is restored on. The application
-- notices when it opens the bank, and owns no event: this changes nothing else of them, and nothing otherwise.
CREATE FUNCTION event_renumber(reader text) RETURNS void LANGUAGE sql SECURITY DEFINER
  SET search_path = pg_catalog, public, pg_temp
AS $$
  UPDATE event SET xid = CASE WHEN pg_visible_in_snapshot(xid, position) THEN xid8 '3' ELSE pg_current_xact_id() END
    FROM event_reader
   WHERE name = reader
     AND EXISTS (SELECT FROM event_reader WHERE pg_snapshot_xmax(position) > pg_snapshot_xmax(pg_current_snapshot()));
$$;
REVOKE EXECUTE ON FUNCTION event_renumber FROM PUBLIC;
GRANT EXECUTE ON FUNCTION event_renumber TO billfold_app;

-- What the application may change -----------------------------------------------------------------------------------
-- The application changes or removes rows only where a statement of it does; a test compares these lists with the code.
-- Postings, entries, the chain, commands, events, names of the directory, transactions, trades and statements are never
-- changed.
GRANT UPDATE ON
  ach_counter, ach_entry, ach_file, ach_return_entry, application, application_invite, approval_rule, auction,
  audit_chain_head, authenticator, authorization_code, authorization_request, calendar_override, card,
  card_authorization, card_detail_key, card_limits, card_order, card_payment, chain_block, chain_cursor,
  chain_transfer, client_key, clock, counterparty, crypto_deposit, crypto_signature, crypto_transaction,
  crypto_wallet, crypto_withdrawal, customer, customer_feature, daily_root_refusal, data_key, delivery,
  deprecated_call, document, dual_control, email_link, event_reader, failed_work, freeze_proposal, hold,
  idempotency_key, invitation, invite_draft, invite_session, known_device, ledger_head, linking_exchange,
  login_attempt, membership, notification_audience, notification_cursor, notification_recipient,
  oauth_authorization_request, oauth_client, oauth_grant, outbound_email, partner, partner_key, partner_secret,
  partner_user, passkey, pocket, portal, rail_file, rate_limit_window, refresh_token, related_party_application,
  report_format, report_request, review, sanctions_hit, sanctions_list, scheduled_job, security_transfer, session,
  signing_key, subscription, subscription_queue, subscription_secret, suspense_item, transfer, transfer_request,
  usage_count, user_account, user_password, webhook_worker, wire, wire_case, wire_message, wire_sequence, work_claim
  TO billfold_app;
GRANT DELETE ON
  access_token, application_invite, approval_rule, authenticator, authorization_code, awaited_team_member,
  calendar_override, chain_block, client_key, consumed_assertion, consumed_dpop_proof, daily_root_page,
  delivery_attempt, document, earlier_link, email_link, failed_work, idempotency_key, invitation, invite_draft,
  invite_session, known_device, linking_exchange, login_attempt, notification_audience, oauth_authorization_request,
  outbound_email, partner_token, passkey, passkey_challenge, rate_limit_window, refresh_token,
  related_party_application, report_file, report_format, report_request, request_log, sanctions_backlog,
  sanctions_entry, scheduled_job, session, signing_key, subscription_secret, usage_count, webhook_worker, work_claim
  TO billfold_app;
-- Of an account the balances, of the bank what tells its key and its domain: whose they are stays.
GRANT UPDATE (debits, credits, reserved, tax_basis, earnings_basis, live) ON account TO billfold_app;
GRANT UPDATE (key_check, domain) ON bank TO billfold_app;
