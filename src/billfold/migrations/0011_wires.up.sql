-- Wires, both ways, and the messages of Fedwire that wait to be sent about them.

CREATE TABLE wire (
  customer_id        uuid NOT NULL,
  wire_id            uuid NOT NULL,
  partner_id         uuid NOT NULL,
  pocket_id          uuid NOT NULL,
  portal_id          uuid,
  direction          text NOT NULL CHECK (direction IN ('INCOMING', 'OUTGOING')),
  wire_type          text NOT NULL CHECK (wire_type IN ('PAYMENT', 'REVERSAL', 'RETURN')),
  original_wire_id   uuid,
  status             text NOT NULL CHECK (status IN ('PENDING', 'PROCESSING', 'COMPLETED', 'REJECTED')),
  reason             text,
  amount             bigint NOT NULL CHECK (amount > 0),
  fee                bigint NOT NULL CHECK (fee >= 0),
  counterparty_id    uuid,
  counterparty_name  text NOT NULL,
  reference_number   text NOT NULL,
  uetr               text NOT NULL,
  imad               text,
  omad               text,
  description        text,
  wire_instructions  text,
  end_to_end_identification text,
  created_by         text,
  request            json NOT NULL,
  message            json, -- the message that brought an incoming wire
  transaction_id     uuid,
  journal_no         bigint, -- where it is booked; null when no money moved
  send_at            timestamptz,
  created_at         timestamptz NOT NULL,
  settled_at         timestamptz,
  updated_at         timestamptz NOT NULL,
  PRIMARY KEY (customer_id, wire_id),
  CONSTRAINT wire_return_of CHECK ((wire_type = 'RETURN') = (original_wire_id IS NOT NULL)),
  CONSTRAINT wire_rejected_for CHECK ((status = 'REJECTED') = (reason IS NOT NULL)),
  CONSTRAINT wire_settled CHECK ((status = 'COMPLETED') = (settled_at IS NOT NULL))
);
CREATE INDEX wire_partner ON wire (partner_id, created_at, wire_id);
CREATE INDEX wire_customer ON wire (customer_id, created_at, wire_id);
CREATE INDEX wire_uetr ON wire (uetr);
-- A double return cannot be written down.
CREATE UNIQUE INDEX wire_returned_once ON wire (customer_id, original_wire_id)
 WHERE original_wire_id IS NOT NULL AND status <> 'REJECTED';

-- One row per message. `terms` is what it says; number, file and instant come when it is sent.
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

-- Messages that arrived, by their own numbers: none is taken twice.
CREATE TABLE wire_arrival (
  number      text PRIMARY KEY,
  file_id     uuid NOT NULL,
  arrived_at  timestamptz NOT NULL
);

-- Somebody asks for a wire back: we for one that we sent (OUTGOING), or its sender for one we took.
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
  PRIMARY KEY (direction, case_id),
  CHECK ((status = 'OPEN') = (closed_at IS NULL))
);
CREATE INDEX wire_case_wire ON wire_case (wire_id);
CREATE UNIQUE INDEX wire_case_open_once ON wire_case (wire_id) WHERE status = 'OPEN';
