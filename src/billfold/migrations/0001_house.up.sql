-- The first shape of the house. Every tenant key begins with customer_id; the
-- database refuses what must never be (CHECK, UNIQUE), so a bug is an error and
-- not a loss. Immutable rows are never updated; the only updates are heads,
-- accounts and the state of things that are waiting.

-- Who may call ---------------------------------------------------------------

CREATE TABLE partner (
  partner_id        uuid PRIMARY KEY,
  slug              text NOT NULL UNIQUE CHECK (slug ~ '^[a-z][a-z0-9-]{0,62}$'),
  name              text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
  own_customer_id   uuid NOT NULL,
  features          text[] NOT NULL DEFAULT '{}',
  rate_per_minute   int NOT NULL CHECK (rate_per_minute > 0),
  money_per_minute  int NOT NULL CHECK (money_per_minute > 0),
  version           bigint NOT NULL DEFAULT 1,
  created_at        timestamptz NOT NULL
);

-- Shared signing secrets are sealed, not hashed: a signature cannot be checked without them.
CREATE TABLE partner_secret (
  partner_id   uuid NOT NULL REFERENCES partner,
  secret_no    int NOT NULL,
  sealed       bytea NOT NULL,
  created_at   timestamptz NOT NULL,
  expires_at   timestamptz,
  PRIMARY KEY (partner_id, secret_no)
);

CREATE TABLE partner_user (
  user_id        uuid PRIMARY KEY,
  partner_id     uuid NOT NULL REFERENCES partner,
  username       text NOT NULL UNIQUE CHECK (length(username) BETWEEN 1 AND 128),
  password_hash  text NOT NULL,
  failures       int NOT NULL DEFAULT 0 CHECK (failures >= 0),
  locked_until   timestamptz,
  created_at     timestamptz NOT NULL
);

CREATE TABLE partner_key (
  key_id       text PRIMARY KEY,
  user_id      uuid NOT NULL REFERENCES partner_user,
  algorithm    text NOT NULL CHECK (algorithm IN ('ES256', 'PS256', 'RS256', 'EdDSA')),
  public_pem   text NOT NULL,
  created_at   timestamptz NOT NULL,
  revoked_at   timestamptz
);

CREATE TABLE partner_token (
  token_hash   bytea PRIMARY KEY,
  partner_id   uuid NOT NULL REFERENCES partner,
  user_id      uuid NOT NULL REFERENCES partner_user,
  issued_at    timestamptz NOT NULL,
  expires_at   timestamptz NOT NULL
);

CREATE TABLE used_assertion (
  issuer       text NOT NULL,
  jti_hash     bytea NOT NULL,
  expires_at   timestamptz NOT NULL,
  PRIMARY KEY (issuer, jti_hash)
);

-- What a caller has asked under which key, and the answer (24 hours, wall clock).
CREATE TABLE request_key (
  caller        uuid NOT NULL,
  key           uuid NOT NULL,
  fingerprint   bytea NOT NULL,
  claimed_at    timestamptz NOT NULL,
  lease_until   timestamptz NOT NULL,
  status        smallint,
  content_type  text,
  answer        bytea,
  PRIMARY KEY (caller, key)
) WITH (fillfactor = 70);
CREATE INDEX request_key_age ON request_key USING brin (claimed_at);

-- Counters of the running minute. Unlogged: losing them in a crash costs nothing.
CREATE UNLOGGED TABLE rate_window (
  caller        uuid NOT NULL,
  kind          text NOT NULL,
  starts_at     timestamptz NOT NULL,
  used          int NOT NULL,
  PRIMARY KEY (caller, kind, starts_at)
) WITH (fillfactor = 50);

CREATE TABLE deprecated_call (
  caller        uuid NOT NULL,
  operation     text NOT NULL,
  calls         bigint NOT NULL,
  first_at      timestamptz NOT NULL,
  last_at       timestamptz NOT NULL,
  PRIMARY KEY (caller, operation)
);

-- The business clock of a sandbox: one row, or none when the clock is the real one.
CREATE TABLE clock (
  singleton        boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  business_anchor  timestamptz NOT NULL,
  wall_anchor      timestamptz NOT NULL,
  frozen           boolean NOT NULL
);

CREATE TABLE calendar_override (
  day            date PRIMARY KEY,
  bond_market    text NOT NULL CHECK (bond_market IN ('open', 'early', 'closed')),
  closes_at      time,
  fed            text NOT NULL CHECK (fed IN ('open', 'closed')),
  reason         text NOT NULL,
  CHECK ((bond_market = 'early') = (closes_at IS NOT NULL))
);

