-- Dual control: what one person asks for and another decides. Nothing here moves money; what is
-- approved is carried out by commands of the engine under the request's id. Instants are the bank's.

-- What a customer has agreed with the operator. No row: the defaults.
CREATE TABLE dual_control (
  customer_id  uuid PRIMARY KEY REFERENCES customer,
  -- Is a fresh proof asked of every reviewer, also of those who come through a lenient program?
  step_up      boolean NOT NULL
);

-- The rules by which approvals are asked for. Empty lists name nobody in particular: everything,
-- everybody. A rule changes only after a second person has confirmed the change.
CREATE TABLE approval_rule (
  customer_id         uuid NOT NULL REFERENCES customer,
  rule_id             uuid NOT NULL UNIQUE,
  name                text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
  actions             text[] NOT NULL CHECK (cardinality(actions) > 0),
  transfer_types      text[] NOT NULL,
  min_amount          bigint CHECK (min_amount > 0),
  daily_cap           bigint CHECK (daily_cap > 0),
  required_approvals  smallint NOT NULL CHECK (required_approvals BETWEEN 0 AND 5),
  approver_roles      text[] NOT NULL,
  approver_ids        uuid[] NOT NULL,
  ordered             boolean NOT NULL,
  enabled             boolean NOT NULL,
  version             int NOT NULL CHECK (version > 0),
  created_at          timestamptz NOT NULL,
  updated_at          timestamptz NOT NULL,
  PRIMARY KEY (customer_id, rule_id),
  CHECK (NOT ordered OR (approver_roles = '{}' AND cardinality(approver_ids) = required_approvals)
                     OR (approver_ids = '{}' AND cardinality(approver_roles) = required_approvals))
);

-- A transfer that somebody asked for. content is the exact text that is approved, content_hash its
-- SHA-256; a change gives both anew, and approvals of another hash do not count. terms are those of
-- the rule as it was when the request was made or changed. reason: why it could not be carried out.
CREATE TABLE transfer_request (
  customer_id      uuid NOT NULL REFERENCES customer,
  request_id       uuid NOT NULL UNIQUE,
  type             text NOT NULL CHECK (type IN ('ON_US', 'WIRE', 'USDC')),
  pocket_id        uuid NOT NULL,
  counterparty_id  uuid,
  amount           bigint NOT NULL CHECK (amount > 0),
  content          json NOT NULL,
  content_hash     bytea NOT NULL CHECK (length(content_hash) = 32),
  asked            bytea NOT NULL CHECK (length(asked) = 32),
  member_id        uuid NOT NULL,
  user_id          uuid,
  client_id        text NOT NULL,
  reviewers        uuid[] NOT NULL,
  rule_id          uuid,
  terms            json NOT NULL,
  business_date    date NOT NULL,
  status           text NOT NULL CHECK (status IN ('PENDING', 'APPROVED', 'DENIED', 'CANCELLED', 'EXPIRED')),
  reason           text,
  created_at       timestamptz NOT NULL,
  updated_at       timestamptz NOT NULL,
  expires_at       timestamptz NOT NULL CHECK (expires_at > created_at),
  PRIMARY KEY (customer_id, request_id),
  CHECK (reason IS NULL OR status = 'APPROVED')
);
CREATE INDEX transfer_request_list ON transfer_request (customer_id, created_at, request_id);
CREATE INDEX transfer_request_cap ON transfer_request (rule_id, business_date) WHERE rule_id IS NOT NULL;

-- A sensitive change that somebody asked for: of a rule, of a member's role, a new counterparty.
CREATE TABLE change_request (
  customer_id    uuid NOT NULL REFERENCES customer,
  request_id     uuid NOT NULL UNIQUE,
  action         text NOT NULL,
  resource_type  text NOT NULL,
  resource_id    uuid,
  content        json NOT NULL,
  content_hash   bytea NOT NULL CHECK (length(content_hash) = 32),
  member_id      uuid NOT NULL,
  user_id        uuid,
  client_id      text NOT NULL,
  terms          json NOT NULL,
  status         text NOT NULL CHECK (status IN ('PENDING', 'APPROVED', 'DENIED', 'EXPIRED')),
  applied_at     timestamptz,
  refused        text,
  created_at     timestamptz NOT NULL,
  updated_at     timestamptz NOT NULL,
  expires_at     timestamptz NOT NULL CHECK (expires_at > created_at),
  PRIMARY KEY (customer_id, request_id),
  CHECK (status = 'APPROVED' OR (applied_at IS NULL AND refused IS NULL))
);
CREATE INDEX change_request_list ON change_request (customer_id, created_at, request_id);

-- One voice of one person about one content. member_since is when his membership last changed: a
-- reviewer who has got another role since, or was deactivated, has not said anything any more.
CREATE TABLE review (
  customer_id   uuid NOT NULL,
  request_id    uuid NOT NULL,
  review_no     int NOT NULL CHECK (review_no > 0),
  member_id     uuid NOT NULL,
  user_id       uuid NOT NULL REFERENCES person,
  role          text NOT NULL,
  member_since  timestamptz NOT NULL,
  decision      text NOT NULL CHECK (decision IN ('APPROVED', 'DENIED')),
  comment       text CHECK (length(comment) <= 500),
  content_hash  bytea NOT NULL CHECK (length(content_hash) = 32),
  created_at    timestamptz NOT NULL,
  voided_at     timestamptz,
  PRIMARY KEY (customer_id, request_id, review_no)
);
CREATE UNIQUE INDEX review_one_voice ON review (customer_id, request_id, user_id) WHERE voided_at IS NULL;
