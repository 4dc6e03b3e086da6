-- People: who they are, whose members they are, how they prove it, and what is mailed to them.
-- Everything here lives on the wall clock.

CREATE TABLE person (
  user_id            uuid PRIMARY KEY,
  email              text NOT NULL UNIQUE CHECK (email = lower(email) AND email ~ '^[^@\s]+@[^@\s]+$' AND length(email) <= 254),
  email_verified_at  timestamptz,
  first_name         text NOT NULL CHECK (length(first_name) BETWEEN 1 AND 50),
  last_name          text NOT NULL CHECK (length(last_name) BETWEEN 1 AND 50),
  phone_number       text CHECK (phone_number ~ '^\+[1-9][0-9]{1,14}$'),
  phone_verified_at  timestamptz,
  time_zone          text NOT NULL DEFAULT 'America/New_York',
  status             text NOT NULL DEFAULT 'ACTIVE' CHECK (status IN ('ACTIVE', 'DEACTIVATED')),
  created_at         timestamptz NOT NULL,
  last_login_at      timestamptz
);

-- One row per customer and person. A deactivated member keeps his row and loses everything else.
CREATE TABLE membership (
  customer_id  uuid NOT NULL REFERENCES customer,
  user_id      uuid NOT NULL REFERENCES person,
  member_id    uuid NOT NULL UNIQUE,
  role         text NOT NULL CHECK (role IN ('ADMIN', 'MANAGER', 'APPROVER', 'INITIATOR', 'VIEWER', 'SERVICE')),
  status       text NOT NULL CHECK (status IN ('PENDING', 'ACTIVE', 'DEACTIVATED')),
  created_at   timestamptz NOT NULL,
  changed_at   timestamptz NOT NULL,
  PRIMARY KEY (customer_id, user_id)
);
CREATE INDEX membership_person ON membership (user_id);

-- What a person proves himself with -----------------------------------------------

CREATE TABLE person_password (
  user_id        uuid PRIMARY KEY REFERENCES person,
  password_hash  text NOT NULL,
  changed_at     timestamptz NOT NULL
);

CREATE TABLE passkey (
  credential_id  bytea PRIMARY KEY,
  passkey_id     uuid NOT NULL UNIQUE,
  user_id        uuid NOT NULL REFERENCES person,
  public_key     bytea NOT NULL,
  sign_count     bigint NOT NULL CHECK (sign_count >= 0),
  name           text NOT NULL CHECK (length(name) BETWEEN 1 AND 60),
  created_at     timestamptz NOT NULL,
  used_at        timestamptz
);
CREATE INDEX passkey_person ON passkey (user_id);

-- A secret that was never confirmed by a code does not count. No step is accepted twice.
CREATE TABLE authenticator (
  user_id       uuid PRIMARY KEY REFERENCES person,
  sealed        bytea NOT NULL,
  last_step     bigint NOT NULL DEFAULT 0,
  created_at    timestamptz NOT NULL,
  confirmed_at  timestamptz
);

CREATE TABLE passkey_challenge (
  challenge   bytea PRIMARY KEY,
  visit_hash  bytea NOT NULL,
  expires_at  timestamptz NOT NULL
);

-- Failures by subject (an address of mail, known or not, or an address on the net) and factor.
CREATE UNLOGGED TABLE proof_failure (
  subject    uuid NOT NULL,
  factor     text NOT NULL CHECK (factor IN ('password', 'code', 'address')),
  failures   int NOT NULL CHECK (failures >= 0),
  failed_at  timestamptz NOT NULL,
  PRIMARY KEY (subject, factor)
) WITH (fillfactor = 70);

-- Where a person is signed in -------------------------------------------------------
-- proved: what was proved, in the words of RFC 8176. A session without a second factor opens
-- nothing but the page that asks for it.

CREATE TABLE session (
  session_hash  bytea PRIMARY KEY,
  session_id    uuid NOT NULL UNIQUE,
  user_id       uuid NOT NULL REFERENCES person,
  proved        text[] NOT NULL,
  complete      boolean NOT NULL,
  proved_at     timestamptz NOT NULL,
  started_at    timestamptz NOT NULL,
  seen_at       timestamptz NOT NULL,
  ends_at       timestamptz NOT NULL,
  address       text NOT NULL,
  device        text NOT NULL CHECK (length(device) <= 120)
) WITH (fillfactor = 70);
CREATE INDEX session_person ON session (user_id);

CREATE TABLE known_device (
  device_hash  bytea NOT NULL,
  user_id      uuid NOT NULL REFERENCES person,
  seen_at      timestamptz NOT NULL,
  PRIMARY KEY (user_id, device_hash)
);

-- What is mailed ----------------------------------------------------------------------

CREATE TABLE mailed_link (
  link_hash   bytea PRIMARY KEY,
  user_id     uuid NOT NULL REFERENCES person,
  purpose     text NOT NULL CHECK (purpose IN ('welcome', 'reset')),
  created_at  timestamptz NOT NULL,
  expires_at  timestamptz NOT NULL,
  used_at     timestamptz
);
CREATE INDEX mailed_link_person ON mailed_link (user_id);

-- A letter is written in the transaction of its cause and sent afterwards. Its text is sealed,
-- for it may hold a link that opens a door, and goes when it was sent.
CREATE TABLE letter (
  letter_id   uuid PRIMARY KEY,
  recipient   text NOT NULL,
  subject     text NOT NULL,
  sealed      bytea,
  written_at  timestamptz NOT NULL,
  due_at      timestamptz NOT NULL,
  attempts    int NOT NULL DEFAULT 0,
  sent_at     timestamptz,
  CHECK ((sent_at IS NULL) = (sealed IS NOT NULL))
);
CREATE INDEX letter_due ON letter (due_at) WHERE sent_at IS NULL;