-- The bank itself: the seed of its ids and what else is fixed at its founding.
CREATE TABLE bank (
  singleton          boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  seed               bytea NOT NULL,
  house_customer_id  uuid NOT NULL,
  founded_at         timestamptz NOT NULL,
  environment        text NOT NULL CHECK (environment IN ('sandbox', 'production'))
);

-- The market (reference tables) -----------------------------------------------

CREATE TABLE security (
  cusip           char(9) PRIMARY KEY,
  isin            char(12) NOT NULL,
  maturity        date NOT NULL,
  first_issue     date NOT NULL,
  original_term   text NOT NULL,
  CHECK (first_issue < maturity)
);

CREATE TABLE auction (
  cusip            char(9) NOT NULL REFERENCES security,
  issue_date       date NOT NULL,
  term             text NOT NULL,
  auction_date     date NOT NULL,
  announced_on     date,
  high_rate_milli  int,
  price_micros     bigint,
  investment_milli int,
  reopening        boolean,
  cash_management  boolean NOT NULL,
  basis            text NOT NULL,
  PRIMARY KEY (cusip, issue_date)
);

CREATE TABLE bill_rate (
  day            date NOT NULL,
  weeks          smallint NOT NULL,
  discount_milli int NOT NULL,
  coupon_milli   int NOT NULL,
  PRIMARY KEY (day, weeks)
);

-- Written by the house when its day is closed.
CREATE TABLE closing_price (
  business_date  date NOT NULL,
  cusip          char(9) NOT NULL,
  bid_micros     bigint NOT NULL,
  ask_micros     bigint NOT NULL,
  mark_micros    bigint NOT NULL,
  PRIMARY KEY (business_date, cusip)
);

-- The customer: unit of order, concurrency and proof ---------------------------

