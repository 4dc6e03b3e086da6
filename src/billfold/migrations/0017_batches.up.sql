-- Batches: up to 1,000 transfers in one request, approved as one list. A batch of a partner has a `partner_id` and lies
-- with the partner's own customer. Each row keeps its content, the object that it makes, and its result; a row that was
-- malformed has no content. The release before knows nothing of batches: it neither shows nor runs them.
CREATE TABLE batch (
  customer_id    uuid NOT NULL REFERENCES customer,
  request_id     uuid NOT NULL,
  partner_id     uuid,
  kind           text NOT NULL CHECK (kind IN ('TRANSFERS')),
  mode           text NOT NULL CHECK (mode IN ('ATOMIC', 'INDEPENDENT')),
  content        json NOT NULL,
  content_hash   bytea NOT NULL CHECK (length(content_hash) = 32),
  asked          bytea NOT NULL,
  row_count      int NOT NULL CHECK (row_count BETWEEN 1 AND 1000),
  amount         bigint NOT NULL CHECK (amount >= 0),
  member_id      uuid NOT NULL,
  user_id        uuid,
  client_id      text NOT NULL,
  reviewers      uuid[] NOT NULL,
  terms          json NOT NULL,
  business_date  date NOT NULL,
  status         text NOT NULL CHECK (status IN ('PENDING', 'APPROVED', 'DENIED', 'CANCELLED', 'EXPIRED')),
  refused        text,
  created_at     timestamptz NOT NULL,
  updated_at     timestamptz NOT NULL,
  expires_at     timestamptz NOT NULL CHECK (expires_at > created_at),
  finished_at    timestamptz,
  written_no     bigint GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (customer_id, request_id),
  CHECK (finished_at IS NULL OR status = 'APPROVED'),
  CHECK (refused IS NULL OR finished_at IS NOT NULL)
);
CREATE INDEX batch_list ON batch (customer_id, created_at, written_no);
CREATE INDEX batch_open ON batch (customer_id, business_date)
 WHERE status IN ('PENDING', 'APPROVED') AND finished_at IS NULL;

CREATE TABLE batch_row (
  customer_id   uuid NOT NULL,
  batch_id      uuid NOT NULL,
  row_no        int NOT NULL CHECK (row_no BETWEEN 1 AND 1000),
  row_key       text CHECK (length(row_key) BETWEEN 1 AND 255),
  content       json,
  content_hash  bytea CHECK (length(content_hash) = 32),
  object_id     uuid,
  amount        bigint CHECK (amount > 0),
  rule_id       uuid,
  terms         json,
  state         text NOT NULL CHECK (state IN ('WAITING', 'COMPLETED', 'FAILED')),
  problem       json,
  PRIMARY KEY (customer_id, batch_id, row_no),
  FOREIGN KEY (customer_id, batch_id) REFERENCES batch,
  CHECK (state = 'FAILED' OR (content_hash IS NOT NULL AND object_id IS NOT NULL AND amount IS NOT NULL)),
  CHECK ((state = 'FAILED') = (problem IS NOT NULL))
);
CREATE INDEX batch_row_object ON batch_row (customer_id, object_id);

ALTER TABLE transfer_request ADD COLUMN batch_id uuid;

GRANT UPDATE ON batch, batch_row TO billfold_app;
