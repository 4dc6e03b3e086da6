-- Cards as the bank knows them: no card number, no CVV, no PIN. Those stay with the card processor.
CREATE TABLE card (
  customer_id      uuid NOT NULL REFERENCES customer,
  card_id          uuid NOT NULL,
  pocket_id        uuid NOT NULL,
  card_order_id    uuid,
  type             text NOT NULL CHECK (type IN ('VIRTUAL', 'PHYSICAL')),
  name             text NOT NULL,
  status           text NOT NULL CHECK (status IN ('NOT_ACTIVATED', 'ONLINE', 'OFFLINE', 'FROZEN', 'CLOSED')),
  magstripe_status text NOT NULL CHECK (magstripe_status IN ('ON', 'OFF')),
  last_four        text NOT NULL CHECK (last_four ~ '^[0-9]{4}$'),
  expires_on       date NOT NULL,
  has_pin          boolean NOT NULL,
  created_at       timestamptz NOT NULL,
  updated_at       timestamptz NOT NULL,
  closure_reason   text,
  lost_stolen_on   date,
  written_no       bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (customer_id, card_id),
  FOREIGN KEY (customer_id, pocket_id) REFERENCES pocket,
  CHECK ((type = 'PHYSICAL') = (card_order_id IS NOT NULL)),
  CHECK (magstripe_status = 'OFF' OR status = 'ONLINE'),
  CHECK (has_pin OR type = 'VIRTUAL' OR status IN ('NOT_ACTIVATED', 'CLOSED')),
  CHECK (closure_reason IS NULL OR status = 'CLOSED')
);
CREATE INDEX card_list ON card (customer_id, created_at, written_no);
CREATE INDEX card_pocket ON card (customer_id, pocket_id, created_at, written_no);

-- Orders of physical cards. The shipping address is sealed.
CREATE TABLE card_order (
  customer_id      uuid NOT NULL REFERENCES customer,
  card_order_id    uuid NOT NULL,
  pocket_id        uuid NOT NULL,
  status           text NOT NULL CHECK (status IN ('INITIAL', 'ORDERED', 'CARD_CREATED', 'RECEIVED')),
  name_on_card     text NOT NULL,
  shipping_address text NOT NULL,
  card_id          uuid,
  created_at       timestamptz NOT NULL,
  updated_at       timestamptz NOT NULL,
  written_no       bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (customer_id, card_order_id),
  FOREIGN KEY (customer_id, pocket_id) REFERENCES pocket,
  CHECK ((card_id IS NOT NULL) = (status IN ('CARD_CREATED', 'RECEIVED')))
);
CREATE INDEX card_order_list ON card_order (customer_id, created_at, written_no);
CREATE INDEX card_order_pocket ON card_order (customer_id, pocket_id, created_at, written_no);

-- The public keys to which card details were encrypted: each is used for one request.
CREATE TABLE card_detail_key (
  fingerprint     bytea PRIMARY KEY,
  command_id      uuid NOT NULL,
  used_at         timestamptz NOT NULL
);