CREATE TABLE head (
  customer_id    uuid PRIMARY KEY,
  version        bigint NOT NULL DEFAULT 0,
  journal_no     bigint NOT NULL DEFAULT 0,
  event_no       bigint NOT NULL DEFAULT 0,
  account_no     int NOT NULL DEFAULT 0,
  booked_at      timestamptz NOT NULL,
  business_date  date NOT NULL,
  due_at         timestamptz,
  chain          bytea NOT NULL DEFAULT '',
  image          bytea, -- the book of this version, so that no other row need be read; null: read them
  CHECK (version >= 0 AND journal_no >= 0 AND event_no >= 0 AND account_no >= 0)
) WITH (fillfactor = 60);
ALTER TABLE head ALTER COLUMN image SET STORAGE EXTERNAL;
CREATE INDEX head_due ON head (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE customer (
  customer_id     uuid PRIMARY KEY,
  partner_id      uuid,
  role            text NOT NULL CHECK (role IN ('customer', 'partner', 'house')),
  type            text NOT NULL CHECK (type IN ('INDIVIDUAL', 'BUSINESS')),
  name            text NOT NULL,
  account_status  text NOT NULL CHECK (account_status IN ('PENDING', 'OPEN', 'FROZEN', 'CLOSED')),
  profile         json NOT NULL,
  opened_at       timestamptz NOT NULL,
  closed_at       timestamptz,
  closure_reason  text
);
CREATE INDEX customer_partner ON customer (partner_id, opened_at, customer_id);

-- Names from outside, resolved before a command is decided. Immutable; the only
-- place of global uniqueness.
CREATE TABLE directory (
  kind         text NOT NULL,
  value        text NOT NULL,
  customer_id  uuid NOT NULL,
  object_id    uuid NOT NULL,
  PRIMARY KEY (kind, value)
);

-- The log ---------------------------------------------------------------------

CREATE TABLE account (
  customer_id     uuid NOT NULL,
  account_no      int NOT NULL,
  kind            text NOT NULL CHECK (kind IN ('bank', 'cash', 'lot', 'owed',
                    'rail:ach', 'rail:wire', 'rail:card', 'rail:crypto', 'street', 'treasury',
                    'on_us', 'fees', 'rounding', 'promotions', 'custodian', 'reserve')),
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
  CONSTRAINT account_bank_is_zero CHECK (kind <> 'bank' OR (debits = credits AND reserved = 0)),
  CONSTRAINT account_never_negative CHECK (kind NOT IN ('cash', 'lot') OR credits - debits - reserved >= 0),
  CONSTRAINT account_owed_by_customer CHECK (kind <> 'owed' OR debits >= credits),
  CONSTRAINT account_basis_of_lots CHECK (
    CASE WHEN kind <> 'lot' THEN tax_basis = 0 AND earnings_basis = 0
         WHEN credits = debits THEN tax_basis = 0 AND earnings_basis = 0
         ELSE tax_basis >= 0 AND earnings_basis >= 0 AND live END),
  CONSTRAINT account_owner CHECK ((kind IN ('bank', 'cash', 'lot', 'owed')) = (pocket_id IS NOT NULL)),
  CONSTRAINT account_lot_dated CHECK ((kind = 'lot') = (acquired_on IS NOT NULL)),
  CONSTRAINT account_cash_is_usd CHECK (kind NOT IN ('bank', 'cash', 'owed') OR asset = 'USD')
) WITH (fillfactor = 50);
CREATE INDEX account_live ON account (customer_id, pocket_id) WHERE live;

CREATE TABLE journal (
  customer_id     uuid NOT NULL,
  journal_no      bigint NOT NULL,
  kind            text NOT NULL,
  command_id      uuid NOT NULL,
  booked_at       timestamptz NOT NULL,
  business_date   date NOT NULL,
  effective_date  date NOT NULL,
  settles_on      date NOT NULL,
  reverses        bigint,
  PRIMARY KEY (customer_id, journal_no)
);
-- A double return cannot be booked; ordinary journals cost this index nothing.
CREATE UNIQUE INDEX journal_reversed_once ON journal (customer_id, reverses) WHERE reverses IS NOT NULL;

-- One debit, one credit, one asset: an unbalanced entry cannot be written down.
-- phase: 0 posted, 1 reserved, 2 released.
CREATE TABLE leg (
  customer_id  uuid NOT NULL,
  journal_no   bigint NOT NULL,
  leg_no       smallint NOT NULL,
  debit        int NOT NULL,
  credit       int NOT NULL,
  asset        text NOT NULL,
  amount       bigint NOT NULL CHECK (amount > 0),
  phase        smallint NOT NULL DEFAULT 0 CHECK (phase IN (0, 1, 2)),
  PRIMARY KEY (customer_id, journal_no, leg_no),
  CHECK (debit <> credit)
);

CREATE TABLE trade (
  customer_id     uuid NOT NULL,
  pocket_id       uuid NOT NULL,
  journal_no      bigint NOT NULL,
  trade_no        smallint NOT NULL,
  trade_id        uuid NOT NULL,
  partner_id      uuid NOT NULL,
  activity        text NOT NULL CHECK (activity IN ('BUY', 'SELL', 'MATURITY',
                    'SAME_ENTITY_SECURITY_TRANSFER', 'EXTERNAL_SECURITY_TRANSFER')),
  incoming        boolean NOT NULL,
  cusip           text NOT NULL,
  units           bigint NOT NULL CHECK (units > 0),
  price_micros    bigint NOT NULL CHECK (price_micros > 0),
  notional        bigint NOT NULL CHECK (notional >= 0),
  tax_basis       bigint NOT NULL,
  earnings_basis  bigint NOT NULL,
  traded_at       timestamptz NOT NULL,
  book_date       date NOT NULL,
  settles_on      date NOT NULL,
  counter_pocket_id uuid,
  transfer_id     uuid,
  PRIMARY KEY (customer_id, pocket_id, journal_no, trade_no)
);
CREATE INDEX trade_settles ON trade USING brin (settles_on);

CREATE TABLE activity (
  customer_id     uuid NOT NULL,
  pocket_id       uuid NOT NULL,
  journal_no      bigint NOT NULL,
  leg_no          smallint NOT NULL,
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
  PRIMARY KEY (customer_id, pocket_id, journal_no, leg_no)
);
CREATE INDEX activity_one ON activity (customer_id, activity_id);
CREATE INDEX activity_partner ON activity (partner_id, booked_at, activity_id);

CREATE TABLE event (
  customer_id  uuid NOT NULL,
  event_no     bigint NOT NULL,
  event_id     uuid NOT NULL,
  kind         text NOT NULL,
  payload      json NOT NULL,
  raised_at    timestamptz NOT NULL,
  PRIMARY KEY (customer_id, event_no)
);

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

-- One link per customer and commit: hash = sha256(prev || encoded rows), and a
-- checksum per row so that a damaged row can be named.
CREATE TABLE link (
  customer_id  uuid NOT NULL,
  version      bigint NOT NULL,
  journal_no   bigint NOT NULL,
  event_no     bigint NOT NULL,
  marks        bytea NOT NULL,
  hash         bytea NOT NULL,
  PRIMARY KEY (customer_id, version)
);

-- The nouns ---------------------------------------------------------------------

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
  idle                bigint NOT NULL DEFAULT 0 CHECK (idle >= 0),
  accrued_through     date NOT NULL,
  charge_on           date NOT NULL,
  moved_on            date,
  unsettled_until     date,
  invest_at           timestamptz,
  PRIMARY KEY (customer_id, pocket_id),
  CHECK ((status = 'CLOSED') = (closed_at IS NOT NULL))
) WITH (fillfactor = 60);
CREATE INDEX pocket_partner ON pocket (partner_id, opened_at, pocket_id);

