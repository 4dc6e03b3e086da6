-- What a customer's people are told, to whom, and who has read it. Everything is on the wall clock.

CREATE TABLE notification (
  customer_id      uuid NOT NULL REFERENCES customer,
  notification_id  uuid NOT NULL,
  type             text NOT NULL,
  title            text NOT NULL CHECK (length(title) BETWEEN 1 AND 200),
  description      text NOT NULL CHECK (length(description) <= 2000),
  metadata         json,
  created_at       timestamptz NOT NULL,
  PRIMARY KEY (customer_id, notification_id)
);
CREATE INDEX notification_list ON notification (customer_id, created_at, notification_id);

-- One row per person who was in the audience when it happened.
CREATE TABLE notification_recipient (
  customer_id      uuid NOT NULL,
  user_id          uuid NOT NULL REFERENCES person,
  created_at       timestamptz NOT NULL,
  notification_id  uuid NOT NULL,
  read_at          timestamptz,
  PRIMARY KEY (customer_id, user_id, created_at, notification_id),
  FOREIGN KEY (customer_id, notification_id) REFERENCES notification
);
CREATE INDEX notification_unread ON notification_recipient (customer_id, user_id, created_at, notification_id)
  WHERE read_at IS NULL;

-- The audience a team has chosen. No row: the platform's default. Empty lists: nobody.
CREATE TABLE notification_audience (
  customer_id  uuid NOT NULL REFERENCES customer,
  type         text NOT NULL,
  roles        text[] NOT NULL,
  user_ids     uuid[] NOT NULL,
  changed_at   timestamptz NOT NULL,
  PRIMARY KEY (customer_id, type)
);

-- How far notifications have followed the events that were told.
CREATE TABLE notification_mark (
  singleton  boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  told_no    bigint NOT NULL
);
INSERT INTO notification_mark (told_no) VALUES (0);

-- What had happened to a customer before there were notifications; nobody is told of it now.
CREATE TABLE notification_past (
  customer_id  uuid PRIMARY KEY,
  event_no     bigint NOT NULL
);
INSERT INTO notification_past SELECT customer_id, event_no FROM head WHERE event_no > 0;
