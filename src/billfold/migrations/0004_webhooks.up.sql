-- Events told to programs: who reads the log, which sequence an event has for whom, who subscribes,
-- and what was delivered. Everything but `raised_at` lives on the wall clock.

-- The transaction that raised an event. With the snapshot a reader kept it tells what is new to him:
-- whatever is visible now and was not then, in whatever order transactions were committed.
ALTER TABLE event ADD COLUMN xid xid8 NOT NULL DEFAULT pg_current_xact_id();
CREATE INDEX event_xid ON event (xid);

CREATE TABLE event_reader (
  name      text PRIMARY KEY,
  position  pg_snapshot NOT NULL
);
INSERT INTO event_reader VALUES ('sequencer', '1:1:');

-- The place of an event among all that a partner, and a customer, can be told of: without gaps.
-- `told_no` has gaps; whoever reads on by it misses nothing, for one writes here at a time.
CREATE TABLE told (
  customer_id        uuid NOT NULL,
  event_no           bigint NOT NULL,
  event_id           uuid NOT NULL,
  partner_id         uuid NOT NULL,
  kind               text NOT NULL,
  raised_at          timestamptz NOT NULL,
  partner_sequence   bigint CHECK (partner_sequence > 0),
  customer_sequence  bigint CHECK (customer_sequence > 0),
  told_no            bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  PRIMARY KEY (customer_id, event_no),
  UNIQUE (partner_id, partner_sequence),
  UNIQUE (customer_id, customer_sequence)
);
CREATE INDEX told_partner_time ON told (partner_id, raised_at);
CREATE INDEX told_customer_time ON told (customer_id, raised_at);

-- Who wants to be told -------------------------------------------------------------

-- A partner's, or with customer_id a customer's own. Events raised before `since` are not for it.
CREATE TABLE subscription (
  subscription_id   uuid PRIMARY KEY,
  partner_id        uuid NOT NULL,
  customer_id       uuid,
  url               text NOT NULL CHECK (length(url) BETWEEN 1 AND 2083),
  description       text NOT NULL DEFAULT '',
  events            text[] NOT NULL CHECK (cardinality(events) > 0),
  status            text NOT NULL CHECK (status IN ('enabled', 'disabled')),
  disabled_because  text CHECK (disabled_because IS NULL OR status = 'disabled'),
  retry_policy      json,
  since             xid8 NOT NULL DEFAULT pg_current_xact_id(),
  created_at        timestamptz NOT NULL,
  updated_at        timestamptz NOT NULL,
  deleted_at        timestamptz,
  CHECK (deleted_at IS NULL OR status = 'disabled')
);
CREATE INDEX subscription_partner ON subscription (partner_id, created_at, subscription_id)
  WHERE customer_id IS NULL AND deleted_at IS NULL;
CREATE INDEX subscription_customer ON subscription (customer_id, created_at, subscription_id)
  WHERE customer_id IS NOT NULL AND deleted_at IS NULL;

-- Sealed, for what is signed with it cannot be signed with a hash. Two while one is being changed.
CREATE TABLE subscription_secret (
  subscription_id  uuid NOT NULL REFERENCES subscription,
  secret_no        int NOT NULL,
  sealed           bytea NOT NULL,
  created_at       timestamptz NOT NULL,
  expires_at       timestamptz,
  PRIMARY KEY (subscription_id, secret_no)
);

-- Who delivers ------------------------------------------------------------------------

-- A process that delivers. It holds an advisory lock of its number as long as it lives.
CREATE TABLE courier (
  courier_no  int PRIMARY KEY,
  seen_at     timestamptz NOT NULL
);

-- One per subscription: one courier at a time walks it, so that order is kept. `sequence` is the
-- last it was to be told of, `due_at` when the next delivery is due, `failures` those in a row.
CREATE TABLE subscription_lane (
  subscription_id  uuid PRIMARY KEY REFERENCES subscription,
  sequence         bigint NOT NULL CHECK (sequence >= 0),
  told_at          timestamptz NOT NULL,
  due_at           timestamptz,
  rests_until      timestamptz,
  courier_no       int,
  failures         int NOT NULL DEFAULT 0 CHECK (failures >= 0)
) WITH (fillfactor = 50);
CREATE INDEX subscription_lane_due ON subscription_lane (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX subscription_lane_courier ON subscription_lane (courier_no) WHERE courier_no IS NOT NULL;

-- What is delivered ---------------------------------------------------------------------

-- What a sandbox, or a test of one subscription, pretends has happened. It is in no log.
CREATE TABLE simulated_event (
  serial           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  event_id         uuid NOT NULL,
  partner_id       uuid NOT NULL,
  customer_id      uuid,
  subscription_id  uuid REFERENCES subscription,
  kind             text NOT NULL,
  payload          json NOT NULL,
  raised_at        timestamptz NOT NULL,
  told_at          timestamptz NOT NULL,
  UNIQUE NULLS NOT DISTINCT (partner_id, customer_id, event_id)
);

-- One event for one subscription: of the log, or simulated. `tries` counts since it was last put
-- into the queue.
CREATE TABLE delivery (
  subscription_id    uuid NOT NULL REFERENCES subscription,
  event_id           uuid NOT NULL,
  customer_id        uuid,
  event_no           bigint,
  sequence           bigint,
  previous_sequence  bigint,
  simulated          bigint REFERENCES simulated_event,
  state              text NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
  tries              int NOT NULL DEFAULT 0 CHECK (tries >= 0),
  due_at             timestamptz,
  told_at            timestamptz NOT NULL,
  PRIMARY KEY (subscription_id, event_id),
  CHECK ((state = 'pending') = (due_at IS NOT NULL)),
  CHECK ((simulated IS NULL) = (event_no IS NOT NULL)),
  CHECK ((event_no IS NULL) = (sequence IS NULL) AND (sequence IS NULL) = (previous_sequence IS NULL)),
  CHECK (event_no IS NULL OR customer_id IS NOT NULL),
  CHECK (previous_sequence < sequence)
) WITH (fillfactor = 80);
CREATE INDEX delivery_due ON delivery (subscription_id, due_at, sequence) WHERE due_at IS NOT NULL;
CREATE INDEX delivery_failed ON delivery (subscription_id, told_at) WHERE state = 'failed';

-- `response_code` is 0 when there was no answer. What was answered is not kept, only what kind of
-- answer it was.
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