CREATE TABLE snapshot (
  customer_id     uuid NOT NULL,
  pocket_id       uuid NOT NULL,
  business_date   date NOT NULL,
  journal_no      bigint NOT NULL,
  cash            bigint NOT NULL CHECK (cash >= 0),
  positions       json NOT NULL,
  earnings_basis  bigint NOT NULL,
  inflow          bigint NOT NULL,
  outflow         bigint NOT NULL,
  fees            bigint NOT NULL,
  realised        bigint NOT NULL,
  PRIMARY KEY (customer_id, pocket_id, business_date)
);

CREATE TABLE lien (
  customer_id  uuid NOT NULL,
  lien_id      uuid NOT NULL,
  pocket_id    uuid NOT NULL,
  amount       bigint NOT NULL CHECK (amount > 0),
  until        timestamptz NOT NULL,
  cause        text NOT NULL,
  PRIMARY KEY (customer_id, lien_id)
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
  PRIMARY KEY (customer_id, portal_id),
  CHECK ((type = 'BANK_VIRTUAL_ACCOUNT_PORTAL') = (account_number IS NOT NULL AND routing_number IS NOT NULL))
);
CREATE INDEX portal_pocket ON portal (customer_id, pocket_id, created_at, portal_id);

CREATE TABLE counterparty (
  customer_id      uuid NOT NULL,
  counterparty_id  uuid NOT NULL,
  type             text NOT NULL CHECK (type IN ('ach', 'wire', 'on_us', 'international_wire', 'crypto_wallet_address')),
  status           text NOT NULL CHECK (status IN ('PENDING', 'LINKED', 'UNLINKED', 'VERIFIED')),
  counterparty_name json NOT NULL,
  display_name     text,
  account_number   text,
  target_customer_id uuid,
  target_pocket_id uuid,
  verification     json NOT NULL,
  created_at       timestamptz NOT NULL,
  updated_at       timestamptz NOT NULL,
  PRIMARY KEY (customer_id, counterparty_id),
  CHECK (type <> 'on_us' OR (target_customer_id IS NOT NULL AND target_pocket_id IS NOT NULL))
);
CREATE INDEX counterparty_list ON counterparty (customer_id, created_at, counterparty_id);

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

-- What the house has settled, per date and bill: the street explained to zero. A trade that
-- was committed while its day was being closed is settled with the next day that closes.
CREATE TABLE settlement (
  settles_on     date NOT NULL,
  cusip          text NOT NULL,
  price_micros   bigint NOT NULL,
  side           text NOT NULL CHECK (side IN ('BUY', 'SELL', 'MATURITY')),
  closed_on      date NOT NULL,
  units          bigint NOT NULL,
  customers_cents bigint NOT NULL,
  block_cents    bigint NOT NULL,
  PRIMARY KEY (settles_on, cusip, price_micros, side, closed_on)
);
CREATE INDEX transfer_pending ON transfer (customer_id, created_at) WHERE status = 'PENDING';

