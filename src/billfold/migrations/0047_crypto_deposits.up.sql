-- Portals with an address on a chain. No index of an extended public key is used twice, not even after a rollback.
CREATE SEQUENCE wallet_index MINVALUE 0 MAXVALUE 2147483647 START 0;
CREATE TABLE wallet_xpub (
  xpub_id          integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  xpub             text NOT NULL,
  derivation_path  text NOT NULL,
  UNIQUE (xpub, derivation_path)
);
REVOKE UPDATE, DELETE ON wallet_xpub FROM billfold_app;
ALTER TABLE portal ADD COLUMN chain text, ADD COLUMN wallet_address text, ADD COLUMN asset text,
  ADD COLUMN xpub_id integer REFERENCES wallet_xpub, ADD COLUMN address_index bigint,
  ADD CONSTRAINT portal_wallet CHECK (num_nonnulls(chain, wallet_address, asset, xpub_id, address_index)
    = CASE type WHEN 'CRYPTO_DEPOSIT_ADDRESS_PORTAL' THEN 5 ELSE 0 END);
CREATE UNIQUE INDEX portal_address_index ON portal (address_index) WHERE address_index IS NOT NULL;
CREATE UNIQUE INDEX portal_wallet_address ON portal (lower(wallet_address)) WHERE wallet_address IS NOT NULL;
ALTER TABLE account DROP CONSTRAINT account_kind_check;
ALTER TABLE account ADD CONSTRAINT account_kind_check CHECK (kind IN ('bank', 'cash', 'lot', 'owed',
  'rail:ach', 'rail:wire', 'rail:card', 'rail:crypto', 'street', 'treasury', 'on_us', 'fees', 'rounding',
  'promotions', 'custodian', 'reserve', 'suspense', 'losses'));
ALTER TABLE suspense_item DROP CONSTRAINT suspense_item_rail_check;
ALTER TABLE suspense_item ADD CONSTRAINT suspense_item_rail_check CHECK (rail IN ('ACH', 'WIRE', 'CARD', 'CRYPTO'));

-- How far a chain is read: `seen` by one node, `final` by all that must agree. Wall time.
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
-- What was seen on chains to addresses of portals. `units` are the token's smallest.
CREATE TABLE chain_transfer (
  chain         text NOT NULL,
  tx_hash       text NOT NULL,
  log_index     integer NOT NULL CHECK (log_index >= 0),
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

-- Final transfers of tokens that the bank takes. `amount` cents were booked; units that are not booked yet are carried.
CREATE TABLE crypto_deposit (
  customer_id   uuid NOT NULL REFERENCES customer,
  deposit_id    uuid NOT NULL,
  portal_id     uuid NOT NULL,
  pocket_id     uuid NOT NULL,
  chain         text NOT NULL,
  tx_hash       text NOT NULL,
  log_index     integer NOT NULL,
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
  UNIQUE (chain, tx_hash, log_index),
  FOREIGN KEY (customer_id, portal_id) REFERENCES portal,
  CHECK (status NOT IN ('CREDITED', 'HELD') OR amount > 0),
  CHECK (status NOT IN ('CARRIED', 'QUESTIONED') OR amount = 0),
  CHECK ((status IN ('HELD', 'QUESTIONED')) <= (reason IS NOT NULL))
);
CREATE INDEX crypto_deposit_portal ON crypto_deposit (customer_id, portal_id);
CREATE INDEX crypto_deposit_list ON crypto_deposit (created_at, deposit_id);
