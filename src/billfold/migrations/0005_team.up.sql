-- Teams: who was invited and has not accepted yet, and the programs that are members themselves.

-- Whoever is invited is nobody here before he accepts: no person, no membership, no name that
-- another company could see. He becomes a member under the id the invitation has.
-- Its seven days are of the bank's clock; the mailed link besides ends on the wall clock.
CREATE TABLE invitation (
  member_id        uuid PRIMARY KEY,
  customer_id      uuid NOT NULL REFERENCES customer,
  email            text NOT NULL CHECK (email = lower(email) AND email ~ '^[^@\s]+@[^@\s]+$' AND length(email) <= 254),
  first_name       text NOT NULL CHECK (length(first_name) BETWEEN 1 AND 50),
  last_name        text NOT NULL CHECK (length(last_name) BETWEEN 1 AND 50),
  phone_number     text CHECK (phone_number ~ '^\+[1-9][0-9]{1,14}$'),
  role             text NOT NULL CHECK (role IN ('ADMIN', 'MANAGER', 'APPROVER', 'INITIATOR', 'VIEWER')),
  created_at       timestamptz NOT NULL,
  expires_at       timestamptz NOT NULL CHECK (expires_at > created_at),
  link_hash        bytea NOT NULL UNIQUE,
  link_expires_at  timestamptz NOT NULL,
  UNIQUE (customer_id, email)
);

-- A service user is the client it acts as: its name, its scopes, its keys, and whether it is in use.
ALTER TABLE oauth_client ADD COLUMN member_id uuid UNIQUE;
UPDATE oauth_client SET member_id = gen_random_uuid() WHERE customer_id IS NOT NULL;
ALTER TABLE oauth_client
  ADD CONSTRAINT oauth_client_is_member CHECK ((member_id IS NULL) = (customer_id IS NULL));
CREATE INDEX oauth_client_customer ON oauth_client (customer_id) WHERE customer_id IS NOT NULL;

-- Which member gave a program its key, a person or another program; the operator is nobody. Whoever
-- did can act as the program.
ALTER TABLE client_key ADD COLUMN registered_by uuid;