-- The one writer of balances ------------------------------------------------------
-- The batch has copied its new accounts, journals and legs; this moves the heads on and
-- derives the balances from those very rows, so the log cannot say one thing and the
-- balances another. A leg whose account does not exist under its customer, or holds
-- another asset, finds no row; rows outside the numbers the heads now cover are counted
-- and missed; either fails the whole batch. Every join is by a primary key; the settings
-- keep a plan made on an empty table from scanning a full one.
CREATE FUNCTION ledger_apply(
  journals bigint, legs bigint,
  h_customer uuid[], h_was bigint[], h_journal_was bigint[], h_journal bigint[], h_event_was bigint[], h_event bigint[],
  h_account int[], h_booked timestamptz[], h_date date[], h_due timestamptz[], h_chain bytea[], h_image bytea[],
  b_customer uuid[], b_account int[], b_asset text[], b_tax bigint[], b_earnings bigint[], b_live boolean[]
) RETURNS void LANGUAGE plpgsql
  SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  seen bigint;
  wanted bigint;
  found bigint;
BEGIN
  UPDATE head h
     SET version = h.version + 1, journal_no = n.journal, event_no = n.event, account_no = n.account,
         booked_at = n.booked, business_date = n.on_date, due_at = n.due, chain = n.chain, image = n.image
    FROM unnest(h_customer, h_was, h_journal_was, h_journal, h_event_was, h_event, h_account, h_booked, h_date, h_due, h_chain, h_image)
         AS n(customer, was, journal_was, journal, event_was, event, account, booked, on_date, due, chain, image)
   WHERE h.customer_id = n.customer AND h.version = n.was AND h.journal_no = n.journal_was AND h.event_no = n.event_was
     AND h.booked_at <= n.booked AND h.business_date <= n.on_date AND n.journal >= n.journal_was AND n.event >= n.event_was
     AND h.account_no <= n.account;
  GET DIAGNOSTICS seen = ROW_COUNT;
  IF seen <> cardinality(h_customer) THEN
    RAISE EXCEPTION 'a head moved: % of % are as planned', seen, cardinality(h_customer) USING ERRCODE = '40001';
  END IF;

  -- Numbers without gaps: what was copied is exactly what the heads now say.
  SELECT count(*) INTO seen
    FROM unnest(h_customer, h_journal_was, h_journal) AS n(customer, was, now)
    JOIN journal j ON j.customer_id = n.customer AND j.journal_no > n.was AND j.journal_no <= n.now
   WHERE n.now > n.was;
  SELECT coalesce(sum(now - was), 0) INTO wanted FROM unnest(h_journal_was, h_journal) AS n(was, now);
  IF seen <> journals OR wanted <> journals THEN
    RAISE EXCEPTION 'journal numbers have a gap: % copied, % found, % announced', journals, seen, wanted USING ERRCODE = '23514';
  END IF;

  WITH l AS MATERIALIZED (
    SELECT l.customer_id, l.debit, l.credit, l.asset, l.amount, l.phase
      FROM unnest(h_customer, h_journal_was, h_journal) AS n(customer, was, now)
      JOIN leg l ON l.customer_id = n.customer AND l.journal_no > n.was AND l.journal_no <= n.now
     WHERE n.now > n.was
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
          FROM unnest(b_customer, b_account, b_asset, b_tax, b_earnings, b_live)
            AS b(customer, account, asset, tax, earnings, live)
      ) s GROUP BY customer_id, account_no, asset
  ), moved AS (
    UPDATE account a
       SET debits = a.debits + s.debit, credits = a.credits + s.credit, reserved = a.reserved + s.reserve,
           tax_basis = coalesce(s.tax, a.tax_basis), earnings_basis = coalesce(s.earnings, a.earnings_basis),
           live = coalesce(s.live, a.live)
      FROM side s
     WHERE a.customer_id = s.customer_id AND a.account_no = s.account_no AND a.asset = s.asset
    RETURNING 1
  )
  SELECT (SELECT count(*) FROM moved), (SELECT count(*) FROM side), (SELECT count(*) FROM l) INTO seen, wanted, found;
  IF seen <> wanted THEN
    RAISE EXCEPTION 'a leg has no account: % of % sides found theirs', seen, wanted USING ERRCODE = '23503';
  END IF;
  IF found <> legs THEN
    RAISE EXCEPTION 'legs outside the numbers of their heads: % copied, % found', legs, found USING ERRCODE = '23514';
  END IF;
END $$;

-- Lots whose bill has matured leave the book.
CREATE FUNCTION ledger_retire(r_customer uuid[], r_account int[]) RETURNS void LANGUAGE sql AS $$
  UPDATE account a SET live = false FROM unnest(r_customer, r_account) AS r(customer, no)
   WHERE a.customer_id = r.customer AND a.account_no = r.no AND a.live AND a.kind = 'lot' AND a.credits = a.debits;
$$;
