-- Requests to the APIs, for some days: for finding mistakes, not for evidence. A tenant is a partner or a customer.
CREATE TABLE request_log (
  tenant_id           uuid        NOT NULL,
  requested_at        timestamptz NOT NULL,
  trace_id            uuid        NOT NULL PRIMARY KEY,
  method              text        NOT NULL,
  path                text        NOT NULL,
  operation           text        NOT NULL,
  status              smallint    NOT NULL CHECK (status BETWEEN 100 AND 599),
  error_code          text,
  fields              text[]      NOT NULL,
  has_idempotency_key boolean     NOT NULL,
  is_replayed         boolean     NOT NULL,
  client_id           text,
  member_id           uuid,
  user_id             uuid,
  ip_address          text        NOT NULL,
  duration_ms         integer     NOT NULL,
  CHECK ((status >= 400) = (error_code IS NOT NULL))
);
CREATE INDEX request_log_of_tenant ON request_log (tenant_id, requested_at, trace_id);
CREATE INDEX request_log_of_operation ON request_log (tenant_id, operation, requested_at, trace_id);
CREATE INDEX request_log_errors ON request_log (tenant_id, requested_at, trace_id, operation, error_code)
  WHERE status >= 400;
-- What is old is found by its blocks: it was written first.
CREATE INDEX request_log_by_age ON request_log USING brin (requested_at) WITH (autosummarize = on);
