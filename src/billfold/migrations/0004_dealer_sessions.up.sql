-- Sessions with dealers over FIX: their sequence numbers, and every message about an order or an execution.

-- The dealer to whom an order went over a session and why; without a dealer people work it by hand.
ALTER TABLE dealer_order
  ADD COLUMN dealer text,
  ADD COLUMN taken_because text,
  ADD COLUMN cancel_asked boolean NOT NULL DEFAULT false;
-- The dealer's own id of a quote, with which it is taken.
ALTER TABLE dealer_quote ADD COLUMN reference text;

-- `owner_id` is the process that has the session: another's numbers are refused. Both numbers begin at 1 on
-- `session_day`. `problem` is what a person has to see.
CREATE TABLE dealer_session (
  dealer       text PRIMARY KEY,
  owner_id     uuid NOT NULL,
  session_day  date NOT NULL,
  next_in      bigint NOT NULL CHECK (next_in > 0),
  next_out     bigint NOT NULL CHECK (next_out > 0),
  is_on        boolean NOT NULL,
  problem      text,
  changed_at   timestamptz NOT NULL
);

-- A message as received or sent, stored together with its sequence number. `received_at` is wall time.
CREATE TABLE dealer_message (
  message_id   uuid PRIMARY KEY,
  dealer       text NOT NULL,
  session_day  date NOT NULL,
  is_inbound   boolean NOT NULL,
  seq          bigint NOT NULL,
  type         text NOT NULL,
  order_id     uuid,
  reference    text,
  content      text NOT NULL,
  received_at  timestamptz NOT NULL,
  status       text NOT NULL CHECK (status IN ('SENT', 'NEW', 'DONE', 'HELD', 'REFUSED', 'CLOSED')),
  reason       text
);
CREATE INDEX dealer_message_open ON dealer_message (dealer, received_at) WHERE status IN ('NEW', 'HELD', 'REFUSED');
CREATE INDEX dealer_message_order ON dealer_message (order_id) WHERE order_id IS NOT NULL;
CREATE INDEX dealer_message_list ON dealer_message (received_at);

GRANT UPDATE ON dealer_session, dealer_message TO billfold_app;
