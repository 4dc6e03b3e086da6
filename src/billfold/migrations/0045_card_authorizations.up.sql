-- What a card may take for a purchase. `remaining` cents are reserved by the journal entry `hold_entry_no`.
CREATE TABLE card_authorization (
  customer_id         uuid NOT NULL REFERENCES customer,
  authorization_id    uuid NOT NULL,
  card_id             uuid NOT NULL,
  pocket_id           uuid NOT NULL,
  network_reference   text NOT NULL CHECK (length(network_reference) BETWEEN 1 AND 40),
  status              text NOT NULL CHECK (status IN ('PENDING', 'CLEARED', 'REVERSED', 'EXPIRED', 'DECLINED')),
  reason              text,
  approved            bigint NOT NULL CHECK (approved >= 0),
  reversed            bigint NOT NULL CHECK (reversed BETWEEN 0 AND approved),
  cleared             bigint NOT NULL CHECK (cleared >= 0),
  remaining           bigint NOT NULL CHECK (remaining >= 0),
  entry_mode          text,
  is_preauthorization boolean NOT NULL,
  category_code       text NOT NULL CHECK (category_code ~ '^[0-9]{4}$'),
  merchant            json NOT NULL,
  authorized_on       date NOT NULL,
  spent_before        bigint NOT NULL CHECK (spent_before >= 0),
  expires_at          timestamptz NOT NULL,
  transaction_id      uuid NOT NULL,
  places              integer NOT NULL,
  hold_entry_no       bigint,
  created_at          timestamptz NOT NULL,
  updated_at          timestamptz NOT NULL,
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

-- Money that a record of the processor's settlement moved. `disputed` cents of a purchase are charged back.
CREATE TABLE card_payment (
  customer_id      uuid NOT NULL REFERENCES customer,
  record_id        uuid NOT NULL,
  kind             text NOT NULL CHECK (kind IN ('PURCHASE', 'REFUND', 'CHARGEBACK', 'REPRESENTMENT')),
  card_id          uuid NOT NULL,
  pocket_id        uuid NOT NULL,
  authorization_id uuid,
  original_id      uuid,
  amount           bigint NOT NULL CHECK (amount > 0),
  disputed         bigint NOT NULL CHECK (disputed BETWEEN 0 AND amount),
  interchange      bigint NOT NULL,
  merchant         json NOT NULL,
  settles_on       date NOT NULL,
  entry_no         bigint NOT NULL,
  transaction_id   uuid NOT NULL,
  created_at       timestamptz NOT NULL,
  updated_at       timestamptz NOT NULL,
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

-- What a card may spend in a day, in cents: in all, and by merchant category.
CREATE TABLE card_limits (
  customer_id uuid NOT NULL REFERENCES customer,
  card_id     uuid NOT NULL,
  daily       bigint CHECK (daily >= 0),
  categories  json NOT NULL,
  created_at  timestamptz NOT NULL,
  updated_at  timestamptz NOT NULL,
  PRIMARY KEY (customer_id, card_id),
  FOREIGN KEY (customer_id, card_id) REFERENCES card
);
