-- Withdrawals of stablecoins. `wallet_address` is sealed; `transaction_hash` is that of the transaction that was final.
CREATE TABLE crypto_withdrawal (
  customer_id       uuid NOT NULL,
  withdrawal_id     uuid NOT NULL,
  partner_id        uuid NOT NULL,
  pocket_id         uuid NOT NULL,
  counterparty_id   uuid NOT NULL,
  counterparty_name text NOT NULL,
  chain             text NOT NULL,
  asset             text NOT NULL,
  wallet_address    text NOT NULL,
  amount            bigint NOT NULL CHECK (amount > 0),
  status            text NOT NULL CHECK (status IN ('PENDING', 'PROCESSING', 'COMPLETED', 'REJECTED')),
  reason            text,
  transaction_hash  text,
  transaction_id    uuid NOT NULL,
  entry_no          bigint NOT NULL,
  return_entry_no   bigint,
  created_at        timestamptz NOT NULL,
  settled_at        timestamptz,
  updated_at        timestamptz NOT NULL,
  written_no        bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (customer_id, withdrawal_id),
  FOREIGN KEY (customer_id, pocket_id) REFERENCES pocket,
  CONSTRAINT crypto_withdrawal_rejected_for CHECK ((status = 'REJECTED') = (reason IS NOT NULL)),
  CONSTRAINT crypto_withdrawal_returned CHECK ((status = 'REJECTED') = (return_entry_no IS NOT NULL)),
  CONSTRAINT crypto_withdrawal_settled CHECK ((status = 'COMPLETED') = (settled_at IS NOT NULL)),
  CONSTRAINT crypto_withdrawal_paid_by CHECK (status <> 'COMPLETED' OR transaction_hash IS NOT NULL)
);
CREATE INDEX crypto_withdrawal_open ON crypto_withdrawal (chain, written_no) WHERE status IN ('PENDING', 'PROCESSING');

-- What the clearing of the rail reads.
CREATE INDEX crypto_withdrawal_sent ON crypto_withdrawal (created_at);
CREATE INDEX crypto_withdrawal_returned ON crypto_withdrawal (updated_at) WHERE status = 'REJECTED';

-- The wallets from which the bank pays, each with the next nonce that is free, and what keeps it from paying.
CREATE TABLE crypto_wallet (
  chain         text NOT NULL,
  address       text NOT NULL,
  first_nonce   bigint NOT NULL CHECK (first_nonce >= 0),
  next_nonce    bigint NOT NULL CHECK (next_nonce >= first_nonce),
  problem       text,
  problem_detail text,
  problem_since timestamptz,
  PRIMARY KEY (chain, address),
  CHECK ((problem IS NULL) = (problem_since IS NULL))
);

-- What is done for a withdrawal on its chain: a nonce of the wallet, once, or a refusal, which has none.
CREATE TABLE crypto_transaction (
  customer_id      uuid NOT NULL,
  withdrawal_id    uuid NOT NULL,
  chain            text NOT NULL,
  state            text NOT NULL CHECK (state IN ('REFUSED', 'RESERVED', 'SIGNED', 'SUBMITTED', 'MINED', 'CONFIRMED',
                                                  'REVERTED', 'CANCELED', 'DISPLACED')),
  wallet           text,
  nonce            bigint,
  token            text,
  gas_limit        bigint,
  requested        text CHECK (requested IN ('REPLACE', 'CANCEL')),
  reason           text,
  transaction_hash text,
  block_number     bigint,
  block_hash       text,
  fee_wei          numeric(78, 0),
  reserved_at      timestamptz NOT NULL,
  updated_at       timestamptz NOT NULL,
  PRIMARY KEY (customer_id, withdrawal_id),
  FOREIGN KEY (customer_id, withdrawal_id) REFERENCES crypto_withdrawal,
  FOREIGN KEY (chain, wallet) REFERENCES crypto_wallet,
  UNIQUE (chain, wallet, nonce),
  CONSTRAINT crypto_transaction_refused CHECK (
    CASE WHEN state = 'REFUSED' THEN wallet IS NULL AND nonce IS NULL AND reason IS NOT NULL
         ELSE wallet IS NOT NULL AND nonce IS NOT NULL AND token IS NOT NULL AND gas_limit IS NOT NULL END),
  CONSTRAINT crypto_transaction_final CHECK (
    state NOT IN ('CONFIRMED', 'REVERTED', 'CANCELED', 'DISPLACED')
    OR (transaction_hash IS NOT NULL AND block_number IS NOT NULL AND block_hash IS NOT NULL))
);
CREATE INDEX crypto_transaction_open ON crypto_transaction (chain, nonce)
 WHERE state IN ('RESERVED', 'SIGNED', 'SUBMITTED', 'MINED');

-- Each signed transaction of a nonce, in the order in which they were signed. `raw` is sealed.
CREATE TABLE crypto_signature (
  customer_id      uuid NOT NULL,
  withdrawal_id    uuid NOT NULL,
  attempt          int NOT NULL CHECK (attempt >= 1),
  intent           text NOT NULL CHECK (intent IN ('PAY', 'CANCEL')),
  transaction_hash text NOT NULL UNIQUE,
  max_fee          bigint NOT NULL CHECK (max_fee > 0),
  priority_fee     bigint NOT NULL CHECK (priority_fee >= 0),
  raw              text NOT NULL,
  signed_at        timestamptz NOT NULL,
  sent_at          timestamptz,
  PRIMARY KEY (customer_id, withdrawal_id, attempt),
  FOREIGN KEY (customer_id, withdrawal_id) REFERENCES crypto_transaction
);
