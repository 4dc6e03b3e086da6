-- A file that the bank made for a customer, downloaded by temporary URLs: its size and hash are those of its content.
CREATE TABLE report_file (
  customer_id  uuid NOT NULL REFERENCES customer,
  file_id      uuid PRIMARY KEY,
  name         text NOT NULL CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,119}$'),
  media_type   text NOT NULL,
  size_bytes   bigint NOT NULL CHECK (size_bytes >= 0),
  sha256       text NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  created_at   timestamptz NOT NULL
);
CREATE INDEX report_file_customer ON report_file (customer_id);

-- Its parts in the file store, each sealed with the customer's data key; size and hash are those of what is stored.
CREATE TABLE report_file_part (
  file_id     uuid NOT NULL REFERENCES report_file ON DELETE CASCADE,
  part_no     int NOT NULL CHECK (part_no > 0),
  key         text NOT NULL UNIQUE,
  size_bytes  bigint NOT NULL CHECK (size_bytes > 0),
  sha256      text NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  PRIMARY KEY (file_id, part_no)
);

-- What was requested. The report shows the customer as it was at `created_at`, in business time, whenever it is made.
CREATE TABLE report_request (
  customer_id        uuid NOT NULL REFERENCES customer,
  report_request_id  uuid NOT NULL UNIQUE,
  partner_id         uuid NOT NULL,
  report_id          uuid NOT NULL UNIQUE,
  type               text NOT NULL CHECK (type IN ('BANK_STATEMENT_REPORT', 'BROKERAGE_STATEMENT_REPORT',
                       'TRADE_REPORT', 'SECURITY_PRICE_REPORT', 'POSITION_SUMMARY_REPORT')),
  parameters         json NOT NULL,
  output_formats     text[] NOT NULL CHECK (cardinality(output_formats) > 0),
  status             text NOT NULL CHECK (status IN ('PENDING', 'PROCESSING', 'COMPLETED', 'FAILED')),
  failure_reason     text,
  requested_by       text NOT NULL,
  created_at         timestamptz NOT NULL,
  updated_at         timestamptz NOT NULL,
  expires_at         timestamptz NOT NULL,
  written_no         bigint GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (customer_id, report_request_id),
  CHECK ((status = 'FAILED') = (failure_reason IS NOT NULL)),
  CHECK (expires_at > created_at)
);
CREATE INDEX report_request_created ON report_request (customer_id, created_at, written_no);
CREATE INDEX report_request_of_partner ON report_request (partner_id, created_at, written_no);
CREATE INDEX report_request_expires ON report_request (expires_at);

-- The formats of a report. A worker that makes one holds it until `claimed_until`, in wall time as `due_at`; formats
-- that were requested at once share a batch, and whoever asked is notified when all of a batch are made.
CREATE TABLE report_format (
  customer_id     uuid NOT NULL,
  report_id       uuid NOT NULL REFERENCES report_request (report_id) ON DELETE CASCADE,
  output_format   text NOT NULL,
  batch_id        uuid NOT NULL,
  tenant_id       uuid NOT NULL,
  status          text NOT NULL CHECK (status IN ('PENDING', 'PROCESSING', 'COMPLETED', 'FAILED')),
  failure_reason  text,
  progress        smallint NOT NULL CHECK (progress BETWEEN 0 AND 100),
  attempts        int NOT NULL CHECK (attempts >= 0),
  due_at          timestamptz NOT NULL,
  started_at      timestamptz,
  owner_id        uuid,
  claimed_until   timestamptz,
  file_id         uuid UNIQUE REFERENCES report_file,
  PRIMARY KEY (report_id, output_format),
  CHECK ((status = 'PROCESSING') = (owner_id IS NOT NULL)),
  CHECK ((owner_id IS NULL) = (claimed_until IS NULL)),
  CHECK ((status = 'COMPLETED') = (file_id IS NOT NULL)),
  CHECK ((status = 'FAILED') = (failure_reason IS NOT NULL))
);
CREATE INDEX report_format_batch ON report_format (batch_id);
CREATE INDEX report_format_waiting ON report_format (tenant_id, due_at) WHERE status IN ('PENDING', 'PROCESSING');
CREATE INDEX report_format_started ON report_format (tenant_id, started_at);
CREATE INDEX report_format_unfinished ON report_format (customer_id) WHERE status IN ('PENDING', 'PROCESSING');
